//! TPC-C's tables in LMDB, a tree for each.

use std::fmt;
use std::ops::{Bound, ControlFlow, Deref, Range};
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, PutFlags, RoTxn, RwTxn};

use super::{
    End, KeyAndRow, ORDERED_TABLES, OrderedClient, OrderedRead, OrderedStore, OrderedTable, OrderedWrite,
    Visit, visit_each,
};
use crate::engine::lmdb::{failed, open_environment};
use crate::peer::Setting;

/// A database of LMDB.
pub struct LmdbTables {
    environment: Env,
    tables: Vec<Table>,
}

type Table = Database<'static, Bytes, Bytes>;

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct LmdbTablesClient<'a>(&'a LmdbTables);

/// A transaction, of either kind, on the tables.
struct Running<'t, T> {
    tables: &'t [Table],
    transaction: T,
}

impl fmt::Debug for LmdbTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LmdbTables").finish_non_exhaustive()
    }
}

fn create_table(environment: &Env, table: OrderedTable) -> heed::Result<Table> {
    let transaction = environment.write_txn()?;
    let created = environment.create_databases_and_commit(transaction, |opener, transaction| {
        let mut options = opener.database_options().types::<Bytes, Bytes>();
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(options.name(table.name()).create(transaction)?))
    })?;
    Ok(created.unwrap_commit())
}

impl OrderedStore for LmdbTables {
    type Client<'a> = LmdbTablesClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let environment = open_environment(place, setting, ORDERED_TABLES as u32)?;
        let tables = OrderedTable::ALL.into_iter().map(|table| create_table(&environment, table));
        let tables = tables.collect::<heed::Result<_>>().map_err(failed)?;
        Ok(Self { environment, tables })
    }

    fn client(&self) -> Result<LmdbTablesClient<'_>, Failure> {
        Ok(LmdbTablesClient(self))
    }

    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure> {
        let mut transaction = self.environment.write_txn().map_err(failed)?;
        let table = &self.tables[table.number()];
        for (key, row) in rows {
            table.put_with_flags(&mut transaction, PutFlags::APPEND, key, row).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}

impl OrderedClient for LmdbTablesClient<'_> {
    fn write(
        &mut self,
        _aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        let transaction = self.0.environment.write_txn().map_err(failed)?;
        let mut writing = Running { tables: &self.0.tables, transaction };
        let end = body(&mut writing)?;
        match end {
            End::Commit => writing.transaction.commit().map_err(failed)?,
            End::RollBack => writing.transaction.abort(),
        }
        Ok(end)
    }

    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let transaction = &self.0.environment.read_txn().map_err(failed)?;
        body(&mut Running { tables: &self.0.tables, transaction })
    }
}

impl<'t, T: Deref<Target: Deref<Target = RoTxn<'t>>>> OrderedRead for Running<'_, T> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.tables[table.number()].get(&self.transaction, key).map_err(failed)?;
        row.clear();
        row.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure> {
        let (table, range) =
            (&self.tables[table.number()], (Bound::Included(keys.start), Bound::Excluded(keys.end)));
        let visit = |(key, row): &(&[u8], &[u8])| -> ControlFlow<()> { visit(key, row) };
        if is_reverse {
            let rows = table.rev_range(&self.transaction, &range).map_err(failed)?;
            visit_each(rows.map(|row| row.map_err(failed)), visit)
        } else {
            let rows = table.range(&self.transaction, &range).map_err(failed)?;
            visit_each(rows.map(|row| row.map_err(failed)), visit)
        }
    }
}

impl OrderedWrite for Running<'_, RwTxn<'_>> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.tables[table.number()].put(&mut self.transaction, key, row).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.tables[table.number()].delete(&mut self.transaction, key).map(|_| ()).map_err(failed)
    }
}
