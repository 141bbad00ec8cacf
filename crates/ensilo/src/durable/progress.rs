//! Reports of the progress of a recovery to the program that opens the database.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use ensilo_log::{Progress, call_foreign};

use crate::loading::LoadStatistics;

/// So often the hook is called.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// How far a recovery is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RecoveryProgress {
    /// Bytes of checkpoint and log that are replayed.
    pub bytes_done: u64,
    /// Bytes of checkpoint and log in all; 0 before it is known.
    pub bytes_total: u64,
    /// How long it has taken.
    pub elapsed: Duration,
    /// How much longer it will take if it goes on like this.
    pub left: Option<Duration>,
}

impl RecoveryProgress {
    fn of_replay(progress: &Progress) -> Self {
        let report = progress.report();
        RecoveryProgress {
            bytes_done: report.bytes_done,
            bytes_total: report.bytes_total,
            elapsed: Duration::try_from_secs_f64(report.seconds).unwrap_or_default(),
            left: report.seconds_left.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }

    /// Returns how far a checkpoint is that is loaded in the background.
    pub(crate) fn of_load(load: &LoadStatistics, elapsed: Duration) -> Self {
        let (done, total) = (load.bytes_done, load.bytes_total);
        let seconds = elapsed.as_secs_f64() * total.saturating_sub(done) as f64 / done as f64;
        let left = Duration::try_from_secs_f64(seconds).ok();
        RecoveryProgress { bytes_done: done, bytes_total: total, elapsed, left }
    }
}

/// What is called with the progress.
#[derive(Clone)]
pub(crate) struct RecoveryHook(Arc<dyn Fn(&RecoveryProgress) + Send + Sync>);

impl RecoveryHook {
    pub(crate) fn new(hook: impl Fn(&RecoveryProgress) + Send + Sync + 'static) -> Self {
        RecoveryHook(Arc::new(hook))
    }

    pub(crate) fn report(&self, progress: &RecoveryProgress) {
        call_foreign(|| (self.0)(progress));
    }
}

/// Does `work`, and calls the hook with its progress meanwhile.
pub(super) fn shown<R>(hook: Option<&RecoveryHook>, work: impl FnOnce(&Progress) -> R) -> R {
    let progress = Progress::new();
    let Some(hook) = hook else { return work(&progress) };
    let (end, ended) = channel::<()>();
    thread::scope(|scope| {
        let progress = &progress;
        let thread = thread::Builder::new().name("ensilo-progress".to_owned());
        let started = thread.spawn_scoped(scope, move || {
            while ended.recv_timeout(REPORT_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                hook.report(&RecoveryProgress::of_replay(progress));
            }
            hook.report(&RecoveryProgress::of_replay(progress));
        });
        let result = work(progress);
        drop(end);
        if started.is_err() {
            // Without a thread for it, the hook learns the end alone.
            hook.report(&RecoveryProgress::of_replay(progress));
        }
        result
    })
}

impl fmt::Debug for RecoveryHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryHook")
    }
}
