//! Opening a database in a directory.
//!
//! # Source
//! SiloR (OSDI 2014) §5. Opening goes so:
//! ```text
//! lock, look          which files belong to the database, and up to which epoch all is stored
//! replay              checkpoint and log into stores, roughly in the order of epochs, by all cores
//! load the catalog    the system tables' rows become tables and indexes
//! rebuild indexes     their entries follow from the rows
//! begin a generation  new log files, then the manifest that names them: from here on a commit can be stored
//! ```
//! A database that answers while it is [loading](crate::loading) replays the log alone, and loads the other rows of the checkpoint
//! afterwards. What is odd about the checkpoint, as far as was looked, is left to an ordinary opening.
//!
//! Nothing before the last step changes what the files mean: after a crash in between, opening begins anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ensilo_disk::Disk;
use ensilo_engine::{ColdPlace, Engine, EngineOptions, Fault, Replayer};
use ensilo_epoch::{Advance, Epoch, EpochOptions};
use ensilo_log::{
    DatabaseFiles, EpochClock, ForeignAfter, Found, GenerationOptions, Log, LogOptions, OpenError,
    ReadOnlyFiles, ReplayError,
};

use super::checkpointer::Checkpointer;
use super::kept_room::{KeptRoom, bytes_of_rows};
use super::log_backlog::LogBacklog;
use super::next_recovery::{NextRecovery, RecoveryRates};
use super::read_only::ReadOnly;
use super::statistics::RecoveryStatistics;
use super::{Durable, progress};
use crate::error::{Abort, NO_MEMORY_FOR_ROW, Name, UNREADABLE_ROW};
use crate::loading::Loads;
use crate::options::{EPOCH_INTERVAL_MAX, Options};
use crate::shared::DatabaseShared;
use crate::trace;
use crate::{Error, Result};

/// Where a snapshot comes, epochs go on at the next multiple. Epochs last for 24 years also if in each second
/// ten thousand go by and a hundred snapshots are taken.
const EPOCHS_PER_SNAPSHOT: u64 = 128;

/// Opens the database in `directory`, or makes it.
pub(crate) fn to_write<E: Engine>(
    options: Options,
    disk: Arc<dyn Disk>,
    directory: PathBuf,
) -> Result<DatabaseShared<E>> {
    let mut found = ensilo_log::inspect(&disk, &directory).map_err(Error::from_open)?;
    #[cfg(feature = "live-statistics")]
    if options.live_statistics {
        // Before anything that takes long or changes files; the directory is locked.
        crate::live_statistics::check(&directory)?;
    }
    if E::FAULT == Some(Fault::ReplayPastDurableEpoch) {
        found.plant_replay_past_durable_epoch();
    }
    if let Some(bytes) = options.durable.change_feed {
        found.keep_changes(bytes);
    }
    if let Some(epoch) = options.durable.give_up_after {
        found.give_up_after(epoch).map_err(Error::from_open)?;
    }
    let mut engine_options = engine_options(&options, &found);
    let cold_place = ColdPlace::new(Arc::clone(&disk), directory.join("cold"));
    // Also if no row will leave memory now; the directory is locked.
    cold_place.remove_leftovers();
    let room = KeptRoom::new(Arc::clone(&cold_place.kept_free_bytes), &options);
    if E::EVICTS && options.memory_limit_bytes.is_some() {
        engine_options.cold_place = Some(cold_place);
    }
    check_epochs(&engine_options.epochs)?;
    let shared = DatabaseShared::<E>::new(options, engine_options)?;
    let (recovery, loads) = recover(&shared, &found, &directory)?;
    if let Some(id) = shared.options.row_ids_behind {
        shared.row_ids.pass_over(id);
    }
    shared.row_ids.follow(shared.engine.epochs());
    let durable = begin_generation(&shared, found, disk, &directory, recovery.clone(), room)?;
    shared.set_durable(durable);
    trace::opened(&directory, &recovery, false);
    begin_to_load(&shared, loads);
    Ok(shared)
}

/// Opens the database in `directory` for reading alone.
pub(crate) fn to_read<E: Engine>(
    options: Options,
    disk: Arc<dyn Disk>,
    directory: PathBuf,
) -> Result<DatabaseShared<E>> {
    if options.beside_writer {
        return to_read_beside(&options, &disk, &directory);
    }
    let is_looked_into = options.is_looked_into;
    let refused = |error: OpenError| if is_looked_into { error } else { error.of_read_only() };
    let files =
        ensilo_log::inspect_read_only(&disk, &directory).map_err(|error| Error::from_open(refused(error)))?;
    let (shared, recovery, loads) = read::<E>(options, &files, &directory)?;
    let log = Log::read_only(disk, Arc::clone(shared.engine.epochs()));
    shared.set_read_only(ReadOnly::new(log, files, recovery));
    begin_to_load(&shared, loads);
    Ok(shared)
}

/// How often files are found and replayed beside a writer. Once suffices where files that are open can be read although they were removed.
const BESIDE_ATTEMPTS_MAX: u32 = 3;

/// Opens the database in `directory` for reading alone, whether or not another process has it open.
fn to_read_beside<E: Engine>(
    options: &Options,
    disk: &Arc<dyn Disk>,
    directory: &Path,
) -> Result<DatabaseShared<E>> {
    let mut attempt = 1;
    loop {
        let files = ensilo_log::inspect_beside(disk, directory).map_err(Error::from_open)?;
        match read::<E>(options.clone(), &files, directory) {
            Err(Error::Open(_)) if attempt < BESIDE_ATTEMPTS_MAX && files.were_replaced(&**disk) => {
                attempt += 1
            }
            Err(error) => return Err(error),
            Ok((shared, recovery, loads)) => {
                let log = Log::read_only(Arc::clone(disk), Arc::clone(shared.engine.epochs()));
                shared.set_read_only(ReadOnly::beside_writer(log, &files, recovery));
                begin_to_load(&shared, loads);
                return Ok(shared);
            }
        }
    }
}

/// A database with all that was found in files, how that was read, and what is to be loaded later.
type Read<E> = (DatabaseShared<E>, RecoveryStatistics, Option<Loads<E>>);

/// Puts everything that was found into a new database.
fn read<E: Engine>(options: Options, files: &ReadOnlyFiles, directory: &Path) -> Result<Read<E>> {
    let mut engine_options = options.engine_options();
    engine_options.epochs.first_epoch = Epoch::new(files.found().largest_epoch().get() + 1);
    check_epochs(&engine_options.epochs)?;
    let shared = DatabaseShared::<E>::new(options, engine_options)?;
    let (recovery, loads) = recover(&shared, files.found(), directory)?;
    trace::opened(directory, &recovery, true);
    Ok((shared, recovery, loads))
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

/// Checks whether there are epochs left to commit in.
fn check_epochs(epochs: &EpochOptions) -> Result<()> {
    if epochs.start() < Epoch::LAST {
        return Ok(());
    }
    Err(Error::from_open(OpenError::Refused(format!(
        "the numbers of epochs are used up: the next opening would begin with {}, and the last one is {}. Put the rows \
         into a new database: `ensilo log dump` prints what is in the files",
        epochs.start(),
        Epoch::LAST,
    ))))
}

/// While a database is opened it may take so many times its memory limit: the rows of the checkpoint and what
/// the log says of them, deletions among it, are there at once. Rows that were committed within the limit can
/// then be read back within the same one.
const RECOVERY_MEMORY_FACTOR: u64 = 2;

/// Puts everything that is on disk into the engine.
fn recover<E: Engine>(
    shared: &DatabaseShared<E>,
    found: &Found,
    directory: &Path,
) -> Result<(RecoveryStatistics, Option<Loads<E>>)> {
    let pool = shared.engine.epochs().pool();
    let limit = pool.limit_bytes();
    pool.set_limit_bytes(limit.map(|limit| limit.saturating_mul(RECOVERY_MEMORY_FACTOR)));
    let recovered = replay_and_load(shared, found, directory);
    pool.set_limit_bytes(limit);
    recovered.map_err(|error| shared.explain(error))
}

/// Replays checkpoint and log, and makes tables and indexes of what they hold. With blocks of the checkpoint that
/// are to be loaded later, the log alone is replayed.
fn replay_and_load<E: Engine>(
    shared: &DatabaseShared<E>,
    found: &Found,
    directory: &Path,
) -> Result<(RecoveryStatistics, Option<Loads<E>>)> {
    let start = std::time::Instant::now();
    let threads = shared.options.durable.recovery_threads;
    let is_loaded_later = shared.options.answer_while_loading;
    let blocks = is_loaded_later.then(|| found.checkpoint_blocks(threads)).flatten();
    let replayer = shared.engine.replayer();
    let mut replayed = progress::shown(shared.options.on_recovery.as_ref(), |progress| {
        let replayed = match &blocks {
            Some(_) => found.replay_log(&replayer, threads, progress),
            None => found.replay(&replayer, threads, progress),
        };
        replayed.map_err(Error::from_open)
    })?;
    let recovered = replayer.finish().map_err(|error| replay_failed(error, directory))?;
    for store in recovered.stores {
        shared.records.add_recovered(store.id, store.rows);
    }
    trace::recovery_phase("replayed", start.elapsed());
    let mut loads = blocks.map(|blocks| Loads::new(shared, blocks, recovered.deleted));
    shared.load_catalog(loads.as_mut())?;
    trace::recovery_phase("catalog loaded", start.elapsed());
    shared.rebuild_indexes(threads)?;
    trace::recovery_phase("indexes made", start.elapsed());
    if let Some(reason) = shared.engine.unreadable_rows() {
        return Err(Error::from_open(OpenError::Refused(format!("{UNREADABLE_ROW}: {reason}"))));
    }
    if shared.engine.rows_left_out() > 0 {
        return Err(Error::from_open(OpenError::Refused(NO_MEMORY_FOR_ROW.into())));
    }
    replayed.checkpoint_bytes += loads.as_ref().map_or(0, Loads::bytes_at_once);
    Ok((RecoveryStatistics::new(start.elapsed(), &replayed), loads))
}

/// Loads in the background what was not loaded yet. The database can be closed from here on.
fn begin_to_load<E: Engine>(shared: &DatabaseShared<E>, loads: Option<Loads<E>>) {
    if let Some(loads) = loads {
        loads.start(&shared.loading, shared.options.on_recovery.clone());
    }
}

/// Makes new log files and starts the threads.
fn begin_generation<E: Engine>(
    shared: &DatabaseShared<E>,
    found: Found,
    disk: Arc<dyn Disk>,
    directory: &Path,
    recovery: RecoveryStatistics,
    room: KeptRoom,
) -> Result<Durable> {
    let options = &shared.options.durable;
    let directories = match &options.log_directories[..] {
        [] => vec![directory.join("log")],
        named => named.to_vec(),
    };
    let epochs = shared.engine.epochs();
    let log_options = log_options(&shared.options);
    let generation = GenerationOptions {
        directories: directories.clone(),
        file_bytes: log_options.first_file_bytes(),
        first_epoch: epochs.global_epoch(),
    };
    let (generation, files) = found.next_generation(&generation).map_err(Error::from_open)?;
    let covered = files.manifest().checkpoint.as_ref().map_or(Epoch::new(0), |entry| entry.begin_epoch);
    let log = Log::start(Arc::clone(&disk), generation, Arc::clone(epochs), &log_options)
        .map_err(Error::from_log)?;
    log.set_full_rows_before(covered);
    let backlog = LogBacklog::found(&options.checkpoint, earlier_logs(&files), &recovery);
    let rates = RecoveryRates::new(&recovery, options.recovery_threads, bytes_of_rows(&*shared.engine));
    let checkpoint = files.manifest().checkpoint.as_ref();
    let checkpoint_bytes = checkpoint.map_or(0, |entry| entry.parts.iter().map(|part| part.bytes).sum());
    let next_recovery = NextRecovery::new(rates, checkpoint_bytes, recovery.log_bytes);
    let hook = shared.options.on_event.clone();
    let load = Arc::clone(&shared.loading.state);
    let checkpointer = Checkpointer::new(options, directories, hook, files, load, room, next_recovery);
    let checkpointer = Arc::new(checkpointer);
    checkpointer.keep_room(&*shared.engine, &log);
    if backlog != LogBacklog::Short || checkpointer.is_log_long(&*shared.engine, &log) {
        checkpointer.set_overdue();
    }
    log.watch(Box::new({
        let checkpointer = Arc::clone(&checkpointer);
        move || checkpointer.call()
    }));
    let thread = start_checkpointer(Arc::clone(&shared.engine), Arc::clone(&log), Arc::clone(&checkpointer))?;
    Ok(Durable {
        log,
        disk,
        directory: directory.to_path_buf(),
        keeps_changes: options.change_feed.is_some(),
        checkpointer,
        thread_id: thread.thread().id(),
        thread: Mutex::new(Some(thread)),
        makes_last_checkpoint: options.checkpoint.at_close,
        backlog,
        recovery,
    })
}

/// Returns how many loggers of earlier openings have left files that are still needed, however many each has.
fn earlier_logs(files: &DatabaseFiles) -> usize {
    let logs: BTreeSet<_> =
        files.manifest().earlier.iter().map(|file| (file.name.generation, file.name.logger)).collect();
    logs.len()
}

fn log_options(options: &Options) -> LogOptions {
    let durable = &options.durable;
    LogOptions {
        buffers_per_logger: durable.log_buffers,
        file_bytes: durable.log_file_bytes,
        compression: durable.log_compression,
        whole_rows: durable.change_feed.is_some(),
        logs_operations: durable.logs_operations,
        clock: match options.epoch_interval {
            Some(interval) => EpochClock::Fixed(interval),
            None => EpochClock::ByLoggers { max: EPOCH_INTERVAL_MAX },
        },
        ..LogOptions::default()
    }
}

fn start_checkpointer<E: Engine>(
    engine: Arc<E>,
    log: Arc<Log>,
    checkpointer: Arc<Checkpointer>,
) -> Result<JoinHandle<()>> {
    // Not by the thread itself: what is logged before it runs counts as well.
    let schedule = checkpointer.schedule(&log);
    let thread = thread::Builder::new().name("ensilo-checkpoint".into());
    thread
        .spawn(move || {
            let _working = ForeignAfter::default();
            checkpointer.run(&*engine, &log, schedule);
        })
        .map_err(|error| Error::CheckpointFailed(Name::new(format!("no thread for it: {error}"))))
}

fn replay_failed(error: ReplayError, directory: &Path) -> Error {
    match error {
        // Rows may leave again: what is loaded in the background is tried again.
        ReplayError::OutOfMemory | ReplayError::RowsCannotLeave(_) => {
            Error::OutOfMemory(Abort::out_of_memory(ensilo_engine::TableId::NONE))
        }
        error => Error::from_open(OpenError::Replay { file: directory.to_path_buf(), error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
