//! Which rows leave memory, and how.
//!
//! A hand goes over the indirection arrays of all stores, and marks records as cooling. Those that nobody has used since leave in the order in
//! which they were marked: what is used often is hardly ever among them.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use ensilo_engine::{Remains, Store as _, TableId};
use ensilo_epoch::{Epoch, Guard};
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::clean::Cleaner;
use super::load::end_cooling;
use super::{COLD, COOLING, ColdRows, Excess, Leaving, excess_bytes};
use crate::isolation::{Certificates, Fault, Isolation, has_fault};
use crate::oid_array::{DEAD, Oid};
use crate::session::SessionState;
use crate::shared::ErmiaShared;
use crate::stamp::{Author, Stamp};
use crate::store::{ErmiaStore, lock};
use crate::version::Version;

/// Bytes of rows that leave at a time.
pub(super) const LEAVING_BYTES: u64 = 256 << 10;

/// Slots that the hand passes at a time.
const SLOTS: usize = 4096;

/// What leaves when a session finds no memory although there should be some: it lies in pieces that are too small, or elsewhere.
const SHORTAGE_BYTES: u64 = 512 << 10;

/// Chooses rows that leave memory, and lets them go.
#[derive(Debug, Default)]
pub(crate) struct Evictor {
    pub(super) hand: Hand,
    cleaner: Cleaner,
    cooling: VecDeque<Cooling>,
    cooling_bytes: u64,
    shortages: u64,
}

/// A record that is cooling.
#[derive(Debug)]
struct Cooling {
    /// The epoch in which it was marked, or a later one.
    since: Epoch,
    store: NonNull<ErmiaStore>,
    oid: Oid,
    /// What its slot holds as long as nobody uses it.
    word: u64,
    bytes: u64,
}

// SAFETY: the address of a store is good as long as the engine, to which the evictor belongs.
unsafe impl Send for Evictor {}

/// Where the hand is.
#[derive(Debug, Default)]
pub(super) struct Hand {
    store: Option<Arc<ErmiaStore>>,
    next: usize,
}

impl Evictor {
    /// Lets a bounded amount of rows leave, and marks others, if memory is short.
    pub(crate) fn step<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        state: &mut SessionState<I>,
    ) -> Remains {
        let Some(cold) = shared.cold.as_ref() else { return Remains::Nothing };
        cold.remove_empty(shared.epochs.memory_horizon(), || state.participant.retire_epoch());
        let cleaned = self.cleaner.step(shared, cold, state);
        let shortages = shared.epochs.pool().shortages();
        let is_short = std::mem::replace(&mut self.shortages, shortages) != shortages;
        let Some(mut excess) = excess_bytes::<I>(&shared.epochs) else { return cleaned };
        if is_short {
            excess.leaving_bytes = excess.leaving_bytes.max(SHORTAGE_BYTES);
        }
        state.look(shared, |guard, _| {
            let left = self.evict::<I>(shared, cold, guard, excess.leaving_bytes);
            self.cool::<I>(shared, guard, excess).max(left).max(cleaned)
        })
    }

    /// Evicts rows that have cooled, the longest first, of about so many bytes.
    fn evict<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        cold: &ColdRows,
        guard: &Guard<'_>,
        bytes: u64,
    ) -> Remains {
        if bytes == 0 {
            return Remains::Later;
        }
        let ripe = self.take_ripe::<I>(shared.epochs.memory_horizon(), bytes.min(LEAVING_BYTES));
        if ripe.is_empty() {
            return Remains::Later;
        }
        // Of those that were used meanwhile nothing is to be done.
        let still_cooling = |cooling: &Cooling| {
            // SAFETY: the engine keeps all of its stores.
            let store = unsafe { cooling.store.as_ref() };
            !store.is_dropped() && store.slot(cooling.oid).load(Ordering::Acquire) == cooling.word
        };
        let leaving: Vec<_> = ripe.into_iter().filter(still_cooling).collect();
        match evict_all::<I>(cold, guard, &leaving) {
            Ok(()) => Remains::Now,
            Err(_) => {
                // The disk takes nothing: memory stays as full as it is.
                leaving.iter().for_each(|cooling| _ = end_cooling(cooling.slot(), cooling.word));
                Remains::Later
            }
        }
    }

    fn take_ripe<I: Isolation>(&mut self, horizon: Epoch, bytes: u64) -> Vec<Cooling> {
        let mut ripe = Vec::new();
        let mut taken = 0;
        let is_ripe = |cooling: &mut Cooling| cooling.since < horizon || has_fault::<I>(Fault::EvictUsed);
        while taken < bytes
            && let Some(cooling) = self.cooling.pop_front_if(is_ripe)
        {
            taken += cooling.bytes;
            self.cooling_bytes -= cooling.bytes;
            ripe.push(cooling);
        }
        ripe
    }

    /// Marks records, until enough bytes are cooling, or for now.
    fn cool<I: Isolation>(&mut self, shared: &ErmiaShared, guard: &Guard<'_>, excess: Excess) -> Remains {
        let first = self.cooling.len();
        let mut is_enough = false;
        for _ in 0..SLOTS {
            is_enough = self.cooling_bytes >= excess.cooling_bytes;
            // C3: a lap begins when nothing is left of the one before.
            if is_enough || (self.hand.store.is_none() && !self.cooling.is_empty()) {
                break;
            }
            match self.hand.advance(shared) {
                Some((store, oid)) => self.mark::<I>(shared.horizon.get(), store, oid),
                None => break,
            }
        }
        // Behind the marks: who has found a version before has pinned before this.
        let since = guard.participant().retire_epoch();
        self.cooling.iter_mut().skip(first).for_each(|cooling| cooling.since = since);
        if is_enough || self.cooling.len() == first { Remains::Later } else { Remains::Now }
    }

    /// Marks a record as cooling, if it may leave.
    fn mark<I: Isolation>(&mut self, horizon: Stamp, store: NonNull<ErmiaStore>, oid: Oid) {
        // SAFETY: the engine keeps all of its stores.
        let slot = unsafe { store.as_ref() }.slot(oid);
        // Acquire: [head].
        let word = slot.load(Ordering::Acquire);
        if word & (COLD | COOLING | DEAD) != 0 {
            return;
        }
        // SAFETY: the hand moves on behalf of one that is pinned and has begun: see `ErmiaStore::newest`.
        let Some(version) = (unsafe { Version::<I>::from_word(word) }) else { return };
        // C1.
        let may_leave = matches!(version.author(), Author::At(stamp) if stamp < horizon)
            && !version.is_deletion()
            && !version.is_of_reserve();
        let marked = word | COOLING;
        if may_leave && slot.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            let bytes = version.record().block().1.size() as u64;
            self.cooling.push_back(Cooling { since: Epoch::MAX, store, oid, word: marked, bytes });
            self.cooling_bytes += bytes;
        }
    }
}

impl Cooling {
    fn slot(&self) -> &AtomicU64 {
        // SAFETY: the engine keeps all of its stores; one that was dropped is skipped before, under the pin of the caller.
        unsafe { self.store.as_ref() }.slot(self.oid)
    }

    /// # Safety
    /// The slot held the word when the caller had begun.
    unsafe fn version<I: Isolation>(&self) -> Version<I> {
        // SAFETY: the caller's promise: who overwrites the version later keeps it for the caller.
        match unsafe { Version::from_word(self.word & !COOLING) } {
            Some(version) => version,
            None => unreachable!("a version was marked"),
        }
    }
}

/// Returns what is written of a version that is the newest in its slot, when it leaves memory.
pub(crate) fn leaving_row<'v, I: Isolation>(slot: &AtomicU64, version: Version<I>) -> Leaving<'v> {
    Leaving {
        slot: std::ptr::from_ref(slot).addr(),
        table: version.record().store(),
        stamp: version.committed_stamp(),
        predecessor: version.certificates().map_or(Stamp::ZERO, Certificates::predecessor),
        row: version.row(),
    }
}

/// Writes rows, and lets those leave memory that nobody has used meanwhile.
fn evict_all<I: Isolation>(cold: &ColdRows, guard: &Guard<'_>, leaving: &[Cooling]) -> std::io::Result<()> {
    // SAFETY: the slots held these words under the guard of this caller.
    let rows: Vec<_> = leaving
        .iter()
        .map(|cooling| leaving_row(cooling.slot(), unsafe { cooling.version::<I>() }))
        .collect();
    let places = cold.write(&rows)?;
    for (cooling, place) in leaving.iter().zip(places) {
        // AcqRel: [cold].
        let is_cold = cooling.slot().compare_exchange(
            cooling.word,
            place.to_slot(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if is_cold.is_ok() {
            cold.note_evicted();
            // SAFETY: nobody has found it since it was marked, nobody is left who had before, and nothing leads to it (C2).
            unsafe { cooling.version::<I>().free(guard) };
        } else {
            cold.forget(place);
        }
    }
    Ok(())
}

impl Hand {
    /// Moves on to the next record, and returns it with its store. `None` at the end of a lap: the next one begins then.
    pub(super) fn advance(&mut self, shared: &ErmiaShared) -> Option<(NonNull<ErmiaStore>, Oid)> {
        loop {
            if self.store.is_none() {
                self.store = next_store(shared, TableId::NONE);
                self.next = 0;
            }
            let store = self.store.as_ref()?;
            // The caller is pinned: a store that is not dropped now is there until it is not.
            if !store.is_dropped()
                && let Some(oid) = store.records().numbered(self.next)
            {
                self.next += 1;
                return Some((NonNull::from(&**store), oid));
            }
            let next = next_store(shared, store.id());
            self.next = 0;
            self.store = next;
            self.store.as_ref()?;
        }
    }
}

/// Returns the store with the next id after this one that was not dropped.
fn next_store(shared: &ErmiaShared, after: TableId) -> Option<Arc<ErmiaStore>> {
    let stores = lock(&shared.stores);
    let mut next = stores.iter().filter(|(id, store)| **id > after && !store.is_dropped());
    next.next().map(|(_, store)| Arc::clone(store))
}
