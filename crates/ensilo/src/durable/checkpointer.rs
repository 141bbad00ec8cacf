//! Checkpoints: who makes one, and one at a time.
//!
//! How a checkpoint is made stands in [`make`].

mod make;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_disk::Disk;
use ensilo_engine::Engine;
use ensilo_log::{DatabaseFiles, Log, OpenError};
use ensilo_sync::sync;

use self::make::CheckpointJob;

use super::checkpoint::Checkpoint;
use super::checkpoint_counters::CheckpointCounters;
use super::condition::{Condition, EventHook};
use super::kept_room::{KeptRoom, bytes_of_rows, expected_bytes};
use super::next_recovery::{NextRecovery, RecoveryForecast};
use super::options::{CheckpointOptions, DurableOptions};
use super::rate_limit::RateLimit;
use super::schedule::{LogGrowth, Logged, Room, Schedule};
use super::statistics::CheckpointStatistics;
use crate::error::Name;
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
    /// Whether the thread has found them in use when a checkpoint was due: backups, one after the other, let it go first. Relaxed: a hint.
    is_waiting: AtomicBool,
    /// What says that somebody else has taken over the files, until the log has ended for that.
    taken_over: Mutex<Option<PathBuf>>,
    /// Whether a checkpoint or backup under way, and the thread, are to end. Never unset.
    is_stopped: AtomicBool,
    /// Whether the thread was called since it looked last.
    is_called: Mutex<bool>,
    wake: Condvar,
    counters: CheckpointCounters,
    /// Whether the log that the opening has found is to be replaced by a checkpoint.
    is_overdue: AtomicBool,
    pub(super) condition: Condition,
    /// No checkpoint is made before everything is in memory (L4 of loading).
    load: Arc<LoadState>,
    kept_room: KeptRoom,
    next_recovery: NextRecovery,
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
            is_waiting: AtomicBool::new(false),
            taken_over: Mutex::new(None),
            is_stopped: AtomicBool::new(false),
            is_called: Mutex::new(false),
            wake: Condvar::new(),
            counters: CheckpointCounters::default(),
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

    /// Makes a checkpoint that takes about so long, if that is not too slow or too fast for the options, when no other
    /// one and no backup is made.
    fn checkpoint_within<E: Engine>(
        &self,
        within: Duration,
        engine: &E,
        log: &Log,
        is_last: bool,
    ) -> Result<Checkpoint> {
        let made = self.checkpoint_of(&mut self.lock_files(), within, engine, log, is_last);
        self.end_if_taken_over(log);
        made.iter().for_each(trace::checkpoint_made);
        made
    }

    /// Makes a checkpoint of files that are locked.
    fn checkpoint_of<E: Engine>(
        &self,
        files: &mut Option<DatabaseFiles>,
        within: Duration,
        engine: &E,
        log: &Log,
        is_last: bool,
    ) -> Result<Checkpoint> {
        let files = files.as_mut().ok_or(Error::Closed)?;
        let _under_way = self.counters.begin();
        let rate_limit = RateLimit::new(self.options.bytes_per_second(self.expected_bytes(engine), within));
        let made = self.make(files, &CheckpointJob { engine, log, rate_limit, is_last });
        self.counters.note(&made);
        self.condition.note_checkpoint(&made);
        if made.is_ok() {
            self.is_overdue.store(false, Ordering::Relaxed);
        }
        // Whether it was made or given up, files are gone.
        log.retry_files();
        self.keep_room(engine, log);
        made
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

    /// Returns whether a checkpoint is due and waits for the files.
    pub(super) fn has_waiting_checkpoint(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    /// Lets a checkpoint begin that waits for the files, within two looks of the thread.
    pub(super) fn let_waiting_checkpoint_begin(&self) {
        // One that waits is known of when what it waits for has ended.
        drop(self.lock_files());
        self.call();
        let start = Instant::now();
        while self.has_waiting_checkpoint() && !self.is_stopped() && start.elapsed() < 2 * LOOK_INTERVAL {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns whether the database is being closed. It stays so.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// About how many bytes the next checkpoint will have.
    fn expected_bytes<E: Engine>(&self, engine: &E) -> u64 {
        expected_bytes(engine, self.counters.last_bytes())
    }

    /// How many bytes the next checkpoint needs at most, about: the rows may have become more since the last one, and become more until memory
    /// is full.
    fn next_bytes<E: Engine>(&self, engine: &E) -> u64 {
        let bytes = self.expected_bytes(engine).max(bytes_of_rows(engine));
        let growth_bytes = self.kept_room.growth_bytes(engine.statistics().memory.live_bytes);
        (bytes + bytes / 4).saturating_add(growth_bytes)
    }

    /// Has rows that leave memory leave free what log and next checkpoint need: the log alone as long as rows are being loaded, before which no
    /// checkpoint is made.
    pub(super) fn keep_room<E: Engine>(&self, engine: &E, log: &Log) {
        let checkpoint_bytes = if self.load.is_whole() { self.next_bytes(engine) } else { 0 };
        self.kept_room.keep(checkpoint_bytes, log);
    }

    /// Returns how much room the disks have.
    fn room<E: Engine>(&self, engine: &E, log: &Log) -> Room {
        let free_bytes = |directory: &PathBuf| self.disk.free_bytes(directory).ok().flatten();
        let here_bytes = free_bytes(&self.directory);
        let is_room_kept = here_bytes.is_some_and(|bytes| self.kept_room.is_needed(bytes));
        Room {
            is_log_short: log.is_short_of_space(),
            is_eviction_refused: is_room_kept && engine.eviction_failure().is_some(),
            free_bytes: here_bytes,
            log_free_bytes: self.log_directories.iter().filter_map(free_bytes).min(),
            expected_bytes: self.expected_bytes(engine),
            log_file_bytes: self.log_file_bytes,
        }
    }

    pub(super) fn log_growth<E: Engine>(&self, engine: &E, log: &Log) -> LogGrowth {
        LogGrowth {
            written: Logged::of(log),
            found_bytes: self.next_recovery.found_bytes(),
            replaced: self.next_recovery.replaced(),
            checkpoints: self.counters.made(),
            due_bytes: self.next_recovery.log_bytes_due(
                &self.options,
                self.expected_bytes(engine),
                bytes_of_rows(engine),
            ),
            is_overdue: self.is_overdue(),
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
        let noted = self.note_durable_in(self.lock_files().as_mut(), log);
        self.end_if_taken_over(log);
        noted
    }

    fn note_durable_in(&self, files: Option<&mut DatabaseFiles>, log: &Log) -> Result<()> {
        let noted = files.ok_or(Error::Closed)?.note_durable(log.durable_epoch());
        noted.map_err(|error| failed(self.note_if_taken_over(error)))
    }

    /// Notes that somebody else has taken over the files of the log, if that is the error.
    fn note_if_taken_over(&self, error: OpenError) -> OpenError {
        if let OpenError::TakenOver { file } = &error {
            *lock(&self.taken_over) = Some(file.clone());
        }
        error
    }

    /// Ends the log if somebody else has taken over its files, while these are not locked: it calls closures of the program, which may make a backup.
    fn end_if_taken_over(&self, log: &Log) {
        let file = lock(&self.taken_over).take();
        file.iter().for_each(|file| log.give_up(file));
    }

    /// Returns the schedule of checkpoints, which counts what is logged from now on.
    pub(super) fn schedule(&self, log: &Log) -> Schedule {
        Schedule::new(self.options, Logged::of(log), Instant::now())
    }

    /// Makes checkpoints when they are due, notes how far everything is stored, and reports what happens,
    /// until stopped. Waits for nobody who makes a checkpoint or a backup.
    pub(super) fn run<E: Engine>(&self, engine: &E, log: &Log, mut schedule: Schedule) {
        let mut noted = Instant::now();
        loop {
            self.condition.observe(log);
            self.condition.observe_load(&self.load);
            self.condition.observe_eviction(engine.eviction_failure());
            self.condition.report();
            if self.counters.is_under_way() {
                // It has written a part of what it needs, and says so itself.
                self.kept_room.follow(log);
            } else {
                self.keep_room(engine, log);
            }
            if self.is_stopped() {
                return;
            }
            if log.failure().is_none() && noted.elapsed() >= NOTE_INTERVAL && self.try_note_durable(log) {
                noted = Instant::now();
            }
            if !self.make_if_due(engine, log, &mut schedule) {
                self.wait();
            }
        }
    }

    /// Makes a checkpoint if one is due and the files are not in use. Returns whether to look again at once.
    fn make_if_due<E: Engine>(&self, engine: &E, log: &Log, schedule: &mut Schedule) -> bool {
        let state = || (self.log_growth(engine, log), self.room(engine, log));
        // What is due while rows are being loaded is so afterwards.
        let is_possible = log.failure().is_none() && self.load.is_whole();
        let due = is_possible.then(state);
        let due = due.and_then(|(growth, room)| schedule.due(Instant::now(), growth, room));
        let is_due = due.is_some();
        let files = is_due.then(|| self.try_lock_files()).flatten();
        self.is_waiting.store(is_due && files.is_none(), Ordering::Relaxed);
        let Some(mut files) = files else { return false };
        // One may have been made in between.
        let ((growth, room), now) = (state(), Instant::now());
        let Some(within) = schedule.due(now, growth, room) else { return true };
        let tried = schedule.begin(now, growth, room);
        let made = self.checkpoint_of(&mut files, within, engine, log, false);
        drop(files);
        self.end_if_taken_over(log);
        // What went wrong is noted, and stays due.
        schedule.note(&tried, Instant::now(), made.is_ok(), log.is_short_of_space());
        made.iter().for_each(trace::checkpoint_made);
        true
    }

    /// Writes into the manifest how far everything is stored, unless a checkpoint or a backup is made. Returns whether that was tried: what
    /// went wrong is tried again after the same time.
    fn try_note_durable(&self, log: &Log) -> bool {
        let Some(mut files) = self.try_lock_files() else { return false };
        let _ = self.note_durable_in(files.as_mut(), log);
        drop(files);
        self.end_if_taken_over(log);
        true
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
        self.counters.statistics()
    }

    fn lock_files(&self) -> sync::MutexGuard<'_, Option<DatabaseFiles>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the files unless a checkpoint or a backup is made.
    fn try_lock_files(&self) -> Option<sync::MutexGuard<'_, Option<DatabaseFiles>>> {
        match self.files.try_lock() {
            Ok(files) => Some(files),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
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
