//! TPC-C's tables in fjall, a keyspace for each.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, PersistMode,
    Readable, UserKey, UserValue,
};

use super::{
    End, KeyAndRow, OrderedClient, OrderedRead, OrderedStore, OrderedTable, OrderedWrite, Visit, visit_each,
};
use crate::engine::fjall::{failed, open_database, persist_mode};
use crate::peer::Setting;

/// Rows that one batch of the loader inserts.
const BATCH_ROWS: usize = 10_000;

/// A database of fjall.
pub struct FjallTables {
    database: OptimisticTxDatabase,
    tables: Vec<OptimisticTxKeyspace>,
    persist_mode: Option<PersistMode>,
}

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct FjallTablesClient<'a>(&'a FjallTables);

/// A transaction, of either kind, on the tables.
struct Running<'t, T> {
    tables: &'t [OptimisticTxKeyspace],
    transaction: T,
}

impl fmt::Debug for FjallTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FjallTables").field("persist_mode", &self.persist_mode).finish_non_exhaustive()
    }
}

impl OrderedStore for FjallTables {
    type Client<'a> = FjallTablesClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let database = open_database(place)?;
        let keyspace = |table: OrderedTable| database.keyspace(table.name(), KeyspaceCreateOptions::default);
        let tables =
            OrderedTable::ALL.into_iter().map(keyspace).collect::<fjall::Result<_>>().map_err(failed)?;
        Ok(Self { database, tables, persist_mode: persist_mode(setting) })
    }

    fn client(&self) -> Result<FjallTablesClient<'_>, Failure> {
        Ok(FjallTablesClient(self))
    }

    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure> {
        let table = self.tables[table.number()].inner();
        for rows in rows.chunks(BATCH_ROWS) {
            let mut batch = self.database.inner().batch();
            rows.iter().for_each(|(key, row)| batch.insert(table, key.as_slice(), row.as_slice()));
            batch.commit().map_err(failed)?;
        }
        self.database.persist(PersistMode::SyncAll).map_err(failed)
    }
}

impl OrderedClient for FjallTablesClient<'_> {
    fn write(
        &mut self,
        aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        let FjallTables { database, tables, persist_mode } = self.0;
        loop {
            let transaction = database.write_tx().map_err(failed)?.durability(*persist_mode);
            let mut writing = Running { tables, transaction };
            if body(&mut writing)? == End::RollBack {
                writing.transaction.rollback();
                return Ok(End::RollBack);
            }
            if writing.transaction.commit().map_err(failed)?.is_ok() {
                return Ok(End::Commit);
            }
            aborts.count(AbortKind::ReadValidation);
        }
    }

    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        body(&mut Running { tables: &self.0.tables, transaction: self.0.database.read_tx() })
    }
}

impl<T: Readable> OrderedRead for Running<'_, T> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.transaction.get(&self.tables[table.number()], key).map_err(failed)?;
        row.clear();
        if let Some(found) = &found {
            row.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure> {
        let rows = self.transaction.range(&self.tables[table.number()], keys);
        let rows = rows.map(|row| row.into_inner().map_err(failed));
        let visit = |(key, row): &(UserKey, UserValue)| -> ControlFlow<()> { visit(key, row) };
        if is_reverse { visit_each(rows.rev(), visit) } else { visit_each(rows, visit) }
    }
}

impl OrderedWrite for Running<'_, OptimisticWriteTx> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.transaction.insert(&self.tables[table.number()], key, row);
        Ok(())
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.transaction.remove(&self.tables[table.number()], key);
        Ok(())
    }
}
