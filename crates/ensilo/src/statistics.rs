//! What a database has counted.

use ensilo_engine::{AbortReason, Engine, EngineStatistics, Store, TableId};
use ensilo_slab::AccountId;

use crate::catalog::index_core::IndexState;
use crate::catalog::table_core::TableCore;
use crate::durable::DurabilityStatistics;
use crate::expiry::ExpiryStatistics;
use crate::shared::DatabaseShared;

/// What a database has counted since it was opened, and what it holds. Made by
/// [`Database::statistics`](crate::Database::statistics).
///
/// With the feature `serde` it can be serialized, with its parts: fields have the names that they have here, aborts are a map
/// from reasons as [`AbortReason`] prints them to numbers, durations are numbers of seconds, and points in time seconds since 1970-01-01 UTC.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// Committed read-write transactions, those of requests on the catalog included, and those by which the database looks for rows that have
    /// [expired](crate::generic::Database::expire_rows), also where there are none.
    pub commits: u64,
    /// Ended snapshot transactions.
    pub snapshots: u64,
    /// Aborted transactions by reason; a request that is retried counts at each attempt.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialized::aborts"))]
    pub aborts: Vec<(AbortReason, u64)>,
    /// The most attempts that a request took; 0 or 1 while each has ended with its first. Reads by
    /// [`Database::read`](crate::Database::read) do not count in it, unless they end with an error.
    pub attempts_max: u64,
    /// Rows that were removed because they had [expired](crate::generic::Database::expire_rows).
    pub expired_rows: u64,
    /// How often a look for such rows in the background has ended with an error. What
    /// [`Expiry::remove_now`](crate::generic::Expiry::remove_now) returns does not count.
    pub expiry_failures: u64,
    /// What has come of rows that expire, for each [`Expiry`](crate::generic::Expiry) that goes on.
    pub expiries: Vec<ExpiryStatistics>,
    /// Every table, by name.
    pub tables: Vec<TableStatistics>,
    /// Memory in total.
    pub memory: MemoryStatistics,
    /// Epochs and what they hold back.
    pub epochs: EpochStatistics,
    /// Log, checkpoints and recovery; `None` for a database in memory only.
    pub durability: Option<DurabilityStatistics>,
}

/// One table.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TableStatistics {
    /// Its name.
    pub name: String,
    /// Its number, which the tools for a database's files show.
    pub number: u32,
    /// Its rows; of a table that is still
    /// [loading](crate::Options::answer_while_loading) those that are in memory.
    pub records: u64,
    /// The bytes of its rows with their long values, of their older versions and of its trees.
    pub memory_bytes: u64,
    /// Its long values: `None` of a table without texts and bytes of any length.
    pub long_values: Option<LongValueStatistics>,
    /// Its indexes, also those that are being built and those that are broken.
    pub indexes: Vec<IndexStatistics>,
}

/// Texts and bytes of a table that do not lie in their rows.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LongValueStatistics {
    /// Their number, which the tools for a database's files show.
    pub number: u32,
    /// The pieces that they consist of.
    pub pieces: u64,
    /// The bytes of the pieces, of their older versions and of their tree, which the table's count as well.
    pub memory_bytes: u64,
}

/// One index.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IndexStatistics {
    /// Its name.
    pub name: String,
    /// Its entries.
    pub records: u64,
    /// The bytes of its entries, of their older versions and of its tree.
    pub memory_bytes: u64,
    /// Whether it can be read; `false` while it is built, and when it is broken.
    pub is_ready: bool,
    /// Whether it can be read, and whether writes maintain it.
    pub state: IndexState,
}

/// Memory.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// Bytes taken from the system for rows and trees, and by transactions for large sets: what the memory
    /// limit bounds, with its reserves. And 24 bytes for each deleted row that snapshots may still need,
    /// which the limit does not bound.
    pub mapped_bytes: u64,
    /// Bytes of these in use, by tables and indexes and by the system's own tables.
    pub live_bytes: u64,
    /// The most bytes that may be taken.
    pub limit_bytes: Option<u64>,
    /// Older versions of rows, kept for snapshots.
    pub versions: u64,
    /// Bytes of those versions.
    pub version_bytes: u64,
    /// Deleted rows that still take memory: they leave their table with the next transaction of the thread that
    /// deleted them, and are kept beside it as long as a snapshot may need them.
    pub deleted_records: u64,
    /// Bytes given up that wait until no transaction can reach them.
    pub retired_bytes: u64,
    /// Rows that are on the disk instead of in memory, see [`ermia`](crate::ermia); the catalog's and those of
    /// indexes are among them.
    pub cold_rows: u64,
    /// Their bytes.
    pub cold_row_bytes: u64,
    /// The bytes of the files that they are in.
    pub cold_file_bytes: u64,
    /// How many rows have left memory so far.
    pub evicted_rows: u64,
    /// How many were read back so far.
    pub loaded_rows: u64,
}

/// Epochs.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct EpochStatistics {
    /// The epoch in which a transaction would commit now.
    pub global_epoch: u64,
    /// A snapshot that begins now shows the commits of earlier epochs.
    pub snapshot_epoch: u64,
    /// The epoch in which the oldest transaction under way began.
    pub oldest_pin: Option<u64>,
    /// The oldest epoch that a snapshot under way shows.
    pub oldest_snapshot: Option<u64>,
    /// Workers: one for each thread that has made a request, and for each transaction that sessions had open
    /// at once.
    pub workers: u64,
}

impl Statistics {
    pub(crate) fn collect<E: Engine>(shared: &DatabaseShared<E>) -> Self {
        let engine = shared.engine.statistics();
        let tables = shared.catalog.tables();
        let tables = tables.iter().map(|table| table_statistics(shared, &engine, table)).collect();
        let (transactions, epochs) = (&engine.transactions, &engine.epochs);
        let aborts = AbortReason::ALL.iter().map(|&reason| (reason, transactions.aborts[reason.index()]));
        Statistics {
            commits: transactions.commits,
            snapshots: transactions.snapshots,
            aborts: aborts.collect(),
            attempts_max: transactions.attempts_max,
            expired_rows: shared.expiries.removed(),
            expiry_failures: shared.expiries.failures(),
            expiries: shared.expiries.statistics(),
            tables,
            memory: MemoryStatistics {
                mapped_bytes: engine.memory.mapped_bytes,
                live_bytes: engine.memory.live_bytes,
                limit_bytes: shared.options.memory_limit_bytes,
                versions: transactions.versions,
                version_bytes: transactions.version_bytes,
                deleted_records: transactions.deleted_records,
                retired_bytes: epochs.retired_bytes,
                cold_rows: engine.cold.rows,
                cold_row_bytes: engine.cold.row_bytes,
                cold_file_bytes: engine.cold.file_bytes,
                evicted_rows: engine.cold.evicted,
                loaded_rows: engine.cold.loaded,
            },
            epochs: EpochStatistics {
                global_epoch: epochs.global_epoch.get(),
                snapshot_epoch: epochs.snapshot_epoch.get(),
                oldest_pin: epochs.oldest_pin.map(|epoch| epoch.get()),
                oldest_snapshot: epochs.oldest_snapshot.map(|epoch| epoch.get()),
                workers: epochs.active_slots,
            },
            durability: match shared.durable() {
                Some(durable) => Some(durable.statistics(&*shared.engine, shared.loading.state.statistics())),
                None => shared.read_only().map(|files| files.statistics(shared.loading.state.statistics())),
            },
        }
    }

    /// Returns the number of aborts for one reason.
    #[must_use]
    pub fn aborts_of(&self, reason: AbortReason) -> u64 {
        self.aborts[reason.index()].1
    }

    /// Returns the number of aborts for all reasons.
    #[must_use]
    pub fn aborts_total(&self) -> u64 {
        self.aborts.iter().map(|(_, count)| count).sum()
    }

    /// Returns the statistics of the table of this name.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<&TableStatistics> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Returns the broken indexes, each with its table: see
    /// [`Error::IndexBroken`](crate::Error::IndexBroken).
    pub fn broken_indexes(&self) -> impl Iterator<Item = (&TableStatistics, &IndexStatistics)> {
        let all = self.tables.iter().flat_map(|table| table.indexes.iter().map(move |index| (table, index)));
        all.filter(|(_, index)| index.state == IndexState::Broken)
    }
}

fn table_statistics<E: Engine>(
    shared: &DatabaseShared<E>,
    engine: &EngineStatistics,
    table: &TableCore<E::Store>,
) -> TableStatistics {
    let indexes = table.indexes.snapshot();
    let is_loaded = table.load.is_over();
    let indexes = indexes.iter().map(|index| {
        let state = if is_loaded { index.state() } else { IndexState::Building };
        IndexStatistics {
            name: index.name.to_string(),
            records: shared.records.of(index.store.id()),
            memory_bytes: memory_of(engine, index.store.id()),
            is_ready: state == IndexState::Ready,
            state,
        }
    });
    let long_values = table.long.as_ref().map(|long| long.store.id()).map(|store| LongValueStatistics {
        number: store.0,
        pieces: shared.records.of(store),
        memory_bytes: memory_of(engine, store),
    });
    let bytes_of_long_values = long_values.as_ref().map_or(0, |long| long.memory_bytes);
    TableStatistics {
        name: table.name.to_string(),
        number: table.store.id().0,
        records: shared.records.of(table.store.id()),
        memory_bytes: memory_of(engine, table.store.id()) + bytes_of_long_values,
        long_values,
        indexes: indexes.collect(),
    }
}

fn memory_of(engine: &EngineStatistics, store: TableId) -> u64 {
    engine.memory.of(AccountId(store.0))
}
