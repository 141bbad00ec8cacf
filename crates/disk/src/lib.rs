//! The seam between Ensilo and its files.
//!
//! Whatever the database reads or writes goes through [`Disk`] and [`File`], so that a test can put a disk in their place that loses,
//! tears and reorders what was not synced.
//!
//! - [`RealDisk`]: the files of the machine.
//! - [`SimulatedDisk`]: files in memory whose power fails by a seed, with [`Faults`] on order.
//! - [`Recorder`]: notes down what is done to a disk as a [`Trace`], so that a test can crash it after every operation.
//!
//! An [`Appender`] writes a file from its beginning to its end in whole pages; a [`PageBuffer`] is memory for whole pages.
#![forbid(unsafe_code)]

mod appender;
mod disk;
mod page_buffer;
mod read_only;
mod real;
mod simulated;
mod trace;

pub use appender::Appender;
pub use disk::{Disk, File, Listed, Lock, LockHeld, Place, is_disk_full};
pub use page_buffer::{PAGE_BYTES, PageBuffer};
pub use real::RealDisk;
pub use simulated::{Counts, Faults, Gate, SimulatedDisk};
pub use trace::{FileId, Operation, Recorder, Trace, TraceCursor};
