//! TPC-C's tables in redb.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use redb::{
    AccessGuard, Database, ReadTransaction, ReadableDatabase, ReadableTable, Table, TableDefinition,
    TableError, WriteTransaction,
};

use super::{
    End, KeyAndRow, ORDERED_TABLES, OrderedClient, OrderedRead, OrderedStore, OrderedTable, OrderedWrite,
    Visit, visit_each,
};
use crate::engine::redb::{failed, open_database};
use crate::peer::Setting;

/// A database of redb.
#[derive(Debug)]
pub struct RedbTables {
    database: Database,
}

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct RedbTablesClient<'a>(&'a Database);

type Bytes = &'static [u8];
type Definition = TableDefinition<'static, Bytes, Bytes>;

/// A transaction, of either kind, with the tables that it has opened.
struct Running<'t, X, T> {
    transaction: &'t X,
    open: fn(&'t X, Definition) -> Result<T, TableError>,
    tables: [Option<T>; ORDERED_TABLES],
}

fn definition(table: OrderedTable) -> Definition {
    TableDefinition::new(table.name())
}

impl OrderedStore for RedbTables {
    type Client<'a> = RedbTablesClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let database = open_database(place, setting)?;
        let transaction = database.begin_write().map_err(failed)?;
        for table in OrderedTable::ALL {
            transaction.open_table(definition(table)).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(Self { database })
    }

    fn client(&self) -> Result<RedbTablesClient<'_>, Failure> {
        Ok(RedbTablesClient(&self.database))
    }

    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure> {
        let transaction = self.database.begin_write().map_err(failed)?;
        let mut target = transaction.open_table(definition(table)).map_err(failed)?;
        for (key, row) in rows {
            target.insert(key.as_slice(), row.as_slice()).map_err(failed)?;
        }
        drop(target);
        transaction.commit().map_err(failed)
    }
}

impl OrderedClient for RedbTablesClient<'_> {
    fn write(
        &mut self,
        _aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        let transaction = self.0.begin_write().map_err(failed)?;
        let mut writing = Running::new(&transaction, WriteTransaction::open_table);
        let end = body(&mut writing)?;
        drop(writing);
        match end {
            End::Commit => transaction.commit().map_err(failed)?,
            End::RollBack => transaction.abort().map_err(failed)?,
        }
        Ok(end)
    }

    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let transaction = self.0.begin_read().map_err(failed)?;
        body(&mut Running::new(&transaction, |transaction: &ReadTransaction, table| {
            transaction.open_table(table)
        }))
    }
}

impl<'t, X, T> Running<'t, X, T> {
    fn new(transaction: &'t X, open: fn(&'t X, Definition) -> Result<T, TableError>) -> Self {
        Self { transaction, open, tables: [const { None }; ORDERED_TABLES] }
    }

    fn table(&mut self, table: OrderedTable) -> Result<&mut T, Failure> {
        match &mut self.tables[table.number()] {
            Some(opened) => Ok(opened),
            unopened => {
                Ok(unopened.insert((self.open)(self.transaction, definition(table)).map_err(failed)?))
            }
        }
    }
}

impl<X, T: ReadableTable<Bytes, Bytes>> OrderedRead for Running<'_, X, T> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.table(table)?.get(key).map_err(failed)?;
        row.clear();
        if let Some(found) = &found {
            row.extend_from_slice(found.value());
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
        type Found<'f> = (AccessGuard<'f, Bytes>, AccessGuard<'f, Bytes>);
        let rows = self.table(table)?.range::<&[u8]>(keys).map_err(failed)?;
        let rows = rows.map(|row| row.map_err(failed));
        let visit = |(key, row): &Found<'_>| -> ControlFlow<()> { visit(key.value(), row.value()) };
        if is_reverse { visit_each(rows.rev(), visit) } else { visit_each(rows, visit) }
    }
}

impl<'t> OrderedWrite for Running<'t, WriteTransaction, Table<'t, Bytes, Bytes>> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.table(table)?.insert(key, row).map(|_| ()).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.table(table)?.remove(key).map(|_| ()).map_err(failed)
    }
}
