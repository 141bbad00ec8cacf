//! The report on a benchmark: tables for people and JSON for programs, with the same fields.

mod durable;
mod half_seconds;
mod machine;
mod model;
mod regions;
#[cfg(test)]
mod tests;
mod text;

pub use crate::disk::DiskReport;
pub use durable::{DurabilityReport, DurableLatencyReport, RecoveryReport, SurvivalReport, TimedCheckpoint};
pub use half_seconds::{HalfSecond, HalfSecondsReport};
pub use machine::{Build, Machine, free_memory_bytes};
pub use model::{
    AbortShare, CheckReport, CheckedRun, LatencyReport, MemoryReport, Report, RunReport, Subject, TypeReport,
};
pub use regions::RegionRun;
