//! RocksDB: a log-structured merge tree; optimistic transactions that validate the keys that they have read for update.
//!
//! Every key that a transaction reads before it writes is read for update, on a snapshot that was taken when it began: a commit fails if
//! one of them has changed since. Ranges are read on the same snapshot and are not validated, which only TPC-C has.
//!
//! Tables share one key space, the first byte of a key being the table's number. The options are those that RocksDB's documentation gives to
//! begin with. Unsynced a commit leaves its log entry to the operating system, the default; synced it waits for the disk, and commits that
//! come together share the sync.

use std::fmt;
use std::path::Path;

use ensilo::row::KeyBuf;
use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use ensilo_bench::peer::Setting;
use rocksdb::{
    BlockBasedOptions, Cache, DBAccess, DBRawIteratorWithThreadMode, Error, ErrorKind,
    OptimisticTransactionDB, OptimisticTransactionOptions, Options, ReadOptions, SnapshotWithThreadMode,
    Transaction, WriteBatchWithTransaction, WriteOptions,
};

use super::ordered::{
    End, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable, OrderedWrite, ReadBody, Visit,
    WriteBody, keep,
};

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

struct RocksDbReading<'t> {
    database: &'t Database,
    snapshot: SnapshotWithThreadMode<'t, Database>,
}

struct RocksDbWriting<'t> {
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
fn key_in(table: OrderedTable, key: &[u8]) -> KeyBuf {
    let mut whole = KeyBuf::new();
    whole.append_array([table.number() as u8]);
    whole.append(key);
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

impl OrderedStore for RocksDb {
    type Client<'a> = &'a Self;

    fn open(place: &Path, setting: Setting, _tables: &[OrderedTable]) -> Result<Self, Failure> {
        let database = Database::open(&options(), place.join("rocksdb")).map_err(failed)?;
        let mut write_options = WriteOptions::default();
        write_options.set_sync(setting == Setting::Synced);
        let mut transaction_options = OptimisticTransactionOptions::default();
        transaction_options.set_snapshot(true);
        Ok(Self { database, write_options, transaction_options })
    }

    fn client(&self) -> Result<&Self, Failure> {
        Ok(self)
    }

    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure> {
        let mut batch = WriteBatchWithTransaction::<true>::default();
        for (key, row) in rows {
            batch.put(key_in(table, key.as_ref()).as_bytes(), row);
            if batch.len() == BATCH_ROWS {
                self.database.write(std::mem::take(&mut batch)).map_err(failed)?;
            }
        }
        self.database.write(batch).map_err(failed)?;
        self.database.flush_wal(true).map_err(failed)
    }
}

impl OrderedClient for &RocksDb {
    fn write(&mut self, aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure> {
        loop {
            let transaction = self.database.transaction_opt(&self.write_options, &self.transaction_options);
            let mut writing = RocksDbWriting { transaction: &transaction, snapshot: transaction.snapshot() };
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

    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure> {
        let database = &self.database;
        body(&mut RocksDbReading { database, snapshot: database.snapshot() })
    }

    /// Without a snapshot.
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = self.database.get_pinned(key_in(table, key).as_bytes()).map_err(failed)?;
        Ok(keep(found, row))
    }
}

/// Shows the rows of a range as of a snapshot, by the iterator that `open` makes.
fn scan<'t, D: DBAccess, I: DBAccess + 't>(
    snapshot: &SnapshotWithThreadMode<'_, D>,
    range: OrderedRange<'_>,
    visit: Visit<'_>,
    open: impl FnOnce(ReadOptions) -> DBRawIteratorWithThreadMode<'t, I>,
) -> Result<(), Failure> {
    let mut options = ReadOptions::default();
    options.set_snapshot(snapshot);
    options.set_iterate_lower_bound(key_in(range.table, range.start).as_bytes());
    options.set_iterate_upper_bound(key_in(range.table, range.end).as_bytes());
    let mut rows = open(options);
    if range.is_reverse {
        rows.seek_to_last()
    } else {
        rows.seek_to_first()
    }
    while let Some((key, row)) = rows.item() {
        if visit(&key[1..], row).is_break() {
            break;
        }
        if range.is_reverse { rows.prev() } else { rows.next() }
    }
    rows.status().map_err(failed)
}

impl OrderedRead for RocksDbReading<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        Ok(keep(self.snapshot.get(key_in(table, key).as_bytes()).map_err(failed)?, row))
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        scan(&self.snapshot, range, visit, |options| self.database.raw_iterator_opt(options))
    }
}

impl OrderedRead for RocksDbWriting<'_> {
    /// A row that is validated at the commit.
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        let mut options = ReadOptions::default();
        options.set_snapshot(&self.snapshot);
        let key = key_in(table, key);
        let found = self.transaction.get_for_update_opt(key.as_bytes(), true, &options);
        Ok(keep(found.map_err(failed)?, row))
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        scan(&self.snapshot, range, visit, |options| self.transaction.raw_iterator_opt(options))
    }
}

impl OrderedWrite for RocksDbWriting<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.transaction.put(key_in(table, key).as_bytes(), row).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        self.transaction.delete(key_in(table, key).as_bytes()).map_err(failed)
    }
}
