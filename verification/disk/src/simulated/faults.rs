//! Faults that a test plans, and the count of operations that says when they come.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::random::Random;

/// What is to fail, for [`SimulatedDisk::set_faults`](super::SimulatedDisk::set_faults). The default is nothing.
///
/// The n-th operation is counted from 1, from the moment the faults were planned. Each of these errors comes once, unless
/// [`Faults::goes_on_failing`]: a database that asks again succeeds, and must not believe it.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// How much of a failed write is done, and what a failed sync loses, follows from it.
    pub seed: u64,
    /// The n-th read of a file fails with an I/O error.
    pub read_error_at: Option<u64>,
    /// The n-th `write_at` or `set_len` fails with an I/O error, after the first bytes of it, none or all, were written.
    pub write_error_at: Option<u64>,
    /// The n-th `sync_data`, `sync_all` or `sync_dir` fails with an I/O error. Of the bytes of a file that were not synced some are
    /// stored; the others are lost for good though reads still show them, and no later sync stores them. The names of a
    /// directory stay as they were, unsynced.
    pub sync_error_at: Option<u64>,
    /// The n-th `sync_dir` fails with an I/O error. The names of the directory stay as they were, unsynced.
    pub dir_sync_error_at: Option<u64>,
    /// The n-th `create`, `rename`, `remove`, `remove_dir`, `create_dir_all` or `lock` fails with an I/O error and changes nothing.
    pub name_error_at: Option<u64>,
    /// All operations of the kind fail from the n-th on, so that none comes to heal what the first has left.
    pub goes_on_failing: bool,
    /// All files together can hold no more bytes than this, preallocated ones included. What does not fit fails with `StorageFull`, after
    /// as many bytes as fit were written. Removed files give their bytes back.
    pub no_space_after_bytes: Option<u64>,
    /// Each sync hangs until this pause ends or lets it pass, or until the process ends.
    pub sync_hangs: Option<Arc<SyncPause>>,
}

/// Operations asked for, whether or not they failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of `read_at`.
    pub reads: u64,
    /// Of `write_at` and `set_len`.
    pub writes: u64,
    /// Of `sync_data`, `sync_all` and `sync_dir`.
    pub syncs: u64,
    /// Of `sync_dir`.
    pub dir_syncs: u64,
    /// Of `create`, `rename`, `remove`, `remove_dir`, `create_dir_all` and `lock`.
    pub name_changes: u64,
}

/// A pause in which syncs hang.
#[derive(Default)]
pub struct SyncPause {
    state: Mutex<PauseState>,
    changed: Condvar,
}

#[derive(Default)]
struct PauseState {
    has_ended: bool,
    hanging: usize,
    /// How many may pass although it lasts.
    permits: usize,
}

impl SyncPause {
    /// Returns a pause that has begun and lets nothing pass yet.
    pub fn new() -> Arc<SyncPause> {
        Arc::new(SyncPause::default())
    }

    /// Lets all syncs pass, those that hang and those to come.
    pub fn end(&self) {
        self.lock_state().has_ended = true;
        self.changed.notify_all();
    }

    /// Lets no sync pass that comes from now on.
    pub fn begin(&self) {
        self.lock_state().has_ended = false;
    }

    /// Lets one sync pass, one that hangs or else the next one.
    pub fn let_one_pass(&self) {
        self.lock_state().permits += 1;
        self.changed.notify_all();
    }

    /// Returns how many syncs hang now.
    pub fn hanging(&self) -> usize {
        self.lock_state().hanging
    }

    /// Blocks until at least `count` syncs hang.
    pub fn wait_until_hanging(&self, count: usize) {
        let mut state = self.lock_state();
        while state.hanging < count {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until the pause lets this call pass, or `is_over` returns that its process has ended.
    pub(super) fn pass(&self, is_over: impl Fn() -> bool) {
        let mut state = self.lock_state();
        state.hanging += 1;
        self.changed.notify_all();
        while !is_over() && !state.has_ended {
            if state.permits > 0 {
                state.permits -= 1;
                break;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.hanging -= 1;
    }

    /// Makes those that hang ask again whether all is over.
    pub(super) fn wake(&self) {
        // The lock orders this after the question of a call that is about to wait.
        drop(self.lock_state());
        self.changed.notify_all();
    }

    fn lock_state(&self) -> MutexGuard<'_, PauseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SyncPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock_state();
        f.debug_struct("SyncPause")
            .field("has_ended", &state.has_ended)
            .field("hanging", &state.hanging)
            .finish()
    }
}

/// The plan and how far the run has come in it.
#[derive(Default)]
pub(super) struct FaultState {
    faults: Faults,
    counts: Counts,
    /// Of this plan and those before it: calls may still hang there.
    pauses: Vec<Arc<SyncPause>>,
    pub(super) random: Random,
}

impl FaultState {
    pub(super) fn plan(&mut self, faults: Faults) {
        self.random = Random::new(faults.seed);
        self.counts = Counts::default();
        self.pauses.extend(faults.sync_hangs.clone());
        self.faults = faults;
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    pub(super) fn pause(&self) -> Option<Arc<SyncPause>> {
        self.faults.sync_hangs.clone()
    }

    pub(super) fn pauses(&self) -> Vec<Arc<SyncPause>> {
        self.pauses.clone()
    }

    pub(super) fn space_bytes(&self) -> Option<u64> {
        self.faults.no_space_after_bytes
    }

    /// Counts a read; whether it fails.
    pub(super) fn count_read(&mut self) -> bool {
        self.counts.reads += 1;
        self.strikes(self.faults.read_error_at, self.counts.reads)
    }

    /// Counts a write; whether it fails.
    pub(super) fn count_write(&mut self) -> bool {
        self.counts.writes += 1;
        self.strikes(self.faults.write_error_at, self.counts.writes)
    }

    /// Counts the sync of a file; whether it fails.
    pub(super) fn count_sync(&mut self) -> bool {
        self.counts.syncs += 1;
        self.strikes(self.faults.sync_error_at, self.counts.syncs)
    }

    /// Counts the sync of a directory; whether it fails.
    pub(super) fn count_dir_sync(&mut self) -> bool {
        self.counts.dir_syncs += 1;
        self.count_sync() || self.strikes(self.faults.dir_sync_error_at, self.counts.dir_syncs)
    }

    /// Counts a change of names; the error it fails with.
    pub(super) fn count_name_change(&mut self) -> io::Result<()> {
        self.counts.name_changes += 1;
        if self.strikes(self.faults.name_error_at, self.counts.name_changes) {
            Err(io_error())
        } else {
            Ok(())
        }
    }

    /// Returns whether an operation of this number fails, if the n-th of its kind is to.
    fn strikes(&self, at: Option<u64>, number: u64) -> bool {
        at.is_some_and(|at| number == at || self.faults.goes_on_failing && number > at)
    }
}

/// Returns what a system says when a device failed.
pub(super) fn io_error() -> io::Error {
    Errno::IO.into()
}

/// Returns what a system says when there is no space left.
pub(super) fn no_space() -> io::Error {
    Errno::NOSPC.into()
}
