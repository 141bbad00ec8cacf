//! Commands on the files of a database: thin wrappers of what the library does.

mod backup;
mod checkpoint;
mod instance;
mod log;
mod output;
mod repair;
mod salvage;
mod shown_disk;
mod verify;

pub(crate) use backup::{BackupArguments, backup};
pub(crate) use checkpoint::{CheckpointCommand, checkpoint};
pub(crate) use log::{LogCommand, log};
pub(crate) use repair::{RepairArguments, repair};
pub(crate) use salvage::{SalvageArguments, salvage};
pub(crate) use verify::{VerifyArguments, verify};
