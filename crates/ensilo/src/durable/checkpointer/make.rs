//! How a checkpoint is made.
//!
//! # Source
//! SiloR (OSDI 2014) §4. A checkpoint that begins in epoch `e_l` has every row as it was when the walk came
//! by, except those that changed in `e_l` or later: these are in the log. It counts once everything up to its
//! end, `e_h`, is durable.
//!
//! # Memory ordering
//! The log has the whole row of whatever changes in `e_l` or later. That is so because every commit of these
//! epochs sees the checkpoint's beginning: `full_rows_before` is set to "all" before this thread's own tick,
//! and every transaction that commits in the tick's epoch or later reads that epoch with Acquire; `e_l` is an
//! epoch after that tick.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Failpoint};
use ensilo_epoch::Epoch;
use ensilo_log::{
    CheckpointPlace, CheckpointWriterOptions, DatabaseFiles, FinishedCheckpoint, InstalledCheckpoint, Log,
    WrittenParts,
};

use super::super::checkpoint::Checkpoint;
use super::super::rate_limit::RateLimit;
use super::super::schedule::Logged;
use super::super::walk::{Walk, io_failed};
use super::{Checkpointer, failed};
use crate::error::{NO_MEMORY_FOR_ROW, Name, UNREADABLE_ROW};
use crate::{Error, Result};

/// A checkpoint that is being made.
pub(super) struct CheckpointJob<'m, E> {
    pub(super) engine: &'m E,
    pub(super) log: &'m Log,
    pub(super) rate_limit: RateLimit,
    /// Whether closing makes it: any other one ends when the database closes.
    pub(super) is_last: bool,
}

impl Checkpointer {
    /// Writes the checkpoint and puts it in the place of the one before.
    pub(super) fn make<E: Engine>(
        &self,
        files: &mut DatabaseFiles,
        job: &CheckpointJob<'_, E>,
    ) -> Result<Checkpoint> {
        assert!(self.load.is_whole(), "a checkpoint without rows of the one before");
        let start = Instant::now();
        // Before it is written in vain.
        check_readable(job.engine)?;
        let logged = Logged::of(job.log);
        let begin_epoch = self.begin(job)?;
        E::reached(Failpoint::CheckpointBegun);
        let place = files.begin_checkpoint(begin_epoch);
        let place = place.map_err(|error| failed(self.note_if_taken_over(error)))?;
        match self.write_and_install(files, place.clone(), job) {
            Ok(installed) => {
                E::reached(Failpoint::CheckpointInstalled);
                let made = Checkpoint::new(&installed, start.elapsed());
                self.next_recovery.note_checkpoint(made.bytes, logged);
                Ok(made)
            }
            Err(error) => {
                // What is left goes with the next checkpoint or opening.
                let _ = files.give_up_checkpoint(&place);
                Err(error)
            }
        }
    }

    /// Chooses `e_l`, and waits until all commits of earlier epochs are complete.
    fn begin<E: Engine>(&self, job: &CheckpointJob<'_, E>) -> Result<Epoch> {
        self.check_running(job)?;
        let (epochs, log) = (job.engine.epochs(), job.log);
        log.set_full_rows_before(Epoch::MAX);
        epochs.advance();
        let begin = epochs.global_epoch();
        log.set_full_rows_before(begin);
        // What is in the files of before will not be needed.
        log.rotate();
        while epochs.complete_frontier() < begin {
            self.check_running(job)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(begin)
    }

    fn write_and_install<E: Engine>(
        &self,
        files: &mut DatabaseFiles,
        place: CheckpointPlace,
        job: &CheckpointJob<'_, E>,
    ) -> Result<InstalledCheckpoint> {
        let left_out_before = job.engine.rows_left_out();
        let written = self.write(&place, job)?;
        check_readable(job.engine)?;
        if job.engine.rows_left_out() > left_out_before {
            let text = format!("it would leave rows out: {NO_MEMORY_FOR_ROW}");
            return Err(Error::CheckpointFailed(Name::new(text)));
        }
        E::reached(Failpoint::CheckpointWritten);
        let (engine, log) = (job.engine, job.log);
        let end_epoch = engine.epochs().global_epoch();
        log.wait_durable(end_epoch).map_err(Error::from_log)?;
        let finished = FinishedCheckpoint { place, end_epoch, written };
        let installed = files.install_checkpoint(finished, log.durable_epoch());
        installed.map_err(|error| failed(self.note_if_taken_over(error)))
    }

    fn write<E: Engine>(
        &self,
        place: &CheckpointPlace,
        job: &CheckpointJob<'_, E>,
    ) -> Result<Vec<WrittenParts>> {
        let checkpointers = self.options.threads;
        let options = CheckpointWriterOptions {
            parts: (self.options.parts / checkpointers).max(1),
            compression: self.options.compression,
            sync_bytes: self.options.sync_bytes,
        };
        let failed = |error| io_failed(place, &error);
        let first = place.writer(0, options).map_err(failed)?;
        let others = (1..checkpointers).map(|checkpointer| place.writer(checkpointer, options));
        let others = others.collect::<io::Result<_>>().map_err(failed)?;
        let copies = place.writer_of_copies(options).map_err(failed)?;
        let bytes_before = self.counters.bytes_written();
        let expected_bytes = self.next_bytes(job.engine);
        let check = |bytes| {
            self.kept_room.keep(expected_bytes.saturating_sub(bytes), job.log);
            self.counters.note_bytes_written(bytes_before + bytes);
            job.rate_limit.wait(bytes, || self.check_running(job).is_err());
            self.check_running(job)
        };
        Walk::new(job.engine, place, checkpointers as usize, check).write(first, others, copies)
    }

    fn check_running<E>(&self, job: &CheckpointJob<'_, E>) -> Result<()> {
        if self.is_stopped() && !job.is_last {
            return Err(Error::Closed);
        }
        job.log.failure().map_or(Ok(()), |failure| Err(Error::from_log(failure)))
    }
}

/// Checks that a walk finds all rows that there is memory for.
fn check_readable<E: Engine>(engine: &E) -> Result<()> {
    engine.unreadable_rows().map_or(Ok(()), |reason| {
        let text = format!("it would leave rows out. {UNREADABLE_ROW}: {reason}");
        Err(Error::CheckpointFailed(Name::new(text)))
    })
}
