//! The database that a workload runs against: how it is opened, what its memory is, and when its snapshots are fresh.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use ensilo::disk::RealDisk;
use ensilo::generic::{Database, Request};
use ensilo::{Compression, Durability, Engine, Error, NoHook, Options, RecoveryProgress};

use crate::driver::{Failure, Memory, complain};

/// Options of the database; what is `None` is left as the library has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// How long an epoch lasts.
    pub epoch_interval: Option<Duration>,
    /// Epochs between two snapshots.
    pub epochs_per_snapshot: Option<u64>,
    /// How long a snapshot may stay open.
    pub snapshot_age_limit: Option<Duration>,
    /// How often a transaction runs again after a conflict.
    pub retries: Option<u32>,
    /// The most bytes that rows and indexes may take.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes to take from the system before the load.
    pub prefault_bytes: u64,
    /// How often checkpoints are made.
    pub checkpoint_interval: Option<Duration>,
    /// Whether no checkpoints are made at all.
    pub has_no_checkpoints: bool,
    /// Whether the log is compressed by LZ4.
    pub is_log_compressed: bool,
    /// Whether every write takes a place in the log by itself.
    pub logs_operations: bool,
    /// Whether checkpoints are compressed by LZ4.
    pub is_checkpoint_compressed: bool,
    /// How many bytes of a checkpoint are written between two syncs.
    pub checkpoint_sync_bytes: Option<u64>,
    /// How many bytes of a checkpoint are written in a second.
    pub checkpoint_bytes_per_second: Option<u64>,
}

/// Where a database lies on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Directories {
    /// Its own directory.
    pub database: PathBuf,
    /// Those of its loggers; the database's own if there are none.
    pub logs: Vec<PathBuf>,
}

impl DatabaseOptions {
    /// Opens an empty database in memory, or the one that lies there. Transactions are answered when they are visible.
    ///
    /// # Errors
    /// [`ensilo::Error::InvalidOption`], [`ensilo::Error::Open`].
    pub fn open<E: Engine>(&self, place: Option<&Directories>) -> ensilo::Result<Database<E>> {
        match place {
            None => self.open_in_memory(),
            Some(place) => open_shown(self.durable_options(place), place),
        }
    }

    /// Opens an empty database in memory.
    ///
    /// # Errors
    /// [`ensilo::Error::InvalidOption`].
    pub fn open_in_memory<E: Engine>(&self) -> ensilo::Result<Database<E>> {
        self.options().in_memory_with()
    }

    /// Opens a database that was there before, and tells `hook` how far it is.
    ///
    /// # Errors
    /// As [`DatabaseOptions::open`].
    pub(crate) fn recover<E: Engine>(
        &self,
        place: &Directories,
        hook: impl Fn(&RecoveryProgress) + Send + Sync + 'static,
    ) -> ensilo::Result<Database<E>> {
        open_shown(self.durable_options(place).on_recovery(hook), place)
    }

    fn options(&self) -> Options {
        let mut options = Database::options();
        if let Some(interval) = self.epoch_interval {
            options = options.epoch_interval(interval);
        }
        if let Some(epochs) = self.epochs_per_snapshot {
            options = options.epochs_per_snapshot(epochs);
        }
        if let Some(limit) = self.snapshot_age_limit {
            options = options.snapshot_age_limit(limit);
        }
        if let Some(retries) = self.retries {
            options = options.retries(retries);
        }
        if let Some(limit) = self.memory_limit_bytes {
            options = options.memory_limit_bytes(limit);
        }
        options.prefault_bytes(self.prefault_bytes)
    }

    fn durable_options(&self, place: &Directories) -> Options {
        let mut options = self
            .options()
            .log_directories(&place.logs)
            .durability(Durability::Visible)
            .on_event(|event| complain(format_args!("database: {event}")));
        if let Some(interval) = self.checkpoint_interval {
            options = options.checkpoint_interval(interval);
        }
        if self.has_no_checkpoints {
            options = options.no_checkpoints();
        }
        if self.is_log_compressed {
            options = options.log_compression(Compression::Lz4);
        }
        if self.logs_operations {
            options = options.log_operations();
        }
        if self.is_checkpoint_compressed {
            options = options.checkpoint_compression(Compression::Lz4);
        }
        if let Some(bytes) = self.checkpoint_sync_bytes {
            options = options.checkpoint_sync_bytes(bytes);
        }
        if let Some(bytes) = self.checkpoint_bytes_per_second {
            options = options.checkpoint_bytes_per_second(bytes);
        }
        options
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "epoch_interval_ms": self.epoch_interval.map(|interval| interval.as_secs_f64() * 1e3),
            "epochs_per_snapshot": self.epochs_per_snapshot,
            "snapshot_age_limit_seconds": self.snapshot_age_limit.map(|limit| limit.as_secs_f64()),
            "retries": self.retries,
            "memory_limit_bytes": self.memory_limit_bytes,
            "prefault_bytes": self.prefault_bytes,
            "checkpoint_interval_seconds": self.checkpoint_interval.map(|interval| interval.as_secs_f64()),
            "no_checkpoints": self.has_no_checkpoints,
            "log_compression": self.is_log_compressed.then_some("lz4"),
            "logging": self.logs_operations.then_some("per-operation"),
            "checkpoint_compression": self.is_checkpoint_compressed.then_some("lz4"),
            "checkpoint_sync_bytes": self.checkpoint_sync_bytes,
            "checkpoint_bytes_per_second": self.checkpoint_bytes_per_second,
        })
    }
}

/// Opens a database so that other processes can see its statistics, or without that where there can be no socket for it.
fn open_shown<E: Engine>(options: Options, place: &Directories) -> ensilo::Result<Database<E>> {
    let open = |options: Options| options.open_with(Arc::new(RealDisk), &place.database);
    match open(options.clone().live_statistics(true)) {
        Err(error @ Error::NoStatisticsSocket(_)) => {
            complain(format_args!("`ensilo stat --live` will not see the database: {error}"));
            open(options)
        }
        opened => opened,
    }
}

/// How often a batch of a load is tried again, whatever the workload's own transactions are allowed.
const LOAD_RETRIES: u32 = 1_000;

/// A request that inserts a batch of rows.
pub(crate) fn load_request<E: Engine>(database: &Database<E>) -> Request<'_, NoHook, E> {
    database.request().retries(LOAD_RETRIES)
}

/// Waits until all that has been committed before the call is stored, if that ever happens in this database.
pub(crate) fn wait_until_stored<E: Engine>(database: &Database<E>) -> ensilo::Result<()> {
    if database.durable_epoch().is_none() {
        return Ok(());
    }
    database.ticket(database.statistics()?.epochs.global_epoch)?.wait()
}

/// The memory of `database` now.
pub(crate) fn memory<E: Engine>(database: &Database<E>) -> Memory {
    // Only a closed database has no statistics, and then it has no memory either.
    let Ok(statistics) = database.statistics() else { return Memory::default() };
    let mut by_table = Vec::new();
    for table in statistics.tables {
        by_table.extend(
            table
                .indexes
                .into_iter()
                .map(|index| (format!("{}.{}", table.name, index.name), index.memory_bytes)),
        );
        by_table.push((table.name, table.memory_bytes));
    }
    Memory {
        live_bytes: statistics.memory.live_bytes,
        mapped_bytes: statistics.memory.mapped_bytes,
        versions: statistics.memory.versions,
        version_bytes: statistics.memory.version_bytes,
        by_table,
    }
}

/// Sees to it that snapshots show all that has been committed before the call, if there are any.
pub(crate) fn make_fresh_snapshot<E: Engine>(database: &Database<E>) -> ensilo::Result<()> {
    if !E::SNAPSHOTS {
        return Ok(());
    }
    database.request().max_staleness(Duration::ZERO).read_stale(|_| Ok(()))
}

/// Runs `during` while a snapshot of `database` is open, which shows all that has been committed before.
///
/// # Errors
/// Those of `during`; why there was no snapshot, or why it did not last.
///
/// # Panics
/// If `during` does.
pub(crate) fn while_snapshot_is_open<E: Engine, R>(
    database: &Database<E>,
    during: impl FnOnce() -> Result<R, Failure>,
) -> Result<R, Failure> {
    let (opened, is_open) = channel();
    let (keep, kept) = channel::<()>();
    let hold = move || {
        database.request().max_staleness(Duration::ZERO).read_stale(|_| {
            // The receiver waits; the other sender says nothing, and is dropped in the end.
            let _ = opened.send(());
            let _ = kept.recv();
            Ok(())
        })
    };
    thread::scope(|scope| {
        let holder = scope.spawn(hold);
        // Without a snapshot the holder has ended, and says why below.
        let result = if is_open.recv().is_ok() { during().map(Some) } else { Ok(None) };
        drop(keep);
        holder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        result?.ok_or_else(|| Failure::Broken("a snapshot ended before it was held".to_owned()))
    })
}
