//! LMDB by heed: a copy-on-write tree in a memory map for each table; one writer at a time, readers on snapshots.
//!
//! Unsynced it runs with `MDB_NOSYNC`.
#![allow(unsafe_code, reason = "LMDB asks its user to keep everybody else from the file")]

use std::fmt;
use std::ops::{Bound, ControlFlow, Deref};
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::peer::Setting;
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, RwTxn};

use super::ordered::{
    End, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable, OrderedWrite, ReadBody, Visit,
    WriteBody, keep, visit_each,
};

/// Address space for the map, far more than the rows take.
const MAP_BYTES: usize = 64 << 30;
/// Threads that may read at once.
const READERS_MAX: u32 = 4_200;

/// A database of LMDB.
pub struct Lmdb {
    environment: Env,
    tables: Vec<Tree>,
}

type Tree = Database<'static, Bytes, Bytes>;

/// A transaction, of either kind, on the tables.
struct LmdbTransaction<'t, T> {
    tables: &'t [Tree],
    transaction: T,
}

impl fmt::Debug for Lmdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lmdb").finish_non_exhaustive()
    }
}

fn failed(error: heed::Error) -> Failure {
    // heed's error is not `Sync`.
    Failure::Peer("LMDB", error.to_string().into())
}

/// Opens an environment in the directory `place`, which is empty, for so many tables.
fn open_environment(place: &Path, setting: Setting, tables: usize) -> Result<Env, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP_BYTES).max_dbs(tables as u32).max_readers(READERS_MAX);
    if setting == Setting::NotSynced {
        // SAFETY: a crash of the machine may leave a file that LMDB must not open. This one is used by this process alone, which made
        // it, and removed without being opened again.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: nobody else changes or maps the file: it lies in a directory that this process has just made for itself and opens once.
    unsafe { options.open(place) }.map_err(failed)
}

fn create_table(environment: &Env, table: OrderedTable) -> heed::Result<Tree> {
    let transaction = environment.write_txn()?;
    let created = environment.create_databases_and_commit(transaction, |opener, transaction| {
        let mut options = opener.database_options().types::<Bytes, Bytes>();
        heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(options.name(table.name()).create(transaction)?))
    })?;
    Ok(created.unwrap_commit())
}

impl OrderedStore for Lmdb {
    type Client<'a> = &'a Self;

    fn open(place: &Path, setting: Setting, tables: &[OrderedTable]) -> Result<Self, Failure> {
        let environment = open_environment(place, setting, tables.len())?;
        let tables = tables.iter().map(|&table| create_table(&environment, table));
        let tables = tables.collect::<heed::Result<_>>().map_err(failed)?;
        Ok(Self { environment, tables })
    }

    fn client(&self) -> Result<&Self, Failure> {
        Ok(self)
    }

    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        mut rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure> {
        let mut transaction = self.environment.write_txn().map_err(failed)?;
        let tree = &self.tables[table.number()];
        rows.try_for_each(|(key, row)| {
            tree.put_with_flags(&mut transaction, PutFlags::APPEND, key.as_ref(), row.as_ref())
        })
        .map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

impl OrderedClient for &Lmdb {
    fn write(&mut self, _aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure> {
        let transaction = self.environment.write_txn().map_err(failed)?;
        let mut writing = LmdbTransaction { tables: &self.tables, transaction };
        let end = body(&mut writing)?;
        match end {
            End::Commit => writing.transaction.commit().map_err(failed)?,
            End::RollBack => writing.transaction.abort(),
        }
        Ok(end)
    }

    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure> {
        let transaction = &self.environment.read_txn().map_err(failed)?;
        body(&mut LmdbTransaction { tables: &self.tables, transaction })
    }

    #[inline]
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let transaction = self.environment.read_txn().map_err(failed)?;
        Ok(keep(self.tables[table.number()].get(&transaction, key).map_err(failed)?, row))
    }
}

impl<'t, T: Deref<Target: Deref<Target = RoTxn<'t>>>> OrderedRead for LmdbTransaction<'_, T> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(keep(self.tables[table.number()].get(&self.transaction, key).map_err(failed)?, row))
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        let tree = &self.tables[range.table.number()];
        let keys = (Bound::Included(range.start), Bound::Excluded(range.end));
        let visit = |(key, row): &(&[u8], &[u8])| -> ControlFlow<()> { visit(key, row) };
        if range.is_reverse {
            let rows = tree.rev_range(&self.transaction, &keys).map_err(failed)?;
            visit_each(rows.map(|row| row.map_err(failed)), visit)
        } else {
            let rows = tree.range(&self.transaction, &keys).map_err(failed)?;
            visit_each(rows.map(|row| row.map_err(failed)), visit)
        }
    }
}

impl OrderedWrite for LmdbTransaction<'_, RwTxn<'_>> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.tables[table.number()].put(&mut self.transaction, key, row).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.tables[table.number()].delete(&mut self.transaction, key).map(|_| ()).map_err(failed)
    }
}
