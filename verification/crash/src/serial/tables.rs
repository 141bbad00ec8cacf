//! The workload's tables.

use ensilo::generic::{Database, Table, Transaction};
use ensilo::{Engine, Result};

use super::statement::Statement;
use crate::schema::{Amount, Blob, Event, Numbers, Pair, Progress, Wide, table};

/// The tables, as far as they are there.
pub(super) struct Tables<E: Engine> {
    pub(super) progress: Option<Table<Progress, E>>,
    pub(super) wide: Option<Table<Wide, E>>,
    pub(super) pairs: Option<Table<Pair, E>>,
    pub(super) blobs: Option<Table<Blob, E>>,
    pub(super) events: Option<Table<Event, E>>,
}

impl<E: Engine> Tables<E> {
    pub(super) fn open(db: &Database<E>) -> Result<Self> {
        Ok(Tables {
            progress: table(db)?,
            wide: table(db)?,
            pairs: table(db)?,
            blobs: table(db)?,
            events: table(db)?,
        })
    }

    /// Executes a statement. An event is that of this step.
    pub(super) fn execute(
        &self,
        tx: &mut Transaction<'_, E>,
        statement: &Statement,
        step: u64,
    ) -> Result<()> {
        let Tables { wide: Some(wide), blobs: Some(blobs), events: Some(events), pairs, .. } = self else {
            return Ok(());
        };
        match (statement, pairs) {
            (Statement::Insert(row), _) => wide.insert(tx, row).map(|_| ()),
            (Statement::SetAmount(id, amount), _) => {
                wide.update(tx, *id, |row: &mut Amount| row.amount = *amount)
            }
            (Statement::SetNumbers(id, numbers), _) => {
                wide.update(tx, *id, |row: &mut Numbers| *row = numbers.clone())
            }
            (Statement::Replace(row), _) => wide.replace(tx, row),
            (Statement::Delete(id), _) => wide.delete(tx, *id).map(|_| ()),
            (Statement::PutPair(row), Some(pairs)) => pairs.upsert(tx, row),
            (Statement::DeletePair(left, right), Some(pairs)) => {
                pairs.delete(tx, (*left, *right)).map(|_| ())
            }
            (Statement::PutPair(_) | Statement::DeletePair(..), None) => Ok(()),
            (Statement::PutBlob(row), _) => blobs.upsert(tx, row),
            (Statement::DeleteBlob(id), _) => blobs.delete(tx, *id).map(|_| ()),
            (Statement::Event, _) => events.insert(tx, &Event { step }).map(|_| ()),
        }
    }
}
