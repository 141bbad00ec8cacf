//! The walk of a checkpoint through all tables, by several checkpointers.
//!
//! # Source
//! SiloR (OSDI 2014) §4.2: the tables are divided by key ranges among the checkpointers, each of which walks its ranges in key order and
//! writes files of its own.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use ensilo_log::{CheckpointPlace, CheckpointWriter, WrittenParts};
use ensilo_txn::{CheckpointRecord, Engine, KeyRange, Place, Protocol, Store};

use super::checkpointer::io_failed;
use super::pace::Pace;
use crate::Result;

/// So many ranges of a table for each checkpointer: where one has more rows than others, they still end together.
const RANGES_PER_CHECKPOINTER: usize = 8;

/// What the checkpointers of one checkpoint share.
pub(super) struct Walk<'w, P: Protocol, C> {
    engine: &'w Engine<P>,
    place: &'w CheckpointPlace,
    pace: Pace,
    ranges: Vec<(Arc<Store>, KeyRange)>,
    /// The next of the ranges.
    next: AtomicUsize,
    /// Bytes that were written to files.
    written_bytes: AtomicU64,
    /// Whether one of them failed, so that the others may stop.
    has_failed: AtomicBool,
    /// Told now and then how many bytes were written in all; ends the walk by an error.
    check: C,
}

// Relaxed, in all of this: the numbers need only be right; what the checkpointers wrote is passed on when they are joined.
impl<'w, P: Protocol, C: Fn(u64) -> Result<()> + Sync> Walk<'w, P, C> {
    pub(super) fn new(
        engine: &'w Engine<P>,
        place: &'w CheckpointPlace,
        checkpointers: usize,
        pace: Pace,
        check: C,
    ) -> Self {
        let logged = engine.stores().into_iter().filter(|store| store.id().is_logged());
        let ranges = logged.flat_map(|store| {
            let ranges = match checkpointers {
                1 => vec![KeyRange::ALL],
                _ => engine.key_ranges(&store, checkpointers * RANGES_PER_CHECKPOINTER),
            };
            ranges.into_iter().map(move |range| (Arc::clone(&store), range))
        });
        Walk {
            engine,
            place,
            pace,
            ranges: ranges.collect(),
            next: AtomicUsize::new(0),
            written_bytes: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            check,
        }
    }

    /// Writes every record that belongs to the checkpoint, and syncs the files: a checkpointer for each writer, the first of them on this
    /// thread.
    pub(super) fn write(&self, writers: Vec<CheckpointWriter>) -> Result<Vec<WrittenParts>> {
        let mut writers = writers.into_iter();
        let first = writers.next();
        thread::scope(|scope| {
            let others: Vec<_> = writers.map(|writer| scope.spawn(|| self.checkpointer(writer))).collect();
            let first = first.into_iter().map(|writer| self.checkpointer(writer));
            let written: Vec<_> = first.collect();
            let others = others
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            written.into_iter().chain(others).collect()
        })
    }

    fn checkpointer(&self, mut writer: CheckpointWriter) -> Result<WrittenParts> {
        let walked = self.write_ranges(&mut writer);
        let written = walked.and_then(|()| writer.finish().map_err(|error| io_failed(self.place, &error)));
        if written.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        written
    }

    fn write_ranges(&self, writer: &mut CheckpointWriter) -> Result<()> {
        while let Some((store, range)) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.write_range(writer, store, range)?;
            if self.has_failed.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    fn write_range(&self, writer: &mut CheckpointWriter, store: &Store, range: &KeyRange) -> Result<()> {
        let mut before = writer.bytes();
        let outcome = RefCell::new((Ok(()), writer));
        let each = |record: CheckpointRecord<'_>| {
            let (outcome, writer) = &mut *outcome.borrow_mut();
            let (table, words) = (store.id().0, record.words.iter().copied());
            *outcome = writer
                .record(table, record.key, record.tid.get(), record.len_bytes, words)
                .map_err(|error| io_failed(self.place, &error));
            flow(outcome)
        };
        let pause = || {
            P::reached(Place::CheckpointRowsWalked);
            let (outcome, writer) = &mut *outcome.borrow_mut();
            let more = writer.bytes() - before;
            before += more;
            let written_bytes = self.written_bytes.fetch_add(more, Ordering::Relaxed) + more;
            self.pace.keep(written_bytes);
            *outcome = (self.check)(written_bytes);
            if self.has_failed.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { flow(outcome) }
        };
        let _ = self.engine.walk(store, range, self.place.begin_epoch(), each, pause);
        outcome.into_inner().0
    }
}

fn flow(outcome: &Result<()>) -> ControlFlow<()> {
    if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}
