//! What a user would pick instead of Ensilo, on the same work in one run.
//!
//! - [`engine`]: the databases, each a [`Peer`](ensilo_bench::peer::Peer) as Ensilo is.
//! - [`workload`]: YCSB and TPC-C on them, beside the transfers of `ensilo-bench`; its driver runs them, and they are checked after every run.
//! - [`compare`]: every database under every workload, taking turns; [`LatencyPeers`]: one run at a time, for a figure.
//!
//! Rows, keys, values, random numbers and check are the same for all. What each run measured is an `ensilo_figures::compare::PeerRun`, of
//! which that crate makes tables, plots and a section of its page.
#![deny(unsafe_code)]

mod comparison;
pub mod engine;
mod latency;
mod names;
pub mod workload;

pub use comparison::{CompareOptions, compare};
pub use latency::LatencyPeers;
pub use names::{PeerName, WorkloadName};
