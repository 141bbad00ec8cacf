//! The files of a database as a whole: what belongs to it, how they are read back, and what happens when they
//! are damaged.
#![forbid(unsafe_code)]

mod backup;
mod beside;
mod block_stream;
mod block_writes;
mod chain;
mod change_history;
mod change_reader;
mod checkpoint_blocks;
mod checkpoint_writer;
mod copy;
mod corruption;
mod created_paths;
mod database_files;
mod directory;
mod directory_locks;
mod dump;
mod earlier;
mod error;
mod file_access;
mod file_check;
mod file_names;
mod forgiving;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod generation;
mod given_up;
mod inspect;
mod location;
mod log_file;
mod manifest_file;
mod named_files;
mod needed_files;
mod own_manifest;
mod ownership;
mod progress;
mod repair;
mod replay;
mod replay_file;
mod requested_directories;
mod row_check;
mod salvage;
mod scan;
mod sealed_files;
mod survey;
mod target;
mod unchanged;
mod unread_list;
mod unsynced;
mod verify;

pub use backup::{BackedUp, backup};
pub use beside::{inspect_beside, writer_of};
pub use change_reader::{
    ChangeReadError, ChangeReader, ChangeReaderOptions, EpochChanges, HistoryId, LogPlace, LoggedChange,
    change_history,
};
pub use checkpoint_blocks::{BlockScratch, CheckpointBlock, CheckpointBlocks, CheckpointRecord};
pub use checkpoint_writer::{
    CheckpointPlace, CheckpointWriter, CheckpointWriterOptions, DEFINITION_TABLES, WrittenParts,
};
pub use corruption::{Corruption, CorruptionKind, DataLoss};
pub use database_files::{DatabaseFiles, FinishedCheckpoint, InstalledCheckpoint};
pub use directory::manifest_of;
pub use dump::{Dumped, dump};
pub use error::{OpenError, ReplayError};
pub use file_check::{CheckedFile, check_file};
pub use forgiving::Unopened;
pub(crate) use generation::{CreatedLogFile, LogFilePlan};
pub use generation::{GenerationOptions, NewGeneration, NewLogger, log_identity};
pub use given_up::GivenUp;
pub use inspect::{Found, ReadOnlyFiles, inspect, inspect_read_only};
pub use progress::{Progress, ProgressReport};
pub use repair::{Repaired, repair};
pub use replay::{Replay, Replayed};
pub use salvage::{RecordKey, SalvageLoss, Salvaged, SalvagedTable, UnreadableRecords, salvage};
pub(crate) use sealed_files::SealedFiles;
pub use verify::{Verified, verify};

#[cfg(test)]
mod tests;
