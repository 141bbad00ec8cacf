//! The driver: takes any workload through warm-up, measurement and check, and tells how it goes.

mod check;
mod clock;
mod failure;
mod interrupt;
mod latencies;
mod measurements;
mod parallel;
mod pin;
mod run;
#[cfg(test)]
mod tests;
mod view;
mod workload;

pub use check::Check;
pub use clock::{Clock, Stamp};
pub use failure::Failure;
pub use interrupt::Interrupt;
pub use latencies::Latencies;
pub use measurements::{AbortKind, Aborts, Measurements, TypeMeasurements};
pub use parallel::{Division, Reporter, parallel};
pub use run::{RunOptions, RunResult, SecondCounts, run};
pub use view::{Progress, Tick, View, grouped};
pub use workload::{Memory, Outcome, Session, Workload};
