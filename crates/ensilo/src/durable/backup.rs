//! Copies of a running database.
//!
//! # Source
//! Not in the papers. What makes it simple is theirs: the log says up to which epoch it counts. A copy of the
//! checkpoint, and of the log as far as a durable epoch `D` needs it, is the database as of `D`, whatever has
//! been logged meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Failpoint};
use ensilo_epoch::Epoch;
use ensilo_log::{BackedUp, DatabaseFiles, Log, OpenError};

use super::Durable;
use super::checkpointer::Checkpointer;
use super::rate_limit::RateLimit;
use crate::{Error, Result};

/// A backup that was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Backup {
    /// Every transaction of an epoch up to this one is in it, and none of a later one.
    pub durable_epoch: u64,
    /// How many files of checkpoint and log were copied.
    pub files: u64,
    /// Their bytes, as far as they were copied.
    pub bytes: u64,
    /// How long it took.
    pub duration: Duration,
}

impl Durable {
    /// Copies the database as it is on disk to `target`.
    pub(crate) fn backup<E: Engine>(&self, target: &Path, live_bytes: u64) -> Result<Backup> {
        // Backups in a row would never let one begin.
        self.checkpointer.let_waiting_checkpoint_begin();
        self.checkpointer.with_files(|files| {
            // What was acknowledged before the call is durable by now, and the failure of a log does not take it
            // back.
            self.copy::<E>(files, (target, self.log.durable_epoch()), live_bytes)
        })
    }

    /// Copies the database as it was at the end of an epoch that is stored; `None` if a checkpoint has more by now.
    pub(crate) fn backup_up_to<E: Engine>(
        &self,
        target: &Path,
        epoch: Epoch,
        live_bytes: u64,
    ) -> Result<Option<Backup>> {
        self.checkpointer.with_files(|files| {
            let has_more = files.manifest().checkpoint_end().is_some_and(|end| end > epoch);
            let copy = || self.copy::<E>(files, (target, epoch), live_bytes);
            (!has_more).then(copy).transpose()
        })
    }

    /// Copies everything up to an epoch.
    fn copy<E: Engine>(
        &self,
        files: &DatabaseFiles,
        (target, durable_epoch): (&Path, Epoch),
        live_bytes: u64,
    ) -> Result<Backup> {
        let Durable { log, checkpointer, .. } = self;
        let (start, rate_limit) = (Instant::now(), rate_limit(checkpointer, log, live_bytes));
        E::reached(Failpoint::BackupBegun);
        let mut is_given_up = false;
        let copied = files.backup(target, durable_epoch, &mut |bytes| {
            rate_limit.wait(bytes, || checkpointer.is_stopped());
            E::reached(Failpoint::BackupBytesCopied);
            is_given_up = checkpointer.is_stopped();
            if is_given_up { Err(closing()) } else { Ok(()) }
        });
        // Any other failure is reported, also while the database is being closed.
        let BackedUp { durable_epoch, files, bytes } = copied.map_err(|error| match is_given_up {
            true => Error::Closed,
            false => Error::BackupFailed(Arc::new(error)),
        })?;
        Ok(Backup { durable_epoch: durable_epoch.get(), files, bytes, duration: start.elapsed() })
    }
}

/// Returns the rate limit of a checkpoint with as many bytes as there are in memory and in the log.
fn rate_limit(checkpointer: &Checkpointer, log: &Log, live_bytes: u64) -> RateLimit {
    let options = &checkpointer.options;
    let log_bytes = log.statistics().written_bytes.min(options.log_bytes);
    RateLimit::new(options.bytes_per_second(live_bytes + log_bytes, options.spread_max() / 2))
}

fn closing() -> OpenError {
    OpenError::Refused("the database is being closed".to_owned())
}
