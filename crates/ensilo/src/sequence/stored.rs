//! Making, finding and dropping sequences, and reserving their numbers: what reads and writes rows.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;

use super::definition::Definition;
use super::rows::{Reserved, SequenceRow};
use super::sequence_core::{SequenceCore, SequenceKey};
use super::sequences::KnownSequences;
use super::state::Given;
use crate::attempt::{self, RetryPolicy};
use crate::durability::Durability;
use crate::error::Name;
use crate::local::ThreadWorker;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::{Error, Result};

impl<E: Engine> DatabaseShared<E> {
    /// Returns a sequence that is there.
    pub(crate) fn find_sequence(
        &self,
        key: &SequenceKey,
        name: &Arc<str>,
    ) -> Result<Option<Arc<SequenceCore>>> {
        let Some(rows) = self.sequence_rows()? else { return Ok(None) };
        let mut known = self.catalog.sequences.lock();
        if let Some(core) = known.get(key) {
            return Ok(Some(Arc::clone(core)));
        }
        let read = self.commit_apart(|tx| rows.get(tx, (key.table, &*key.name)));
        match read.map_err(|undone| undone.error)?.value {
            Some(row) => register(&mut known, key, name, &row).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the sequence that gives keys of a table, if there is one.
    pub(crate) fn find_sequence_of_table(
        &self,
        table: u32,
        name: &Arc<str>,
    ) -> Result<Option<Arc<SequenceCore>>> {
        let Some(rows) = self.sequence_rows()? else { return Ok(None) };
        let mut known = self.catalog.sequences.lock();
        if let Some(core) = known.values().find(|core| core.key.table == table) {
            return Ok(Some(Arc::clone(core)));
        }
        let read = self.commit_apart(|tx| rows.prefix((table,)).first(tx));
        match read.map_err(|undone| undone.error)?.value {
            Some((_, row)) => {
                let key = SequenceKey { table, name: row.name.as_str().into() };
                register(&mut known, &key, name, &row).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Makes a sequence, or returns the one that another thread has made meanwhile.
    pub(crate) fn make_sequence(
        &self,
        key: &SequenceKey,
        name: &Arc<str>,
        definition: &Definition,
        reserved: Option<i128>,
    ) -> Result<Arc<SequenceCore>> {
        self.check_may_change()?;
        let rows = self.make_rows_of_system::<SequenceRow>(None)?;
        let mut known = self.catalog.sequences.lock();
        let row = SequenceRow::new(key, definition, reserved);
        let made = self.commit_apart(|tx| rows.insert_or_get(tx, &row));
        let made = made.and_then(|Visible { value: there, epoch }| {
            let core = match known.get(key) {
                Some(core) => Arc::clone(core),
                None => register(&mut known, key, name, &there.unwrap_or(row))?,
            };
            Ok(Visible { value: core, epoch })
        });
        // Others may find it, and give numbers, before it is stored: who uses these commits in no earlier epoch.
        drop(known);
        self.answer(made, Durability::Stored)
    }

    /// Drops a sequence of a program.
    pub(crate) fn drop_sequence(&self, name: &str) -> Result<()> {
        self.check_may_change()?;
        let unknown = || Error::UnknownSequence(Name::new(name));
        let rows = self.sequence_rows()?.ok_or_else(unknown)?;
        let mut known = self.catalog.sequences.lock();
        let dropped = self.commit_apart(|tx| rows.delete(tx, (0, name)));
        if matches!(dropped, Ok(Visible { value: true, .. })) {
            forget(&mut known, &SequenceKey::named(name));
        }
        drop(known);
        if self.answer(dropped, Durability::Stored)? { Ok(()) } else { Err(unknown()) }
    }

    /// Deletes the row of the sequence that gives the keys of a table, which is being dropped.
    pub(crate) fn delete_numbers_of_table(&self, tx: &mut Transaction<'_, E>, table: u32) -> Result<()> {
        match self.sequence_rows()? {
            Some(rows) => rows.prefix((table,)).delete(tx).map(drop),
            None => Ok(()),
        }
    }

    /// Hands the sequence that gives the keys of a table, if there is one, to the table that takes its place.
    pub(crate) fn move_numbers_of_table(
        &self,
        tx: &mut Transaction<'_, E>,
        from: u32,
        to: u32,
    ) -> Result<()> {
        let Some(rows) = self.sequence_rows()? else { return Ok(()) };
        match rows.prefix((from,)).take_first(tx)? {
            Some((_, mut row)) => {
                row.table = to;
                rows.insert(tx, &row).map(drop)
            }
            None => Ok(()),
        }
    }

    /// Ends the sequence that gives the keys of a table, which was dropped, or has got another store.
    pub(crate) fn forget_numbers_of_table(&self, table: u32) {
        self.catalog.sequences.lock().retain(|key, core| {
            let is_other = key.table != table;
            if !is_other {
                core.mark_dropped();
            }
            is_other
        });
    }

    /// Returns the names of the sequences that programs have made, in alphabetical order.
    pub(crate) fn list_sequences(&self) -> Result<Vec<String>> {
        let Some(rows) = self.sequence_rows()? else { return Ok(Vec::new()) };
        let listed = self.commit_apart(|tx| {
            let mut names = Vec::new();
            rows.prefix((0,)).for_each(tx, |(_, name), _| names.push(name))?;
            Ok(names)
        });
        self.answer(listed, Durability::Visible)
    }

    /// Gives `count` numbers, one at least, if they are all among `numbers`, after more were reserved where there are not as many left.
    pub(crate) fn give_numbers(
        &self,
        core: &SequenceCore,
        count: u64,
        numbers: &RangeInclusive<i128>,
    ) -> Result<Given> {
        let mut state = core.lock()?;
        let run = state.to_reserve(count).map_err(|_| core.exhausted())?;
        if let Some(run) = run {
            let epoch = self.write_reserved(core, Some(state.definition.last_of(run)))?;
            state.reserve(run, epoch);
        }
        if state.are_next_among(count, numbers) { Ok(state.give(count)) } else { Err(core.exhausted()) }
    }

    /// Lets a sequence go on behind this number. Returns the epoch that says so when it is stored.
    pub(crate) fn pass_over_numbers(&self, core: &SequenceCore, number: i128) -> Result<Epoch> {
        let mut state = core.lock()?;
        if !state.pass_over(number) {
            let epoch = self.write_reserved(core, Some(number))?;
            state.jump(number, epoch);
        }
        Ok(state.reserved_in())
    }

    /// Writes down what was not given of what is reserved. The database is being closed: no requests begin any more.
    pub(crate) fn give_back_numbers(&self) {
        if self.durable().is_none() {
            return;
        }
        let mut worker = None;
        for core in self.catalog.sequences.lock().values() {
            let Some(reserved) = core.close() else { continue };
            let worker = worker.get_or_insert_with(|| self.worker_of_closing());
            // Otherwise the numbers are left out, as after a crash.
            let _ = self.write_reserved_on(worker, core, reserved, 0);
        }
    }

    /// Writes down the last number that may be given from now on, in a transaction of its own. Returns its epoch.
    fn write_reserved(&self, core: &SequenceCore, reserved: Option<i128>) -> Result<Epoch> {
        if self.read_only().is_some() {
            return Err(Error::ReadOnly);
        }
        self.write_reserved_on(&mut *self.lend()?, core, reserved, self.retries)
    }

    fn write_reserved_on(
        &self,
        worker: &mut ThreadWorker<E>,
        core: &SequenceCore,
        reserved: Option<i128>,
        retries: u32,
    ) -> Result<Epoch> {
        let unknown = || Error::UnknownSequence(Name::new(&*core.name));
        let rows = self.sequence_rows()?.ok_or_else(unknown)?;
        let key = (core.key.table, &*core.key.name);
        let policy = RetryPolicy::internal(retries);
        let written = attempt::run_on(self, worker, policy, &mut |_| (), |tx| {
            rows.update(tx, key, |row: &mut Reserved| row.reserved = reserved)
        });
        match written {
            Ok(visible) => Ok(visible.epoch),
            Err(undone) if matches!(undone.error, Error::MissingRow(_)) => Err(unknown()),
            Err(undone) => Err(undone.error),
        }
    }

    /// Returns the table of the sequences' rows, if there is one.
    pub(super) fn sequence_rows(&self) -> Result<Option<Table<SequenceRow, E>>> {
        self.rows_of_system()
    }
}

fn register(
    known: &mut KnownSequences,
    key: &SequenceKey,
    name: &Arc<str>,
    row: &SequenceRow,
) -> Result<Arc<SequenceCore>> {
    let definition = row.definition().ok_or_else(|| Error::DamagedCatalog(Name::new(&**name)))?;
    let core = SequenceCore::new(key.clone(), Arc::clone(name), definition, row.reserved);
    known.insert(key.clone(), Arc::clone(&core));
    Ok(core)
}

fn forget(known: &mut KnownSequences, key: &SequenceKey) {
    if let Some(core) = known.remove(key) {
        core.mark_dropped();
    }
}
