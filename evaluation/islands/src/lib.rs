//! Workloads on several instances: the microbenchmark of the islands paper, and TPC-B.
//!
//! # Source
//! Islands (VLDB Journal) §3.2 and §3.3.
#![forbid(unsafe_code)]

mod micro;
mod parts;
mod report;
mod run;
mod shares;
mod tpcb;

pub use micro::{Micro, MicroOptions};
pub use report::IslandsReport;
pub use run::{RunError, RunOptions, Workload, run};
pub use tpcb::{Tpcb, TpcbOptions};
