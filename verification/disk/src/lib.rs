//! Disks for tests.
//!
//! - [`SimulatedDisk`]: files in memory whose power fails by a seed, with [`Faults`] on order.
//! - [`Recorder`]: notes down what is done to a disk as a [`Trace`], so that a test can crash it after every operation.
//!
//! Both implement [`ensilo_disk::Disk`], and use nothing of that crate but its public items. They know nothing of the database.
#![forbid(unsafe_code)]

mod simulated;
mod trace;

pub use simulated::{Counts, Faults, Gate, SimulatedDisk};
pub use trace::{FileId, Operation, Recorder, Trace, TraceCursor};
