//! Disks for tests.
//!
//! - [`SimulatedDisk`]: files in memory. Its power fails by a seed, and its operations by planned [`Faults`].
//! - [`Recorder`]: notes down what is done to a disk as a [`Trace`], so that a test can crash it after every operation.
//! - [`forward_disk!`], [`forward_file!`]: the methods that a test's own disk or file passes on to another one.
//!
//! The first two implement [`ensilo_disk::Disk`], and use nothing of that crate but its public items. They know nothing of the database.
#![forbid(unsafe_code)]

mod forward;
mod simulated;
mod trace;

/// For the macros.
#[doc(hidden)]
pub use ensilo_disk as disk;

pub use simulated::{Counts, Faults, SimulatedDisk, SyncPause};
pub use trace::{FileId, Operation, Recorder, Trace, TraceCursor};
