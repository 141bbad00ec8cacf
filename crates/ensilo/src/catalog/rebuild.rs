//! The entries of secondary indexes when a database is opened again: made anew from the rows, because the log leaves them out.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ensilo_epoch::{Epoch, Participant};
use ensilo_row::{KeyBuf, RowBuf};
use ensilo_txn::{CheckpointRecord, Protocol, derive_record};

use super::{IndexCore, TableCore};
use crate::error::Abort;
use crate::maintain::stored_index_key;
use crate::row_words::{WordSlice, key_of_bytes};
use crate::shared::Shared;
use crate::{Error, Result};

impl<P: Protocol> Shared<P> {
    /// Fills the indexes of all tables, several tables at once. No transaction has begun.
    pub(crate) fn rebuild_indexes(&self, threads: usize) -> Result<()> {
        let mut tables = self.catalog.tables();
        tables.extend(self.catalog.system.all().into_iter().cloned());
        let tables = &tables[..];
        let next = AtomicUsize::new(0);
        // Relaxed: the numbers need only differ.
        let take = || tables.get(next.fetch_add(1, Ordering::Relaxed));
        let work = || {
            let participant = self.engine.epochs().participant();
            while let Some(table) = take() {
                self.rebuild_table(&participant, table)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..threads.min(tables.len())).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn rebuild_table(&self, participant: &Participant, table: &TableCore) -> Result<()> {
        let indexes = table.indexes.snapshot();
        if indexes.is_empty() {
            return Ok(());
        }
        let mut scratch = Scratch::default();
        let mut outcome = Ok(());
        let _ = self.engine.walk(
            &table.store,
            Epoch::MAX,
            |record| {
                outcome = indexes.iter().try_for_each(|index| {
                    self.derive_entry(participant, table, index, &record, &mut scratch)
                });
                if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
            || ControlFlow::Continue(()),
        );
        let rows = self.records.of(table.store.id());
        indexes.iter().for_each(|index| self.records.add_recovered(index.store.id(), rows));
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
