//! The driver: takes any workload through warm-up, measurement and check, and tells how it goes.

mod acknowledged;
mod check;
mod clock;
mod durability;
mod failure;
mod interrupt;
mod latencies;
mod measurements;
mod parallel;
mod pending;
mod pin;
mod processor_time;
mod run;
mod standard_error;
#[cfg(test)]
mod tests;
mod view;
mod watch;
mod workload;

pub(crate) use acknowledged::read_acknowledged;
pub use check::Check;
pub use clock::{Clock, Stamp};
pub use durability::DurabilityCounts;
pub use failure::Failure;
pub use interrupt::Interrupt;
pub use latencies::Latencies;
pub use measurements::{AbortKind, Aborts, Measurements, TypeMeasurements};
pub use parallel::{Division, Reporter, parallel};
pub(crate) use run::{Crash, run_until_crash};
pub use run::{RunOptions, RunResult, run};
pub use standard_error::{complain, standard_error_has_failed};
pub use view::{Progress, Tick, View, grouped};
pub use watch::{Interval, SecondCounts};
pub use workload::{Memory, Outcome, Session, Workload};
