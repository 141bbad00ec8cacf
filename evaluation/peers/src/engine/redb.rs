//! redb: a copy-on-write tree in one file; one writer at a time, readers on snapshots.
//!
//! Unsynced it runs on its backend in memory. Synced, each commit is `Durability::Immediate`, the default.

use std::ops::ControlFlow;
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::peer::Setting;
use redb::backends::InMemoryBackend;
use redb::{
    AccessGuard, Database, ReadTransaction, ReadableDatabase, ReadableTable, Table, TableDefinition,
    TableError, WriteTransaction,
};

use super::ordered::{
    End, ORDERED_TABLES_MAX, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable,
    OrderedWrite, ReadBody, Visit, WriteBody, keep, visit_each,
};

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: usize = 100_000;

/// A database of redb.
#[derive(Debug)]
pub struct Redb(Database);

type Bytes = &'static [u8];
type Definition = TableDefinition<'static, Bytes, Bytes>;

/// A transaction, of either kind, with the tables that it has opened.
struct RedbTransaction<'t, X, T> {
    transaction: &'t X,
    open: fn(&'t X, Definition) -> Result<T, TableError>,
    tables: [Option<T>; ORDERED_TABLES_MAX],
}

fn definition(table: OrderedTable) -> Definition {
    TableDefinition::new(table.name())
}

fn failed(error: impl Into<redb::Error>) -> Failure {
    Failure::Peer("redb", Box::new(error.into()))
}

impl OrderedStore for Redb {
    type Client<'a> = &'a Self;

    fn open(place: &Path, setting: Setting, tables: &[OrderedTable]) -> Result<Self, Failure> {
        let database = match setting {
            Setting::NotSynced => Database::builder().create_with_backend(InMemoryBackend::new()),
            Setting::Synced => Database::create(place.join("redb")),
        }
        .map_err(failed)?;
        let transaction = database.begin_write().map_err(failed)?;
        for &table in tables {
            transaction.open_table(definition(table)).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(Self(database))
    }

    fn client(&self) -> Result<&Self, Failure> {
        Ok(self)
    }

    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            let transaction = self.0.begin_write().map_err(failed)?;
            let mut opened = transaction.open_table(definition(table)).map_err(failed)?;
            for (key, row) in rows.by_ref().take(BATCH_ROWS) {
                opened.insert(key.as_ref(), row.as_ref()).map_err(failed)?;
            }
            drop(opened);
            transaction.commit().map_err(failed)?;
        }
        Ok(())
    }
}

impl OrderedClient for &Redb {
    fn write(&mut self, _aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure> {
        let transaction = self.0.begin_write().map_err(failed)?;
        let mut writing = RedbTransaction::new(&transaction, WriteTransaction::open_table);
        let end = body(&mut writing)?;
        drop(writing);
        match end {
            End::Commit => transaction.commit().map_err(failed)?,
            End::RollBack => transaction.abort().map_err(failed)?,
        }
        Ok(end)
    }

    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure> {
        let transaction = self.0.begin_read().map_err(failed)?;
        body(&mut RedbTransaction::new(&transaction, |transaction: &ReadTransaction, table| {
            transaction.open_table(table)
        }))
    }

    #[inline]
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let rows = self.0.begin_read().map_err(failed)?.open_table(definition(table)).map_err(failed)?;
        let found = rows.get(key).map_err(failed)?;
        Ok(keep(found.as_ref().map(AccessGuard::value), row))
    }
}

impl<'t, X, T> RedbTransaction<'t, X, T> {
    fn new(transaction: &'t X, open: fn(&'t X, Definition) -> Result<T, TableError>) -> Self {
        Self { transaction, open, tables: [const { None }; ORDERED_TABLES_MAX] }
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

impl<X, T: ReadableTable<Bytes, Bytes>> OrderedRead for RedbTransaction<'_, X, T> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.table(table)?.get(key).map_err(failed)?;
        Ok(keep(found.as_ref().map(AccessGuard::value), row))
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        type RowGuards<'f> = (AccessGuard<'f, Bytes>, AccessGuard<'f, Bytes>);
        let rows = self.table(range.table)?.range::<&[u8]>(range.start..range.end).map_err(failed)?;
        let rows = rows.map(|row| row.map_err(failed));
        let visit = |(key, row): &RowGuards<'_>| -> ControlFlow<()> { visit(key.value(), row.value()) };
        if range.is_reverse { visit_each(rows.rev(), visit) } else { visit_each(rows, visit) }
    }
}

impl<'t> OrderedWrite for RedbTransaction<'t, WriteTransaction, Table<'t, Bytes, Bytes>> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.table(table)?.insert(key, row).map(|_| ()).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.table(table)?.remove(key).map(|_| ()).map_err(failed)
    }
}
