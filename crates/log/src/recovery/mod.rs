//! The files of a database as a whole: what belongs to it, how they are read back, and what happens when they are damaged.
#![forbid(unsafe_code)]

mod block_stream;
mod chain;
mod checkpoint_writer;
mod database_files;
mod error;
mod generation;
mod inspect;
mod log_file;
mod manifest_file;
mod progress;
mod replay;
mod scan;
mod survey;

pub use checkpoint_writer::{CheckpointPlace, CheckpointWriter, WrittenParts};
pub use database_files::{DatabaseFiles, FinishedCheckpoint, InstalledCheckpoint};
pub use error::{Consequence, Damage, Finding, OpenError, ReplayError};
pub use generation::{NewGeneration, NewLogger, create_log_file, log_identity};
pub use inspect::{Found, GenerationOptions, inspect};
pub use progress::{Progress, ProgressReport};
pub use replay::{Replay, Replayed};

#[cfg(test)]
mod tests;
