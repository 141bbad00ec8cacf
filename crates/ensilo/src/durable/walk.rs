//! The walk of a checkpoint through all tables, by several checkpointers.
//!
//! # Source
//! SiloR (OSDI 2014) §4.2: the tables are divided by key ranges among the checkpointers, each of which walks
//! its ranges in key order and writes files of its own.

use std::cell::RefCell;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ensilo_engine::{Engine, Failpoint, KeyRange, Store, StoredRow};
use ensilo_log::{CheckpointPlace, CheckpointWriter, DEFINITION_TABLES, WrittenParts};
use ensilo_sync::side_by_side;

use crate::error::Name;
use crate::mutex::lock;
use crate::{Error, Result};

/// So many ranges of a table for each checkpointer: where one has more rows than others, they still end
/// together.
const RANGES_PER_CHECKPOINTER: usize = 8;

/// What the checkpointers of one checkpoint share.
pub(super) struct Walk<'w, E: Engine, C> {
    engine: &'w E,
    place: &'w CheckpointPlace,
    /// The tables that are written twice.
    definitions: Vec<Arc<E::Store>>,
    /// The others, in ranges.
    ranges: Vec<(Arc<E::Store>, KeyRange)>,
    /// The next of the ranges.
    next: AtomicUsize,
    /// Bytes that were written to files.
    written_bytes: AtomicU64,
    /// Whether one of them failed, so that the others may stop.
    has_failed: AtomicBool,
    /// Called now and then with the bytes that were written in all. It may hold the walk up, and ends it by
    /// an error.
    check: C,
}

// Relaxed, in all of this: the numbers need only be right; what the checkpointers wrote is passed on when
// they are joined.
impl<'w, E: Engine, C: Fn(u64) -> Result<()> + Sync> Walk<'w, E, C> {
    pub(super) fn new(engine: &'w E, place: &'w CheckpointPlace, checkpointers: usize, check: C) -> Self {
        let logged = engine.stores().into_iter().filter(|store| store.id().is_logged());
        let (definitions, others): (Vec<_>, Vec<_>) =
            logged.partition(|store| DEFINITION_TABLES.contains(&store.id().0));
        let ranges = others.into_iter().flat_map(|store| {
            let ranges = match checkpointers {
                1 => vec![KeyRange::ALL],
                _ => engine.key_ranges(&store, checkpointers * RANGES_PER_CHECKPOINTER),
            };
            ranges.into_iter().map(move |range| (Arc::clone(&store), range))
        });
        Walk {
            engine,
            place,
            definitions,
            ranges: ranges.collect(),
            next: AtomicUsize::new(0),
            written_bytes: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            check,
        }
    }

    /// Writes every record that belongs to the checkpoint, and syncs the files: a checkpointer for each
    /// writer, `first` on this thread. `copies` gets the definitions a second time.
    pub(super) fn write(
        &self,
        mut first: CheckpointWriter,
        others: Vec<CheckpointWriter>,
        mut copies: CheckpointWriter,
    ) -> Result<Vec<WrittenParts>> {
        for store in &self.definitions {
            self.write_range(&mut [&mut first, &mut copies], store, &KeyRange::ALL)?;
        }
        let copies = self.finish(copies)?;
        let writers: Vec<_> =
            [first].into_iter().chain(others).map(|writer| Mutex::new(Some(writer))).collect();
        let written = side_by_side("ensilo-checkpoint", writers.len(), |checkpointer| {
            // Each is taken once.
            lock(&writers[checkpointer]).take().map(|writer| self.checkpointer(writer))
        });
        [Ok(copies)].into_iter().chain(written.into_iter().flatten()).collect()
    }

    fn checkpointer(&self, mut writer: CheckpointWriter) -> Result<WrittenParts> {
        let walked = self.write_ranges(&mut writer);
        let written = walked.and_then(|()| self.finish(writer));
        if written.is_err() {
            self.has_failed.store(true, Ordering::Relaxed);
        }
        written
    }

    fn finish(&self, writer: CheckpointWriter) -> Result<WrittenParts> {
        writer.finish().map_err(|error| io_failed(self.place, &error))
    }

    fn write_ranges(&self, writer: &mut CheckpointWriter) -> Result<()> {
        while let Some((store, range)) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.write_range(&mut [&mut *writer], store, range)?;
            if self.has_failed.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// Writes each record of the range by all of these writers.
    fn write_range(
        &self,
        writers: &mut [&mut CheckpointWriter],
        store: &E::Store,
        range: &KeyRange,
    ) -> Result<()> {
        let bytes =
            |writers: &[&mut CheckpointWriter]| writers.iter().map(|writer| writer.bytes()).sum::<u64>();
        let mut before = bytes(writers);
        let outcome = RefCell::new((Ok(()), writers));
        let each = |record: StoredRow<'_>| {
            let (outcome, writers) = &mut *outcome.borrow_mut();
            let (table, tid) = (store.id().0, record.tid.get());
            *outcome = writers
                .iter_mut()
                .try_for_each(|writer| {
                    writer.record(table, record.key, tid, record.len_bytes, record.words.iter().copied())
                })
                .map_err(|error| io_failed(self.place, &error));
            flow(outcome)
        };
        let pause = || {
            E::reached(Failpoint::CheckpointRowsWalked);
            let (outcome, writers) = &mut *outcome.borrow_mut();
            let more = bytes(writers) - before;
            before += more;
            let written_bytes = self.written_bytes.fetch_add(more, Ordering::Relaxed) + more;
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

pub(super) fn io_failed(place: &CheckpointPlace, error: &io::Error) -> Error {
    Error::CheckpointFailed(Name::new(format!("cannot write {}: {error}", place.directory().display())))
}
