//! LMDB by heed: a copy-on-write tree in a memory map; one writer at a time, readers on snapshots.
//!
//! Unsynced it runs with `MDB_NOSYNC`.
#![allow(unsafe_code, reason = "LMDB asks its user to keep everybody else from the file")]

use std::fmt;
use std::hint::black_box;
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use heed::byteorder::NativeEndian;
use heed::types::{Bytes, U64};
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, IntegerComparator, PutFlags};

use super::key_value::{Store, StoreClient, TableName};
use crate::peer::{Setting, missing};

/// Address space for the map, far more than the rows take.
const MAP_BYTES: usize = 64 << 30;
/// Threads that may read at once.
const READERS_MAX: u32 = 4_200;

/// A database of LMDB.
pub struct Lmdb {
    environment: Env,
    records: Table,
    accounts: Table,
}

type Table = Database<'static, U64<NativeEndian>, Bytes, IntegerComparator>;

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct LmdbClient<'a>(&'a Lmdb);

impl fmt::Debug for Lmdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lmdb").finish_non_exhaustive()
    }
}

pub(super) fn failed(error: heed::Error) -> Failure {
    // heed's error is not `Sync`.
    Failure::Peer("LMDB", error.to_string().into())
}

/// Opens an environment in the directory `place`, which is empty, for so many tables.
pub(super) fn open_environment(place: &Path, setting: Setting, tables: u32) -> Result<Env, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_dbs(tables).max_readers(READERS_MAX);
    if setting == Setting::NotSynced {
        // SAFETY: a crash of the machine may leave a file that LMDB must not open. This one is used by this process alone, which made
        // it, and removed without being opened again.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: nobody else changes or maps the file: it lies in a directory that this process has just made for itself and opens once.
    unsafe { options.open(place) }.map_err(failed)
}

impl Lmdb {
    fn table(&self, table: TableName) -> &Table {
        match table {
            TableName::Records => &self.records,
            TableName::Accounts => &self.accounts,
        }
    }
}

fn create_tables(environment: &Env) -> heed::Result<(Table, Table)> {
    let transaction = environment.write_txn()?;
    let created = environment.create_databases_and_commit(transaction, |opener, transaction| {
        let mut create = |name| {
            let mut options = opener
                .database_options()
                .types::<U64<NativeEndian>, Bytes>()
                .key_comparator::<IntegerComparator>();
            options.name(name).create(transaction)
        };
        let tables = (create("usertable")?, create("account")?);
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(tables))
    })?;
    Ok(created.unwrap_commit())
}

impl Store for Lmdb {
    type Client<'a> = LmdbClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let environment = open_environment(place, setting, 2)?;
        let (records, accounts) = create_tables(&environment).map_err(failed)?;
        Ok(Self { environment, records, accounts })
    }

    fn client(&self) -> LmdbClient<'_> {
        LmdbClient(self)
    }

    fn load(&self, table: TableName, count: u64, next: impl Fn(u64, &mut Vec<u8>)) -> Result<(), Failure> {
        let mut transaction = self.environment.write_txn().map_err(failed)?;
        let mut row = Vec::new();
        for key in 0..count {
            next(key, &mut row);
            let put = self.table(table).put_with_flags(&mut transaction, PutFlags::APPEND, &key, &row);
            put.map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }

    fn for_each(&self, table: TableName, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        let transaction = self.environment.read_txn().map_err(failed)?;
        for row in self.table(table).iter(&transaction).map_err(failed)? {
            let (key, value) = row.map_err(failed)?;
            visit(key, value);
        }
        Ok(())
    }
}

impl StoreClient for LmdbClient<'_> {
    fn read(&mut self, key: u64) -> Result<(), Failure> {
        let transaction = self.0.environment.read_txn().map_err(failed)?;
        let value = self.0.records.get(&transaction, &key).map_err(failed)?;
        black_box(value.ok_or_else(|| missing(key))?);
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8], _aborts: &mut Aborts) -> Result<(), Failure> {
        let mut transaction = self.0.environment.write_txn().map_err(failed)?;
        self.0.records.put(&mut transaction, &key, value).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    fn change(
        &mut self,
        table: TableName,
        keys: &[u64],
        change: impl Fn(usize, &mut [u8]),
        _aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        let table = self.0.table(table);
        let mut transaction = self.0.environment.write_txn().map_err(failed)?;
        for (at, key) in keys.iter().enumerate() {
            let found = table.get(&transaction, key).map_err(failed)?;
            let mut row = found.ok_or_else(|| missing(*key))?.to_vec();
            change(at, &mut row);
            table.put(&mut transaction, key, &row).map_err(failed)?;
        }
        transaction.commit().map_err(failed)
    }
}
