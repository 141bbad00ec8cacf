//! fjall: a log-structured merge tree; optimistic transactions that validate what they have read.
//!
//! A commit of fjall 3.1 walks a list of the transactions that committed before it, which is emptied when 10,000 snapshots have ended: that
//! is most of what a short transaction costs here.
//!
//! Unsynced a commit leaves its log entry to the operating system, the default. Synced it waits for `fdatasync`.

use std::fmt;
use std::hint::black_box;
use std::path::Path;

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, PersistMode, Readable, UserKey,
};

use super::key_value::{Store, StoreClient, TableName};
use crate::peer::{Setting, missing};

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 10_000;
/// Enough for every row of the usual sizes, as the others have.
const CACHE_BYTES: u64 = 1 << 30;

/// A database of fjall.
pub struct Fjall {
    database: OptimisticTxDatabase,
    records: OptimisticTxKeyspace,
    accounts: OptimisticTxKeyspace,
    persist_mode: Option<PersistMode>,
}

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct FjallClient<'a>(&'a Fjall);

impl fmt::Debug for Fjall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fjall").field("persist_mode", &self.persist_mode).finish_non_exhaustive()
    }
}

pub(super) fn failed(error: fjall::Error) -> Failure {
    Failure::Peer("fjall", Box::new(error))
}

/// Keys that sort as their numbers do.
fn bytes_of(key: u64) -> [u8; 8] {
    key.to_be_bytes()
}

fn number_of(key: &UserKey) -> Result<u64, Failure> {
    let bytes = key.as_ref().try_into().map_err(|_| Failure::Broken("a key has not 8 bytes".to_owned()))?;
    Ok(u64::from_be_bytes(bytes))
}

/// Opens an empty database in the directory `place`, which is empty.
pub(super) fn open_database(place: &Path) -> Result<OptimisticTxDatabase, Failure> {
    let database = OptimisticTxDatabase::builder(place.join("fjall")).cache_size(CACHE_BYTES);
    database.open().map_err(failed)
}

/// What a commit does before it is answered.
pub(super) fn persist_mode(setting: Setting) -> Option<PersistMode> {
    match setting {
        Setting::NotSynced => None,
        Setting::Synced => Some(PersistMode::SyncData),
    }
}

impl Fjall {
    fn keyspace(&self, table: TableName) -> &OptimisticTxKeyspace {
        match table {
            TableName::Records => &self.records,
            TableName::Accounts => &self.accounts,
        }
    }
}

impl Store for Fjall {
    type Client<'a> = FjallClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let database = open_database(place)?;
        let keyspace = |name| database.keyspace(name, KeyspaceCreateOptions::default).map_err(failed);
        let (records, accounts) = (keyspace("usertable")?, keyspace("account")?);
        Ok(Self { database, records, accounts, persist_mode: persist_mode(setting) })
    }

    fn client(&self) -> FjallClient<'_> {
        FjallClient(self)
    }

    fn load(&self, table: TableName, count: u64, next: impl Fn(u64, &mut Vec<u8>)) -> Result<(), Failure> {
        let keyspace = self.keyspace(table);
        let mut row = Vec::new();
        for first in (0..count).step_by(BATCH_ROWS as usize) {
            let mut batch = self.database.inner().batch();
            for key in first..count.min(first + BATCH_ROWS) {
                next(key, &mut row);
                batch.insert(keyspace.inner(), bytes_of(key), row.as_slice());
            }
            batch.commit().map_err(failed)?;
        }
        self.database.persist(PersistMode::SyncAll).map_err(failed)
    }

    fn for_each(&self, table: TableName, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        for row in self.database.read_tx().iter(self.keyspace(table)) {
            let (key, value) = row.into_inner().map_err(failed)?;
            visit(number_of(&key)?, &value);
        }
        Ok(())
    }
}

impl StoreClient for FjallClient<'_> {
    fn read(&mut self, key: u64) -> Result<(), Failure> {
        let value = self.0.database.read_tx().get(&self.0.records, bytes_of(key)).map_err(failed)?;
        black_box(value.ok_or_else(|| missing(key))?);
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8], aborts: &mut Aborts) -> Result<(), Failure> {
        loop {
            let mut transaction = self.0.database.write_tx().map_err(failed)?.durability(self.0.persist_mode);
            transaction.insert(&self.0.records, bytes_of(key), value);
            if transaction.commit().map_err(failed)?.is_ok() {
                return Ok(());
            }
            aborts.count(AbortKind::ReadValidation);
        }
    }

    fn change(
        &mut self,
        table: TableName,
        keys: &[u64],
        change: impl Fn(usize, &mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        let keyspace = self.0.keyspace(table);
        loop {
            let mut transaction = self.0.database.write_tx().map_err(failed)?.durability(self.0.persist_mode);
            for (at, &key) in keys.iter().enumerate() {
                let found = transaction.get(keyspace, bytes_of(key)).map_err(failed)?;
                let mut row = found.ok_or_else(|| missing(key))?.to_vec();
                change(at, &mut row);
                transaction.insert(keyspace, bytes_of(key), row);
            }
            if transaction.commit().map_err(failed)?.is_ok() {
                return Ok(());
            }
            aborts.count(AbortKind::ReadValidation);
        }
    }
}
