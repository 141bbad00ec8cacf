//! Workloads on several instances: the microbenchmark of the islands paper, TPC-B and TPC-C.
//!
//! # Source
//! Islands (VLDB Journal) §3.2 and §3.3.
#![forbid(unsafe_code)]

mod advise;
mod micro;
mod parts;
mod report;
mod run;
mod shares;
mod tpcb;
mod tpcc;

pub use advise::{Layout, MeasureOptions};
pub use micro::{Micro, MicroOptions};
pub use report::IslandsReport;
pub use run::{Ask, RunError, RunOptions, Workload, run};
pub use tpcb::{Tpcb, TpcbOptions};
pub use tpcc::{TpccIslands, TpccIslandsOptions};
