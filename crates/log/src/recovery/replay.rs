//! Replaying a checkpoint and a log into tables, with many threads.
//!
//! # Source
//! SiloR (OSDI 2014) §5. Threads take chunks of about a megabyte instead of whole files, so that all have
//! work until the end; others read ahead of them. Oldest entries come first, where SiloR reads the newest files first, of which most of what
//! follows is of no effect: a log of words that were changed has little of that, but rows that are there when their words come, and words
//! that need not be kept for what is older ([`Replay::fold`]). How far all have come is explained in [`order`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use self::reader::ReadChunk;
use super::block_stream::Chunk;
use super::corruption::CorruptionKind;
use super::error::OpenError;
use super::progress::Progress;
use super::replay_file::{Extent, ReplayFile};

mod apply;
mod order;
mod reader;

pub(super) use apply::Applier;
pub use apply::Replay;

use order::WorkerFrontiers;
use reader::Reader;

/// A thread that reads serves so many that apply: it gets about a gigabyte a second from a disk, of which
/// they use 150 to 250 MB each.
const WORKERS_PER_READER: usize = 4;

/// What was replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Bytes of log files that were read.
    pub log_bytes: u64,
    /// Bytes of checkpoint parts that were read.
    pub checkpoint_bytes: u64,
    /// Writes of the log that were applied.
    pub writes: u64,
    /// Records of the checkpoint that were applied. What is there twice counts once.
    pub records: u64,
    /// How much of the time went into the checkpoint: that in which the threads were busy with it, of all in which they were busy.
    pub checkpoint_duration: Duration,
    /// How much of the time went into the log.
    pub log_duration: Duration,
}

impl Replayed {
    /// Counts another replay in, without the time that it took.
    pub(super) fn add(&mut self, other: &Replayed) {
        self.log_bytes += other.log_bytes;
        self.checkpoint_bytes += other.checkpoint_bytes;
        self.writes += other.writes;
        self.records += other.records;
    }
}

/// What the threads of a replay share.
struct ReplayOutcome<'a> {
    progress: &'a Progress,
    failed: AtomicBool,
    failure: Mutex<Option<OpenError>>,
    /// By file.
    work: Vec<FileWork>,
    frontiers: WorkerFrontiers,
}

/// What the replay of a file has come to.
#[derive(Default)]
struct FileWork {
    /// Writes or records applied.
    applied: AtomicU64,
    /// For how long threads were busy with it.
    busy_nanoseconds: AtomicU64,
}

/// Replays `files`, roughly in the order of their epochs, with `threads` threads and others that read for them.
pub(super) fn replay<R: Replay>(
    disk: &dyn Disk,
    files: &[ReplayFile],
    target: &R,
    threads: usize,
    progress: &Progress,
) -> Result<Replayed, OpenError> {
    let start = Instant::now();
    let threads = threads.max(1);
    progress.begin(files.iter().map(|file| file.bytes).sum());
    let outcome = ReplayOutcome {
        progress,
        failed: AtomicBool::new(false),
        failure: Mutex::new(None),
        work: files.iter().map(|_| FileWork::default()).collect(),
        frontiers: WorkerFrontiers::new(threads),
    };
    let (work_sender, work) = sync_channel(2 * threads);
    let (spare_sender, spare) = channel();
    let (work, reader) = (Arc::new(Mutex::new(work)), Reader::new(disk, files, Mutex::new(spare)));
    thread::scope(|scope| {
        for worker in 0..threads {
            let (spare, work, outcome) = (spare_sender.clone(), Arc::clone(&work), &outcome);
            outcome.spawn(scope, "ensilo-replay", move || {
                outcome.work(worker, files, target, &work, &spare);
                outcome.frontiers.set(worker, Epoch::MAX);
            });
        }
        // Either end of the channel goes with the threads that use it: that ends the others.
        drop(work);
        for _ in 0..threads.div_ceil(WORKERS_PER_READER) {
            let (work, reader, outcome) = (work_sender.clone(), &reader, &outcome);
            outcome.spawn(scope, "ensilo-read", move || {
                if let Err(error) = reader.read_files(&work, || outcome.has_failed()) {
                    outcome.fail(error);
                }
            });
        }
        drop(work_sender);
    });
    let replayed = outcome.finish(files, start.elapsed())?;
    progress.end();
    Ok(replayed)
}

impl ReplayOutcome<'_> {
    /// Starts a thread. Where the system gives none, that is the failure of the replay, which ends the others.
    fn spawn<'s>(&self, scope: &'s Scope<'s, '_>, name: &str, run: impl FnOnce() + Send + 's) {
        let thread = thread::Builder::new().name(name.to_owned());
        if let Err(error) = thread.spawn_scoped(scope, run) {
            self.fail(OpenError::no_thread(&error));
        }
    }

    /// Applies chunks until there are no more. After a failure they are thrown away, so that the reader is
    /// never left waiting.
    fn work<R: Replay>(
        &self,
        worker: usize,
        files: &[ReplayFile],
        target: &R,
        work: &Mutex<Receiver<ReadChunk>>,
        spare: &Sender<Chunk>,
    ) {
        let mut applier = Applier::new(target);
        loop {
            let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(ReadChunk { file, chunk, frontier }) = next else { return };
            self.frontiers.set(worker, frontier);
            if !self.has_failed() {
                let (start, replayed) = (Instant::now(), &files[file]);
                let folded = applier.fold(replayed, self.frontiers.least());
                match folded.and_then(|()| applier.apply_chunk(replayed, &chunk, frontier)) {
                    Ok(applied) => self.work[file].add(applied, start.elapsed()),
                    Err(error) => self.fail(error),
                }
            }
            self.progress.advance(chunk.len as u64);
            // The reader may be gone already.
            let _ = spare.send(chunk);
        }
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Takes an error, unless there was one before.
    fn fail(&self, error: OpenError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn finish(self, files: &[ReplayFile], duration: Duration) -> Result<Replayed, OpenError> {
        if let Some(error) = self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let mut replayed = Replayed::default();
        let (mut checkpoint_busy, mut log_busy) = (0, 0);
        for (file, work) in files.iter().zip(self.work) {
            let applied = work.applied.into_inner();
            match file.extent {
                Extent::Part { records, .. } if records != applied => {
                    return Err(file.corruption(None, CorruptionKind::NotAsInstalled));
                }
                Extent::Part { bytes, .. } => {
                    replayed.checkpoint_bytes += bytes;
                    replayed.records += if file.copy_number().is_some() { 0 } else { applied };
                    checkpoint_busy += work.busy_nanoseconds.into_inner();
                }
                Extent::Bytes(_) | Extent::Seal => {
                    replayed.log_bytes += file.bytes;
                    replayed.writes += applied;
                    log_busy += work.busy_nanoseconds.into_inner();
                }
            }
        }
        let share = |busy: u64| busy as f64 / (checkpoint_busy + log_busy).max(1) as f64;
        replayed.checkpoint_duration = duration.mul_f64(share(checkpoint_busy));
        replayed.log_duration = duration.mul_f64(share(log_busy));
        Ok(replayed)
    }
}

impl FileWork {
    fn add(&self, applied: u64, busy: Duration) {
        self.applied.fetch_add(applied, Ordering::Relaxed);
        self.busy_nanoseconds
            .fetch_add(u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
