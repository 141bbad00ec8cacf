//! fjall: a log-structured merge tree; optimistic transactions that validate what they have read.
//!
//! A commit of fjall 3.1 walks a list of the transactions that committed before it, which is emptied when 10,000 snapshots have ended: that
//! is most of what a short transaction costs here.
//!
//! Each table is a keyspace. Unsynced, a commit leaves its log entry to the operating system, which is the default. Synced, it waits for
//! `fdatasync`.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use ensilo_bench::peer::Setting;
use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, PersistMode,
    Readable, UserKey, UserValue,
};

use super::ordered::{
    End, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable, OrderedWrite, ReadBody, Visit,
    WriteBody, keep, visit_each,
};

/// Rows that one batch of the loader inserts.
const BATCH_ROWS: usize = 10_000;
/// Enough for every row of the usual sizes, as the others have.
const CACHE_BYTES: u64 = 1 << 30;

/// A database of fjall.
pub struct Fjall {
    database: OptimisticTxDatabase,
    tables: Vec<OptimisticTxKeyspace>,
    /// What a commit does before it is answered.
    persist_mode: Option<PersistMode>,
}

/// A transaction, of either kind, on the tables.
struct FjallTransaction<'t, T> {
    tables: &'t [OptimisticTxKeyspace],
    transaction: T,
}

impl fmt::Debug for Fjall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fjall").field("persist_mode", &self.persist_mode).finish_non_exhaustive()
    }
}

fn failed(error: fjall::Error) -> Failure {
    Failure::Peer("fjall", Box::new(error))
}

impl OrderedStore for Fjall {
    type Client<'a> = &'a Self;

    fn open(place: &Path, setting: Setting, tables: &[OrderedTable]) -> Result<Self, Failure> {
        let database = OptimisticTxDatabase::builder(place.join("fjall")).cache_size(CACHE_BYTES);
        let database = database.open().map_err(failed)?;
        let keyspace = |table: &OrderedTable| database.keyspace(table.name(), KeyspaceCreateOptions::default);
        let tables = tables.iter().map(keyspace).collect::<fjall::Result<_>>().map_err(failed)?;
        let persist_mode = match setting {
            Setting::NotSynced => None,
            Setting::Synced => Some(PersistMode::SyncData),
        };
        Ok(Self { database, tables, persist_mode })
    }

    fn client(&self) -> Result<&Self, Failure> {
        Ok(self)
    }

    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure> {
        let (table, mut rows) = (self.tables[table.number()].inner(), rows.peekable());
        while rows.peek().is_some() {
            let mut batch = self.database.inner().batch();
            for (key, row) in rows.by_ref().take(BATCH_ROWS) {
                batch.insert(table, key.as_ref(), row.as_ref());
            }
            batch.commit().map_err(failed)?;
        }
        self.database.persist(PersistMode::SyncAll).map_err(failed)
    }
}

impl OrderedClient for &Fjall {
    fn write(&mut self, aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure> {
        let Fjall { database, tables, persist_mode } = self;
        loop {
            let transaction = database.write_tx().map_err(failed)?.durability(*persist_mode);
            let mut writing = FjallTransaction { tables, transaction };
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

    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure> {
        body(&mut FjallTransaction { tables: &self.tables, transaction: self.database.read_tx() })
    }
}

impl<T: Readable> OrderedRead for FjallTransaction<'_, T> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(keep(self.transaction.get(&self.tables[table.number()], key).map_err(failed)?, row))
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        let rows = self.transaction.range(&self.tables[range.table.number()], range.start..range.end);
        let rows = rows.map(|row| row.into_inner().map_err(failed));
        let visit = |(key, row): &(UserKey, UserValue)| -> ControlFlow<()> { visit(key, row) };
        if range.is_reverse { visit_each(rows.rev(), visit) } else { visit_each(rows, visit) }
    }
}

impl OrderedWrite for FjallTransaction<'_, OptimisticWriteTx> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.transaction.insert(&self.tables[table.number()], key, row);
        Ok(())
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.transaction.remove(&self.tables[table.number()], key);
        Ok(())
    }
}
