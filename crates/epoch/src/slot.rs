//! Where participants say what they are doing.
//!
//! # Layout
//! A list of blocks of slots that only grows, so that a tick walks it without a lock while participants come and go. A slot
//! fills two cache lines of its own: its owner writes it several times per transaction, others read it once per tick.
//!
//! ```text
//! head -> [slot slot slot ..] -> [slot slot slot ..] -> null
//! slot: pin | commit | snapshot | in_use | retired_objects | retired_bytes
//! ```

use std::array;
use std::fmt;
use std::iter;
use std::ptr;

use ensilo_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use ensilo_sync::{CachePadded, unchecked};

/// Published by a participant that is not pinned, not committing, reads no snapshot: later than every epoch.
pub(crate) const IDLE: u64 = u64::MAX;

/// Slots in a block. Small under a model checker, which explores every load of a scan.
const SLOTS_PER_BLOCK: usize = if cfg!(any(loom, shuttle)) { 2 } else { 16 };

/// What one participant publishes. Only its owner writes it.
#[derive(Debug)]
pub(crate) struct ParticipantSlot {
    /// The epoch read when the participant began to hold references, or `IDLE`.
    pub(crate) pin: AtomicU64,
    /// The epoch read when the participant began to commit, or `IDLE`.
    pub(crate) commit: AtomicU64,
    /// The epoch of the snapshot that the participant reads, or `IDLE`.
    pub(crate) snapshot: AtomicU64,
    /// Objects in the participant's retire list.
    pub(crate) retired_objects: OwnerCounter,
    /// Bytes of the objects in the participant's retire list.
    pub(crate) retired_bytes: OwnerCounter,
    in_use: AtomicBool,
}

impl ParticipantSlot {
    fn new() -> Self {
        ParticipantSlot {
            pin: AtomicU64::new(IDLE),
            commit: AtomicU64::new(IDLE),
            snapshot: AtomicU64::new(IDLE),
            retired_objects: OwnerCounter::default(),
            retired_bytes: OwnerCounter::default(),
            in_use: AtomicBool::new(false),
        }
    }

    /// Returns whether a participant owns the slot.
    pub(crate) fn is_in_use(&self) -> bool {
        self.in_use.load(Ordering::Relaxed)
    }

    fn try_claim(&self) -> bool {
        // Acquire: [slot] what the previous owner stored here comes before what the new one stores.
        !self.is_in_use()
            && self.in_use.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Leaves the slot to the next participant.
    pub(crate) fn release(&self) {
        // Release: [unpin] for the first three, [slot] for the last.
        self.pin.store(IDLE, Ordering::Release);
        self.commit.store(IDLE, Ordering::Release);
        self.snapshot.store(IDLE, Ordering::Release);
        self.in_use.store(false, Ordering::Release);
    }
}

/// A count that its owner keeps and others read. A count is part of no protocol.
#[derive(Debug, Default)]
pub(crate) struct OwnerCounter(unchecked::AtomicU64);

impl OwnerCounter {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Called by the owner alone, as are the other two.
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.set(self.get() + more);
    }

    #[inline]
    pub(crate) fn subtract(&self, fewer: u64) {
        self.set(self.get() - fewer);
    }
}

struct SlotBlock {
    slots: [CachePadded<ParticipantSlot>; SLOTS_PER_BLOCK],
    next: AtomicPtr<SlotBlock>,
}

impl SlotBlock {
    fn new() -> Box<SlotBlock> {
        Box::new(SlotBlock {
            slots: array::from_fn(|_| CachePadded::new(ParticipantSlot::new())),
            next: AtomicPtr::new(ptr::null_mut()),
        })
    }

    /// Returns the next block, if there is one.
    fn next(&self) -> Option<&SlotBlock> {
        // Acquire: [block] a block is seen whole.
        let next = self.next.load(Ordering::Acquire);
        // SAFETY: a linked block lives as long as the list, of which `self` is a part: only `ParticipantSlots::drop` frees blocks.
        unsafe { next.as_ref() }
    }

    /// Returns the next block, made now if there is none.
    fn next_or_new(&self) -> &SlotBlock {
        if let Some(next) = self.next() {
            return next;
        }
        let block = Box::into_raw(SlotBlock::new());
        // Release: [block] a block is seen whole. Acquire on failure, for the winner's block.
        let linked = self.next.compare_exchange(ptr::null_mut(), block, Ordering::Release, Ordering::Acquire);
        match linked {
            // SAFETY: linked blocks live as long as the list, as above.
            Ok(_) => unsafe { &*block },
            Err(winner) => {
                // SAFETY: the block was made above and not linked, so that nobody else has seen it.
                drop(unsafe { Box::from_raw(block) });
                // SAFETY: linked blocks live as long as the list, as above.
                unsafe { &*winner }
            }
        }
    }
}

/// All slots.
pub(crate) struct ParticipantSlots {
    head: Box<SlotBlock>,
}

impl ParticipantSlots {
    pub(crate) fn new() -> Self {
        ParticipantSlots { head: SlotBlock::new() }
    }

    /// Returns a slot that nobody uses, for the caller alone until it calls [`ParticipantSlot::release`].
    pub(crate) fn claim(&self) -> &ParticipantSlot {
        let mut block = &*self.head;
        loop {
            if let Some(slot) = block.slots.iter().find(|slot| slot.try_claim()) {
                return slot;
            }
            block = block.next_or_new();
        }
    }

    /// Every slot, used or not.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ParticipantSlot> {
        iter::successors(Some(&*self.head), |block| block.next())
            .flat_map(|block| block.slots.iter().map(|slot| &**slot))
    }
}

impl Drop for ParticipantSlots {
    fn drop(&mut self) {
        // Relaxed: nobody else has the list any more.
        let mut next = self.head.next.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: `next_or_new` made each linked block with `Box::into_raw`, and each is linked once.
            let block = unsafe { Box::from_raw(next) };
            next = block.next.load(Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for ParticipantSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().filter(|slot| slot.is_in_use())).finish()
    }
}
