//! The epochs of one database: the published numbers, and the tick that derives them.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_slab::Pool;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::barrier;
use ensilo_sync::sync::{Mutex, MutexGuard};

use crate::advancer::Advancer;
use crate::epoch::SnapshotInterval;
use crate::retired::Orphans;
use crate::slot::{IDLE, ParticipantSlot, ParticipantSlots};
use crate::{Advance, Epoch, EpochCounters, EpochOptions};

/// The numbers as they were published last. A tick works on these alone.
#[derive(Debug)]
struct EpochNumbers {
    global: u64,
    snapshot: u64,
    memory_horizon: u64,
    snapshot_horizon: u64,
    /// How many snapshot epochs there were.
    snapshots: u64,
    /// Where snapshots come by the clock: the epoch of the next one, and when it became that.
    due: u64,
    due_since: Instant,
    /// What [`Epochs::take_snapshot`] has asked for.
    taken: TakenSnapshot,
}

/// The last snapshot that was taken out of turn.
#[derive(Debug)]
struct TakenSnapshot {
    /// How many there were.
    count: u64,
    /// Its epoch.
    epoch: u64,
    /// When it was taken.
    at: Option<Instant>,
    /// Whether the snapshot epoch has not come there yet.
    is_awaited: bool,
}

/// Snapshots are taken out of turn no more often than this: each uses up an interval of epochs, and a version of each row that changes.
const TAKEN_APART: Duration = Duration::from_millis(10);

/// What all workers read. It is written by ticks alone: the numbers share cache lines.
#[derive(Debug)]
struct Published {
    global: AtomicU64,
    snapshot: AtomicU64,
    snapshots: AtomicU64,
    memory_horizon: AtomicU64,
    snapshot_horizon: AtomicU64,
    /// The global epoch of the last tick that is done: at which the other numbers were derived.
    derived_at: AtomicU64,
}

/// The epochs of one database.
pub struct Epochs {
    id: u64,
    published: CachePadded<Published>,
    interval: SnapshotInterval,
    snapshot_interval: Option<Duration>,
    first: Epoch,
    slots: ParticipantSlots,
    orphans: Orphans,
    pool: Arc<Pool>,
    /// Held during a tick: ticks come one after the other.
    ticking: Mutex<EpochNumbers>,
    advancer: Advancer,
}

/// Ids of epochs; none is used again. Not among the words that models look at.
static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

impl Epochs {
    /// Creates the epochs of a database with its records and nodes in `pool`.
    ///
    /// The first epoch is a multiple of `epochs_per_snapshot`, not before `first_epoch` and not 0. It is also the first snapshot
    /// epoch: everything that was ever committed was committed before it.
    ///
    /// # Panics
    /// When the system has no thread left to advance the epochs, or the first epoch would come after [`Epoch::LAST`].
    #[must_use]
    pub fn new(options: EpochOptions, pool: Arc<Pool>) -> Arc<Epochs> {
        let interval = SnapshotInterval::new(options.epochs_per_snapshot);
        let first = options.start().get();
        assert!(first <= Epoch::LAST.get(), "no epoch is left to begin in");
        let numbers = EpochNumbers {
            global: first,
            snapshot: first,
            memory_horizon: first - 1,
            snapshot_horizon: first,
            snapshots: 0,
            due: first,
            due_since: Instant::now(),
            taken: TakenSnapshot { count: 0, epoch: first, at: None, is_awaited: false },
        };
        let epochs = Arc::new(Epochs {
            // Relaxed: the ids need only differ.
            id: NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            published: CachePadded::new(Published::new(&numbers)),
            interval,
            snapshot_interval: options.snapshot_interval,
            first: Epoch::new(first),
            slots: ParticipantSlots::new(),
            orphans: Orphans::new(),
            pool,
            ticking: Mutex::new(numbers),
            advancer: Advancer::new(),
        });
        if options.advance == Advance::Thread {
            let weak = Arc::downgrade(&epochs);
            let tick = move || weak.upgrade().map(|epochs| epochs.advance()).is_some();
            epochs.advancer.start(options.epoch_interval, tick);
        }
        epochs
    }

    /// Tells these epochs from all others of the process.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the global epoch.
    #[must_use]
    #[inline]
    pub fn global_epoch(&self) -> Epoch {
        // Acquire: [epoch].
        Epoch::new(self.published.global.load(Ordering::Acquire))
    }

    /// Returns the epoch that a new snapshot reads at: a multiple of the epochs per snapshot such that every commit
    /// with an earlier epoch is complete. A snapshot shows the versions with an earlier epoch than its own.
    #[must_use]
    #[inline]
    pub fn snapshot_epoch(&self) -> Epoch {
        // Acquire: [snapshot] the commits that it covers are visible.
        Epoch::new(self.published.snapshot.load(Ordering::Acquire))
    }

    /// Returns how many times the snapshot epoch has moved: a snapshot that was begun at an earlier count has fallen behind by the
    /// difference.
    #[must_use]
    #[inline]
    pub fn snapshots(&self) -> u64 {
        // Relaxed: only the age of snapshots depends on it.
        self.published.snapshots.load(Ordering::Relaxed)
    }

    /// Returns the first epoch of the snapshot interval that `epoch` (not after [`Epoch::LAST`]) lies in: `k * floor(epoch / k)`.
    #[must_use]
    #[inline]
    pub fn snapshot_of(&self, epoch: Epoch) -> Epoch {
        self.interval.start(epoch)
    }

    /// Returns how many epochs lie between two snapshots: `k`.
    #[must_use]
    pub fn epochs_per_snapshot(&self) -> u64 {
        self.interval.epochs()
    }

    /// Returns where this horizon was one snapshot interval before. What is still there although that had passed it
    /// is the backlog.
    #[must_use]
    #[inline]
    pub fn backlog_horizon(&self, horizon: Epoch) -> Epoch {
        Epoch::new(horizon.get().saturating_sub(self.interval.epochs()))
    }

    /// Nobody can reach what was retired with an earlier tag.
    #[must_use]
    #[inline]
    pub fn memory_horizon(&self) -> Epoch {
        // Acquire: [horizon] the last reads of the memory come before its reuse.
        Epoch::new(self.published.memory_horizon.load(Ordering::Acquire))
    }

    /// No snapshot, now or later, is read at an earlier epoch. A version that was superseded in epoch `e` may go when
    /// `snapshot_of(e)` is earlier.
    #[must_use]
    #[inline]
    pub fn snapshot_horizon(&self) -> Epoch {
        // Acquire: [horizon] the last reads of the versions come before their reuse.
        Epoch::new(self.published.snapshot_horizon.load(Ordering::Acquire))
    }

    /// Returns the global epoch of the last tick that is done. As long as this stays, so do the horizons and the
    /// snapshot epoch.
    #[must_use]
    #[inline]
    pub fn last_tick(&self) -> Epoch {
        // Acquire: [horizon] the horizons of that tick, or later ones, are visible.
        Epoch::new(self.published.derived_at.load(Ordering::Acquire))
    }

    /// Moves the global epoch on by one, unless it is the last, and derives what is over: one tick.
    ///
    /// Participants are never waited for. Two ticks at once come one after the other.
    pub fn advance(&self) {
        self.advance_to_frontier();
    }

    /// Does what [`Epochs::advance`] does, and returns the complete frontier behind that, as [`Epochs::complete_frontier`] would: one
    /// barrier serves both.
    pub fn advance_to_frontier(&self) -> Epoch {
        self.tick(&mut self.lock_numbers())
    }

    /// Moves the global epoch on if it is `epoch` or an earlier one. Returns whether it is later now: there is none after [`Epoch::LAST`].
    pub fn advance_past(&self, epoch: Epoch) -> bool {
        let mut numbers = self.lock_numbers();
        if numbers.global <= epoch.get() {
            self.tick(&mut numbers);
        }
        numbers.global > epoch.get()
    }

    /// Makes a snapshot of the present: returns once the snapshot epoch is one that began after the call. Callers at the same time share
    /// one, and may wait for it for 10 ms. There is none any more close to [`Epoch::LAST`].
    pub fn take_snapshot(&self) {
        let wanted = self.lock_numbers().taken.count + 1;
        while let Some(wait) = self.try_to_take_snapshot(wanted) {
            // Commits that are under way end in a moment.
            thread::sleep(wait);
        }
    }

    /// Returns how long to wait until another try, unless the snapshot with this number is there.
    fn try_to_take_snapshot(&self, wanted: u64) -> Option<Duration> {
        let mut numbers = self.lock_numbers();
        if numbers.taken.count < wanted {
            let since = numbers.taken.at.map_or(TAKEN_APART, |at| at.elapsed());
            if let Some(wait) = TAKEN_APART.checked_sub(since).filter(|wait| !wait.is_zero()) {
                return Some(wait);
            }
            let epoch = self.interval.next_start(Epoch::new(numbers.global));
            if epoch > Epoch::LAST {
                return None;
            }
            let count = numbers.taken.count + 1;
            numbers.taken =
                TakenSnapshot { count, epoch: epoch.get(), at: Some(Instant::now()), is_awaited: true };
            numbers.due = epoch.get();
            self.tick_to(&mut numbers, epoch);
        } else if numbers.snapshot < numbers.taken.epoch {
            self.tick(&mut numbers);
        }
        (numbers.snapshot < numbers.taken.epoch).then_some(Duration::from_micros(50))
    }

    fn lock_numbers(&self) -> MutexGuard<'_, EpochNumbers> {
        self.ticking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the complete frontier.
    fn tick(&self, numbers: &mut EpochNumbers) -> Epoch {
        let next = self.next_epoch(numbers);
        self.tick_to(numbers, next)
    }

    /// Moves the global epoch on to this one. Returns the complete frontier.
    fn tick_to(&self, numbers: &mut EpochNumbers, next: Epoch) -> Epoch {
        numbers.global = next.get();
        // Release: [epoch] a thread that reads this epoch sees what was visible at the barriers of earlier ticks.
        self.published.global.store(numbers.global, Ordering::Release);
        barrier::heavy();
        let oldest = self.oldest();
        let memory_horizon = self.epoch_before(numbers, Epoch::new(numbers.global.min(oldest.pin)));
        let complete = numbers.complete(&oldest);
        numbers.derive(&oldest, memory_horizon, self.newest_snapshot(numbers, complete));
        // Release: [horizon] and [snapshot], with the Acquire loads of the slots that led here.
        self.published.memory_horizon.store(numbers.memory_horizon, Ordering::Release);
        self.published.snapshot_horizon.store(numbers.snapshot_horizon, Ordering::Release);
        self.published.snapshot.store(numbers.snapshot, Ordering::Release);
        self.published.snapshots.store(numbers.snapshots, Ordering::Relaxed);
        // Release: [horizon] a thread that sees that the tick is done sees its horizons.
        self.published.derived_at.store(numbers.global, Ordering::Release);
        complete
    }

    /// Returns the epoch that follows: the next number, or the next snapshot epoch if it is time for one. The last
    /// epoch follows itself.
    fn next_epoch(&self, numbers: &mut EpochNumbers) -> Epoch {
        let next = Epoch::new(numbers.global + 1).min(Epoch::LAST);
        let Some(snapshot_interval) = self.snapshot_interval else { return next };
        let next_start = self.interval.next_start(Epoch::new(numbers.global));
        if next_start > Epoch::LAST || numbers.due_since.elapsed() < snapshot_interval {
            return next;
        }
        numbers.due = next_start.get();
        numbers.due_since = Instant::now();
        next_start
    }

    /// Returns the newest epoch that snapshots may be read at, if every commit before `complete` is complete.
    fn newest_snapshot(&self, numbers: &EpochNumbers, complete: Epoch) -> u64 {
        match self.snapshot_interval {
            None => self.interval.start(complete).get(),
            Some(_) if complete.get() >= numbers.due => numbers.due,
            Some(_) => numbers.snapshot,
        }
    }

    /// Returns an epoch that is no later than the one that was there before `epoch`: the number before, unless epochs
    /// were left out to begin an interval.
    fn epoch_before(&self, numbers: &EpochNumbers, epoch: Epoch) -> Epoch {
        let may_be_after_a_gap = self.snapshot_interval.is_some() || numbers.taken.count > 0;
        let is_after_a_gap = may_be_after_a_gap && self.interval.start(epoch) == epoch;
        Epoch::new(epoch.get() - if is_after_a_gap { self.interval.epochs() } else { 1 })
    }

    /// Every commit with an earlier epoch is complete, and what it did before
    /// [`Participant::end_commit`](crate::Participant::end_commit) is visible to the caller.
    #[must_use]
    pub fn complete_frontier(&self) -> Epoch {
        let global = self.published.global.load(Ordering::Acquire);
        // A committer whose publication the scan below misses reads its epoch behind this barrier: it is `global` or later.
        barrier::heavy();
        Epoch::new(global.min(self.oldest().commit))
    }

    /// Ends the advancing thread, if there is one, and waits for it. The epochs stay where they are.
    pub fn close(&self) {
        self.advancer.stop();
    }

    /// Returns where the epochs are and what waits for them.
    #[must_use]
    pub fn counters(&self) -> EpochCounters {
        let known = |epoch: u64| (epoch != IDLE).then(|| Epoch::new(epoch));
        let oldest = self.oldest();
        let global_epoch = self.global_epoch();
        let (mut retired_objects, mut retired_bytes) = self.orphans.waiting();
        for slot in self.slots.iter() {
            retired_objects += slot.retired_objects.get();
            retired_bytes += slot.retired_bytes.get();
        }
        EpochCounters {
            global_epoch,
            snapshot_epoch: self.snapshot_epoch(),
            memory_horizon: self.memory_horizon(),
            snapshot_horizon: self.snapshot_horizon(),
            oldest_pin: known(oldest.pin),
            oldest_commit: known(oldest.commit),
            oldest_snapshot: known(oldest.snapshot),
            epochs_advanced: global_epoch.get() - self.first.get(),
            active_slots: self.slots.iter().filter(|slot| slot.is_in_use()).count() as u64,
            retired_objects,
            retired_bytes,
        }
    }

    /// Returns the pool that the memory comes from.
    #[must_use]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns whether something waits that ended participants have orphaned.
    #[must_use]
    pub fn has_orphans(&self) -> bool {
        self.orphans.waiting().0 > 0
    }

    pub(crate) fn claim_slot(&self) -> &ParticipantSlot {
        self.slots.claim()
    }

    pub(crate) fn orphans(&self) -> &Orphans {
        &self.orphans
    }

    /// Returns the minima over all slots.
    fn oldest(&self) -> Oldest {
        let mut oldest = Oldest { pin: IDLE, commit: IDLE, snapshot: IDLE };
        for slot in self.slots.iter() {
            // Acquire: [unpin] what the participant did before it stored this is over and visible.
            oldest.pin = oldest.pin.min(slot.pin.load(Ordering::Acquire));
            oldest.commit = oldest.commit.min(slot.commit.load(Ordering::Acquire));
            oldest.snapshot = oldest.snapshot.min(slot.snapshot.load(Ordering::Acquire));
        }
        oldest
    }
}

/// The earliest epochs that participants publish.
struct Oldest {
    pin: u64,
    commit: u64,
    snapshot: u64,
}

impl EpochNumbers {
    /// Derives what is over at the global epoch from what participants published. Nothing falls (I3): a participant that read
    /// an epoch long ago and publishes it now is behind a number that needs no protection from it, see the crate's page.
    fn derive(&mut self, oldest: &Oldest, memory_horizon: Epoch, newest_snapshot: u64) {
        self.memory_horizon = self.memory_horizon.max(memory_horizon.get());
        // Before the snapshot epoch: its former value counts.
        self.snapshot_horizon = self.snapshot_horizon.max(self.snapshot.min(oldest.snapshot));
        if newest_snapshot > self.snapshot {
            // Those that are taken out of turn make no other one old.
            self.snapshots += u64::from(!std::mem::take(&mut self.taken.is_awaited));
            self.snapshot = newest_snapshot;
        }
    }

    /// Every commit with an earlier epoch is complete, if `oldest` was read behind a barrier that came after the global epoch was
    /// published.
    fn complete(&self, oldest: &Oldest) -> Epoch {
        Epoch::new(self.global.min(oldest.commit))
    }
}

impl Published {
    fn new(numbers: &EpochNumbers) -> Self {
        Published {
            global: AtomicU64::new(numbers.global),
            snapshot: AtomicU64::new(numbers.snapshot),
            snapshots: AtomicU64::new(numbers.snapshots),
            memory_horizon: AtomicU64::new(numbers.memory_horizon),
            snapshot_horizon: AtomicU64::new(numbers.snapshot_horizon),
            derived_at: AtomicU64::new(numbers.global),
        }
    }
}

impl Drop for Epochs {
    fn drop(&mut self) {
        self.close();
        // No participant is left: each holds a reference.
        let heap = self.pool.heap();
        self.orphans.collect(Epoch::new(u64::MAX), usize::MAX, |retired| {
            // SAFETY: there is no participant that could reach it, and the heap is of the pool of these epochs.
            unsafe { retired.free(&heap) };
        });
    }
}

impl fmt::Debug for Epochs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epochs").field("published", &*self.published).field("slots", &self.slots).finish()
    }
}
