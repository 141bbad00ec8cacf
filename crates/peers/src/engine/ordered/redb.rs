//! TPC-C's tables in redb.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use redb::{
    AccessGuard, Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, Table,
    TableDefinition, WriteTransaction,
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

/// Tables that a transaction has opened.
type Opened<T> = [Option<T>; ORDERED_TABLES];
type Bytes = &'static [u8];

struct Reading<'t> {
    transaction: &'t ReadTransaction,
    tables: Opened<ReadOnlyTable<Bytes, Bytes>>,
}

struct Writing<'t> {
    transaction: &'t WriteTransaction,
    tables: Opened<Table<'t, Bytes, Bytes>>,
}

fn definition(table: OrderedTable) -> TableDefinition<'static, Bytes, Bytes> {
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
        let mut writing = Writing { transaction: &transaction, tables: [const { None }; ORDERED_TABLES] };
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
        body(&mut Reading { transaction: &transaction, tables: [const { None }; ORDERED_TABLES] })
    }
}

impl Reading<'_> {
    fn table(&mut self, table: OrderedTable) -> Result<&ReadOnlyTable<Bytes, Bytes>, Failure> {
        match &mut self.tables[table.number()] {
            Some(opened) => Ok(opened),
            unopened => Ok(unopened.insert(self.transaction.open_table(definition(table)).map_err(failed)?)),
        }
    }
}

impl<'t> Writing<'t> {
    fn table(&mut self, table: OrderedTable) -> Result<&mut Table<'t, Bytes, Bytes>, Failure> {
        match &mut self.tables[table.number()] {
            Some(opened) => Ok(opened),
            unopened => Ok(unopened.insert(self.transaction.open_table(definition(table)).map_err(failed)?)),
        }
    }
}

fn get(table: &impl ReadableTable<Bytes, Bytes>, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
    let found = table.get(key).map_err(failed)?;
    row.clear();
    if let Some(found) = &found {
        row.extend_from_slice(found.value());
    }
    Ok(found.is_some())
}

fn scan(
    table: &impl ReadableTable<Bytes, Bytes>,
    keys: Range<&[u8]>,
    is_reverse: bool,
    visit: Visit<'_>,
) -> Result<(), Failure> {
    type Found<'f> = (AccessGuard<'f, Bytes>, AccessGuard<'f, Bytes>);
    let rows = table.range::<&[u8]>(keys).map_err(failed)?.map(|row| row.map_err(failed));
    let visit = |(key, row): &Found<'_>| -> ControlFlow<()> { visit(key.value(), row.value()) };
    if is_reverse { visit_each(rows.rev(), visit) } else { visit_each(rows, visit) }
}

/// Both kinds of transactions read alike.
macro_rules! reads {
    ($($type:ident),+) => {
        $(
            impl OrderedRead for $type<'_> {
                fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
                    get(self.table(table)?, key, row)
                }

                fn scan(
                    &mut self,
                    table: OrderedTable,
                    keys: Range<&[u8]>,
                    is_reverse: bool,
                    visit: Visit<'_>,
                ) -> Result<(), Failure> {
                    scan(self.table(table)?, keys, is_reverse, visit)
                }
            }
        )+
    };
}

reads!(Reading, Writing);

impl OrderedWrite for Writing<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.table(table)?.insert(key, row).map(|_| ()).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.table(table)?.remove(key).map(|_| ()).map_err(failed)
    }
}
