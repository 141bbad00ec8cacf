//! redb: a copy-on-write tree in one file; one writer at a time, readers on snapshots.
//!
//! Unsynced it runs on its backend in memory. Synced, each commit is `Durability::Immediate`, the default.

use std::hint::black_box;
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use super::key_value::{Store, StoreClient, TableName};
use crate::peer::{Setting, missing};

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 100_000;

/// A database of redb.
#[derive(Debug)]
pub struct Redb {
    database: Database,
}

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct RedbClient<'a>(&'a Database);

type Definition = TableDefinition<'static, u64, &'static [u8]>;

fn definition(table: TableName) -> Definition {
    match table {
        TableName::Records => TableDefinition::new("usertable"),
        TableName::Accounts => TableDefinition::new("account"),
    }
}

pub(super) fn failed(error: impl Into<redb::Error>) -> Failure {
    Failure::Peer("redb", Box::new(error.into()))
}

/// Opens an empty database, in memory or in the directory `place`, which is empty.
pub(super) fn open_database(place: &Path, setting: Setting) -> Result<Database, Failure> {
    let database = match setting {
        Setting::NotSynced => Database::builder().create_with_backend(InMemoryBackend::new()),
        Setting::Synced => Database::create(place.join("redb")),
    };
    database.map_err(failed)
}

impl Store for Redb {
    type Client<'a> = RedbClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        Ok(Self { database: open_database(place, setting)? })
    }

    fn client(&self) -> RedbClient<'_> {
        RedbClient(&self.database)
    }

    fn load(&self, table: TableName, count: u64, next: impl Fn(u64, &mut Vec<u8>)) -> Result<(), Failure> {
        let mut row = Vec::new();
        for first in (0..count).step_by(BATCH_ROWS as usize) {
            let transaction = self.database.begin_write().map_err(failed)?;
            let mut rows = transaction.open_table(definition(table)).map_err(failed)?;
            for key in first..count.min(first + BATCH_ROWS) {
                next(key, &mut row);
                rows.insert(key, row.as_slice()).map_err(failed)?;
            }
            drop(rows);
            transaction.commit().map_err(failed)?;
        }
        Ok(())
    }

    fn for_each(&self, table: TableName, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let rows = transaction.open_table(definition(table)).map_err(failed)?;
        for row in rows.iter().map_err(failed)? {
            let (key, value) = row.map_err(failed)?;
            visit(key.value(), value.value());
        }
        Ok(())
    }
}

impl StoreClient for RedbClient<'_> {
    fn read(&mut self, key: u64) -> Result<(), Failure> {
        let transaction = self.0.begin_read().map_err(failed)?;
        let rows = transaction.open_table(definition(TableName::Records)).map_err(failed)?;
        let value = rows.get(key).map_err(failed)?.ok_or_else(|| missing(key))?;
        black_box(value.value());
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8], _aborts: &mut Aborts) -> Result<(), Failure> {
        let transaction = self.0.begin_write().map_err(failed)?;
        let mut rows = transaction.open_table(definition(TableName::Records)).map_err(failed)?;
        rows.insert(key, value).map_err(failed)?;
        drop(rows);
        transaction.commit().map_err(failed)
    }

    fn change(
        &mut self,
        table: TableName,
        keys: &[u64],
        change: impl Fn(usize, &mut [u8]),
        _aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        let transaction = self.0.begin_write().map_err(failed)?;
        let mut rows = transaction.open_table(definition(table)).map_err(failed)?;
        for (at, &key) in keys.iter().enumerate() {
            let found = rows.get(key).map_err(failed)?.ok_or_else(|| missing(key))?;
            let mut row = found.value().to_vec();
            drop(found);
            change(at, &mut row);
            rows.insert(key, row.as_slice()).map_err(failed)?;
        }
        drop(rows);
        transaction.commit().map_err(failed)
    }
}
