//! The entries of secondary indexes when a database is opened again: made anew from the rows, because the log leaves them out.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ensilo_epoch::{Epoch, Participant};
use ensilo_row::{KeyBuf, RowBuf};
use ensilo_txn::{CheckpointRecord, KeyRange, Protocol, derive_record};

use super::{IndexCore, TableCore};
use crate::error::Abort;
use crate::maintain::stored_index_key;
use crate::row_words::{WordSlice, key_of_bytes};
use crate::shared::Shared;
use crate::{Error, Result};

/// So many parts of a table for each thread: where one part has more rows than others, the threads still end together.
const PARTS_PER_THREAD: usize = 8;

impl<P: Protocol> Shared<P> {
    /// Fills the indexes of all tables, several parts at once. No transaction has begun.
    pub(crate) fn rebuild_indexes(&self, threads: usize) -> Result<()> {
        let mut tables = self.catalog.tables();
        tables.extend(self.catalog.system.all().into_iter().cloned());
        tables.retain(|table| !table.indexes.snapshot().is_empty());
        let parts = tables.iter().flat_map(|table| {
            let ranges = self.engine.key_ranges(&table.store, threads * PARTS_PER_THREAD);
            ranges.into_iter().map(move |range| (table, range))
        });
        let parts: Vec<_> = parts.collect();
        let next = AtomicUsize::new(0);
        // Relaxed: the numbers need only differ.
        let take = || parts.get(next.fetch_add(1, Ordering::Relaxed));
        let work = || {
            let participant = self.engine.epochs().participant();
            while let Some((table, range)) = take() {
                self.rebuild_part(&participant, table, range)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.min(parts.len())).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        for table in &tables {
            let rows = self.records.of(table.store.id());
            for index in &table.indexes.snapshot() {
                self.records.add_recovered(index.store.id(), rows);
            }
        }
        Ok(())
    }

    fn rebuild_part(&self, participant: &Participant, table: &TableCore, range: &KeyRange) -> Result<()> {
        let indexes = table.indexes.snapshot();
        let mut scratch = Scratch::default();
        let mut outcome = Ok(());
        let _ = self.engine.walk(
            &table.store,
            range,
            Epoch::MAX,
            |record| {
                outcome = indexes.iter().try_for_each(|index| {
                    self.derive_entry(participant, table, index, &record, &mut scratch)
                });
                if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
            || ControlFlow::Continue(()),
        );
        outcome
    }

    fn derive_entry(
        &self,
        participant: &Participant,
        table: &TableCore,
        index: &IndexCore,
        record: &CheckpointRecord<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Scratch { entry, entry_key } = scratch;
        let row = WordSlice { words: record.words, len_bytes: record.len_bytes };
        stored_index_key(table, index, &key_of_bytes(record.key), &row, entry_key);
        entry.set_bytes(record.key);
        let derived = derive_record(
            participant,
            &index.store,
            entry_key.as_bytes(),
            record.tid,
            entry.words(),
            entry.len_bytes(),
        );
        match derived {
            Ok(true) => Ok(()),
            Ok(false) => Err(table.duplicate(Some(index), entry_key.as_bytes())),
            Err(_) => Err(Error::OutOfMemory(Abort::out_of_memory(index.store.id()))),
        }
    }
}

/// Memory that each row uses again.
#[derive(Default)]
struct Scratch {
    entry: RowBuf,
    entry_key: KeyBuf,
}
