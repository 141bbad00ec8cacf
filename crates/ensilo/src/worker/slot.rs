//! A slot: one thread's worker, which its thread uses without a lock, a visitor may use while the thread does
//! not, and a closing database can take away.
//!
//! # Terms
//! The *owner* is the thread that has the slot in its cache, or the thread that has the
//! [`Lease`](super::Lease) which holds it. The *closer* is any thread that closes the database. The *visitor*
//! is any thread that uses the worker of an idle owner, as to collect its garbage. `W` is what the slot
//! guards: the worker with its thread's scratch memory.
//!
//! # Invariants
//! - S1: only the owner writes `is_busy`, and only between entering and leaving does it touch `worker`.
//! - S2: a thread that takes the worker out of the slot has won `is_claimed`, after `access` was set to
//!   `CLOSED`.
//! - S3: the owner touches `worker` only when it saw `access` to be `OPEN` after setting `is_busy` (and the
//!   barrier).
//! - S4: others change `access` under the lock `visits` alone. It is `VISITED` only while a visitor holds
//!   that, and `CLOSED` for good. A visitor touches `worker` only after it set `VISITED` and then (behind the
//!   barrier) saw `is_busy` unset.
//!
//! # Memory ordering
//! `[slot-close]` is the store-buffering litmus test of [`ensilo_sync::barrier`]. The owner stores `is_busy`,
//! light barrier, loads `access`; closer and visitor store `access`, heavy barrier, load `is_busy`. At least
//! one sees the other's store: either the owner does not enter, or they leave the worker to it. The same
//! holds when the owner leaves: it clears `is_busy`, light barrier, loads `access`: either the closer sees
//! the slot idle, or the owner sees that it is closed; when both do, `is_claimed` decides. An owner that
//! finds a visitor stays busy, waits until the visit is over, and loads `access` again: a visitor that comes
//! meanwhile finds it busy.
//!
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[slot-leave]` | `leave`: `is_busy` Release | `take_if_idle`, `visit`: `is_busy` Acquire | the owner's last use of the worker before closer or visitor use it |
//! | `[slot-visit]` | `visit`, and `mark_closed` behind it: `access` Release | `enter`, `leave`: `access` Acquire | the visitor's use of the worker before the owner's next one, or before the owner takes it out |

#![allow(unsafe_code, reason = "a worker that its thread uses without a lock, and others while it is idle")]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicBool, AtomicU8, Ordering};
use ensilo_sync::barrier::{self, LightBarrier};
use ensilo_sync::sync::{Mutex, MutexGuard};

use crate::error::NestedCall;
use crate::{Error, Result};

/// The owner may enter.
const OPEN: u8 = 0;
/// The owner may enter once the visit is over.
const VISITED: u8 = 1;
/// The owner may not enter.
const CLOSED: u8 = 2;

/// See the module's documentation.
pub(crate) struct Slot<W> {
    flags: CachePadded<Flags>,
    /// Held by a visitor during its visit, and by the closer while it marks the slot.
    visits: Mutex<()>,
    worker: UnsafeCell<Option<W>>,
}

struct Flags {
    is_busy: AtomicBool,
    /// `OPEN`, `VISITED` or `CLOSED`.
    access: AtomicU8,
    is_claimed: AtomicBool,
    barrier: LightBarrier,
}

// SAFETY: `worker` is the only part that is not Sync by itself. It is touched by the owner between entering
// and leaving (S1, S3), by the one thread that has won `is_claimed` (S2) and by a visitor (S4). [slot-close]
// excludes the owner from the time of the others, and the lock `visits` these from each other's. A closer on
// another thread drops the worker there, hence `W: Send`.
unsafe impl<W: Send> Sync for Slot<W> {}

/// The owner's use of its worker, from entering to leaving. Not `Send`: it belongs to the thread that
/// entered, unless a `Lease` takes it along.
pub(crate) struct Entered<'s, W: Send> {
    slot: &'s Slot<W>,
    of_this_thread: PhantomData<*mut ()>,
}

impl<W: Send> Slot<W> {
    pub(crate) fn new(worker: W) -> Self {
        let flags = Flags {
            is_busy: AtomicBool::new(false),
            access: AtomicU8::new(OPEN),
            is_claimed: AtomicBool::new(false),
            barrier: LightBarrier::new(),
        };
        Slot { flags: CachePadded::new(flags), visits: Mutex::new(()), worker: UnsafeCell::new(Some(worker)) }
    }

    /// Begins to use the worker.
    ///
    /// # Errors
    /// [`Error::NestedRequest`] when the owner is using it already, [`Error::Closed`] when the database was
    /// closed.
    ///
    /// # Safety
    /// The calling thread is the slot's owner: always the same one, or the one that has taken over from the
    /// one before.
    #[inline]
    pub(crate) unsafe fn enter(&self) -> Result<Entered<'_, W>> {
        let flags = &*self.flags;
        // Relaxed: written by owners only, and the one before has handed over.
        if flags.is_busy.load(Ordering::Relaxed) {
            return Err(Error::NestedRequest(NestedCall::RequestInRequest));
        }
        // Relaxed: ordered by [slot-close].
        flags.is_busy.store(true, Ordering::Relaxed);
        flags.barrier.pass();
        // Acquire: [slot-visit].
        if flags.access.load(Ordering::Acquire) != OPEN && !self.wait_for_visitor() {
            self.leave();
            return Err(Error::Closed);
        }
        Ok(Entered { slot: self, of_this_thread: PhantomData })
    }

    /// Returns whether the owner is using the worker; exact for the owner.
    pub(crate) fn is_busy(&self) -> bool {
        self.flags.is_busy.load(Ordering::Relaxed)
    }

    /// Returns whether the database was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.flags.access.load(Ordering::Relaxed) == CLOSED
    }

    /// Says that the database was closed; [`Slot::take_if_idle`] follows after a heavy barrier. Waits for a
    /// visitor.
    pub(crate) fn mark_closed(&self) {
        let _visits = self.lock_visits();
        // Release: [slot-visit], from the visitor whose lock this closer has taken. For the rest it is
        // ordered by [slot-close].
        self.flags.access.store(CLOSED, Ordering::Release);
    }

    /// Lets `work` use the worker, unless its owner is using it or the database was closed. The owner waits
    /// until `work` returns, which can ask whether it does by [`Slot::is_busy`].
    pub(crate) fn visit<R>(&self, work: impl FnOnce(&mut W) -> R) -> Option<R> {
        let _visits = self.lock_visits();
        // A glance that spares a busy owner the rest.
        if self.is_busy() || self.is_closed() {
            return None;
        }
        // Relaxed: ordered by [slot-close].
        self.flags.access.store(VISITED, Ordering::Relaxed);
        let _visit = Visit { access: &self.flags.access };
        barrier::heavy();
        // Acquire: [slot-leave].
        if self.flags.is_busy.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: S4: the owner was not between entering and leaving behind the barrier, so that by
        // [slot-close] it will find the slot visited when it next enters, and wait. The closer waits for the
        // lock that this visitor holds, and finds the worker in its place.
        unsafe { (*self.worker.get()).as_mut() }.map(work)
    }

    /// Waits until the visit that the owner has met is over; false when the database was closed.
    #[cold]
    fn wait_for_visitor(&self) -> bool {
        loop {
            // Acquire: [slot-visit].
            match self.flags.access.load(Ordering::Acquire) {
                OPEN => return true,
                CLOSED => return false,
                _ => drop(self.lock_visits()),
            }
        }
    }

    fn lock_visits(&self) -> MutexGuard<'_, ()> {
        // It guards nothing that a panic could leave half done.
        self.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the worker out of a slot that was marked closed before a heavy barrier, unless its owner is
    /// using it: the owner then takes it out on leaving.
    pub(crate) fn take_if_idle(&self) -> Option<W> {
        // Acquire: [slot-leave].
        if self.flags.is_busy.load(Ordering::Acquire) {
            return None;
        }
        self.claim()
    }

    /// Plants a fault for the model to find: this slot's light barriers do nothing.
    #[cfg(all(test, loom))]
    fn plant_missing_barriers(&mut self) {
        self.flags.barrier = LightBarrier::missing();
    }

    #[inline]
    fn leave(&self) {
        // Release: [slot-leave].
        self.flags.is_busy.store(false, Ordering::Release);
        self.flags.barrier.pass();
        // Acquire: [slot-visit].
        if self.flags.access.load(Ordering::Acquire) == CLOSED {
            drop(self.claim());
        }
    }

    #[cold]
    fn claim(&self) -> Option<W> {
        // Relaxed: the claim only decides between two threads that are each entitled; what the other one did
        // to the worker came over [slot-leave], and the loser does nothing.
        if self.flags.is_claimed.swap(true, Ordering::Relaxed) {
            return None;
        }
        // SAFETY: by S2 no other thread takes the worker out. The owner is not between entering and leaving:
        // either this is the owner itself, leaving, or this is a closer that saw the slot idle after its
        // heavy barrier, so that by [slot-close] the owner will find the slot closed when it next enters.
        unsafe { (*self.worker.get()).take() }
    }
}

/// A visit. Its end, also by a panic, lets the owner in.
struct Visit<'s> {
    access: &'s AtomicU8,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Release: [slot-visit].
        self.access.store(OPEN, Ordering::Release);
    }
}

impl<W: Send> Deref for Entered<'_, W> {
    type Target = W;

    #[inline]
    fn deref(&self) -> &W {
        // SAFETY: S3 held when this value was made, so nobody takes the worker out until it is dropped, and
        // nobody else has a reference: there is one `Entered` at a time.
        match unsafe { &*self.slot.worker.get() } {
            Some(worker) => worker,
            None => unreachable!("an entered slot has its worker"),
        }
    }
}

impl<W: Send> DerefMut for Entered<'_, W> {
    #[inline]
    fn deref_mut(&mut self) -> &mut W {
        // SAFETY: as in `deref`, and `&mut self` makes this the only reference.
        match unsafe { &mut *self.slot.worker.get() } {
            Some(worker) => worker,
            None => unreachable!("an entered slot has its worker"),
        }
    }
}

impl<W: Send> Drop for Entered<'_, W> {
    #[inline]
    fn drop(&mut self) {
        self.slot.leave();
    }
}

#[cfg(all(test, loom))]
mod models;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    struct CountsDrops(Arc<AtomicUsize>, Box<u64>);

    impl Drop for CountsDrops {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn slot() -> (Arc<Slot<CountsDrops>>, Arc<AtomicUsize>) {
        let drops = Arc::new(AtomicUsize::new(0));
        (Arc::new(Slot::new(CountsDrops(Arc::clone(&drops), Box::new(0)))), drops)
    }

    #[test]
    fn entering_twice_is_an_error_and_entering_again_is_not() {
        let (slot, _) = slot();
        // SAFETY: one thread throughout.
        let entered = unsafe { slot.enter() }.unwrap();
        // SAFETY: as above.
        assert!(matches!(unsafe { slot.enter() }, Err(Error::NestedRequest(_))));
        drop(entered);
        // SAFETY: as above.
        assert!(unsafe { slot.enter() }.is_ok());
    }

    #[test]
    fn a_worker_in_use_is_taken_by_its_owner_when_it_leaves() {
        let (slot, drops) = slot();
        // SAFETY: one thread throughout.
        let entered = unsafe { slot.enter() }.unwrap();
        slot.mark_closed();
        barrier::heavy();
        assert!(slot.take_if_idle().is_none());
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(entered);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        // SAFETY: as above.
        assert!(matches!(unsafe { slot.enter() }, Err(Error::Closed)));
    }

    #[test]
    fn a_visitor_uses_idle_workers_only() {
        let (slot, _) = slot();
        assert_eq!(slot.visit(|worker| *worker.1 += 1), Some(()));
        // SAFETY: one thread throughout.
        let entered = unsafe { slot.enter() }.unwrap();
        assert_eq!((*entered.1, slot.visit(|_| ())), (1, None));
        drop(entered);
        slot.mark_closed();
        assert_eq!(slot.visit(|_| ()), None);
    }

    #[test]
    fn an_owner_gets_in_again_after_a_visitor_that_panicked() {
        let (slot, _) = slot();
        let visit = std::panic::AssertUnwindSafe(|| slot.visit(|_| panic!("on purpose")));
        assert!(std::panic::catch_unwind(visit).is_err());
        // SAFETY: one thread throughout.
        assert!(unsafe { slot.enter() }.is_ok());
    }

    #[test]
    fn owner_and_closer_never_share_the_worker_and_it_is_dropped_once() {
        for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
            let (slot, drops) = slot();
            let owner = Arc::clone(&slot);
            let thread = std::thread::spawn(move || {
                let mut requests = 0;
                // SAFETY: this thread alone enters.
                while let Ok(mut entered) = unsafe { owner.enter() } {
                    requests += 1;
                    *entered.1 += 1;
                    assert_eq!(*entered.1, requests);
                }
            });
            slot.mark_closed();
            barrier::heavy();
            drop(slot.take_if_idle());
            thread.join().unwrap();
            assert_eq!(drops.load(Ordering::Relaxed), 1);
        }
    }
}
