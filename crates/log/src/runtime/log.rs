//! The log of an open database.

use std::fmt;
use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle, ThreadId};

use ensilo_disk::Disk;
use ensilo_epoch::{Epoch, Epochs};

use super::clock::Clock;
use super::core::Core;
use super::durable::{Callback, Durable};
use super::error::LogError;
use super::files::{Files, Watcher};
use super::foreign::ForeignAfter;
use super::leader::Leader;
use super::leadership::{Leadership, Led};
use super::logger::Logger;
use super::monitor::Monitor;
use super::notifier::Sleep;
use super::options::{EpochClock, LogOptions};
use super::partition::LogPartition;
use super::pool::Pool;
use super::ring::Ring;
use super::statistics::LogStatistics;
use super::writer::LogWriter;
use crate::format::EPOCH_END;
use crate::recovery::NewGeneration;

/// The log of an open database: its loggers, which run until it is closed or dropped, and the clock of the
/// epochs.
///
/// A transaction of epoch `e` is *stored* when [`Log::durable_epoch`] is `e` or later. The first write or
/// sync that fails ends the log: see [`Log::failure`].
pub struct Log {
    core: Arc<Core>,
    leadership: Arc<Leadership<Leader>>,
    logs_operations: bool,
    has_whole_rows: bool,
    threads: Monitor<Vec<JoinHandle<()>>>,
    /// Those of `threads`, also while these are waited for.
    thread_ids: Monitor<Vec<ThreadId>>,
}

impl Log {
    /// Starts a logger for each of the new files, and the clock that moves `epochs` on: they must leave that
    /// to others ([`ensilo_epoch::Advance::Manual`]) and must not be in an epoch before that of the files.
    ///
    /// # Errors
    /// [`LogError::Thread`].
    ///
    /// # Panics
    /// When there is no file, or the epochs are too early.
    pub fn start(
        disk: Arc<dyn Disk>,
        files: NewGeneration,
        epochs: Arc<Epochs>,
        options: &LogOptions,
    ) -> Result<Arc<Log>, LogError> {
        let first_epoch = files.first_epoch;
        assert!(epochs.global_epoch() >= first_epoch, "epochs that were on disk before");
        let (files, first) = Files::new(disk, files, options.file_bytes);
        assert!(!first.is_empty(), "a log without loggers");
        let pool = || Pool::new(options.buffer_bytes, options.buffers_per_logger);
        let partitions: Vec<_> = first.iter().map(|_| Arc::new(LogPartition::new(pool()))).collect();
        let ring = Log::new_ring(&partitions, &epochs, options.buffer_bytes * options.buffers_per_logger);
        let durable = Durable::new(partitions.len(), first_epoch);
        let clock = Clock::new(Arc::clone(&epochs), options.clock);
        let core = Arc::new(Core::new(epochs, partitions, ring, durable, clock, files));
        let mut loggers = (0..).zip(first).map(|(index, file)| {
            Logger::new(Arc::clone(&core), index, file, options.compression, first_epoch)
        });
        let leader = loggers.next().map(|logger| Leader::new(logger, first_epoch));
        let mut log = Log::new(Arc::clone(&core), Leadership::new(leader));
        (log.logs_operations, log.has_whole_rows) = (options.logs_operations, options.whole_rows);
        let log = Arc::new(log);
        log.set_full_rows_before(Epoch::default());
        let leadership = Arc::clone(&log.leadership);
        log.spawn("log-0", move |core| leadership.lead(core))?;
        for (number, logger) in (1..).zip(loggers) {
            log.spawn(&format!("log-{number}"), move |_| logger.follow())?;
        }
        log.spawn("log-files", |core| core.files.run())?;
        log.spawn("epoch", |core| {
            core.clock.run(|| core.wake_leader());
            Ok(())
        })?;
        Ok(log)
    }

    /// Returns a log that takes nothing: a commit of a write is refused with [`LogError::ReadOnly`]. All that
    /// there is counts as stored. It has neither files nor threads.
    #[must_use]
    pub fn read_only(disk: Arc<dyn Disk>, epochs: Arc<Epochs>) -> Arc<Log> {
        let (files, _) = Files::new(disk, NewGeneration::none(), 0);
        let partitions = vec![Arc::new(LogPartition::new(Pool::new(0, 1)))];
        let ring = Log::new_ring(&partitions, &epochs, 0);
        let durable = Durable::new(partitions.len(), EPOCH_END);
        let clock = Clock::new(Arc::clone(&epochs), EpochClock::default());
        let core = Arc::new(Core::new(epochs, partitions, ring, durable, clock, files));
        core.fail(LogError::ReadOnly);
        Arc::new(Log::new(core, Leadership::new(None)))
    }

    /// Returns the central log buffer of loggers that have room for so many bytes each.
    fn new_ring(
        partitions: &[Arc<LogPartition>],
        epochs: &Arc<Epochs>,
        bytes_per_logger: usize,
    ) -> Arc<Ring> {
        let (epochs, leading) = (Arc::clone(epochs), Arc::clone(&partitions[0]));
        let wake = move || leading.notifier.notify(Sleep::Long, |signals| signals.look = true);
        let bytes = bytes_per_logger * partitions.len();
        Arc::new(Ring::new(partitions.len(), bytes, move || epochs.complete_frontier(), wake))
    }

    fn new(core: Arc<Core>, leadership: Leadership<Leader>) -> Log {
        let leadership = Arc::new(leadership);
        Log {
            core,
            leadership,
            logs_operations: false,
            has_whole_rows: false,
            threads: Monitor::new(Vec::new()),
            thread_ids: Monitor::new(Vec::new()),
        }
    }

    /// Returns a writer for one more worker. Each logger has as many workers as any other, or one less.
    #[must_use]
    pub fn writer(&self) -> LogWriter {
        let partition = self.core.partitions.iter().min_by_key(|partition| partition.pool.writers());
        let partition = partition.unwrap_or(&self.core.partitions[0]);
        LogWriter::new(Arc::clone(partition), Arc::clone(&self.core.writer_state))
    }

    /// Returns the central log buffer, for an engine whose commits are in one order.
    #[must_use]
    pub fn ring(&self) -> &Arc<Ring> {
        &self.core.ring
    }

    /// Returns [`LogOptions::logs_operations`].
    #[must_use]
    pub fn logs_operations(&self) -> bool {
        self.logs_operations
    }

    /// Returns the durable epoch: all transactions of it and of earlier ones are stored.
    #[must_use]
    #[inline]
    pub fn durable_epoch(&self) -> Epoch {
        self.core.durable.epoch()
    }

    /// Waits until all transactions of `epoch` and of earlier ones are stored. If no round is being made, the
    /// calling thread makes it.
    ///
    /// # Errors
    /// Why that will not be. Whether the transactions of `epoch` are stored is then found out by opening the
    /// database again.
    pub fn wait_durable(&self, epoch: Epoch) -> Result<(), LogError> {
        self.leadership.wait_durable(&*self.core, epoch)
    }

    /// Calls `callback` once, when all transactions of `epoch` and of earlier ones are stored, or with the
    /// reason why that will not be. It is called on the thread of a logger, and must neither wait nor take
    /// long; or on this thread, if the answer is known.
    pub fn on_durable(&self, epoch: Epoch, callback: Callback) {
        self.core.durable.on_durable(epoch, callback, || self.core.hurry_leader());
    }

    /// Holds the durable epoch back where it is, whatever is stored after it, until it is [released](Log::release): what
    /// others have to store as well counts no sooner.
    pub fn hold(&self) {
        self.core.durable.hold();
    }

    /// Returns whether the durable epoch is held back.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.core.durable.is_held()
    }

    /// Releases what is stored up to an epoch.
    pub fn release(&self, epoch: Epoch) {
        self.core.durable.release(epoch).call();
    }

    /// Does what [`Log::on_durable`] does, when everything up to `epoch` is stored, released or not.
    pub fn on_stored(&self, epoch: Epoch, callback: Callback) {
        self.core.durable.on_stored(epoch, callback, || self.core.hurry_leader());
    }

    /// Calls `callback` once, when the durable epoch may be later than `seen`, so that who is called looks again, or with the reason why it never will be, as
    /// [`Log::on_durable`] does. Nothing is stored sooner for it: it waits for what others store. Returns the number of the call, unless that
    /// was made at once.
    pub fn on_next_durable(&self, seen: Epoch, callback: Callback) -> Option<u64> {
        self.core.durable.on_next(seen, callback)
    }

    /// Drops a callback of [`Log::on_next_durable`] that was not called yet, by its number.
    pub fn forget_next(&self, number: u64) {
        self.core.durable.forget_next(number);
    }

    /// Ends the waits for the durable epoch to move on, now and later, with [`LogError::Closed`]: nobody is to wait for it any more. The log
    /// goes on.
    pub fn end_next_waits(&self) {
        self.core.durable.end_next_waits(&LogError::Closed);
    }

    /// Returns whether somebody waits for an epoch to be durable.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.core.durable.has_waiting()
    }

    /// Ends the waits for what is held back, now and later, with [`LogError::NotReleased`]: nobody releases it any more.
    pub fn end_held_waits(&self) {
        self.core.durable.end_waits(&LogError::NotReleased);
    }

    /// Polls for a [`Stored`](super::stored::Stored).
    pub(crate) fn poll_durable(
        &self,
        epoch: Epoch,
        number: &mut Option<u64>,
        waker: &Waker,
    ) -> Poll<Result<(), LogError>> {
        self.core.durable.poll(epoch, number, waker, || self.core.hurry_leader())
    }

    /// Takes back the waker that a [`Stored`](super::stored::Stored) has left.
    pub(crate) fn forget_waker(&self, epoch: Epoch, number: u64) {
        self.core.durable.forget(epoch, number);
    }

    /// Returns whether the calling thread is one of the log's, as in a callback or a waker: then it must not
    /// wait for the log.
    #[must_use]
    pub fn is_own_thread(&self) -> bool {
        self.thread_ids.lock().contains(&thread::current().id())
    }

    /// Returns why the log has failed: the first write or sync that went wrong. Nothing is stored after that;
    /// what was stored is.
    #[must_use]
    pub fn failure(&self) -> Option<LogError> {
        self.core.failure()
    }

    /// Asks that records with a version of an epoch before `epoch` are logged as whole rows when they are
    /// changed: `epoch` is where a checkpoint begins. It counts for every commit with a TID of an epoch that
    /// begins after this call. Where all rows are logged whole ([`LogOptions::whole_rows`]) it changes nothing.
    pub fn set_full_rows_before(&self, epoch: Epoch) {
        let epoch = if self.has_whole_rows { Epoch::MAX } else { epoch };
        self.core.writer_state.set_full_rows_before(epoch);
    }

    /// Returns what was given to [`Log::set_full_rows_before`] last, or the last epoch where all rows are logged whole.
    #[must_use]
    pub fn full_rows_before(&self) -> Epoch {
        self.core.writer_state.full_rows_before()
    }

    /// Lets each logger go on in a new file at the end of its next round, so that the files before are not
    /// needed any more once a checkpoint, which begins now, has taken their place.
    pub fn rotate(&self) {
        self.core.files.begin_checkpoint();
        self.core.partitions.iter().for_each(|partition| partition.ask_for_rotation());
    }

    /// Returns whether the disk has no room for the next log file, or for a whole one.
    #[must_use]
    pub fn is_short_of_space(&self) -> bool {
        matches!(self.shortage(), Some(LogError::NoSpace { .. }))
    }

    /// Returns why the next log file is missing, or shorter than it should be: [`LogError::NoSpace`], or
    /// [`LogError::OutOfHandles`]. The log goes on as long as it has room; a checkpoint frees what it no longer needs.
    #[must_use]
    pub fn shortage(&self) -> Option<LogError> {
        self.core.files.shortage()
    }

    /// Says that files were removed: what the disk had no room for is tried again now.
    pub fn retry_files(&self) {
        self.core.files.retry();
    }

    /// Names what to call when the log has gone on in another file or could not make one, and when it has
    /// failed, on a thread of the log: it must neither wait nor take long. The first one that is named stays.
    pub fn watch(&self, watcher: Watcher) {
        self.core.files.watch(watcher);
    }

    /// Ends the log because `file` says that its files belong to another opening: nothing is stored any more.
    pub fn give_up(&self, file: &Path) {
        self.core.fail(LogError::TakenOver { path: file.to_path_buf() });
    }

    /// Returns what the log has done and where it stands.
    #[must_use]
    pub fn statistics(&self) -> LogStatistics {
        self.core.statistics()
    }

    /// Stores everything, writes a clean end, and ends the threads. Writers are refused from now on; commits
    /// that are under way are waited for, for 2 seconds, and the disk for as long as it takes. A second call returns
    /// what the first one did.
    ///
    /// # Errors
    /// Why the log has failed, now or before; [`LogError::Unfinished`] when a commit did not end.
    pub fn close(&self) -> Result<(), LogError> {
        self.core.writer_state.stop();
        self.core.partitions.iter().for_each(|partition| partition.pool.fail(&LogError::Closed));
        self.core.ring.fail(&LogError::Closed);
        self.core.partitions[0].notifier.notify(Sleep::Short, |signals| signals.end = true);
        self.core.clock.end();
        // Held until the end: a second caller waits for the first.
        let mut threads = self.threads.lock();
        // A callback may hold the last reference to the log: a thread of the log does not wait for itself and
        // the others.
        let is_inside = self.is_own_thread();
        let mut all = std::mem::take(&mut *threads).into_iter().filter(|_| !is_inside);
        all.by_ref().take(self.core.partitions.len()).for_each(join);
        self.core.files.end();
        all.for_each(join);
        drop(threads);
        self.core.end(&LogError::Closed);
        self.failure().map_or(Ok(()), Err)
    }

    /// Takes the files that were made ahead and that nobody goes on in, once the log was closed: they are for
    /// [`DatabaseFiles::remove_unused`](crate::DatabaseFiles::remove_unused).
    #[must_use]
    pub fn take_unused_files(&self) -> Vec<PathBuf> {
        self.core.files.take_unused()
    }

    /// Starts a thread. Its failure is the log's.
    fn spawn(
        &self,
        name: &str,
        run: impl FnOnce(&Core) -> Result<(), LogError> + Send + 'static,
    ) -> Result<(), LogError> {
        let core = Arc::clone(&self.core);
        let body = move || {
            let _working = ForeignAfter::default();
            let watch = Watch(&core);
            if let Err(error) = run(&core) {
                core.fail(error);
            }
            drop(watch);
        };
        let failed = |error: io::Error| LogError::Thread { error: Arc::new(error) };
        let thread = thread::Builder::new().name(format!("ensilo-{name}")).spawn(body).map_err(failed);
        match thread {
            Ok(thread) => {
                self.thread_ids.lock().push(thread.thread().id());
                self.threads.lock().push(thread);
            }
            Err(error) => {
                self.core.fail(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls `close`.
        let _ = self.close();
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

/// Sees to it that nobody waits for a thread that panicked.
struct Watch<'a>(&'a Core);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(LogError::Panicked);
        }
    }
}

/// Waits for a thread. If it panicked, that was reported as the failure of the log.
fn join(thread: JoinHandle<()>) {
    let _ = thread.join();
}
