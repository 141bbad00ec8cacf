//! Checkpoints: when one is made, and how.
//!
//! # Source
//! SiloR (OSDI 2014) §4. A checkpoint that begins in epoch `e_l` has every row as it was when the walk came
//! by, except those that changed in `e_l` or later: these are in the log. It counts once everything up to its
//! end, `e_h`, is durable.
//!
//! # Memory ordering
//! The log has the whole row of whatever changes in `e_l` or later. That is so because every commit of these
//! epochs sees the checkpoint's beginning: `full_rows_before` is set to "all" before this thread's own tick,
//! and every transaction that commits in the tick's epoch or later reads that epoch with Acquire; `e_l` is an
//! epoch after that tick.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_disk::Disk;
use ensilo_engine::{Engine, Failpoint};
use ensilo_epoch::Epoch;
use ensilo_log::{
    CheckpointPlace, CheckpointWriterOptions, DatabaseFiles, FinishedCheckpoint, InstalledCheckpoint, Log,
    OpenError, WrittenParts,
};
use ensilo_sync::sync;

use super::checkpoint::Checkpoint;
use super::condition::{Condition, EventHook};
use super::kept_room::KeptRoom;
use super::next_recovery::{NextRecovery, RecoveryForecast};
use super::options::{CheckpointOptions, DurableOptions};
use super::rate_limit::RateLimit;
use super::schedule::{LogGrowth, Room, Schedule};
use super::statistics::CheckpointStatistics;
use super::walk::{Walk, io_failed};
use crate::error::{NO_MEMORY_FOR_ROW, Name, UNREADABLE_ROW};
use crate::loading::LoadState;
use crate::mutex::lock;
use crate::trace;
use crate::{Error, Result};

/// So often the checkpointer looks whether it is time.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// So often the manifest is brought up to what is stored, if anything was.
const NOTE_INTERVAL: Duration = Duration::from_secs(10);

/// Makes checkpoints, one at a time.
pub(crate) struct Checkpointer {
    pub(super) options: CheckpointOptions,
    disk: Arc<dyn Disk>,
    log_file_bytes: u64,
    /// Where the log is written.
    log_directories: Vec<PathBuf>,
    /// Where checkpoints are written.
    directory: PathBuf,
    /// Held while a checkpoint or a backup is made. `None` once the database is closed.
    files: sync::Mutex<Option<DatabaseFiles>>,
    /// Whether a checkpoint or backup under way, and the thread, are to end. Never unset.
    is_stopped: AtomicBool,
    /// Whether the thread was called since it looked last.
    is_called: Mutex<bool>,
    wake: Condvar,
    counters: Counters,
    /// Whether the log that the opening has found is to be replaced by a checkpoint.
    is_overdue: AtomicBool,
    pub(super) condition: Condition,
    /// No checkpoint is made before everything is in memory (L4 of loading).
    load: Arc<LoadState>,
    kept_room: KeptRoom,
    next_recovery: NextRecovery,
}

/// A checkpoint that is being made.
struct CheckpointJob<'m, E> {
    engine: &'m E,
    log: &'m Log,
    rate_limit: RateLimit,
    /// Whether closing makes it: any other one ends when the database closes.
    is_last: bool,
}

/// What checkpoints have come to.
#[derive(Debug, Default)]
struct Counters {
    made: AtomicU64,
    failed: AtomicU64,
    is_under_way: AtomicBool,
    bytes_written: AtomicU64,
    last_bytes: AtomicU64,
    last_milliseconds: AtomicU64,
}

impl Checkpointer {
    pub(super) fn new(
        options: &DurableOptions,
        log_directories: Vec<PathBuf>,
        hook: Option<EventHook>,
        files: DatabaseFiles,
        load: Arc<LoadState>,
        kept_room: KeptRoom,
        next_recovery: NextRecovery,
    ) -> Self {
        Checkpointer {
            load,
            kept_room,
            next_recovery,
            options: options.checkpoint,
            log_file_bytes: options.log_file_bytes,
            log_directories,
            disk: Arc::clone(files.disk()),
            directory: files.directory().to_path_buf(),
            files: sync::Mutex::new(Some(files)),
            is_stopped: AtomicBool::new(false),
            is_called: Mutex::new(false),
            wake: Condvar::new(),
            counters: Counters::default(),
            is_overdue: AtomicBool::new(false),
            condition: Condition::new(hook),
        }
    }

    /// Makes a checkpoint now, after the one under way if there is one.
    ///
    /// # Errors
    /// [`Error::CheckpointFailed`], [`Error::LogFailed`], [`Error::Closed`].
    pub(crate) fn checkpoint<E: Engine>(&self, engine: &E, log: &Log) -> Result<Checkpoint> {
        // Before the files are locked: a backup can be made meanwhile.
        self.load.wait().map_err(not_loaded)?;
        self.checkpoint_within(self.options.spread_max() / 2, engine, log, false)
    }

    /// Makes a checkpoint that takes about so long, if that is not too slow or too fast for the options.
    fn checkpoint_within<E: Engine>(
        &self,
        within: Duration,
        engine: &E,
        log: &Log,
        is_last: bool,
    ) -> Result<Checkpoint> {
        let made = self.checkpoint_alone(within, engine, log, is_last)?;
        trace::checkpoint_made(&made);
        Ok(made)
    }

    /// Makes a checkpoint when no other one and no backup is made.
    fn checkpoint_alone<E: Engine>(
        &self,
        within: Duration,
        engine: &E,
        log: &Log,
        is_last: bool,
    ) -> Result<Checkpoint> {
        let mut files = self.lock_files();
        let files = files.as_mut().ok_or(Error::Closed)?;
        self.counters.is_under_way.store(true, Ordering::Relaxed);
        let rate_limit = RateLimit::new(self.options.bytes_per_second(self.expected_bytes(engine), within));
        let made = self.make(files, &CheckpointJob { engine, log, rate_limit, is_last });
        self.counters.is_under_way.store(false, Ordering::Relaxed);
        let outcome = if made.is_ok() { &self.counters.made } else { &self.counters.failed };
        outcome.fetch_add(1, Ordering::Relaxed);
        self.condition.note_checkpoint(&made);
        if made.is_ok() {
            self.is_overdue.store(false, Ordering::Relaxed);
        }
        // Whether it was made or given up, files are gone.
        log.retry_files();
        self.keep_room(engine, log);
        made
    }

    fn make<E: Engine>(&self, files: &mut DatabaseFiles, job: &CheckpointJob<'_, E>) -> Result<Checkpoint> {
        assert!(self.load.is_whole(), "a checkpoint without rows of the one before");
        let start = Instant::now();
        // Before it is written in vain.
        check_readable(job.engine)?;
        let log_bytes = job.log.statistics().written_bytes;
        let begin_epoch = self.begin(job)?;
        E::reached(Failpoint::CheckpointBegun);
        let place = files.begin_checkpoint(begin_epoch).map_err(failed)?;
        match self.write_and_install(files, place.clone(), job) {
            Ok(installed) => {
                E::reached(Failpoint::CheckpointInstalled);
                let made = Checkpoint::new(&installed, start.elapsed());
                self.next_recovery.note_checkpoint(made.bytes, log_bytes);
                self.counters.last_bytes.store(made.bytes, Ordering::Relaxed);
                self.counters.last_milliseconds.store(made.duration.as_millis() as u64, Ordering::Relaxed);
                Ok(made)
            }
            Err(error) => {
                // What is left goes with the next checkpoint or opening.
                let _ = files.give_up_checkpoint(&place);
                Err(error)
            }
        }
    }

    /// Gives `work` the files as they are: none is removed and no checkpoint is made meanwhile. One under way
    /// is waited for.
    ///
    /// # Errors
    /// [`Error::Closed`]; that of `work`.
    pub(super) fn with_files<R>(&self, work: impl FnOnce(&DatabaseFiles) -> Result<R>) -> Result<R> {
        let files = self.lock_files();
        if self.is_stopped() {
            return Err(Error::Closed);
        }
        work(files.as_ref().ok_or(Error::Closed)?)
    }

    /// Returns whether the database is being closed. It stays so.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Chooses `e_l`, and waits until all commits of earlier epochs are complete.
    fn begin<E: Engine>(&self, job: &CheckpointJob<'_, E>) -> Result<Epoch> {
        self.check_running(job)?;
        let (epochs, log) = (job.engine.epochs(), job.log);
        log.set_full_rows_before(Epoch::MAX);
        epochs.advance();
        let begin = epochs.global_epoch();
        log.set_full_rows_before(begin);
        // What is in the files of before will not be needed.
        log.rotate();
        while epochs.complete_frontier() < begin {
            self.check_running(job)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(begin)
    }

    fn write_and_install<E: Engine>(
        &self,
        files: &mut DatabaseFiles,
        place: CheckpointPlace,
        job: &CheckpointJob<'_, E>,
    ) -> Result<InstalledCheckpoint> {
        let left_out_before = job.engine.rows_left_out();
        let written = self.write(&place, job)?;
        check_readable(job.engine)?;
        if job.engine.rows_left_out() > left_out_before {
            let text = format!("it would leave rows out: {NO_MEMORY_FOR_ROW}");
            return Err(Error::CheckpointFailed(Name::new(text)));
        }
        E::reached(Failpoint::CheckpointWritten);
        let (engine, log) = (job.engine, job.log);
        let end_epoch = engine.epochs().global_epoch();
        log.wait_durable(end_epoch).map_err(Error::from_log)?;
        let finished = FinishedCheckpoint { place, end_epoch, written };
        let installed = files.install_checkpoint(finished, log.durable_epoch());
        installed.map_err(|error| failed(give_up_if_taken_over(error, log)))
    }

    fn write<E: Engine>(
        &self,
        place: &CheckpointPlace,
        job: &CheckpointJob<'_, E>,
    ) -> Result<Vec<WrittenParts>> {
        let checkpointers = self.options.threads;
        let options = CheckpointWriterOptions {
            parts: (self.options.parts / checkpointers).max(1),
            compression: self.options.compression,
            sync_bytes: self.options.sync_bytes,
        };
        let failed = |error| io_failed(place, &error);
        let first = place.writer(0, options).map_err(failed)?;
        let others = (1..checkpointers).map(|checkpointer| place.writer(checkpointer, options));
        let others = others.collect::<io::Result<_>>().map_err(failed)?;
        let copies = place.writer_of_copies(options).map_err(failed)?;
        let bytes_before = self.counters.bytes_written.load(Ordering::Relaxed);
        let expected_bytes = self.next_bytes(job.engine);
        let check = |bytes| {
            self.kept_room.keep(expected_bytes.saturating_sub(bytes), job.log);
            self.counters.bytes_written.fetch_max(bytes_before + bytes, Ordering::Relaxed);
            job.rate_limit.wait(bytes, || self.check_running(job).is_err());
            self.check_running(job)
        };
        Walk::new(job.engine, place, checkpointers as usize, check).write(first, others, copies)
    }

    /// About how many bytes the next checkpoint will have.
    fn expected_bytes<E: Engine>(&self, engine: &E) -> u64 {
        match self.counters.last_bytes.load(Ordering::Relaxed) {
            0 => bytes_of_rows(engine),
            last => last,
        }
    }

    /// How many bytes the next checkpoint needs at most, about: the rows may have become more since the last one.
    fn next_bytes<E: Engine>(&self, engine: &E) -> u64 {
        let bytes = self.expected_bytes(engine).max(bytes_of_rows(engine));
        bytes + bytes / 4
    }

    /// Has rows that leave memory leave free what log and next checkpoint need.
    pub(super) fn keep_room<E: Engine>(&self, engine: &E, log: &Log) {
        self.kept_room.keep(self.next_bytes(engine), log);
    }

    /// Returns how much room the disks have.
    fn room<E: Engine>(&self, engine: &E, log: &Log) -> Room {
        let free_bytes = |directory: &PathBuf| self.disk.free_bytes(directory).ok().flatten();
        Room {
            is_log_short: log.is_short_of_space(),
            free_bytes: free_bytes(&self.directory),
            log_free_bytes: self.log_directories.iter().filter_map(free_bytes).min(),
            expected_bytes: self.expected_bytes(engine),
            log_file_bytes: self.log_file_bytes,
        }
    }

    fn log_growth<E: Engine>(&self, engine: &E, log: &Log) -> LogGrowth {
        LogGrowth {
            written_bytes: log.statistics().written_bytes,
            due_bytes: self.next_recovery.log_bytes_due(
                &self.options,
                self.expected_bytes(engine),
                bytes_of_rows(engine),
            ),
        }
    }

    /// Returns whether the log that the opening has found already takes longer to recover from than it should.
    pub(super) fn is_log_long<E: Engine>(&self, engine: &E, log: &Log) -> bool {
        self.log_growth(engine, log).due_bytes == 0
    }

    /// Returns what a recovery would take now.
    pub(super) fn next_recovery<E: Engine>(&self, engine: &E, log: &Log) -> RecoveryForecast {
        self.next_recovery.forecast(log.statistics().written_bytes, bytes_of_rows(engine))
    }

    fn check_running<E>(&self, job: &CheckpointJob<'_, E>) -> Result<()> {
        if self.is_stopped() && !job.is_last {
            return Err(Error::Closed);
        }
        job.log.failure().map_or(Ok(()), |failure| Err(Error::from_log(failure)))
    }

    /// Lets a checkpoint be made soon, unless none is made by itself: the log that the opening has found is
    /// long.
    pub(super) fn set_overdue(&self) {
        self.is_overdue.store(self.options.is_automatic, Ordering::Relaxed);
    }

    /// Returns whether a checkpoint is overdue and none was made since.
    pub(super) fn is_overdue(&self) -> bool {
        self.is_overdue.load(Ordering::Relaxed)
    }

    /// Removes the log files that were made ahead for nothing.
    pub(super) fn remove_unused_files(&self, log: &Log) {
        if let Some(files) = self.lock_files().as_mut() {
            files.remove_unused(&log.take_unused_files());
        }
    }

    /// Writes into the manifest how far everything is stored.
    ///
    /// # Errors
    /// [`Error::CheckpointFailed`]; what is stored is stored.
    pub(super) fn note_durable(&self, log: &Log) -> Result<()> {
        let mut files = self.lock_files();
        let noted = files.as_mut().ok_or(Error::Closed)?.note_durable(log.durable_epoch());
        noted.map_err(|error| failed(give_up_if_taken_over(error, log)))
    }

    /// Returns the schedule of checkpoints, which counts what is logged from now on.
    pub(super) fn schedule(&self, log: &Log) -> Schedule {
        Schedule::new(self.options, log.statistics().written_bytes, self.is_overdue())
    }

    /// Makes checkpoints when they are due, notes how far everything is stored, and reports what happens,
    /// until stopped.
    pub(super) fn run<E: Engine>(&self, engine: &E, log: &Log, mut schedule: Schedule) {
        let mut noted = Instant::now();
        loop {
            self.condition.observe(log);
            self.condition.observe_load(&self.load);
            self.condition.observe_eviction(engine.eviction_failure());
            self.condition.report();
            self.keep_room(engine, log);
            if self.is_stopped() {
                return;
            }
            let is_running = log.failure().is_none();
            let is_possible = is_running && self.load.is_whole();
            if is_running && noted.elapsed() >= NOTE_INTERVAL {
                noted = Instant::now();
                // What went wrong is tried again after the same time.
                let _ = self.note_durable(log);
            }
            schedule.note_overdue(self.is_overdue());
            // What is due while rows are being loaded is so afterwards.
            let due = is_possible.then(|| schedule.due(self.log_growth(engine, log), self.room(engine, log)));
            match due.flatten() {
                // What went wrong is noted, and tried again when the next one is due.
                Some(within) => schedule.note(self.checkpoint_within(within, engine, log, false).is_ok()),
                None => self.wait(),
            }
        }
    }

    /// Waits a while, or until called.
    fn wait(&self) {
        let is_called = lock(&self.is_called);
        let waited = self.wake.wait_timeout_while(is_called, LOOK_INTERVAL, |is_called| !*is_called);
        let (mut is_called, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *is_called = false;
    }

    /// Lets the thread look at once whether there is something to do.
    pub(super) fn call(&self) {
        *lock(&self.is_called) = true;
        self.wake.notify_all();
    }

    /// Ends the thread, and a checkpoint or backup under way. None begins from now on, but the last
    /// checkpoint.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.call();
    }

    /// Makes the last checkpoint, when all commits have ended; none where rows of the one before were never
    /// loaded.
    pub(super) fn make_last<E: Engine>(&self, engine: &E, log: &Log) -> Result<()> {
        if !self.load.is_whole() {
            return Ok(());
        }
        // Nobody is held up by it any more.
        self.checkpoint_within(Duration::ZERO, engine, log, true).map(|_| ())
    }

    /// Lets others open the database.
    pub(super) fn release_files(&self) {
        drop(self.lock_files().take());
    }

    pub(super) fn load(&self) -> &LoadState {
        &self.load
    }

    pub(crate) fn statistics(&self) -> CheckpointStatistics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CheckpointStatistics {
            made: get(&self.counters.made),
            failed: get(&self.counters.failed),
            is_under_way: self.counters.is_under_way.load(Ordering::Relaxed),
            bytes_written: get(&self.counters.bytes_written),
            last_bytes: get(&self.counters.last_bytes),
            last_duration: Duration::from_millis(get(&self.counters.last_milliseconds)),
        }
    }

    fn lock_files(&self) -> sync::MutexGuard<'_, Option<DatabaseFiles>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns about how many bytes of keys and rows there are: about half of what memory takes are some, and all that has left it.
pub(super) fn bytes_of_rows<E: Engine>(engine: &E) -> u64 {
    let statistics = engine.statistics();
    statistics.memory.live_bytes / 2 + statistics.cold.row_bytes
}

/// Checks that a walk finds all rows that there is memory for.
fn check_readable<E: Engine>(engine: &E) -> Result<()> {
    engine.unreadable_rows().map_or(Ok(()), |reason| {
        let text = format!("it would leave rows out. {UNREADABLE_ROW}: {reason}");
        Err(Error::CheckpointFailed(Name::new(text)))
    })
}

/// Ends the log if somebody else has taken over its files.
fn give_up_if_taken_over(error: OpenError, log: &Log) -> OpenError {
    if let OpenError::TakenOver { file } = &error {
        log.give_up(file);
    }
    error
}

/// Turns what keeps rows from being loaded into what keeps a checkpoint from being made.
fn not_loaded(error: Error) -> Error {
    match error {
        Error::Closed => Error::Closed,
        error => Error::CheckpointFailed(Name::new(format!("not all rows are in memory: {error}"))),
    }
}

fn failed(error: OpenError) -> Error {
    Error::CheckpointFailed(Name::new(error.to_string()))
}
