//! A participant in the work on the database: what it publishes, what it allocates and what it retires.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use ensilo_slab::{AccountId, Heap};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::barrier::LightBarrier;
use ensilo_sync::region::{self, Region};

use crate::retired::Retired;
use crate::slot::{IDLE, ParticipantSlot};
use crate::{Epoch, Epochs, RetireList};

/// So many blocks are loaded together that are freed next: they were used last some epochs ago.
const BLOCKS_AHEAD: usize = 16;

/// One of those that work on the database, such as a worker; on one thread at a time.
///
/// Dropping it leaves its slot to the next participant and its garbage to the next one that collects.
// In this order: what every transaction touches comes first, on one cache line.
#[repr(C)]
pub struct Participant {
    slot: NonNull<ParticipantSlot>,
    epochs: Arc<Epochs>,
    heap: Heap,
    /// How many guards live.
    depth: Cell<usize>,
    /// The snapshot that the slot publishes: [`IDLE`] if none.
    snapshot: Cell<u64>,
    /// The memory horizon at which the last collection left nothing ripe.
    quiet_at: Cell<Epoch>,
    barrier: LightBarrier,
    retired: RefCell<RetireList<Retired>>,
}

// SAFETY: the slot belongs to this participant alone, whatever thread it is on, and what others do with it they do with
// atomics. `epochs` keeps it alive. All other parts are Send.
unsafe impl Send for Participant {}

impl Epochs {
    /// Returns a new participant, in a slot that another one left or in a new one.
    #[must_use]
    pub fn participant(self: &Arc<Self>) -> Participant {
        Participant::new(Arc::clone(self))
    }
}

impl Participant {
    fn new(epochs: Arc<Epochs>) -> Self {
        let heap = epochs.pool().heap();
        Participant {
            slot: NonNull::from(epochs.claim_slot()),
            depth: Cell::new(0),
            snapshot: Cell::new(IDLE),
            barrier: LightBarrier::new(),
            quiet_at: Cell::new(Epoch::new(0)),
            epochs,
            heap,
            retired: RefCell::new(RetireList::new()),
        }
    }

    /// Counts a pin; the first one is published.
    #[inline]
    pub(crate) fn count_pin(&self) {
        let _epochs = region::enter(Region::Epochs);
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            let epoch = self.epochs.global_epoch();
            // Release: [unpin] the previous pin may be overwritten before a tick has seen that it ended.
            self.slot().pin.store(epoch.get(), Ordering::Release);
            // Light: [pin] a tick that does not see the pin has its barrier before the reads that follow here.
            self.barrier.pass();
        }
    }

    /// Ends the pins of guards that were leaked. No guard is left but those: each borrows the participant.
    pub fn end_leaked_pins(&mut self) {
        if self.depth.get() > 0 {
            self.depth.set(1);
            self.unpin();
        }
    }

    /// Publishes the snapshot epoch, unless an older one is published, until the last pin ends. Returns what is published. The caller
    /// has counted a pin.
    #[inline]
    pub(crate) fn publish_snapshot(&self) -> Epoch {
        let _epochs = region::enter(Region::Epochs);
        if self.snapshot.get() != IDLE {
            return Epoch::new(self.snapshot.get());
        }
        let mut epoch = self.epochs.snapshot_epoch();
        loop {
            // Release: [unpin] as in `count_pin`.
            self.slot().snapshot.store(epoch.get(), Ordering::Release);
            // Light: a tick that does not see the snapshot has its barrier before the read that follows.
            self.barrier.pass();
            let now = self.epochs.snapshot_epoch();
            if now == epoch {
                self.snapshot.set(epoch.get());
                return epoch;
            }
            epoch = now;
        }
    }

    /// Says that a commit begins: until [`Participant::end_commit`], no snapshot will cover an epoch that the global
    /// epoch has from now on.
    #[inline]
    pub fn begin_commit(&self) {
        let _epochs = region::enter(Region::Epochs);
        let epoch = self.epochs.global_epoch();
        // Release: [unpin] as in `count_pin`.
        self.slot().commit.store(epoch.get(), Ordering::Release);
        // Light: a tick that does not see this has its barrier before the commit reads its epoch.
        self.barrier.pass();
    }

    /// Says that the commit that has begun will have an epoch no earlier than this one: nobody has to wait for it
    /// in those before. What it has read by [`Epochs::oldest_snapshot`] before protects nothing any more.
    pub fn move_commit(&self, epoch: Epoch) {
        // Release: [unpin] what it did in the epochs before is over.
        self.slot().commit.store(epoch.get(), Ordering::Release);
    }

    /// Says that all writes of the commit are installed, or that it was given up.
    #[inline]
    pub fn end_commit(&self) {
        let _epochs = region::enter(Region::Epochs);
        // Release: [unpin] the installed writes are visible to every reader of a snapshot epoch that covers them.
        self.slot().commit.store(IDLE, Ordering::Release);
    }

    /// Returns the global epoch.
    #[must_use]
    #[inline]
    pub fn global_epoch(&self) -> Epoch {
        self.epochs.global_epoch()
    }

    /// Returns the epochs of the database.
    #[must_use]
    #[inline]
    pub fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// Returns the heap of this participant.
    #[must_use]
    #[inline]
    pub fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Frees retired memory that cannot be reached any more: its own, and what departed participants left. Frees at most `budget`
    /// blocks and returns how many. Costs next to nothing while there is nothing to free.
    #[inline]
    pub fn collect(&self, budget: usize) -> usize {
        let horizon = self.epochs.memory_horizon();
        if horizon == self.quiet_at.get() { 0 } else { self.collect_ripe(horizon, budget) }
    }

    #[cold]
    fn collect_ripe(&self, horizon: Epoch, budget: usize) -> usize {
        let _epochs = region::enter(Region::Epochs);
        let mut freed = 0;
        while freed < budget
            && let Some(retired) = self.pop_ripe(horizon)
        {
            if freed.is_multiple_of(BLOCKS_AHEAD) {
                self.retired.borrow().ripe(horizon, BLOCKS_AHEAD).for_each(Retired::prefetch);
            }
            // SAFETY: the horizon has passed the tag; the heap is of the pool of these epochs.
            unsafe { retired.free(&self.heap) };
            freed += 1;
        }
        freed += self.epochs.orphans().collect(horizon, budget - freed, |retired| {
            // SAFETY: as above.
            unsafe { retired.free(&self.heap) };
        });
        if freed < budget {
            self.quiet_at.set(horizon);
        }
        freed
    }

    /// Returns whether something that this participant has retired still waits.
    #[must_use]
    pub fn has_retired(&self) -> bool {
        !self.retired.borrow().is_empty()
    }

    /// Returns how many blocks that this participant has retired wait for memory horizons before this one.
    #[must_use]
    pub fn retired_before(&self, horizon: Epoch) -> usize {
        self.retired.borrow().len_before(horizon)
    }

    fn pop_ripe(&self, horizon: Epoch) -> Option<Retired> {
        let retired = self.retired.borrow_mut().pop_ripe(horizon)?;
        self.slot().retired_objects.subtract(1);
        self.slot().retired_bytes.subtract(retired.bytes());
        Some(retired)
    }

    /// # Safety
    /// As for [`Guard::retire`](crate::Guard::retire).
    pub(crate) unsafe fn retire(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        let _epochs = region::enter(Region::Epochs);
        // SAFETY: the caller's promise.
        let retired = unsafe { Retired::new(block, layout, account) };
        self.slot().retired_objects.add(1);
        self.slot().retired_bytes.add(retired.bytes());
        self.retired.borrow_mut().push(self.retire_epoch(), retired);
    }

    /// What was stored before this is seen behind a [heavy barrier](ensilo_sync::barrier::heavy), or what that one's thread stored before it is seen behind
    /// this: for protocols of one's own.
    #[inline]
    pub fn light_barrier(&self) {
        self.barrier.pass();
    }

    /// Returns the tag for something that was just unlinked: the global epoch, read behind a barrier.
    ///
    /// What is kept in a [`RetireList`] of one's own may be freed once [`Epochs::memory_horizon`] is later than this.
    #[must_use]
    #[inline]
    pub fn retire_epoch(&self) -> Epoch {
        // Light: [pin] a tick whose epoch this does not see has its barrier behind the unlinking.
        self.barrier.pass();
        self.epochs.global_epoch()
    }

    /// Plants a fault for a model to find: this participant's light barriers do nothing.
    #[cfg(any(loom, shuttle))]
    #[doc(hidden)]
    pub fn plant_missing_barriers(&mut self) {
        self.barrier = LightBarrier::missing();
    }

    #[inline]
    pub(crate) fn pinned_epoch(&self) -> Epoch {
        // Relaxed: only this participant writes it.
        Epoch::new(self.slot().pin.load(Ordering::Relaxed))
    }

    #[inline]
    pub(crate) fn unpin(&self) {
        let _epochs = region::enter(Region::Epochs);
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth == 0 {
            self.snapshot.set(IDLE);
            // Release: [unpin] the reads under the guard come before the reuse of what they read.
            self.slot().snapshot.store(IDLE, Ordering::Release);
            self.slot().pin.store(IDLE, Ordering::Release);
        }
    }

    #[inline]
    fn slot(&self) -> &ParticipantSlot {
        // SAFETY: the slot lies in `epochs`, which this participant keeps alive, and slots never move.
        unsafe { self.slot.as_ref() }
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        let slot = self.slot();
        self.epochs.orphans().leave(self.retired.take(), slot.retired_bytes.get());
        slot.retired_objects.set(0);
        slot.retired_bytes.set(0);
        slot.release();
    }
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant").field("slot", self.slot()).field("depth", &self.depth).finish()
    }
}
