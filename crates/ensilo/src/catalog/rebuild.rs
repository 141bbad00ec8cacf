//! The entries of secondary indexes when a database is opened again: made anew from the rows, because the log
//! leaves them out.
//!
//! What follows from the rows never keeps the rows away: an index that does not fit them is marked as broken,
//! and the database opens.

use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicUsize, Ordering};

use ensilo_engine::{Engine, KeyRange, Store, StoredRow};
use ensilo_epoch::{Epoch, Participant};
use ensilo_row::{KeyBuf, RowBuf};
use ensilo_sync::side_by_side;

use super::SYSTEM_PREFIX;
use super::index_core::{IndexCore, check_key_len};
use super::table_core::TableCore;
use crate::error::{Abort, Name};
use crate::maintain::stored_index_key;
use crate::records::RecordCounts;
use crate::row_words::key_of_bytes;
use crate::shared::DatabaseShared;
use crate::shortage::with_room;
use crate::{Error, Result};

/// So many parts of a table for each thread: where one part has more rows than others, the threads still end
/// together.
const PARTS_PER_THREAD: usize = 8;

impl<E: Engine> DatabaseShared<E> {
    /// Fills the indexes of all tables that are not loaded later. No transaction has begun.
    pub(crate) fn rebuild_indexes(&self, threads: usize) -> Result<()> {
        let mut tables = self.catalog.tables();
        tables.extend(self.catalog.system.all().into_iter().cloned());
        let tables: Vec<_> =
            tables.iter().map(|table| &**table).filter(|table| table.load.is_over()).collect();
        let (engine, records) = (&*self.engine, &*self.records);
        IndexRebuild { engine, records, threads, when_short: Some(&|| ()), is_stopped: &|| false }
            .run(&tables)
    }
}

/// Fills indexes that nobody reads yet, of tables that nobody writes to. Transactions may read the rows.
pub(crate) struct IndexRebuild<'d, E: Engine> {
    pub(crate) engine: &'d E,
    pub(crate) records: &'d RecordCounts,
    pub(crate) threads: usize,
    /// Is called when the rebuild is about to wait for rows to leave memory. Without this it does not wait, which would be of no use to a caller
    /// that is pinned.
    pub(crate) when_short: Option<&'d (dyn Fn() + Sync)>,
    /// Whether to end early, with indexes that are of no use.
    pub(crate) is_stopped: &'d (dyn Fn() -> bool + Sync),
}

impl<E: Engine> IndexRebuild<'_, E> {
    /// Fills the indexes of these tables, several parts at once. Entries that are there already stay: an attempt
    /// before may have found no memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::DamagedCatalog`] when an index of the system's tables is broken.
    pub(crate) fn run(&self, tables: &[&TableCore<E::Store>]) -> Result<()> {
        let mut tables = tables.to_vec();
        tables.retain(|table| !table.indexes.snapshot().is_empty());
        let threads = self.threads;
        let parts = tables.iter().flat_map(|table| {
            let ranges = self.engine.key_ranges(&table.store, threads * PARTS_PER_THREAD);
            ranges.into_iter().map(move |range| (table, range))
        });
        let parts: Vec<_> = parts.collect();
        let next = AtomicUsize::new(0);
        // Relaxed: the numbers need only differ.
        let take = || parts.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !(self.is_stopped)());
        let work = |_| {
            let participant = self.engine.epochs().participant();
            while let Some((table, range)) = take() {
                self.rebuild_part(&participant, table, range)?;
            }
            Ok(())
        };
        let worked = side_by_side("ensilo-index", threads.min(parts.len()), work);
        worked.into_iter().collect::<Result<()>>()?;
        self.set_broken_ones_aside(&tables)
    }

    /// Sees to it that writers leave broken indexes alone.
    ///
    /// # Errors
    /// [`Error::DamagedCatalog`] when one of the system's is broken: two tables have one name.
    fn set_broken_ones_aside(&self, tables: &[&TableCore<E::Store>]) -> Result<()> {
        for table in tables {
            let indexes = table.indexes.snapshot();
            if indexes.iter().all(|index| index.is_kept()) {
                continue;
            }
            if table.name.starts_with(SYSTEM_PREFIX) {
                return Err(Error::DamagedCatalog(Name::new(&*table.name)));
            }
            table.indexes.publish(indexes, self.engine.epochs());
        }
        Ok(())
    }

    /// Fills the indexes with the entries of a range of rows. Where memory ends it goes on behind the entries that are
    /// there, when rows have left it.
    fn rebuild_part(
        &self,
        participant: &Participant,
        table: &TableCore<E::Store>,
        range: &KeyRange,
    ) -> Result<()> {
        let (mut left, made) = (range.clone(), Cell::new(0));
        let mut fill_rest = || {
            if (self.is_stopped)() { Ok(()) } else { self.rebuild_from(participant, table, &mut left, &made) }
        };
        let Some(when_short) = self.when_short else { return fill_rest() };
        let fill_rest = || {
            fill_rest().inspect_err(|error| {
                if matches!(error, Error::OutOfMemory(_)) {
                    when_short();
                }
            })
        };
        with_room(self.engine, || made.get(), fill_rest)
    }

    /// Fills the indexes with the entries of a range of rows, which begins with the row that met an error afterwards,
    /// and adds how many it has made.
    fn rebuild_from(
        &self,
        participant: &Participant,
        table: &TableCore<E::Store>,
        range: &mut KeyRange,
        made: &Cell<u64>,
    ) -> Result<()> {
        let indexes = table.indexes.snapshot();
        let mut entries = vec![0; indexes.len()];
        let mut entry_maker = EntryMaker::new(self.engine, participant, table);
        let mut outcome = Ok(());
        let mut refused = None;
        let _ = self.engine.walk(
            &table.store,
            range,
            Epoch::MAX,
            |record| {
                outcome = indexes.iter().zip(&mut entries).try_for_each(|(index, entries)| {
                    *entries += u64::from(entry_maker.derive(index, &record)?);
                    Ok(())
                });
                if outcome.is_ok() {
                    return ControlFlow::Continue(());
                }
                refused = Some(record.key.to_vec());
                ControlFlow::Break(())
            },
            || ControlFlow::Continue(()),
        );
        if let Some(key) = refused {
            range.low = Bound::Included(key);
        }
        made.set(made.get() + entries.iter().sum::<u64>());
        for (index, entries) in indexes.iter().zip(entries) {
            self.records.add_recovered(index.store.id(), entries);
        }
        outcome
    }
}

/// Makes the entries of a table's rows.
struct EntryMaker<'m, E: Engine> {
    engine: &'m E,
    participant: &'m Participant,
    table: &'m TableCore<E::Store>,
    /// Room for a row of an older schema as one of that which the table has.
    converted: RowBuf,
    entry: RowBuf,
    entry_key: KeyBuf,
}

impl<'m, E: Engine> EntryMaker<'m, E> {
    fn new(engine: &'m E, participant: &'m Participant, table: &'m TableCore<E::Store>) -> Self {
        let (converted, entry) = (RowBuf::new(), RowBuf::new());
        EntryMaker { engine, participant, table, converted, entry, entry_key: KeyBuf::new() }
    }

    /// Adds the entry of a row, and says whether it did. When the entry cannot be, the index is broken, and
    /// gets no more of them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]: no index is at fault then, and an opening with a larger limit finds all as it
    /// was.
    fn derive(&mut self, index: &IndexCore<E::Store>, row: &StoredRow<'_>) -> Result<bool> {
        if !index.is_kept() {
            return Ok(false);
        }
        let EntryMaker { engine, participant, table, converted, entry, entry_key } = self;
        let words = table.stored_in_schema(row, converted);
        stored_index_key(table, index, &key_of_bytes(row.key), &words, entry_key);
        entry.set_bytes(row.key);
        if check_key_len(&index.name, entry_key).is_err() {
            index.mark_broken();
            return Ok(false);
        }
        let entry = StoredRow {
            key: entry_key.as_bytes(),
            tid: row.tid,
            words: entry.words(),
            len_bytes: entry.len_bytes(),
        };
        match engine.derive(participant, &index.store, &entry) {
            Ok(true) => Ok(true),
            Ok(false) => {
                let left_out_before = engine.rows_left_out();
                if has_entry(*engine, &index.store, &entry) {
                    return Ok(false);
                }
                if engine.rows_left_out() > left_out_before {
                    return Err(Error::OutOfMemory(Abort::out_of_memory(index.store.id())));
                }
                index.mark_broken();
                Ok(false)
            }
            Err(_) => Err(Error::OutOfMemory(Abort::out_of_memory(index.store.id()))),
        }
    }
}

/// Returns whether an index has this very entry.
#[cold]
fn has_entry<E: Engine>(engine: &E, index: &E::Store, entry: &StoredRow<'_>) -> bool {
    let key = || Bound::Included(entry.key.to_vec());
    let mut has_entry = false;
    let _ = engine.walk(
        index,
        &KeyRange { low: key(), high: key() },
        Epoch::MAX,
        |found| {
            has_entry = found.words == entry.words && found.len_bytes == entry.len_bytes;
            ControlFlow::Continue(())
        },
        || ControlFlow::Continue(()),
    );
    has_entry
}
