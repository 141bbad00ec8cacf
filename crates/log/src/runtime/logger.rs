//! A logger: writes what its workers logged, syncs it, and says how far it came.
//!
//! # Source
//! SiloR (OSDI 2014) §3.3 to 3.6. A round: the frontier is read, everything published is taken and appended to the file with the
//! frontier as mark behind it, the file is synced, the mark is published. Between rounds full buffers are appended as they come.

use std::mem;
use std::sync::Arc;

use ensilo_epoch::Epoch;

use super::batch::{Batcher, Said};
use super::bell::{Order, Sleep};
use super::core::Core;
use super::error::LogError;
use super::lane::{Lane, Which};
use super::log_file::LogFile;
use crate::format::{BlockEnd, Compression};

/// One logger. Lives on its thread.
#[derive(Debug)]
pub(crate) struct Logger {
    pub(crate) core: Arc<Core>,
    pub(crate) lane: Arc<Lane>,
    index: usize,
    file: LogFile,
    batcher: Batcher,
    /// Entries with an earlier epoch were all synced.
    mark: Epoch,
    /// No entry in the file has a later epoch.
    largest_epoch: Epoch,
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
            lane: Arc::clone(&core.lanes[index]),
            core,
            index,
            file,
            batcher: Batcher::new(compression),
            mark: first_epoch,
            largest_epoch: first_epoch,
        }
    }

    /// Makes rounds as the leader orders them, until the last one or a failure.
    pub(crate) fn follow(mut self) -> Result<(), LogError> {
        loop {
            let calls = self.lane.bell.wait(None);
            if self.core.has_failed() {
                return Ok(());
            }
            if let Some(order) = calls.order {
                if self.round(order)? {
                    self.core.lanes[0].bell.ring(Sleep::Short, |calls| calls.look = true);
                }
                if order.is_last {
                    return Ok(());
                }
            } else if calls.write {
                self.write_sealed()?;
            }
        }
    }

    /// Makes a round. Returns whether all loggers have made it.
    pub(crate) fn round(&mut self, order: Order) -> Result<bool, LogError> {
        if order.is_last {
            self.close()?;
        } else {
            self.store(order.frontier)?;
        }
        Ok(self.core.durable.stored(self.index, self.mark, order.number))
    }

    /// Appends what is in full buffers, so that they can be filled again.
    pub(crate) fn write_sealed(&mut self) -> Result<(), LogError> {
        self.write(Which::Sealed, None)
    }

    /// Appends everything and syncs it. Everything with an epoch before `frontier` was published.
    fn store(&mut self, frontier: Epoch) -> Result<(), LogError> {
        let next = self.next_file();
        let end = if next.is_some() { BlockEnd::Seal } else { BlockEnd::None };
        self.write(Which::All, Some((frontier, end)))?;
        self.file.sync(&self.core.counters[self.index])?;
        self.mark = frontier;
        if let Some(next) = next {
            self.go_on_in(next);
        }
        Ok(())
    }

    /// Ends the log in order. Everything is stored. The space behind the end is given back only when the end is on the disk: without it a
    /// file that is shorter than it says has lost something.
    fn close(&mut self) -> Result<(), LogError> {
        self.write(Which::All, Some((self.mark, BlockEnd::Closed)))?;
        let counts = &self.core.counters[self.index];
        self.file.sync(counts)?;
        self.file.trim()?;
        self.file.sync(counts)
    }

    fn write(&mut self, which: Which, last: Option<(Epoch, BlockEnd)>) -> Result<(), LogError> {
        let Logger { core, lane, index, file, batcher, mark, largest_epoch, .. } = self;
        lane.drain(which, |taken| {
            // Read after what was published was taken: no entry in it has a later epoch.
            let global_epoch = core.epochs.global_epoch();
            if !taken.is_empty() {
                *largest_epoch = global_epoch;
                lane.note_written(global_epoch);
            }
            let epochs = (*mark, global_epoch);
            let said = Said { epochs, durable_epoch: core.durable.epoch(), last };
            batcher.append(file, taken, &said, &core.counters[*index])?;
            file.flush(&core.counters[*index])
        })
    }

    /// The file to go on in, if it is time for one and it is ready. If it is not, it stays asked for.
    fn next_file(&self) -> Option<LogFile> {
        let is_asked_for = self.lane.take_rotation_request();
        let is_time = self.file.is_full() || (is_asked_for && !self.file.is_empty());
        let next = if is_time { self.core.files.take_next(self.index) } else { None };
        if is_asked_for && next.is_none() {
            self.lane.ask_for_rotation();
        }
        next
    }

    fn go_on_in(&mut self, next: LogFile) {
        let finished = mem::replace(&mut self.file, next);
        self.core.counters[self.index].rotations.add(1);
        self.core.files.finish(finished, self.largest_epoch, self.mark);
    }
}
