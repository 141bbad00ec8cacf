//! Pins: the proof that a participant is pinned, and the ways to one.

use std::alloc::Layout;
use std::ops::Deref;
use std::ptr::NonNull;

use ensilo_slab::{AccountId, OutOfMemory};

use crate::{Epoch, Epochs, Participant};

/// The proof that a participant is pinned: as long as it lives, what its holder can reach is not freed.
///
/// Guards nest; the outermost one pins. A guard stays on its thread.
#[derive(Debug)]
#[must_use = "the pin ends when the guard is dropped"]
pub struct Guard<'p> {
    participant: &'p Participant,
}

impl Participant {
    /// Pins: from now on, until the guard and all guards made meanwhile are dropped, nothing that can be reached is freed.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        self.count_pin();
        Guard { participant: self }
    }

    /// Like [`Participant::pin`], with a guard that may move between threads.
    #[inline]
    pub fn pin_exclusively(&mut self) -> ExclusiveGuard<'_> {
        ExclusiveGuard { guard: self.pin() }
    }

    /// Pins, and keeps the versions that a snapshot at the returned epoch shows: those with an earlier epoch.
    ///
    /// The snapshot is held until the outermost guard is dropped. Inside an older snapshot this returns the older one.
    #[inline]
    pub fn pin_snapshot(&self) -> (Guard<'_>, Epoch) {
        (self.pin(), self.publish_snapshot())
    }

    /// Like [`Participant::pin_snapshot`], with a guard that may move between threads.
    #[inline]
    pub fn pin_snapshot_exclusively(&mut self) -> (ExclusiveGuard<'_>, Epoch) {
        let (guard, epoch) = self.pin_snapshot();
        (ExclusiveGuard { guard }, epoch)
    }
}

impl<'p> Guard<'p> {
    /// Takes memory from the participant's heap.
    ///
    /// # Errors
    /// [`OutOfMemory`] when that would pass the pool's limit; nothing is changed.
    #[inline]
    pub fn allocate(&self, layout: Layout, account: AccountId) -> Result<NonNull<u8>, OutOfMemory> {
        self.participant.heap().allocate(layout, account)
    }

    /// Frees memory that was never published, at once.
    ///
    /// # Safety
    /// `block` came from the pool of these epochs, for this layout and account, and nobody else knows it.
    #[inline]
    pub unsafe fn free(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        // SAFETY: the caller owns the block alone, which came from this pool with this layout and account.
        unsafe { self.participant.heap().free(block, layout, account) };
    }

    /// Frees memory that was unlinked, once nobody can hold a reference to it any more.
    ///
    /// # Safety
    /// `block` came from the pool of these epochs, for this layout and account; a participant that pins from now on cannot find it; it is
    /// retired only this once.
    #[inline]
    pub unsafe fn retire(&self, block: NonNull<u8>, layout: Layout, account: AccountId) {
        // SAFETY: the caller's promise is the same as that of `Participant::retire`.
        unsafe { self.participant.retire(block, layout, account) };
    }

    /// Returns the epoch at which the participant is pinned.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> Epoch {
        self.participant.pinned_epoch()
    }

    /// Returns the epochs of the database.
    #[must_use]
    #[inline]
    pub fn epochs(&self) -> &'p Epochs {
        self.participant.epochs()
    }

    /// Returns the participant that is pinned.
    #[must_use]
    #[inline]
    pub fn participant(&self) -> &Participant {
        self.participant
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.participant.unpin();
    }
}

/// A [`Guard`] that may move to another thread, because as long as it lives nobody else can use its participant.
#[derive(Debug)]
#[must_use = "the pin ends when the guard is dropped"]
pub struct ExclusiveGuard<'p> {
    guard: Guard<'p>,
}

// SAFETY: `Participant::pin_exclusively` and `pin_snapshot_exclusively` borrow the participant mutably for 'p, so all references to it are derived from
// this value, and those that it gives end before it can be moved: `Deref` and `Guard::participant` tie them to a borrow of it, as must every method of
// `Guard` that gives one. `Guard::epochs` does not, and gives the epochs alone, which are Sync. The participant itself is Send.
unsafe impl Send for ExclusiveGuard<'_> {}

impl<'p> ExclusiveGuard<'p> {
    /// Ends the pin, and keeps the participant from everybody else.
    pub fn unpin(self) -> Unpinned<'p> {
        Unpinned { participant: self.guard.participant }
    }
}

impl<'p> Deref for ExclusiveGuard<'p> {
    type Target = Guard<'p>;

    #[inline]
    fn deref(&self) -> &Guard<'p> {
        &self.guard
    }
}

/// A participant that an [`ExclusiveGuard`] had pinned.
#[derive(Debug)]
pub struct Unpinned<'p> {
    participant: &'p Participant,
}

// SAFETY: as for `ExclusiveGuard`, from which the reference comes: it is the only one to the participant during 'p.
unsafe impl Send for Unpinned<'_> {}

impl<'p> Unpinned<'p> {
    /// Pins it again.
    pub fn pin(self) -> ExclusiveGuard<'p> {
        ExclusiveGuard { guard: self.participant.pin() }
    }
}
