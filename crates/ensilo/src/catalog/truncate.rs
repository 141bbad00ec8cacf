//! Emptying a table, however large it is.
//!
//! The table gets new stores, which are empty, in the place of its own; those are dropped like the stores of a dropped table, and collected beside
//! transactions. It takes no memory for the rows and writes none of them to the log, and consists of these steps:
//!
//! 1. The transactions that are under way end. The table is used as before meanwhile.
//! 2. The handles that there are, to the table and to its indexes, are refused to statements.
//! 3. The transactions that are under way since end. None that has used the table is left.
//! 4. A snapshot is taken, and the transactions end that have begun meanwhile. From here on each shows a point in time after step 3. Where the steps
//!    3 and 4 take long the refusal is taken back, and it begins anew with step 1.
//! 5. An epoch begins, one of its transactions replaces the catalog's rows of the table by those of the new one, and another epoch begins.
//! 6. That transaction is stored. Where it cannot be, the handles are let in again.
//! 7. New handles are to the new table, and the old stores are dropped.
//!
//! # Serializability
//! Nobody uses the table between the steps 2 and 7. A transaction that has used the old rows has ended before step 4, and so is seen by each that
//! uses the new table: the table is emptied between all of the first and all of the second. Without step 4 a snapshot, or a transaction of an
//! engine that reads as of its begin, could see the empty table and miss what was committed beside the old rows.
//!
//! In an engine whose serial order is not that of the commits, a transaction may come before one whose writes it sees. The engine finds that out by what
//! it keeps of deletions, and the new stores have none. So there is a fence in the order ([`Engine::fence_serial_order`]) once step 3 is over: who uses the
//! new rows has begun after it, and comes after all that have used the old ones.
//!
//! # Crash
//! Before the transaction of step 5 is stored the table has its rows, and its files have them too (step 7). What is written to the new
//! table commits in a later epoch than this transaction, so that it is lost with it. Afterwards the table is empty, and an opening drops
//! what the files have of stores that the catalog does not name.
//!
//! # Change feed
//! Consumers are told by a row of the transaction of step 5 ([`SystemTables::emptied`](super::system::SystemTables::emptied)). That the epoch goes on
//! before and behind it puts that row between those of the old table and those of the new one. Until it is stored the catalog has the old table, so that
//! nobody passes over rows of it that are stored.

use std::sync::Arc;

use ensilo_engine::{Engine, Failpoint, Fault, Store as _};

use super::change_schema::Refusal;
use super::index_core::{IndexCore, IndexState};
use super::table_core::TableCore;
use super::{Changes, wait};
use crate::durability::Durability;
use crate::error::NameInTable;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

impl<E: Engine> DatabaseShared<E> {
    /// Takes all rows out of a table.
    pub(crate) fn truncate_table(&self, name: &str) -> Result<()> {
        self.check_may_change()?;
        loop {
            self.catalog.table(name)?;
            self.wait_for_older_transactions()?;
            if self.try_truncate(name)? {
                return Ok(());
            }
        }
    }

    /// Truncates a table. Returns `false` where a transaction takes long to end.
    fn try_truncate(&self, name: &str) -> Result<bool> {
        let mut changes = self.catalog.change();
        let table = self.catalog.table(name)?;
        let indexes = table.indexes.snapshot();
        // While rows are loaded their indexes count as being built, and nobody builds another one.
        let is_built =
            |index: &&Arc<IndexCore<_>>| index.state() == IndexState::Building && table.load.is_over();
        if let Some(index) = indexes.iter().find(is_built) {
            return Err(Error::IndexNotReady(NameInTable::new(&*table.name, &*index.name)));
        }
        let refusal = Refusal::new(self.id(), &table, &indexes);
        if E::FAULT != Some(Fault::TruncateUsedTables) && self.wait_until_unused()?.is_none() {
            return Ok(false);
        }
        self.replace_by_empty(&mut changes, &table, refusal).map(|()| true)
    }

    /// Puts an empty table in the place of one that nobody uses.
    fn replace_by_empty(
        &self,
        changes: &mut Changes,
        table: &Arc<TableCore<E::Store>>,
        refusal: Refusal<'_, E::Store>,
    ) -> Result<()> {
        let mut stores = Vec::new();
        let made = self.create_stores(changes, table.schema_with_all_indexes(), &mut stores);
        let outcome = made.map_err(Into::into).and_then(|(empty, indexes)| {
            let committed = self.commit_rows(|tx| {
                self.catalog.system.delete_table(tx, table)?;
                self.catalog.system.insert_table(tx, &empty, &indexes)?;
                self.move_numbers_of_table(tx, table.store.id().0, empty.store.id().0)?;
                self.note_given(tx, &empty, true)
            })?;
            E::reached(Failpoint::TableRowsDeleted);
            Ok(Visible { value: (empty, indexes), epoch: committed.epoch })
        });
        // A consumer of changes that comes by meanwhile still finds the table whose rows are stored.
        let (empty, indexes) = match self.answer(outcome, Durability::Stored) {
            Ok(replaced) => replaced,
            Err(error) => {
                // Also where the log has failed: then the next opening tells whether it is truncated.
                stores.into_iter().for_each(|store| _ = self.engine.drop_store(store));
                return Err(self.explain(error));
            }
        };
        // Where the database is being closed nobody writes to the table any more.
        let _ = wait::for_next_epoch(&*self.engine, || self.is_closed());
        refusal.last();
        empty.indexes.publish(indexes, self.engine.epochs());
        self.catalog.note_dropped(table);
        self.catalog.write().insert(Arc::clone(&table.name), Arc::new(empty.in_place_of(table)));
        // Handles to the new table find it where it is now.
        self.forget_numbers_of_table(table.store.id().0);
        table.give_up_load();
        E::reached(Failpoint::TableForgotten);
        self.drop_stores(table);
        Ok(())
    }
}
