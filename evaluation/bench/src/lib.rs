//! Workloads that measure Ensilo: TPC-B, TPC-C by itself and with a long transaction, its stocks alone, TPC-E, YCSB and transfers,
//! and the driver that runs them.
//!
//! The workloads use the public API that every user has and nothing beneath it: what they measure is what a user gets.
//! Each is checked for consistency after every run.
//!
//! - [`driver`]: warm-up, measurement, live view, latencies; knows workloads only by a trait.
//! - [`tpcb`], [`tpcc`], [`tpcc_hybrid`], [`stock`], [`tpce`] and [`ycsb`]: the workloads of `ensilo bench`; [`transfer`], on any database that is a [`Peer`](peer::Peer).
//! - [`System`]: what a workload can run on: the product, and what Silo's paper compares it with.
//! - [`report`]: tables and JSON.
#![forbid(unsafe_code)]

mod benchmark;
mod crash;
mod database;
mod disk;
mod dispatch;
pub mod driver;
pub mod mix;
mod options;
pub mod peer;
mod place;
pub mod random;
mod refusal;
pub mod report;
pub mod stock;
mod systems;
#[cfg(test)]
mod tests;
pub mod tpcb;
pub mod tpcc;
pub mod tpcc_hybrid;
pub mod tpce;
pub mod transfer;
pub mod ycsb;

pub use benchmark::run_benchmark;
pub use crash::run_and_crash;
pub use database::{DatabaseOptions, Directories};
pub use disk::SyncedWrites;
pub use dispatch::{Visitor, visit_in_memory, visit_on_disk};
pub use options::{Benchmark, BenchmarkOptions, CrashOptions};
pub use place::{
    StorageOptions, TemporaryDirectory, remove_temporary_files, temporary_root, warn_if_in_memory,
};
pub use refusal::refusal;
pub use report::free_memory_bytes;
pub use systems::{LogRecords, System};
