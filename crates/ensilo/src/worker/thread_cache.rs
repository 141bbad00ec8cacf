//! The slots of one thread, by database.
//!
//! # Invariants
//! - C1: the slot under the id of a [`DatabaseKey<W>`] is a `Slot<W>` that this thread made for itself: ids
//!   are minted with their key and never used again.
//! - C2: `LAST` is empty or names an entry of `SLOTS` of the same thread.
//! - C3: an entry leaves `SLOTS` only when its slot is not busy, or with its thread.

#![allow(
    unsafe_code,
    reason = "one thread-local word names a slot of a type that the database's key vouches for"
)]

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::slot::{Entered, Slot};
use super::use_note::has_used_open_transaction;
use crate::error::NestedCall;
use crate::{Error, Result};

/// Names no database.
const NO_DATABASE: u64 = 0;

/// Ids of databases; none is used again.
static NEXT_DATABASE: AtomicU64 = AtomicU64::new(NO_DATABASE + 1);

/// Names a database that has workers of type `W`. There is one for each id.
pub(crate) struct DatabaseKey<W> {
    id: u64,
    workers: PhantomData<fn() -> W>,
}

impl<W> DatabaseKey<W> {
    /// Makes the key of a new database.
    pub(crate) fn mint() -> Self {
        // Relaxed: the ids need only differ.
        DatabaseKey { id: NEXT_DATABASE.fetch_add(1, Ordering::Relaxed), workers: PhantomData }
    }

    /// Returns the id, which is never 0.
    #[inline(always)]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

thread_local! {
    /// The slot that this thread used last. Has no destructor, hence is reached without a look at its state.
    static LAST: Cell<(u64, *const ())> = const { Cell::new((NO_DATABASE, std::ptr::null())) };
    static SLOTS: ThreadSlots = const { ThreadSlots { entries: RefCell::new(Vec::new()) } };
}

struct ThreadSlots {
    entries: RefCell<Vec<SlotEntry>>,
}

struct SlotEntry {
    database: u64,
    slot: Arc<dyn AnySlot>,
}

/// A slot of any worker type.
trait AnySlot: Any + Send + Sync {
    fn is_busy(&self) -> bool;
    fn is_closed(&self) -> bool;
}

impl<W: Send + 'static> AnySlot for Slot<W> {
    fn is_busy(&self) -> bool {
        self.is_busy()
    }

    fn is_closed(&self) -> bool {
        self.is_closed()
    }
}

impl Drop for ThreadSlots {
    fn drop(&mut self) {
        // C2: the entries go now. Each drops its worker here, unless a closer holds the slot too.
        LAST.set((NO_DATABASE, std::ptr::null()));
    }
}

/// Enters the calling thread's slot of the database. When the thread has none, `make` makes it.
///
/// # Errors
/// Those of [`Slot::enter`] and of `make`; [`Error::ThreadEnding`].
#[inline]
pub(crate) fn enter<W: Send + 'static>(
    database: &DatabaseKey<W>,
    make: impl FnOnce() -> Result<Arc<Slot<W>>>,
) -> Result<Entered<'_, W>> {
    let (last, slot) = LAST.get();
    let slot = if last == database.id { slot } else { find_or_make(database.id, make)? };
    // SAFETY: by C2 the pointer names an entry of this thread, by C1 of type `Slot<W>`. By C3 the entry stays
    // while the slot is busy, which it is as long as the value returned lives; that value is bound to this
    // thread and cannot outlive the borrow of the database, so it lies in a frame of the stack, which is gone
    // when the thread's destructors run. This thread is the owner (C1).
    unsafe { (*slot.cast::<Slot<W>>()).enter() }
}

#[cold]
fn find_or_make<W: Send + 'static>(
    id: u64,
    make: impl FnOnce() -> Result<Arc<Slot<W>>>,
) -> Result<*const ()> {
    let known = find(id)?.map(|slot| Arc::as_ptr(&slot).cast::<()>());
    let slot = match known {
        Some(slot) => slot,
        None => add(id, make()?)?,
    };
    LAST.set((id, slot));
    Ok(slot)
}

fn add<W: Send + 'static>(id: u64, slot: Arc<Slot<W>>) -> Result<*const ()> {
    let pointer = Arc::as_ptr(&slot).cast::<()>();
    let added = SLOTS.try_with(|slots| {
        let mut entries = slots.entries.borrow_mut();
        // C3; and C2: the caller sets LAST to the new entry.
        entries.retain(|entry| entry.slot.is_busy() || !entry.slot.is_closed());
        entries.push(SlotEntry { database: id, slot });
    });
    added.map(|()| pointer).map_err(|_| Error::ThreadEnding)
}

/// Returns the thread's entry for the database.
fn find(id: u64) -> Result<Option<Arc<dyn AnySlot>>> {
    let found = SLOTS.try_with(|slots| {
        let entries = slots.entries.borrow();
        entries.iter().find(|entry| entry.database == id).map(|entry| Arc::clone(&entry.slot))
    });
    found.map_err(|_| Error::ThreadEnding)
}

/// Checks that the calling thread is not inside a request to the database, and was not the last to use an
/// open transaction of it: else it must not wait for all transactions to end, for one of them is its own.
///
/// # Errors
/// [`Error::NestedRequest`]; [`Error::ThreadEnding`] when nobody can tell any more.
pub(crate) fn check_outside_transactions(id: u64) -> Result<()> {
    if find(id)?.is_some_and(|slot| slot.is_busy()) {
        return Err(Error::NestedRequest(NestedCall::ChangeInRequest));
    }
    if has_used_open_transaction(id)? {
        return Err(Error::NestedRequest(NestedCall::ChangeInTransaction));
    }
    Ok(())
}
