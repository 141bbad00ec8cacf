//! What a database in a directory has beside its rows: a log, checkpoints, and a way to open it again.
//!
//! # Source
//! SiloR (OSDI 2014) §3 to §5. Opening goes so:
//! ```text
//! lock, look          which files belong to the database, and up to which epoch all is stored
//! replay              checkpoint and log into stores, in any order, by all cores
//! load the catalog    the system tables' rows become tables and indexes
//! rebuild indexes     their entries follow from the rows
//! begin a generation  new log files, then the manifest that names them: from here on a commit can be stored
//! ```
//! Nothing before the last step changes what the files mean: after a crash in between, opening begins anew.

mod backup;
mod checkpointer;
mod condition;
mod options;
mod pace;
mod progress;
mod read_only;
mod schedule;
mod statistics;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};

use ensilo_disk::Disk;
use ensilo_engine::{Engine, EngineOptions, Fault, Replayer};
use ensilo_epoch::Advance;
use ensilo_epoch::{Epoch, EpochOptions};
use ensilo_log::{
    EpochClock, ForeignAfter, Found, GenerationOptions, Log, LogOptions, OpenError, ReplayError,
};

pub use backup::Backup;
pub use checkpointer::Checkpoint;
pub(crate) use condition::EventHook;
pub use condition::{Degraded, DegradedReason, Event};
pub(crate) use options::DurableOptions;
pub(crate) use progress::RecoveryHook;
pub use progress::RecoveryProgress;
pub(crate) use read_only::{ReadOnly, open_read_only};
pub use statistics::{CheckpointStatistics, DurabilityStatistics, RecoveryStatistics};

use crate::error::{Abort, Name};
use crate::options::{EPOCH_INTERVAL_MAX, EPOCH_INTERVAL_MIN, Options};
use crate::shared::{FirstPanic, Shared};
use crate::{Error, Result};
use checkpointer::Checkpointer;
use schedule::Backlog;

/// Epochs are numbered so that this many fit between two snapshots, however short they are.
const EPOCHS_PER_SNAPSHOT: u64 = 1024;

/// The log and the checkpoints of an open database.
pub(crate) struct Durable {
    pub(crate) log: Arc<Log>,
    checkpointer: Arc<Checkpointer>,
    /// The checkpointer's, until the database is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
    makes_last_checkpoint: bool,
    /// How long the log was that the opening has found.
    backlog: Backlog,
    recovery: RecoveryStatistics,
}

/// Opens the database in `directory`, or makes it.
pub(crate) fn open<E: Engine>(
    options: Options,
    disk: Arc<dyn Disk>,
    directory: PathBuf,
) -> Result<Shared<E>> {
    let mut found = ensilo_log::inspect(&disk, &directory).map_err(open_failed)?;
    if E::FAULT == Some(Fault::ReplayPastDurableEpoch) {
        found.plant_replay_past_durable_epoch();
    }
    let engine_options = engine_options(&options, &found);
    check_epochs(&engine_options.epochs)?;
    let shared = Shared::<E>::new(options, engine_options)?;
    let recovery = recover(&shared, &found, &directory)?;
    shared.row_ids.follow(shared.engine.epochs());
    let durable = begin_generation(&shared, found, disk, &directory, recovery)?;
    shared.set_durable(durable);
    Ok(shared)
}

/// Epochs that the log's clock moves on and that are later than all that is on disk.
fn engine_options(options: &Options, found: &Found) -> EngineOptions {
    let mut engine_options = options.engine_options();
    let epochs = &mut engine_options.epochs;
    epochs.advance = Advance::Manual;
    epochs.first_epoch = Epoch::new(found.largest_epoch().get() + 1);
    if options.epoch_interval.is_none() {
        epochs.epochs_per_snapshot = EPOCHS_PER_SNAPSHOT;
        epochs.snapshot_interval = Some(options.snapshot_interval());
    }
    engine_options
}

/// Whether there are epochs left to commit in.
fn check_epochs(epochs: &EpochOptions) -> Result<()> {
    if epochs.start() < Epoch::LAST {
        return Ok(());
    }
    Err(open_failed(OpenError::Refused(format!(
        "the numbers of epochs are used up: the next opening would begin with {}, and the last one is {}. Put the rows \
         into a new database: `ensilo log dump` prints what is in the files",
        epochs.start(),
        Epoch::LAST,
    ))))
}

/// While a database is opened it may take so many times its memory limit: the rows of the checkpoint and what the log says of them, deletions
/// among it, are there at once. Rows that were committed within the limit can then be read back within the same one.
const RECOVERY_MEMORY_FACTOR: u64 = 2;

/// Puts everything that is on disk into the engine.
fn recover<E: Engine>(shared: &Shared<E>, found: &Found, directory: &Path) -> Result<RecoveryStatistics> {
    let pool = shared.engine.epochs().pool();
    let limit = pool.limit_bytes();
    pool.set_limit_bytes(limit.map(|limit| limit.saturating_mul(RECOVERY_MEMORY_FACTOR)));
    let recovered = replay_and_load(shared, found, directory);
    pool.set_limit_bytes(limit);
    recovered
}

/// Replays checkpoint and log, and makes tables and indexes of what they hold.
fn replay_and_load<E: Engine>(
    shared: &Shared<E>,
    found: &Found,
    directory: &Path,
) -> Result<RecoveryStatistics> {
    let start = std::time::Instant::now();
    let threads = shared.options.durable.recovery_threads;
    let replayer = shared.engine.replayer();
    let replayed = progress::shown(shared.options.on_recovery.as_ref(), |progress| {
        found.replay(&replayer, threads, progress).map_err(open_failed)
    })?;
    let recovered = replayer.finish().map_err(|error| replay_failed(error, directory))?;
    for store in recovered.stores {
        shared.records.add_recovered(store.id, store.rows);
    }
    shared.load_catalog()?;
    shared.rebuild_indexes(threads)?;
    Ok(RecoveryStatistics::new(start.elapsed(), &replayed))
}

/// Makes new log files and starts the threads.
fn begin_generation<E: Engine>(
    shared: &Shared<E>,
    found: Found,
    disk: Arc<dyn Disk>,
    directory: &Path,
    recovery: RecoveryStatistics,
) -> Result<Durable> {
    let options = &shared.options.durable;
    let directories = match &options.log_directories[..] {
        [] => vec![directory.join("log")],
        named => named.to_vec(),
    };
    let epochs = shared.engine.epochs();
    let generation = GenerationOptions {
        directories: directories.clone(),
        file_bytes: options.log_file_bytes,
        first_epoch: epochs.global_epoch(),
    };
    let (generation, files) = found.next_generation(&generation).map_err(open_failed)?;
    let covered = files.manifest().checkpoint.as_ref().map_or(Epoch::new(0), |entry| entry.begin_epoch);
    let log = Log::start(disk, generation, Arc::clone(epochs), &log_options(&shared.options))
        .map_err(Error::from_log)?;
    log.set_full_rows_before(covered);
    let backlog = Backlog::found(&options.checkpoint, files.manifest().earlier.len(), &recovery);
    let hook = shared.options.on_event.clone();
    let checkpointer =
        Checkpointer::new(options.checkpoint, options.log_file_bytes, directories, hook, files);
    let checkpointer = Arc::new(checkpointer);
    if backlog != Backlog::Short {
        checkpointer.set_overdue();
    }
    log.watch(Box::new({
        let checkpointer = Arc::clone(&checkpointer);
        move || checkpointer.call()
    }));
    let thread = start_checkpointer(Arc::clone(&shared.engine), Arc::clone(&log), Arc::clone(&checkpointer))?;
    Ok(Durable {
        log,
        checkpointer,
        thread_id: thread.thread().id(),
        thread: Mutex::new(Some(thread)),
        makes_last_checkpoint: options.checkpoint.at_close,
        backlog,
        recovery,
    })
}

fn log_options(options: &Options) -> LogOptions {
    let durable = &options.durable;
    LogOptions {
        buffers_per_logger: durable.log_buffers,
        file_bytes: durable.log_file_bytes,
        compression: durable.log_compression,
        clock: match options.epoch_interval {
            Some(interval) => EpochClock::Fixed(interval),
            None => EpochClock::ByLoggers { min: EPOCH_INTERVAL_MIN, max: EPOCH_INTERVAL_MAX },
        },
        ..LogOptions::default()
    }
}

fn start_checkpointer<E: Engine>(
    engine: Arc<E>,
    log: Arc<Log>,
    checkpointer: Arc<Checkpointer>,
) -> Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("ensilo-checkpoint".into());
    thread
        .spawn(move || {
            let _working = ForeignAfter::default();
            checkpointer.run(&*engine, &log);
        })
        .map_err(|error| Error::CheckpointFailed(Name::new(format!("no thread for it: {error}"))))
}

impl Durable {
    /// Makes a checkpoint now.
    pub(crate) fn checkpoint<E: Engine>(&self, engine: &E) -> Result<Checkpoint> {
        self.checkpointer.checkpoint(engine, &self.log)
    }

    /// Whether the calling thread is one of log and checkpoints, as in a hook or a waker: then it must not wait for them.
    pub(crate) fn is_own_thread(&self) -> bool {
        thread::current().id() == self.thread_id || self.log.is_own_thread()
    }

    /// Ends a checkpoint or a backup under way, and begins no other but the last one.
    pub(crate) fn give_up_checkpoints(&self) {
        self.checkpointer.stop();
    }

    /// Stores what was committed, and lets others open the database. Called once, and not on an own thread. All jobs have ended, but for
    /// those that were not to be waited for.
    pub(crate) fn close<E: Engine>(&self, shared: &Shared<E>, panics: &mut FirstPanic) -> Result<()> {
        self.give_up_checkpoints();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        thread.map_or(Ok(()), JoinHandle::join).unwrap_or_else(|panic| panics.note(panic));
        // What a panic has left half done, in records or files, is not built upon: the log has everything.
        let last = panics.is_none().then(|| panics.catch(|| self.last_checkpoint(shared))).flatten();
        let stored = panics.catch(|| self.log.close().map_err(Error::from_log));
        let is_noted = panics.is_none() && matches!(stored, Some(Ok(())));
        let noted = is_noted.then(|| panics.catch(|| self.checkpointer.note_durable(&self.log))).flatten();
        panics.catch(|| self.checkpointer.release_files());
        [stored, noted, last].into_iter().flatten().collect()
    }

    /// That the log has not failed.
    pub(crate) fn failure(&self) -> Result<()> {
        self.log.failure().map_or(Ok(()), |failure| Err(Error::from_log(failure)))
    }

    /// Makes the checkpoint that closing asks for, or the one that was overdue since the opening and was not made, if it is worth its time.
    fn last_checkpoint<E: Engine>(&self, shared: &Shared<E>) -> Result<()> {
        let is_worth_waiting = || self.backlog.is_worth_waiting(shared.engine.statistics().memory.live_bytes);
        if self.log.failure().is_some() {
            Ok(())
        } else if self.makes_last_checkpoint {
            self.checkpointer.make_last(&*shared.engine, &self.log)
        } else {
            if self.checkpointer.is_overdue() && is_worth_waiting() {
                // Nobody has asked for it. If it fails, the next opening finds it overdue again.
                let _ = self.checkpointer.make_last(&*shared.engine, &self.log);
            }
            Ok(())
        }
    }

    pub(crate) fn statistics(&self) -> DurabilityStatistics {
        let condition = &self.checkpointer.condition;
        condition.observe(&self.log);
        DurabilityStatistics {
            degraded: condition.degraded(),
            ..DurabilityStatistics::new(
                &self.log.statistics(),
                self.checkpointer.statistics(),
                self.recovery.clone(),
            )
        }
    }
}

fn open_failed(error: OpenError) -> Error {
    Error::Open(Box::new(error))
}

fn replay_failed(error: ReplayError, directory: &Path) -> Error {
    match error {
        ReplayError::OutOfMemory => Error::OutOfMemory(Abort::out_of_memory(ensilo_engine::TableId::NONE)),
        error => open_failed(OpenError::Replay { file: directory.to_path_buf(), error }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use ensilo_test_disk::SimulatedDisk;

    use super::*;
    use crate::Database;

    #[test]
    fn who_has_the_files_sees_that_the_database_closes_while_the_last_checkpoint_waits_for_them() {
        let db: Database = Database::options().open_with(Arc::new(SimulatedDisk::new()), "/db").unwrap();
        let (shared, is_about_to_wait) = (db.shared(), AtomicBool::new(false));
        let durable = shared.durable().unwrap();
        let checkpointer = &durable.checkpointer;
        thread::scope(|scope| {
            let last = checkpointer.with_files(|_| {
                checkpointer.stop();
                let last = scope.spawn(|| {
                    is_about_to_wait.store(true, Ordering::Relaxed);
                    checkpointer.make_last(&*shared.engine, &durable.log)
                });
                let mut looks = 0;
                while looks < 10_000 {
                    assert!(checkpointer.is_stopped());
                    looks += u32::from(is_about_to_wait.load(Ordering::Relaxed));
                    thread::yield_now();
                }
                Ok(last)
            });
            last.unwrap().join().unwrap().unwrap();
        });
        assert!(matches!(durable.checkpoint(&*shared.engine), Err(Error::Closed)));
        assert!(matches!(checkpointer.with_files(|_| Ok(())), Err(Error::Closed)));
        assert_eq!(checkpointer.statistics().made, 1);
    }

    #[test]
    fn a_database_whose_epochs_are_used_up_is_refused() {
        let starting_from =
            |first_epoch| EpochOptions { first_epoch, epochs_per_snapshot: 1024, ..EpochOptions::default() };
        let last_start = (Epoch::LAST.get() / 1024) * 1024;
        assert!(check_epochs(&starting_from(Epoch::new(last_start))).is_ok());
        for first in [last_start + 1, Epoch::LAST.get(), Epoch::LAST.get() + 1] {
            let refused = check_epochs(&starting_from(Epoch::new(first))).unwrap_err();
            assert!(
                matches!(&refused, Error::Open(error) if matches!(**error, OpenError::Refused(_))),
                "{refused}"
            );
        }
    }
}
