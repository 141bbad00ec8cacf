//! How the databases of the tests are opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ensilo::generic::Database;
use ensilo::{Compression, Engine, Options, Result};
use ensilo_disk::Disk;

use crate::random::Random;

/// Where the database lies on a simulated disk.
pub const DIRECTORY: &str = "/db";

/// What differs between one opening and another.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Loggers, each with a directory of its own; with one it lies within the database's.
    pub loggers: usize,
    /// Whether log and checkpoints are compressed.
    pub compression: Compression,
    /// A fixed length of the epochs.
    pub epoch_interval: Option<Duration>,
    /// Threads that replay.
    pub recovery_threads: usize,
    /// Whether closing makes a checkpoint.
    pub checkpoint_at_close: bool,
    /// Whether the changes are kept for consumers, all of them.
    pub keeps_changes: bool,
    /// Whether it answers before it has loaded the rows.
    pub answers_while_loading: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            loggers: 1,
            compression: Compression::None,
            epoch_interval: None,
            recovery_threads: 1,
            checkpoint_at_close: false,
            keeps_changes: false,
            answers_while_loading: false,
        }
    }
}

impl Setup {
    /// Returns a setup that follows from a seed.
    #[must_use]
    pub fn of(seed: u64) -> Setup {
        let mut random = Random::new(seed ^ 0x5e7);
        Setup {
            loggers: 1 + random.below(3) as usize,
            compression: if random.percent(30) { Compression::Lz4 } else { Compression::None },
            epoch_interval: random.percent(30).then(|| Duration::from_millis(1 + random.below(3))),
            recovery_threads: 1 + random.below(2) as usize,
            checkpoint_at_close: random.percent(30),
            keeps_changes: false,
            answers_while_loading: false,
        }
    }

    /// Returns a setup that follows from a seed, for the workload that [changes](crate::changing) its tables.
    #[must_use]
    pub fn of_changing(seed: u64) -> Setup {
        Setup { keeps_changes: true, answers_while_loading: seed % 3 == 1, ..Setup::of(seed) }
    }

    /// Returns the options: small log files, and checkpoints only when asked for.
    pub fn options(&self, directory: &Path) -> Options {
        let options = Database::options()
            .log_file_bytes(1 << 20)
            .log_buffers(4)
            .log_compression(self.compression)
            .checkpoint_compression(self.compression)
            .checkpoint_interval(Duration::from_secs(3600))
            .checkpoint_at_close(self.checkpoint_at_close)
            .recovery_threads(self.recovery_threads)
            .answer_while_loading(self.answers_while_loading)
            .pool_threads(1);
        let options = if self.keeps_changes { options.change_feed(1 << 30) } else { options };
        let options = match self.epoch_interval {
            Some(interval) => options.epoch_interval(interval),
            None => options,
        };
        if self.loggers == 1 {
            return options;
        }
        options.log_directories((0..self.loggers).map(|logger| log_directory(directory, logger)))
    }

    /// Opens the database on this disk.
    ///
    /// # Errors
    /// Those of [`Options::open_with`].
    pub fn open<E: Engine>(&self, disk: Arc<dyn Disk>) -> Result<Database<E>> {
        self.options(Path::new(DIRECTORY)).open_with(disk, DIRECTORY)
    }
}

/// Some of the log's directories lie outside the database's.
fn log_directory(directory: &Path, logger: usize) -> PathBuf {
    match logger {
        0 => directory.join("log"),
        logger => directory.with_file_name(format!("disk-{logger}")),
    }
}
