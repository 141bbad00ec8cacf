//! The running log: buffers that workers fill, loggers that write them, and the epoch up to which all is
//! stored.
//!
//! # Source
//! SiloR (OSDI 2014) §3. Where we deviate:
//! - A worker does not hand its buffer over when the epoch changes. It publishes, with one store per
//!   transaction, how far the buffer is filled; a logger takes what was published and the worker goes on in
//!   the same buffer until it is full.
//! - What the paper derives from the workers' local epochs, loggers derive from the complete frontier of the
//!   epochs ([`ensilo_epoch::Epochs::complete_frontier`]): a worker that is idle holds nothing back.
//! - There is no `pepoch` file: each logger's mark lies in its own files, and the durable epoch follows from
//!   their minimum.
//!
//! # Terms
//! - **log partition**: what the workers of one logger share with it: the pool of buffers and the inbox of
//!   those that were opened.
//! - **frontier** `C`: every commit with an epoch below it has ended and has published its log entry.
//!
//! # Memory ordering
//!
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[publish]` | worker stores the filled length, Release | logger loads it, Acquire | the bytes below that length |
//! | `[frontier]` | worker ends its commit, Release | logger reads the frontier, Acquire | the worker's published lengths, and the buffers that it opened |
//! | `[durable]` | logger stores the durable epoch, Release | readers, Acquire | nothing in memory: the order of what callers learn |

mod batch;
mod buffer;
mod buffer_size;
mod clock;
mod core;
mod durable;
mod error;
mod file_length;
mod files;
mod foreign;
mod leader;
mod leadership;
#[cfg(all(loom, test))]
mod leadership_model;
mod log;
mod log_file;
mod logger;
mod memory;
#[cfg(all(loom, test))]
mod model;
mod monitor;
mod notifier;
mod options;
mod partition;
mod pool;
mod ring;
mod statistics;
mod stored;
mod tail;
mod waiter;
mod writer;
mod writer_state;

pub use durable::Callback;
pub use error::LogError;
pub use files::Watcher;
pub use foreign::{ForeignAfter, call_foreign, is_in_foreign_code, survive};
pub use log::Log;
pub use options::{EpochClock, LogOptions};
pub use ring::{Place, RECORD_BYTES_MAX, Ring, UNIT_BYTES, UNITS_PER_EPOCH, take_place};
pub use statistics::LogStatistics;
pub use stored::Stored;
pub use writer::{LogWriter, ReserveError};

#[cfg(all(not(loom), test))]
mod tests;
