//! Changing the schema of a table while it is used.
//!
//! The rows stay as they are: those of before are read as older ones from then on ([`older_rows`](crate::older_rows)). It consists of these steps:
//!
//! 1. All rows are in memory, and the transactions that are under way end. The table is used as before meanwhile.
//! 2. The handles that there are, to the table and to its indexes, are refused to statements.
//! 3. The transactions that are under way since end. No row of the old schema is written any more. Then there is a fence in the serial order, a
//!    snapshot is taken, and the transactions end that have begun meanwhile: who uses the changed table sees, and comes after, all that have used it
//!    before. Where one of them takes long, the refusal is taken back, and it begins anew with step 1.
//! 4. A new epoch begins, of which no row is yet: rows of it, and of those after it, are of the new schema.
//! 5. The catalog's rows are changed, by a transaction of this epoch or a later one. A table that gets its first column of variable length gets an empty store for
//!    its [long values](crate::long_values), which this transaction names. So is the store named
//!    that an opening has made where the catalog named none.
//! 6. New handles are to the table as it is now. The first row of the new schema is written after all of this.
//!
//! # Crash
//! Before the transaction of step 5 is stored the table is as it was: a row of the new schema commits in no earlier epoch than this transaction, and is lost
//! with it. Afterwards the table is changed; recovery goes on in an epoch after that of this transaction, so after the one of step 4.
//! A store that the catalog does not name is dropped by the opening.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Failpoint, Store};
use ensilo_epoch::Epoch;
use ensilo_row::{Schema, SchemaChange};

use super::AlsoWrites;
use super::change::Indexes;
use super::index_core::{IndexCore, IndexState};
use super::table_core::TableCore;
use super::wait;
use crate::durability::Durability;
use crate::error::{Name, NameInTable};
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// So long a table is refused at most, for transactions to end.
pub(super) const REFUSAL_MAX: Duration = Duration::from_secs(1);

/// What all schemas of a table take in its row of the catalog, at most.
const SCHEMAS_BYTES_MAX: usize = 1 << 20;

/// Says what is to be changed of a schema, if anything.
type ChangeOf<'c> = &'c dyn Fn(&Schema) -> Result<Option<SchemaChange>>;

impl<E: Engine> DatabaseShared<E> {
    /// Makes a change of the columns of a table. Returns whether it has changed anything, and so has made the transaction that writes `also`.
    pub(crate) fn change_table(
        &self,
        name: &str,
        change: &SchemaChange,
        also: AlsoWrites<'_, E>,
    ) -> Result<bool> {
        let change_of = |stored: &Schema| {
            let is_changed = stored.is_changed_by(change).map_err(Error::from_schema)?;
            Ok(is_changed.then(|| change.clone()))
        };
        self.change_schema(name, &change_of, also)
    }

    /// Changes the columns of a table. `change_of` says, of the schema that the table has, what is to be changed, if anything; it is
    /// asked again where the table has changed meanwhile. Returns whether there was anything to change.
    pub(crate) fn change_schema(
        &self,
        name: &str,
        change_of: ChangeOf<'_>,
        also: AlsoWrites<'_, E>,
    ) -> Result<bool> {
        self.check_may_change()?;
        loop {
            let table = self.catalog.table(name)?;
            let schema = table.current_schema();
            let Some(change) = change_of(&schema)? else { return Ok(false) };
            if !E::ROWS_HAVE_EPOCHS {
                let text = "over this engine the columns of a table stay as they are";
                return Err(Error::InvalidSchema(Name::new(text)));
            }
            check_change(&table, &schema, &change)?;
            self.load_whole(&table)?;
            wait::for_older_transactions(&*self.engine, || self.is_closed())?;
            if let Some(is_changed) = self.try_change(name, change_of, also)? {
                return Ok(is_changed);
            }
        }
    }

    /// Changes the columns of a table whose rows are in memory. Returns whether there was anything to change, or `None` where a transaction takes
    /// long to end.
    fn try_change(
        &self,
        name: &str,
        change_of: ChangeOf<'_>,
        also: AlsoWrites<'_, E>,
    ) -> Result<Option<bool>> {
        let mut changes = self.catalog.change();
        let table = self.catalog.table(name)?;
        let schema = table.current_schema();
        let Some(change) = change_of(&schema)? else { return Ok(Some(false)) };
        check_change(&table, &schema, &change)?;
        let indexes = table.indexes.snapshot();
        if let Some(index) = indexes.iter().find(|index| index.state() == IndexState::Building) {
            return Err(Error::IndexNotReady(NameInTable::new(&*table.name, &*index.name)));
        }
        let refusal = Refusal::new(self.id(), &table, &indexes);
        let Some(since) = self.wait_until_unused()? else { return Ok(None) };
        let (schema, history) =
            table.history().changed(&schema, &change, since.get()).map_err(Error::from_schema)?;
        let keeps_inline = self.keeps_long_values_inline();
        let known = table.long.as_ref().map(|long| long.store.keeping(keeps_inline));
        let is_new = known.is_none();
        let make =
            || self.create_long_values(&mut changes, (table.store.id(), &table.name), &schema, keeps_inline);
        let long = known.map_or_else(make, |known| Ok(Some(known)))?;
        let new_store = long.as_ref().filter(|_| is_new).map(|long| long.id());
        let changed = Arc::new(table.changed(self.id(), (schema, history), long));
        let indexes = self.changed_indexes(&changed, &indexes)?;
        let outcome = self.commit_rows(|tx| {
            self.catalog.system.replace_table(tx, &changed, &indexes)?;
            if changed.long.is_some() {
                self.note_given(tx, &changed, false)?;
            }
            also(tx)
        });
        if outcome.is_err() {
            new_store.map(|store| self.engine.drop_store(store));
        }
        if outcome.is_ok() {
            // It is changed, also if the log fails before that is stored.
            refusal.last();
            changed.indexes.publish(indexes, self.engine.epochs());
            self.catalog.write().insert(Arc::clone(&changed.name), changed);
        }
        self.answer(outcome, Durability::Stored).map(|()| Some(true))
    }

    /// Waits until all transactions show a point in time at which nobody has used a refused table any more, and come after all that have used it.
    /// Returns an epoch that has begun since, or `None` if some transactions take long.
    pub(super) fn wait_until_unused(&self) -> Result<Option<Epoch>> {
        E::reached(Failpoint::TableRefused);
        let deadline = Some(Instant::now() + REFUSAL_MAX);
        let wait = || wait::for_older_transactions_until(&*self.engine, || self.is_closed(), deadline);
        if !wait()? {
            return Ok(None);
        }
        self.engine.fence_serial_order();
        if E::SNAPSHOTS {
            self.engine.take_snapshot(Instant::now());
        }
        if !wait()? {
            return Ok(None);
        }
        wait::for_next_epoch(&*self.engine, || self.is_closed()).map(Some)
    }

    /// Returns the indexes as those of the changed table.
    fn changed_indexes(&self, table: &TableCore<E::Store>, indexes: &Indexes<E>) -> Result<Indexes<E>> {
        let changed = |index: &Arc<IndexCore<E::Store>>| {
            let number = table.schema.indexes().iter().position(|schema| schema.name() == &*index.name);
            // The schema has those that the table has.
            let number =
                number.ok_or_else(|| Error::UnknownIndex(NameInTable::new(&*table.name, &*index.name)))?;
            Ok(Arc::new(index.changed(self.id(), table.schema.indexes()[number].clone(), Some(number))))
        };
        indexes.iter().map(changed).collect()
    }
}

/// Checks whether a change can be, before it refuses anything to anybody.
fn check_change<S: Store>(table: &TableCore<S>, schema: &Schema, change: &SchemaChange) -> Result<()> {
    let history = table.history();
    let (changed, history) =
        history.changed(schema, change, history.since() + 1).map_err(Error::from_schema)?;
    let mut encoded = Vec::new();
    history.encode(&changed, &mut encoded);
    if encoded.len() <= SCHEMAS_BYTES_MAX {
        return Ok(());
    }
    let text = "its schemas take more than 1 MiB; move the rows into another table, or add shorter values";
    Err(Error::InvalidSchema(Name::new(format!("table {} was changed too often: {text}", table.name))))
}

/// A table and its indexes, refused to all statements that begin. Dropped, it lets them in again.
pub(super) struct Refusal<'t, S: Store> {
    database: u64,
    table: &'t TableCore<S>,
    indexes: &'t [Arc<IndexCore<S>>],
    lasts: bool,
}

impl<'t, S: Store> Refusal<'t, S> {
    pub(super) fn new(database: u64, table: &'t TableCore<S>, indexes: &'t [Arc<IndexCore<S>>]) -> Self {
        table.mark_changed();
        indexes.iter().for_each(|index| index.mark_changed());
        Refusal { database, table, indexes, lasts: false }
    }

    /// Refuses them for good.
    pub(super) fn last(mut self) {
        self.lasts = true;
    }
}

impl<S: Store> Drop for Refusal<'_, S> {
    fn drop(&mut self) {
        if !self.lasts {
            self.table.mark_unchanged(self.database);
            self.indexes.iter().for_each(|index| index.mark_unchanged(self.database));
        }
    }
}
