//! The database that a workload runs against: how it is opened, what its memory is, and when its snapshots are fresh.

use std::thread;
use std::time::Duration;

use ensilo::{Database, Result};

use crate::driver::Memory;

/// Options of the database; what is `None` is left as the library has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// How long an epoch lasts.
    pub epoch_interval: Option<Duration>,
    /// Epochs between two snapshots.
    pub epochs_per_snapshot: Option<u64>,
    /// The most bytes that rows and indexes may take.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes to take from the system before the load.
    pub prefault_bytes: u64,
}

impl DatabaseOptions {
    /// Opens an empty database.
    ///
    /// # Errors
    /// [`ensilo::Error::InvalidOption`].
    pub fn open(self) -> Result<Database> {
        let mut options = Database::options();
        if let Some(interval) = self.epoch_interval {
            options = options.epoch_interval(interval);
        }
        if let Some(epochs) = self.epochs_per_snapshot {
            options = options.epochs_per_snapshot(epochs);
        }
        if let Some(limit) = self.memory_limit_bytes {
            options = options.memory_limit_bytes(limit);
        }
        options.prefault_bytes(self.prefault_bytes).in_memory()
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "epoch_interval_ms": self.epoch_interval.map(|interval| interval.as_secs_f64() * 1e3),
            "epochs_per_snapshot": self.epochs_per_snapshot,
            "memory_limit_bytes": self.memory_limit_bytes,
            "prefault_bytes": self.prefault_bytes,
        })
    }
}

/// The memory of `database` now.
pub(crate) fn memory(database: &Database) -> Memory {
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
        by_table,
    }
}

/// Waits until snapshots show all that has been committed before the call: one to two snapshot intervals.
pub(crate) fn wait_for_fresh_snapshot(database: &Database) -> Result<()> {
    let committed = database.statistics()?.epochs.global_epoch;
    while database.statistics()?.epochs.snapshot_epoch <= committed {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
