//! The epochs of one database: the published numbers, and the tick that derives them.

mod awaited;
mod skip_to;
mod take_snapshot;
mod tick;

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use ensilo_slab::Pool;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::barrier;
use ensilo_sync::sync::{Mutex, MutexGuard};

use self::awaited::AwaitedSnapshots;
use self::take_snapshot::TakenSnapshots;
use crate::advancer::Advancer;
use crate::epoch::SnapshotInterval;
use crate::open_snapshots::OpenSnapshots;
use crate::retired::Orphans;
use crate::slot::{IDLE, ParticipantSlot, ParticipantSlots};
use crate::{Advance, Epoch, EpochCounters, EpochOptions};

/// The numbers as they were published last. A tick works on these alone.
#[derive(Debug)]
struct EpochNumbers {
    global: u64,
    snapshot: u64,
    /// The snapshot epoch before `snapshot`.
    snapshot_before: u64,
    memory_horizon: u64,
    snapshot_horizon: u64,
    /// The next snapshot horizon.
    next_horizon: NextHorizon,
    open: OpenSnapshots,
    /// Room for the epochs of snapshots that a tick finds.
    found: Vec<Epoch>,
    /// All that was committed before this has an epoch before `snapshot`.
    snapshot_instant: Instant,
    /// Epochs on the way to be the snapshot epoch.
    awaited: AwaitedSnapshots,
    /// How many snapshot epochs there were.
    snapshots: u64,
    /// How many ticks there were since then, but for those that nobody but a taken snapshot needed; and after how many the next one counts
    /// in any case. By the clock each one counts that is due.
    regular_ticks: u64,
    ticks_per_snapshot: u64,
    /// Where snapshots come by the clock: the epoch of the next one, and when it became that.
    due: u64,
    due_since: Instant,
    /// What [`Epochs::take_snapshot`] has taken.
    taken: TakenSnapshots,
}

/// What the snapshot horizon comes to once no commit is under way that may still look at versions from before: none that has begun before
/// this was published as the oldest snapshot.
#[derive(Debug)]
struct NextHorizon {
    epoch: u64,
    /// The global epoch of the tick that has published it.
    published_at: u64,
}

/// What all workers read. It is written by ticks alone: the numbers share cache lines.
#[derive(Debug)]
struct Published {
    global: AtomicU64,
    snapshot: AtomicU64,
    /// In nanoseconds since the epochs were created.
    snapshot_instant: AtomicU64,
    snapshots: AtomicU64,
    memory_horizon: AtomicU64,
    oldest_snapshot: AtomicU64,
    snapshot_horizon: AtomicU64,
    /// The tick that has found snapshots that others have overtaken; 0 if the last one found none.
    overtaken_at: AtomicU64,
    /// The global epoch of the last tick that is done: at which the other numbers were derived.
    derived_at: AtomicU64,
}

/// The epochs of one database.
pub struct Epochs {
    id: u64,
    created: Instant,
    published: CachePadded<Published>,
    interval: SnapshotInterval,
    snapshot_interval: Option<Duration>,
    first: Epoch,
    slots: ParticipantSlots,
    orphans: Orphans,
    pool: Arc<Pool>,
    /// What the tick of `overtaken_at` has found.
    open: CachePadded<Mutex<OpenSnapshots>>,
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
    /// When [`Epochs::try_new`] fails, or panics.
    #[must_use]
    pub fn new(options: EpochOptions, pool: Arc<Pool>) -> Arc<Epochs> {
        Epochs::try_new(options, pool)
            .unwrap_or_else(|error| panic!("no thread to advance the epochs: {error}"))
    }

    /// Creates the epochs of a database, as [`Epochs::new`] does.
    ///
    /// # Errors
    /// When the system has no thread left to advance the epochs.
    ///
    /// # Panics
    /// When the first epoch would come after [`Epoch::LAST`].
    pub fn try_new(options: EpochOptions, pool: Arc<Pool>) -> io::Result<Arc<Epochs>> {
        let interval = SnapshotInterval::new(options.epochs_per_snapshot);
        let first = options.start().get();
        assert!(first <= Epoch::LAST.get(), "no epoch is left to begin in");
        let created = Instant::now();
        let numbers = EpochNumbers {
            global: first,
            snapshot: first,
            snapshot_before: first,
            // Nothing has been committed yet.
            snapshot_instant: created,
            awaited: AwaitedSnapshots::default(),
            memory_horizon: first - 1,
            snapshot_horizon: first,
            next_horizon: NextHorizon { epoch: first, published_at: first },
            open: OpenSnapshots::from(Epoch::new(first)),
            found: Vec::new(),
            snapshots: 0,
            regular_ticks: 0,
            ticks_per_snapshot: if options.snapshot_interval.is_none() {
                interval.epochs()
            } else {
                u64::MAX
            },
            due: first,
            due_since: created,
            taken: TakenSnapshots::default(),
        };
        let epochs = Arc::new(Epochs {
            // Relaxed: the ids need only differ.
            id: NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            created,
            published: CachePadded::new(Published::new(&numbers)),
            interval,
            snapshot_interval: options.snapshot_interval,
            first: Epoch::new(first),
            slots: ParticipantSlots::new(),
            orphans: Orphans::new(),
            pool,
            open: CachePadded::new(Mutex::new(OpenSnapshots::default())),
            ticking: Mutex::new(numbers),
            advancer: Advancer::new(),
        });
        if options.advance == Advance::Thread {
            let weak = Arc::downgrade(&epochs);
            let tick = move || weak.upgrade().map(|epochs| epochs.advance()).is_some();
            epochs.advancer.start(options.epoch_interval, tick)?;
        }
        Ok(epochs)
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

    /// Returns when the snapshot epoch became the global epoch, or earlier: a snapshot that begins from now on shows all that was
    /// committed before that. It never falls.
    #[must_use]
    pub fn snapshot_instant(&self) -> Instant {
        // Acquire: [snapshot-instant] a snapshot that begins after this is of that snapshot epoch or a later one.
        self.created + Duration::from_nanos(self.published.snapshot_instant.load(Ordering::Acquire))
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

    /// No snapshot, now or later, is read at an earlier epoch. It never falls. A commit that reads this after
    /// [`Participant::begin_commit`](crate::Participant::begin_commit) may look at versions that are superseded in this epoch or later ones,
    /// until its [`Participant::end_commit`](crate::Participant::end_commit): the horizon does not pass them meanwhile. After
    /// [`Participant::move_commit`](crate::Participant::move_commit) it reads this anew.
    #[must_use]
    #[inline]
    pub fn oldest_snapshot(&self) -> Epoch {
        // Acquire: [oldest-snapshot].
        Epoch::new(self.published.oldest_snapshot.load(Ordering::Acquire))
    }

    /// Brings `known` up to date if there are snapshots that have been overtaken: since they began, the snapshot epoch has moved on twice. Where
    /// somebody else is about to do so, too, `known` stays as it is. Returns whether there are.
    #[inline]
    pub fn has_overtaken_snapshots(&self, known: &mut OpenSnapshots) -> bool {
        // Relaxed: what `known` has is true even if it is not the last (S1), and the lock orders what is copied.
        let found_at = self.published.overtaken_at.load(Ordering::Relaxed);
        if found_at != 0
            && known.found_at.get() != found_at
            && let Ok(open) = self.open.try_lock()
        {
            known.copy_from(&open);
        }
        found_at != 0
    }

    /// No snapshot, now or later, is read at an earlier epoch, and no commit looks at the versions that those needed. A version that was
    /// superseded in epoch `e` may go when `snapshot_of(e)` is earlier.
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
        let mut numbers = self.lock_numbers();
        numbers.regular_ticks += 1;
        self.tick(&mut numbers)
    }

    /// Moves the global epoch on if it is `epoch` or an earlier one. Returns whether it is later now: there is none after [`Epoch::LAST`].
    pub fn advance_past(&self, epoch: Epoch) -> bool {
        let mut numbers = self.lock_numbers();
        if numbers.global <= epoch.get() {
            self.tick(&mut numbers);
        }
        numbers.global > epoch.get()
    }

    fn lock_numbers(&self) -> MutexGuard<'_, EpochNumbers> {
        self.ticking.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.oldest_and_each_snapshot(|_| ())
    }

    /// Returns the minima over all slots, and calls `each` with the epochs of snapshots.
    fn oldest_and_each_snapshot(&self, mut each: impl FnMut(u64)) -> Oldest {
        let mut oldest = Oldest { pin: IDLE, commit: IDLE, snapshot: IDLE };
        for slot in self.slots.iter() {
            // Acquire: [unpin] what the participant did before it stored this is over and visible.
            oldest.pin = oldest.pin.min(slot.pin.load(Ordering::Acquire));
            oldest.commit = oldest.commit.min(slot.commit.load(Ordering::Acquire));
            let snapshot = slot.snapshot.load(Ordering::Acquire);
            if snapshot != IDLE {
                oldest.snapshot = oldest.snapshot.min(snapshot);
                each(snapshot);
            }
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

impl Published {
    fn new(numbers: &EpochNumbers) -> Self {
        Published {
            global: AtomicU64::new(numbers.global),
            snapshot: AtomicU64::new(numbers.snapshot),
            snapshot_instant: AtomicU64::new(0),
            snapshots: AtomicU64::new(numbers.snapshots),
            memory_horizon: AtomicU64::new(numbers.memory_horizon),
            oldest_snapshot: AtomicU64::new(numbers.open.oldest().get()),
            snapshot_horizon: AtomicU64::new(numbers.snapshot_horizon),
            overtaken_at: AtomicU64::new(0),
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
