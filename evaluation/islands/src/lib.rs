//! Workloads on several instances: the microbenchmark of the islands paper, TPC-B, TPC-C and YCSB, and what was recorded of a program.
//!
//! Beside them stands what the paper measures of the machine itself: counters and channels.
//!
//! # Source
//! Islands (VLDB Journal) §3.2 and §3.3 for the workloads, §3 and §4 for the machine.
#![forbid(unsafe_code)]

mod advise;
mod channels;
mod counters;
mod micro;
mod parts;
mod recorded;
mod report;
mod run;
mod shares;
mod suite;
mod timed;
mod tpcb;
mod tpcc;
mod ycsb;

pub use advise::{Assessment, Layout, MeasureOptions, Target};
pub use channels::{ChannelReport, ChannelRun};
pub use counters::{CountersOptions, CountersReport, run_counters};
pub use micro::{Micro, MicroOptions};
pub use recorded::{Recorded, RecordedOptions};
pub use report::IslandsReport;
pub use run::{Ask, RunError, RunOptions, Workload, run};
pub use suite::{SuiteEntry, suite};
pub use timed::{TimedMicro, TimedMicroOptions};
pub use tpcb::{Tpcb, TpcbOptions};
pub use tpcc::{TpccIslands, TpccIslandsOptions};
pub use ycsb::{YcsbIslands, YcsbIslandsOptions};
