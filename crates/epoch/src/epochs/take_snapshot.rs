//! Snapshots out of turn, for those that want one that is not too old.

use std::thread;
use std::time::{Duration, Instant};

use super::{EpochNumbers, Epochs};
use crate::Epoch;

/// Snapshots are taken out of turn no more often than this: each uses up an interval of epochs, and a version of each row that changes.
const TAKEN_APART: Duration = Duration::from_millis(10);

/// How long to wait for commits that are under way, which end in a moment, and how long at last where one does not. Each look afterwards
/// is a tick: all that wait share them.
const COMMIT_WAIT_MIN: Duration = Duration::from_micros(50);
const COMMIT_WAIT_MAX: Duration = Duration::from_millis(1);

/// The snapshots that were taken out of turn.
#[derive(Debug, Default)]
pub(super) struct TakenSnapshots {
    /// When the last one was taken.
    last: Option<Instant>,
    /// Whether the snapshot epoch has not come there yet.
    is_awaited: bool,
    /// When somebody has looked last whether a snapshot is there, and how long nobody looks again.
    looked: Option<Instant>,
    look_wait: Duration,
}

impl TakenSnapshots {
    /// Returns whether there was one.
    pub(super) fn has_any(&self) -> bool {
        self.last.is_some()
    }

    /// Returns whether the snapshot that the snapshot epoch has come to now was taken out of turn.
    pub(super) fn reach(&mut self) -> bool {
        std::mem::take(&mut self.is_awaited)
    }

    /// Returns whether it is time to look whether a snapshot is there.
    fn is_look_due(&mut self) -> bool {
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= self.look_wait);
        if is_due {
            self.looked = Some(Instant::now());
            self.look_wait = (2 * self.look_wait).clamp(COMMIT_WAIT_MIN, COMMIT_WAIT_MAX);
        }
        is_due
    }

    /// Returns how long it takes until another one may be taken.
    fn wait(&self) -> Option<Duration> {
        let since = self.last?.elapsed();
        TAKEN_APART.checked_sub(since).filter(|wait| !wait.is_zero())
    }
}

impl Epochs {
    /// Returns once a snapshot that begins from then on shows all that was committed before `since`, which is not in the future. It
    /// does so at once where [`Epochs::snapshot_instant`] is later. Otherwise a snapshot is taken, unless one has begun by now. Callers at
    /// the same time share one, and may wait for it for 10 ms. There is none any more close to [`Epoch::LAST`].
    pub fn take_snapshot(&self, since: Instant) {
        let mut wanted = None;
        while self.snapshot_instant() <= since
            && let Some(wait) = self.try_to_take_snapshot(since, &mut wanted)
        {
            thread::sleep(wait);
        }
    }

    /// Goes on towards the snapshot at the epoch `wanted`, once that is known. Returns how long to wait until another try, unless it is
    /// there.
    fn try_to_take_snapshot(&self, since: Instant, wanted: &mut Option<Epoch>) -> Option<Duration> {
        let mut numbers = self.lock_numbers();
        let begun = wanted.or_else(|| numbers.awaited.begun_after(since));
        let epoch = match begun {
            Some(epoch) => {
                if numbers.snapshot < epoch.get() && numbers.taken.is_look_due() {
                    self.tick(&mut numbers);
                }
                epoch
            }
            None if numbers.snapshot_instant > since => return None,
            None => match numbers.taken.wait() {
                Some(wait) => return Some(wait),
                None => self.begin_snapshot(&mut numbers)?,
            },
        };
        *wanted = Some(epoch);
        (numbers.snapshot < epoch.get()).then_some(numbers.taken.look_wait)
    }

    /// Begins a snapshot at the next epoch that there may be one at, and returns that, unless there is none.
    fn begin_snapshot(&self, numbers: &mut EpochNumbers) -> Option<Epoch> {
        let epoch = self.interval.next_start(Epoch::new(numbers.global));
        if epoch > Epoch::LAST {
            return None;
        }
        let now = Some(Instant::now());
        numbers.taken =
            TakenSnapshots { last: now, is_awaited: true, looked: now, look_wait: COMMIT_WAIT_MIN };
        numbers.due = epoch.get();
        self.tick_to(numbers, epoch);
        Some(epoch)
    }
}
