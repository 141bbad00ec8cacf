//! What a user would pick instead of Ensilo, on the same work in one run.
//!
//! - [`Peer`]: what a database has to do; [`engine`]: the databases.
//! - [`workload`]: YCSB, TPC-C and transfers on them, run by the driver of `ensilo-bench` and checked after every run.
//! - [`compare`]: every database under every workload, taking turns.
//!
//! Rows, keys, values, random numbers and check are the same for all. What each run measured is an `ensilo_figures::compare::PeerRun`, of
//! which that crate makes tables, plots and a section of its page.
#![deny(unsafe_code)]

mod account;
mod comparison;
pub mod engine;
mod names;
mod peer;
pub mod workload;

pub use account::Account;
pub use comparison::{CompareOptions, compare};
pub use names::{PeerName, WorkloadName};
pub use peer::{Client, Peer, Setting, Transfer, VALUE_BYTES};
