//! The statistics of a database that another process has open.
//!
//! A database that was opened with [`Options::live_statistics`](crate::Options::live_statistics) answers at a Unix socket in its directory, as
//! long as it is open. [`read`] asks it; `ensilo stat --live` shows what it says. Nothing is done while nobody asks.
//!
//! # Format
//! The process writes one JSON object to whoever connects, and closes the connection:
//!
//! | name | value |
//! |---|---|
//! | `format` | 1; another number if a later version changes what a name means |
//! | `process` | the number of the process |
//! | `opened` | when the database was opened, in seconds since 1970-01-01 UTC; the same as long as it is the same opening |
//! | `time` | when the statistics were taken, in seconds since 1970-01-01 UTC |
//! | `open_seconds` | for how long the database has been open |
//! | `statistics` | [`Statistics`](crate::Statistics), by the names of its fields; durations are seconds |
//!
//! # Crash
//! What a process leaves that was killed is a socket at which nobody answers. The next opening with the option removes it, under the lock of the
//! directory.

mod client;
mod server;
mod socket_path;

pub use client::{LiveError, read};
pub(crate) use server::{StatisticsServer, check};
