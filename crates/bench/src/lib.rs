//! Workloads that measure Ensilo: TPC-C and YCSB.
#![forbid(unsafe_code)]

pub mod driver;
pub mod random;
pub mod report;
