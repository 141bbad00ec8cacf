//! Tables of the system that stand in the catalog as those of programs do, made with their first row.
//!
//! They are logged, checkpointed and recovered like all others. Their names keep programs from them.

use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_row::Row;

use crate::attempt::{self, RetryPolicy};
use crate::error::Name;
use crate::outcome::Outcome;
use crate::shared::DatabaseShared;
use crate::table::Table;
use crate::transaction::Transaction;
use crate::{Error, Result};

impl<E: Engine> DatabaseShared<E> {
    /// Returns the table that has rows of this type, if there is one.
    ///
    /// # Errors
    /// [`Error::DamagedCatalog`] when its columns are others.
    pub(crate) fn rows_of_system<T: Row>(&self) -> Result<Option<Table<T, E>>> {
        let expected = T::schema();
        let Some(core) = self.catalog.any_table(expected.name()) else { return Ok(None) };
        let is_as_expected = core.schema.columns() == expected.columns()
            && core.schema.primary_key() == expected.primary_key();
        if is_as_expected {
            Ok(Some(Table::new(core)))
        } else {
            Err(Error::DamagedCatalog(Name::new(expected.name())))
        }
    }

    /// Like [`rows_of_system`](Self::rows_of_system), of a table that is made if it is not there, by the transaction that inserts the
    /// first row, if there is one.
    pub(crate) fn make_rows_of_system<T: Row>(&self, first: Option<&T>) -> Result<Table<T, E>> {
        loop {
            if let Some(rows) = self.rows_of_system()? {
                return Ok(rows);
            }
            let created = self.create_any_table(T::schema().clone(), &|tx, core| {
                first.map_or(Ok(()), |row| Table::new(Arc::clone(core)).insert(tx, row).map(drop))
            });
            match created {
                // Another thread was faster.
                Err(Error::TableExists(_)) => {}
                created => drop(created?),
            }
        }
    }

    /// Runs a transaction beside the one that the calling thread may have open.
    pub(crate) fn commit_apart<R>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
    ) -> Outcome<R> {
        attempt::run_on(self, &mut *self.lend()?, RetryPolicy::internal(self.retries), &mut |_| (), body)
    }
}
