//! A logger: writes what its workers logged, syncs it, and says how far it came.
//!
//! # Source
//! SiloR (OSDI 2014) §3.3 to 3.6. A round: the frontier is read, everything published is taken and appended
//! to the file with the frontier as mark behind it, the file is synced, the mark is published. Between rounds
//! full buffers are appended as they come.

use std::sync::Arc;

use ensilo_epoch::Epoch;

use super::batch::{Batcher, BlockMetadata};
use super::buffer::Taken;
use super::core::Core;
use super::durable::StoredRound;
use super::error::LogError;
use super::leadership::Led;
use super::log_file::LogFile;
use super::notifier::{RoundRequest, Sleep};
use super::partition::{LogPartition, Which};
use super::ring::RingReader;
use super::tail::Tail;
use crate::format::{BlockEnd, Compression};

/// One logger. Lives on its thread.
#[derive(Debug)]
pub(crate) struct Logger {
    pub(crate) core: Arc<Core>,
    pub(crate) partition: Arc<LogPartition>,
    index: usize,
    tail: Tail,
    batcher: Batcher,
    ring: RingReader,
}

impl Logger {
    pub(crate) fn new(
        core: Arc<Core>,
        index: usize,
        file: LogFile,
        compression: Compression,
        first_epoch: Epoch,
    ) -> Logger {
        Logger {
            partition: Arc::clone(&core.partitions[index]),
            tail: Tail::new(Arc::clone(&core), index, file, first_epoch),
            ring: RingReader::new(Arc::clone(&core.ring), index),
            core,
            index,
            batcher: Batcher::new(compression),
        }
    }

    /// Makes rounds as the leader requests them, until the last one or a failure.
    pub(crate) fn follow(mut self) -> Result<(), LogError> {
        loop {
            let signals = self.partition.notifier.wait(None);
            if self.core.has_failed() {
                return Ok(());
            }
            if let Some(request) = signals.round {
                let made = self.round(request)?;
                if made.is_complete {
                    self.core.partitions[0].notifier.notify(Sleep::Short, |signals| signals.look = true);
                }
                made.calls.call();
                if request.is_last {
                    return Ok(());
                }
            } else if signals.write {
                self.write_sealed()?;
            }
        }
    }

    /// Makes a round.
    pub(crate) fn round(&mut self, request: RoundRequest) -> Result<StoredRound, LogError> {
        if request.is_last {
            self.close(request.frontier)?;
        } else {
            self.store(request.frontier)?;
        }
        Ok(self.core.durable.stored(self.index, self.tail.mark, request.number))
    }

    /// Appends what is in full buffers, so that they can be filled again.
    pub(crate) fn write_sealed(&mut self) -> Result<(), LogError> {
        self.write(Which::Sealed, None)
    }

    /// Appends everything and syncs it. Everything with an epoch before `frontier` was published.
    fn store(&mut self, frontier: Epoch) -> Result<(), LogError> {
        self.tail.begin_round();
        self.write(Which::All, Some((frontier, BlockEnd::None)))?;
        self.tail.write_zeros_ahead()?;
        self.tail.sync()?;
        self.tail.end_round(frontier);
        Ok(())
    }

    /// Ends the log in order. Everything is stored, and nothing with an epoch before `frontier` comes any
    /// more. The space behind the end is given back only when the end is on the disk: without it a file that
    /// is shorter than it says has lost something.
    fn close(&mut self, frontier: Epoch) -> Result<(), LogError> {
        self.write(Which::All, Some((frontier, BlockEnd::Closed)))?;
        self.tail.sync()?;
        self.tail.file().trim()?;
        self.tail.sync()?;
        self.tail.mark = frontier;
        Ok(())
    }

    fn write(&mut self, which: Which, last: Option<(Epoch, BlockEnd)>) -> Result<(), LogError> {
        let Logger { core, partition, tail, batcher, ring, .. } = self;
        let frontier = last.map(|(frontier, _)| frontier);
        partition.drain(which, |taken| {
            // Read after what was published was taken: no entry in it has a later epoch.
            let global_epoch = core.epochs.global_epoch();
            if !taken.is_empty() {
                partition.note_written(global_epoch);
            }
            let mut taken: Vec<Taken<'_>> = taken;
            // Between rounds nothing: a segment is drained whole.
            if let Some(frontier) = frontier {
                taken.extend(ring.gather(frontier));
            }
            let epochs = (tail.mark, global_epoch);
            let metadata = BlockMetadata { epochs, durable_epoch: core.durable.epoch(), last };
            batcher.append(tail, &mut taken, &metadata)?;
            tail.flush()
        })?;
        if let Some(frontier) = frontier {
            ring.finish(frontier);
        }
        Ok(())
    }
}
