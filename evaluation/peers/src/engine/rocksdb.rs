//! RocksDB: a log-structured merge tree; optimistic transactions that validate the keys that they have read for update.
//!
//! Every key that a transaction reads before it writes is read for update, on a snapshot that was taken when it began: a commit fails if
//! one of them has changed since. Ranges are read on the same snapshot and are not validated, which only TPC-C has.
//!
//! Tables share one key space, the first byte of a key being the table's number. The options are those that RocksDB's documentation gives to
//! begin with. Unsynced a commit leaves its log entry to the operating system, the default; synced it waits for the disk, and commits that
//! come together share the sync.

use std::fmt;
use std::hint::black_box;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use rocksdb::{
    BlockBasedOptions, Cache, DBAccess, DBRawIteratorWithThreadMode, Error, ErrorKind,
    OptimisticTransactionDB, OptimisticTransactionOptions, Options, ReadOptions, SnapshotWithThreadMode,
    Transaction, WriteBatchWithTransaction, WriteOptions,
};

use super::key_value::{Store, StoreClient, TableName};
use super::ordered::{
    End, KeyAndRow, OrderedClient, OrderedRead, OrderedStore, OrderedTable, OrderedWrite, Visit,
};
use crate::peer::{Setting, missing};

/// Rows that one batch of the loader inserts.
const BATCH_ROWS: usize = 10_000;
/// Enough for every row of the usual sizes, as the others have.
const CACHE_BYTES: usize = 1 << 30;
/// Bits that a filter takes for each key.
const FILTER_BITS: f64 = 10.0;

/// A database of RocksDB.
pub struct RocksDb {
    database: Database,
    write_options: WriteOptions,
    transaction_options: OptimisticTransactionOptions,
}

type Database = OptimisticTransactionDB;

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct RocksDbClient<'a>(&'a RocksDb);

struct Reading<'t> {
    database: &'t Database,
    snapshot: SnapshotWithThreadMode<'t, Database>,
}

struct Writing<'t> {
    transaction: &'t Transaction<'t, Database>,
    /// The snapshot that was taken when it began.
    snapshot: SnapshotWithThreadMode<'t, Transaction<'t, Database>>,
}

impl fmt::Debug for RocksDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksDb").finish_non_exhaustive()
    }
}

fn failed(error: Error) -> Failure {
    Failure::Peer("RocksDB", Box::new(error))
}

/// The key of a table's key.
fn key_in(table: usize, key: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(1 + key.len());
    whole.push(table as u8);
    whole.extend_from_slice(key);
    whole
}

/// The key of a record or an account.
fn key_of(table: TableName, key: u64) -> [u8; 9] {
    let mut whole = [table as u8; 9];
    whole[1..].copy_from_slice(&key.to_be_bytes());
    whole
}

/// The basic options of RocksDB's tuning guide.
fn options() -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(CACHE_BYTES));
    blocks.set_block_size(16 << 10);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_bloom_filter(FILTER_BITS, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_max_background_jobs(6);
    options.set_bytes_per_sync(1 << 20);
    options
}

impl RocksDb {
    /// Opens an empty database in the directory `place`, which is empty.
    fn open_in(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let database = Database::open(&options(), place.join("rocksdb")).map_err(failed)?;
        let mut write_options = WriteOptions::default();
        write_options.set_sync(setting == Setting::Synced);
        let mut transaction_options = OptimisticTransactionOptions::default();
        transaction_options.set_snapshot(true);
        Ok(Self { database, write_options, transaction_options })
    }

    /// Puts rows in batches.
    fn load_rows<'r>(
        &self,
        rows: impl Iterator<Item = (Vec<u8>, impl AsRef<[u8]> + 'r)>,
    ) -> Result<(), Failure> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        for (key, row) in rows {
            batch.put(key, row);
            if batch.len() == BATCH_ROWS {
                self.database.write(std::mem::take(&mut batch)).map_err(failed)?;
            }
        }
        self.database.write(batch).map_err(failed)?;
        self.database.flush_wal(true).map_err(failed)
    }

    /// Runs `body` in a transaction, until one commits or is to be rolled back.
    fn transact(
        &self,
        aborts: &mut Aborts,
        mut body: impl FnMut(&mut Writing<'_>) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        loop {
            let transaction = self.database.transaction_opt(&self.write_options, &self.transaction_options);
            let mut writing = Writing { transaction: &transaction, snapshot: transaction.snapshot() };
            let end = body(&mut writing)?;
            drop(writing);
            if end == End::RollBack {
                transaction.rollback().map_err(failed)?;
                return Ok(end);
            }
            match transaction.commit() {
                Ok(()) => return Ok(end),
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => {
                    aborts.count(AbortKind::ReadValidation);
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl Writing<'_> {
    /// A row that is validated at the commit.
    fn read(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.snapshot);
        self.transaction.get_for_update_opt(key, true, &options).map_err(failed)
    }

    fn write(&self, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.transaction.put(key, row).map_err(failed)
    }
}

impl Store for RocksDb {
    type Client<'a> = RocksDbClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        Self::open_in(place, setting)
    }

    fn client(&self) -> RocksDbClient<'_> {
        RocksDbClient(self)
    }

    fn load(&self, table: TableName, count: u64, next: impl Fn(u64, &mut Vec<u8>)) -> Result<(), Failure> {
        self.load_rows((0..count).map(|key| {
            let mut row = Vec::new();
            next(key, &mut row);
            (key_of(table, key).to_vec(), row)
        }))
    }

    fn for_each(&self, table: TableName, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        let mut rows = self.database.raw_iterator();
        rows.seek([table as u8]);
        while let Some((key, row)) = rows.item() {
            let Some((&table_byte, key)) = key.split_first() else { break };
            if table_byte != table as u8 {
                break;
            }
            let key = key.try_into().map_err(|_| Failure::Broken("a key has not 8 bytes".to_owned()))?;
            visit(u64::from_be_bytes(key), row);
            rows.next();
        }
        rows.status().map_err(failed)
    }
}

impl StoreClient for RocksDbClient<'_> {
    fn read(&mut self, key: u64) -> Result<(), Failure> {
        let found = self.0.database.get_pinned(key_of(TableName::Records, key)).map_err(failed)?;
        black_box(found.ok_or_else(|| missing(key))?);
        Ok(())
    }

    fn put(&mut self, key: u64, value: &[u8], aborts: &mut Aborts) -> Result<(), Failure> {
        let key = key_of(TableName::Records, key);
        self.0.transact(aborts, |writing| writing.write(&key, value).map(|()| End::Commit)).map(|_| ())
    }

    fn change(
        &mut self,
        table: TableName,
        keys: &[u64],
        change: impl Fn(usize, &mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        let end = self.0.transact(aborts, |writing| {
            for (at, &key) in keys.iter().enumerate() {
                let whole = key_of(table, key);
                let mut row = writing.read(&whole)?.ok_or_else(|| missing(key))?;
                change(at, &mut row);
                writing.write(&whole, &row)?;
            }
            Ok(End::Commit)
        });
        end.map(|_| ())
    }
}

impl OrderedStore for RocksDb {
    type Client<'a> = RocksDbClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        Self::open_in(place, setting)
    }

    fn client(&self) -> Result<RocksDbClient<'_>, Failure> {
        Ok(RocksDbClient(self))
    }

    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure> {
        self.load_rows(rows.iter().map(|(key, row)| (key_in(table.number(), key), row)))
    }
}

impl OrderedClient for RocksDbClient<'_> {
    fn write(
        &mut self,
        aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        self.0.transact(aborts, |writing| body(writing))
    }

    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let database = &self.0.database;
        body(&mut Reading { database, snapshot: database.snapshot() })
    }
}

/// What a scan reads: a range of keys, with the table's number before them, as of a snapshot.
fn range_options<D: DBAccess>(
    table: OrderedTable,
    keys: &Range<&[u8]>,
    snapshot: &SnapshotWithThreadMode<'_, D>,
) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_snapshot(snapshot);
    options.set_iterate_lower_bound(key_in(table.number(), keys.start));
    options.set_iterate_upper_bound(key_in(table.number(), keys.end));
    options
}

/// Shows what an iterator finds within its bounds.
fn visit_all<D: DBAccess>(
    mut rows: DBRawIteratorWithThreadMode<'_, D>,
    is_reverse: bool,
    visit: Visit<'_>,
) -> Result<(), Failure> {
    if is_reverse {
        rows.seek_to_last()
    } else {
        rows.seek_to_first()
    }
    while let Some((key, row)) = rows.item() {
        if visit(&key[1..], row) == ControlFlow::Break(()) {
            break;
        }
        if is_reverse { rows.prev() } else { rows.next() }
    }
    rows.status().map_err(failed)
}

/// Makes `row` what was found.
fn keep(found: Option<Vec<u8>>, row: &mut Vec<u8>) -> bool {
    let is_found = found.is_some();
    *row = found.unwrap_or_default();
    is_found
}

impl OrderedRead for Reading<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(keep(self.snapshot.get(key_in(table.number(), key)).map_err(failed)?, row))
    }

    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure> {
        let options = range_options(table, &keys, &self.snapshot);
        visit_all(self.database.raw_iterator_opt(options), is_reverse, visit)
    }
}

impl OrderedRead for Writing<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(keep(self.read(&key_in(table.number(), key))?, row))
    }

    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure> {
        let options = range_options(table, &keys, &self.snapshot);
        visit_all(self.transaction.raw_iterator_opt(options), is_reverse, visit)
    }
}

impl OrderedWrite for Writing<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.write(&key_in(table.number(), key), row)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.transaction.delete(key_in(table.number(), key)).map_err(failed)
    }
}
