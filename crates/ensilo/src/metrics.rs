//! Statistics as metrics of the crate `metrics`.
//!
//! Nothing is counted here: a call reads [`Statistics`] and sets each metric to what these say. So transactions cost what they cost
//! without metrics, and the program decides how often the figures are taken.

use std::time::Duration;

use ensilo_engine::Engine;
use metrics::{Label, counter, describe_counter, describe_gauge, gauge};

use crate::Result;
use crate::catalog::index_core::IndexState;
use crate::database::Database;
use crate::durable::DurabilityStatistics;
use crate::statistics::{EpochStatistics, MemoryStatistics, Statistics, TableStatistics};

impl<E: Engine> Database<E> {
    /// Sets the metrics of this database in the recorder that the program has installed for the crate `metrics`, to what
    /// [`Database::statistics`] returns now. It belongs to the feature `metrics`.
    ///
    /// Call it every few seconds, or when the figures are about to be collected: a call costs about what `statistics` costs, and between
    /// calls nothing is counted. Each metric has the label `database` with the name that is given, so that several databases of a program
    /// can be told apart.
    ///
    /// Counters (`ensilo_commits_total` and others that end with `_total`) count from the opening on, and are set by
    /// [`Counter::absolute`](metrics::Counter::absolute); a database that is opened again in the same process should have another name, since
    /// counters do not go back. `ensilo_aborts_total` has a label `reason`; a request that is tried again counts at each
    /// attempt. Gauges of tables have a label `table`, those of indexes `table` and `index`. `ensilo_durable_lag_epochs` says how many
    /// epochs have begun since the last one that is stored. Latencies are not measured: a transaction would pay for them.
    ///
    /// ```
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::in_memory()?;
    /// db.publish_metrics("accounts")?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed).
    pub fn publish_metrics(&self, database: &str) -> Result<()> {
        let statistics = self.statistics()?;
        let published = Published { database: Label::new("database", database.to_owned()) };
        published.transactions(&statistics);
        published.memory(&statistics.memory);
        published.epochs(&statistics.epochs);
        statistics.tables.iter().for_each(|table| published.table(table));
        if let Some(durability) = &statistics.durability {
            published.durability(durability, statistics.epochs.global_epoch);
        }
        Ok(())
    }
}

/// Metrics with the name of a database.
struct Published {
    database: Label,
}

impl Published {
    fn transactions(&self, statistics: &Statistics) {
        self.count("ensilo_commits_total", "Committed read-write transactions", statistics.commits);
        self.count("ensilo_snapshots_total", "Ended snapshot transactions", statistics.snapshots);
        self.set("ensilo_attempts_max", "The most attempts of a request", statistics.attempts_max as f64);
        self.count("ensilo_expired_rows_total", "Rows removed as expired", statistics.expired_rows);
        self.count(
            "ensilo_expiry_failures_total",
            "Failed looks for expired rows",
            statistics.expiry_failures,
        );
        describe_counter!("ensilo_aborts_total", "Aborted attempts, by reason");
        for (reason, count) in &statistics.aborts {
            let labels = self.labels([("reason", reason.to_string())]);
            counter!("ensilo_aborts_total", labels).absolute(*count);
        }
    }

    fn memory(&self, memory: &MemoryStatistics) {
        let bytes = |name, what, bytes: u64| self.set(name, what, bytes as f64);
        bytes("ensilo_memory_mapped_bytes", "Bytes taken from the system", memory.mapped_bytes);
        bytes("ensilo_memory_live_bytes", "Bytes of these in use", memory.live_bytes);
        if let Some(limit) = memory.limit_bytes {
            bytes("ensilo_memory_limit_bytes", "The most bytes that may be taken", limit);
        }
        bytes("ensilo_memory_retired_bytes", "Bytes that wait to be freed", memory.retired_bytes);
        bytes("ensilo_versions", "Older versions of rows", memory.versions);
        bytes("ensilo_version_bytes", "Bytes of older versions of rows", memory.version_bytes);
        bytes("ensilo_deleted_records", "Deleted rows that still take memory", memory.deleted_records);
        bytes("ensilo_cold_rows", "Rows outside memory", memory.cold_rows);
        bytes("ensilo_cold_row_bytes", "Bytes of rows outside memory", memory.cold_row_bytes);
        bytes(
            "ensilo_cold_file_bytes",
            "Bytes of the files with rows outside memory",
            memory.cold_file_bytes,
        );
        self.count("ensilo_evicted_rows_total", "Rows that have left memory", memory.evicted_rows);
        self.count("ensilo_loaded_rows_total", "Rows that were read back", memory.loaded_rows);
    }

    fn epochs(&self, epochs: &EpochStatistics) {
        self.set("ensilo_global_epoch", "The epoch of commits now", epochs.global_epoch as f64);
        self.set("ensilo_snapshot_epoch", "The epoch that snapshots show", epochs.snapshot_epoch as f64);
        self.set("ensilo_workers", "Workers of threads and sessions", epochs.workers as f64);
    }

    fn table(&self, table: &TableStatistics) {
        let labels = self.labels([("table", table.name.clone())]);
        describe_gauge!("ensilo_table_rows", "Rows of a table");
        gauge!("ensilo_table_rows", labels.clone()).set(table.records as f64);
        describe_gauge!("ensilo_table_bytes", "Bytes that a table takes in memory, without its indexes");
        gauge!("ensilo_table_bytes", labels).set(table.memory_bytes as f64);
        describe_gauge!("ensilo_index_bytes", "Bytes that an index takes in memory");
        describe_gauge!("ensilo_index_broken", "1 for an index that is broken, 0 for others");
        for index in &table.indexes {
            let labels = self.labels([("table", table.name.clone()), ("index", index.name.clone())]);
            gauge!("ensilo_index_bytes", labels.clone()).set(index.memory_bytes as f64);
            let is_broken = index.state == IndexState::Broken;
            gauge!("ensilo_index_broken", labels).set(f64::from(u8::from(is_broken)));
        }
    }

    fn durability(&self, durability: &DurabilityStatistics, global_epoch: u64) {
        self.set("ensilo_durable_epoch", "The last epoch that is stored", durability.durable_epoch as f64);
        let lag =
            if durability.is_read_only { 0 } else { global_epoch.saturating_sub(durability.durable_epoch) };
        self.set("ensilo_durable_lag_epochs", "Epochs since the last one that is stored", lag as f64);
        self.count("ensilo_logged_transactions_total", "Logged transactions", durability.logged_transactions);
        self.count("ensilo_log_entry_bytes_total", "Bytes of log entries", durability.log_entry_bytes);
        self.count("ensilo_log_bytes_total", "Bytes written to log files", durability.log_bytes);
        self.count("ensilo_log_writes_total", "Writes to log files", durability.log_writes);
        self.count("ensilo_log_syncs_total", "Syncs of log files", durability.log_syncs);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let sync_micros = micros(durability.log_sync_time);
        self.count("ensilo_log_sync_microseconds_total", "Time in syncs of log files", sync_micros);
        self.count(
            "ensilo_log_buffer_waits_total",
            "Commits that waited for a buffer",
            durability.log_buffer_waits,
        );
        let wait_micros = micros(durability.log_buffer_wait_time);
        self.count("ensilo_log_buffer_wait_microseconds_total", "Time of these waits", wait_micros);
        let checkpoints = &durability.checkpoints;
        self.count("ensilo_checkpoints_total", "Checkpoints that were made", checkpoints.made);
        self.count("ensilo_checkpoints_failed_total", "Checkpoints that failed", checkpoints.failed);
        self.count(
            "ensilo_checkpoint_bytes_total",
            "Bytes written by checkpoints",
            checkpoints.bytes_written,
        );
        let seconds = checkpoints.last_duration.as_secs_f64();
        self.set("ensilo_checkpoint_seconds", "How long the last checkpoint took", seconds);
        let next = &durability.next_recovery;
        let next_seconds = next.duration.as_secs_f64();
        self.set("ensilo_next_recovery_seconds", "How long a recovery would take now", next_seconds);
        let replayed_bytes = next.log_bytes as f64;
        self.set("ensilo_next_recovery_log_bytes", "Bytes of log that it would replay", replayed_bytes);
        let is_degraded = f64::from(u8::from(durability.degraded.is_some()));
        self.set("ensilo_degraded", "1 while something is wrong with the files, otherwise 0", is_degraded);
    }

    fn count(&self, name: &'static str, what: &'static str, count: u64) {
        describe_counter!(name, what);
        counter!(name, self.labels([])).absolute(count);
    }

    fn set(&self, name: &'static str, what: &'static str, value: f64) {
        describe_gauge!(name, what);
        gauge!(name, self.labels([])).set(value);
    }

    fn labels<const N: usize>(&self, more: [(&'static str, String); N]) -> Vec<Label> {
        let more = more.into_iter().map(|(name, value)| Label::new(name, value));
        std::iter::once(self.database.clone()).chain(more).collect()
    }
}
