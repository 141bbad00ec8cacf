//! What was done to a disk, in order, and the disk after each step of it.
//!
//! A test runs a database once on a [`Recorder`] and gets a [`Trace`]. It then walks the trace with a [`TraceCursor`] and crashes the disk
//! after every operation, which is far cheaper than to run the database again for each.
//!
//! # Invariants
//! - `I1` A prefix of the trace is a state the disk may have been in, as far as the process could know: a write
//!   stands where it had returned, a sync where it had returned, and a sync covers only what stood in the trace when it began.
//! - `I2` A note stands after all that had returned when it was made. So what a test noted as acknowledged must be found after every
//!   crash at a later position.
//! - `I3` An operation that failed is not in the trace. A test that plans faults crashes the faulty disk itself.

mod cursor;
mod operation;
mod recorder;

pub use cursor::{Trace, TraceCursor};
pub use operation::{FileId, Operation};
pub use recorder::Recorder;

#[cfg(test)]
mod tests;
