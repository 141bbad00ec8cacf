//! Making a broken index anew, on a table that others are writing to.
//!
//! Timeline:
//! ```text
//! claim          nobody else makes it anew or drops it; it is announced, as a new index is (see `build_index`)
//!   | wait       until transactions that keep it, from an attempt before, have ended: from here on nobody touches its entries
//! clear          small transactions remove what it has of entries
//! introduce      as for a new index
//!   | wait
//! fill
//! finish
//! ```
//! The catalog's rows name the index all the time, and do not change.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::{Direction, Engine, Failpoint, Write};

use super::index_core::{IndexCore, IndexState};
use super::table_core::TableCore;
use super::wait;
use crate::durability::Durability;
use crate::error::NameInTable;
use crate::long_values::RowForm;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::transaction::Inner;
use crate::{Error, Result, attempt};

/// The most entries that one transaction removes.
const BATCH_LEN: usize = 128;

impl<E: Engine> DatabaseShared<E> {
    /// Makes the entries of a broken index anew.
    pub(crate) fn rebuild_index(&self, table: &Arc<TableCore<E::Store>>, name: &str) -> Result<()> {
        self.check_may_change()?;
        self.load_whole(table)?;
        let Some(index) = self.claim_broken_index(table, name)? else { return Ok(()) };
        let rebuilt = self.wait_for_older_transactions().and_then(|()| self.clear_and_fill(table, &index));
        if rebuilt.is_err() {
            self.give_index_back_as_broken(table, &index);
        }
        rebuilt.map_err(|error| self.explain(error))
    }

    /// Returns the broken index of this name, for this caller alone; `None` when it can be read.
    fn claim_broken_index(
        &self,
        table: &TableCore<E::Store>,
        name: &str,
    ) -> Result<Option<Arc<IndexCore<E::Store>>>> {
        let _changes = self.catalog.change();
        table.check_exists()?;
        let index = table.index(name)?;
        match index.state() {
            IndexState::Ready => Ok(None),
            IndexState::Building => Err(Error::IndexNotReady(NameInTable::new(&*table.name, name))),
            IndexState::Broken => {
                index.mark_announced();
                table.indexes.publish(table.indexes.snapshot(), self.engine.epochs());
                Ok(Some(index))
            }
        }
    }

    fn clear_and_fill(&self, table: &TableCore<E::Store>, index: &IndexCore<E::Store>) -> Result<()> {
        self.clear_index(table, index)?;
        self.introduce_index(table, index);
        self.wait_for_introduction()?;
        E::reached(Failpoint::IndexIntroduced);
        self.fill_index(table, index)?;
        E::reached(Failpoint::IndexFilled);
        let _changes = self.catalog.change();
        table.check_exists()?;
        self.let_index_be_read(index);
        Ok(())
    }

    fn clear_index(&self, table: &TableCore<E::Store>, index: &IndexCore<E::Store>) -> Result<()> {
        loop {
            let cleared =
                attempt::run(self, attempt::RetryPolicy::internal(self.retries), &mut |_| (), |tx| {
                    table.check(tx.inner.local)?;
                    clear_batch(&mut tx.inner, index)
                });
            match cleared {
                Ok(Visible { value: true, .. }) => {}
                Ok(Visible { value: false, .. }) => return Ok(()),
                Err(undone) => return self.answer(Err(undone), Durability::Stored),
            }
        }
    }

    fn give_index_back_as_broken(&self, table: &TableCore<E::Store>, index: &IndexCore<E::Store>) {
        let _changes = self.catalog.change();
        // A dropped table has dropped its indexes.
        if !table.is_dropped() {
            index.mark_broken();
            table.indexes.publish(table.indexes.snapshot(), self.engine.epochs());
        }
    }

    pub(super) fn wait_for_older_transactions(&self) -> Result<()> {
        wait::for_older_transactions(&*self.engine, || self.is_closed())
    }
}

/// Removes some of the entries, and says whether there were any.
fn clear_batch<Raw: Write>(inner: &mut Inner<'_, Raw>, index: &IndexCore<Raw::Store>) -> Result<bool> {
    let mut entries = Vec::with_capacity(BATCH_LEN);
    inner.scan(
        &index.store,
        RowForm::STORED,
        (Bound::Unbounded, Bound::Unbounded),
        Direction::Forward,
        |_, _| (),
        |found, ()| {
            entries.push(found);
            if entries.len() == BATCH_LEN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    )?;
    for &entry in &entries {
        inner.delete(&index.store, entry)?;
    }
    Ok(!entries.is_empty())
}
