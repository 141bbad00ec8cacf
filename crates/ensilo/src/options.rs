//! How a database is opened.

use std::fmt;
use std::thread;
use std::time::Duration;

use ensilo_txn::{EngineOptions, Protocol, Silo};

use crate::error::Name;
use crate::pool::PoolOptions;
use crate::{Database, Error, Result};

/// Options of a database that is about to be opened; [`Database::options`] makes one.
///
/// ```
/// use std::time::Duration;
/// # fn main() -> ensilo::Result<()> {
/// let db = ensilo::Database::options()
///     .epoch_interval(Duration::from_millis(10))
///     .memory_limit_bytes(256 << 20)
///     .retries(20)
///     .in_memory()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "options open nothing by themselves"]
pub struct Options {
    pub(crate) epoch_interval: Duration,
    pub(crate) epochs_per_snapshot: u64,
    pub(crate) snapshot_age_limit: Duration,
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) prefault_bytes: u64,
    pub(crate) retries: u32,
    pub(crate) pool: PoolOptions,
}

impl Default for Options {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Options {
            epoch_interval: Duration::from_millis(40),
            epochs_per_snapshot: 25,
            snapshot_age_limit: Duration::from_secs(60),
            memory_limit_bytes: None,
            prefault_bytes: 0,
            retries: 1000,
            pool: PoolOptions { threads, queue_len_max: 1024, pin_to_cores: true },
        }
    }
}

impl Options {
    /// How long an epoch lasts; 1 ms to 10 s, 40 ms unless told. Short epochs give memory back sooner and cost a little more.
    pub fn epoch_interval(mut self, interval: Duration) -> Self {
        self.epoch_interval = interval;
        self
    }

    /// How many epochs lie between two snapshots; 1 to 10,000, 25 unless told. What a snapshot shows is at most about two of
    /// these intervals old.
    pub fn epochs_per_snapshot(mut self, epochs: u64) -> Self {
        self.epochs_per_snapshot = epochs;
        self
    }

    /// How long a snapshot request may run before it ends with `AbortReason::SnapshotTooOld`; 60 s unless told, at least one
    /// snapshot interval. It bounds the old versions that a long reader makes the database keep.
    pub fn snapshot_age_limit(mut self, limit: Duration) -> Self {
        self.snapshot_age_limit = limit;
        self
    }

    /// The most bytes that rows and indexes may take; no limit unless told. At least 8 MiB: memory is taken in pieces of 2 MiB.
    pub fn memory_limit_bytes(mut self, limit: u64) -> Self {
        self.memory_limit_bytes = Some(limit);
        self
    }

    /// Bytes to take from the system when the database opens; none unless told. Tables that grow later do not wait for the system to
    /// clear pages. What cannot be had in advance is asked for again when it is needed.
    pub fn prefault_bytes(mut self, bytes: u64) -> Self {
        self.prefault_bytes = bytes;
        self
    }

    /// How often a request that met a conflict is run again before its caller sees the abort; 1000 unless told.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// How many threads run submitted jobs; as many as there are cores unless told. They start with the first
    /// [`Database::submit`].
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.pool.threads = threads;
        self
    }

    /// How many submitted jobs may wait for a thread; 1024 unless told.
    pub fn pool_queue_len_max(mut self, jobs: usize) -> Self {
        self.pool.queue_len_max = jobs;
        self
    }

    /// Whether each thread of the pool is bound to a core; it is unless told.
    pub fn pin_pool(mut self, pin: bool) -> Self {
        self.pool.pin_to_cores = pin;
        self
    }

    /// Opens an empty database in memory, run by the protocol [`Silo`].
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when an option is out of its range, [`Error::OutOfMemory`] when the limit does not even hold the
    /// catalog.
    pub fn in_memory(self) -> Result<Database<Silo>> {
        self.in_memory_with()
    }

    /// Opens an empty database in memory, run by the protocol `P`.
    ///
    /// # Errors
    /// As [`Options::in_memory`].
    pub fn in_memory_with<P: Protocol>(self) -> Result<Database<P>> {
        self.check()?;
        Database::open(self)
    }

    fn check(&self) -> Result<()> {
        let second = Duration::from_secs(1);
        require(
            (second / 1000..=second * 10).contains(&self.epoch_interval),
            "epoch_interval",
            "1 ms to 10 s",
        )?;
        require((1..=10_000).contains(&self.epochs_per_snapshot), "epochs_per_snapshot", "1 to 10,000")?;
        require(
            self.snapshot_age_limit >= self.snapshot_interval(),
            "snapshot_age_limit",
            "at least one snapshot interval",
        )?;
        require(
            self.memory_limit_bytes.is_none_or(|limit| limit >= 8 << 20),
            "memory_limit_bytes",
            "at least 8 MiB",
        )?;
        require((1..=4096).contains(&self.pool.threads), "pool_threads", "1 to 4096")?;
        require(self.pool.queue_len_max >= 1, "pool_queue_len_max", "at least 1")
    }

    fn snapshot_interval(&self) -> Duration {
        self.epoch_interval.saturating_mul(u32::try_from(self.epochs_per_snapshot).unwrap_or(u32::MAX))
    }

    pub(crate) fn engine_options(&self) -> EngineOptions {
        let mut options = EngineOptions::default();
        options.epochs.epoch_interval = self.epoch_interval;
        options.epochs.epochs_per_snapshot = self.epochs_per_snapshot;
        options.memory_limit_bytes = self.memory_limit_bytes;
        options.prefault_bytes = self.prefault_bytes;
        let snapshots = self.snapshot_age_limit.as_micros().div_ceil(self.snapshot_interval().as_micros());
        options.snapshot_age_max = u64::try_from(snapshots).unwrap_or(u64::MAX);
        options
    }
}

fn require(holds: bool, option: &str, range: impl fmt::Display) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::InvalidOption(Name::new(format!("{option} must be {range}")))) }
}
