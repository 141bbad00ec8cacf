//! The workload's tables.

use ensilo::{Database, Protocol, Result, Table, Transaction};

use super::statement::Statement;
use crate::schema::{Amount, Blob, Event, Numbers, Pair, Progress, Wide};
use crate::state::table;

/// The tables, as far as they are there.
pub(super) struct Tables<P: Protocol> {
    pub(super) progress: Option<Table<Progress, P>>,
    pub(super) wide: Option<Table<Wide, P>>,
    pub(super) pairs: Option<Table<Pair, P>>,
    pub(super) blobs: Option<Table<Blob, P>>,
    pub(super) events: Option<Table<Event, P>>,
}

impl<P: Protocol> Tables<P> {
    pub(super) fn open(db: &Database<P>) -> Result<Self> {
        Ok(Tables {
            progress: table(db)?,
            wide: table(db)?,
            pairs: table(db)?,
            blobs: table(db)?,
            events: table(db)?,
        })
    }

    /// Executes a statement, whose event is that of this step.
    pub(super) fn execute(
        &self,
        tx: &mut Transaction<'_, P>,
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
