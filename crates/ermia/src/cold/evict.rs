//! Which rows leave memory, and how.
//!
//! A hand goes over the indirection arrays of all stores, and marks records as cooling. Those that nobody has used since leave in the order in
//! which they were marked: what is used often is hardly ever among them.

use std::alloc::Layout;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

use ensilo_engine::{Remains, Store as _, TableId};
use ensilo_epoch::{Epoch, Guard};
use ensilo_slab::{Heap, Pool};
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::clean::Cleaner;
use super::excess::{Excess, LARGE, SIZES, SMALL};
use super::load::end_cooling;
use super::{COLD, COOLING, ColdRows, Leaving};
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

/// A lap that is under way, and another one, in which those are met that the first one has marked and somebody has used.
const OWED_LAPS: u8 = 2;

/// What leaves when a session finds no memory although there should be some: it lies in pieces that are too small, or elsewhere.
const SHORTAGE_BYTES: u64 = 512 << 10;

/// Chooses rows that leave memory, and lets them go.
#[derive(Debug, Default)]
pub(crate) struct Evictor {
    pub(super) hand: Hand,
    cleaner: Cleaner,
    /// Of small rows, and of large ones.
    queues: [Queue; SIZES],
    shortages: u64,
}

/// Records of one size that are cooling, in the order in which they were marked.
#[derive(Debug, Default)]
struct Queue {
    cooling: VecDeque<Cooling>,
    bytes: u64,
    /// What still has to leave for sessions that have found no memory.
    owed_bytes: u64,
    /// For so many laps of the hand: whoever finds no memory behind that says so again.
    owed_laps: u8,
    excess: Excess,
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
    /// So many records the store had at the last look.
    end: usize,
}

impl Evictor {
    /// Lets a bounded amount of rows leave, and marks others, if memory is short.
    pub(crate) fn step<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        state: &mut SessionState<I>,
    ) -> Remains {
        let Some(cold) = shared.cold.as_ref() else { return Remains::Nothing };
        cold.remove_empty(shared.horizon.look_horizon(), || state.participant.retire_epoch());
        let cleaned = self.cleaner.step(shared, cold, state);
        cold.ask_again();
        if !self.find_excess::<I>(shared.epochs.pool()) {
            return cleaned;
        }
        state.look(shared, |guard, _| {
            let evict = |queue: &mut Queue| queue.evict::<I>(shared, cold, guard);
            let left = self.queues.iter_mut().map(evict).max().unwrap_or(Remains::Later);
            self.cool::<I>(shared, guard).max(left).max(cleaned)
        })
    }

    /// Finds out how much should leave memory. False if it is not full.
    fn find_excess<I: Isolation>(&mut self, pool: &Pool) -> bool {
        let shortages = pool.shortages();
        let is_short = std::mem::replace(&mut self.shortages, shortages) != shortages;
        let refused_bytes = pool.take_refused();
        let Some(fill) = pool.fill(pool.limit_bytes().unwrap_or(u64::MAX)) else {
            self.queues.iter_mut().for_each(|queue| queue.owed_bytes = 0);
            return I::IS_HASTY && self.set_excess(Excess::ALL);
        };
        if is_short {
            self.queues[SMALL].owe(SHORTAGE_BYTES);
            self.queues[LARGE].owe(fill.in_the_way_bytes);
        }
        if refused_bytes > 0 {
            self.queues[LARGE].owe(refused_bytes.saturating_add(SHORTAGE_BYTES));
        }
        // There is no more to wait for.
        let owed_bytes = &mut self.queues[LARGE].owed_bytes;
        *owed_bytes = (*owed_bytes).min(fill.large_bytes);
        self.set_excess(if I::IS_HASTY { Excess::ALL } else { Excess::of(&fill) })
    }

    fn set_excess(&mut self, excess: [Excess; SIZES]) -> bool {
        for (queue, excess) in self.queues.iter_mut().zip(excess) {
            queue.excess = excess.at_least(queue.owed_bytes);
        }
        true
    }

    /// Marks records, until enough bytes are cooling, or for now.
    fn cool<I: Isolation>(&mut self, shared: &ErmiaShared, guard: &Guard<'_>) -> Remains {
        let mut slots_left = SLOTS;
        while slots_left > 0 {
            if self.queues.iter().all(Queue::is_enough) || (self.hand.store.is_none() && !self.begin_lap()) {
                break;
            }
            match self.hand.advance(shared) {
                Some((store, oid)) => self.mark::<I>(shared.horizon.get(), store, oid),
                None => break,
            }
            slots_left -= 1;
        }
        // Where somebody waits, the hand is not to rest because there was nothing to mark so far.
        let is_on_its_way = slots_left == 0 && self.queues.iter().any(Queue::is_awaited);
        // Behind the marks: who has found a version before has begun to look before this.
        let since = guard.participant().retire_epoch();
        let is_marking = self.queues.iter_mut().map(|queue| queue.end_marking(since));
        // All of them: none is left out.
        if is_marking.fold(is_on_its_way, |any, is_marking| any | is_marking) {
            Remains::Now
        } else {
            Remains::Later
        }
    }

    /// Returns whether a lap may begin: when nothing is left of the one before (C3). What stays in memory keeps the others waiting no longer.
    fn begin_lap(&mut self) -> bool {
        let is_enough = self.queues.each_ref().map(Queue::is_enough);
        for (size, queue) in self.queues.iter_mut().enumerate() {
            let is_awaited = (0..SIZES).any(|other| other != size && !is_enough[other]);
            if is_awaited && queue.excess.leaving_bytes == 0 {
                queue.spare();
            }
        }
        let may_begin = self.queues.iter().all(|queue| queue.cooling.is_empty());
        if may_begin {
            self.queues.iter_mut().for_each(Queue::count_lap);
        }
        may_begin
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
        let layout = version.record().block().1;
        let queue = &mut self.queues[size_of_row(layout)];
        let marked = word | COOLING;
        if may_leave
            && !queue.is_enough()
            && slot.compare_exchange(word, marked, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            queue.push(Cooling { since: Epoch::MAX, store, oid, word: marked, bytes: layout.size() as u64 });
        }
    }
}

/// Returns [`SMALL`] or [`LARGE`], by the block of a version.
pub(super) fn size_of_row(layout: Layout) -> usize {
    if Heap::is_large(layout) { LARGE } else { SMALL }
}

impl Queue {
    /// So many bytes have to leave, for somebody who has found no memory.
    fn owe(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.owed_bytes = self.owed_bytes.max(bytes);
        self.owed_laps = OWED_LAPS;
    }

    /// The hand begins another lap: what is owed for so many of them cannot leave.
    fn count_lap(&mut self) {
        self.owed_laps = self.owed_laps.saturating_sub(1);
        if self.owed_laps == 0 {
            self.owed_bytes = 0;
        }
    }

    /// Returns whether more rows should cool for somebody who has found no memory.
    fn is_awaited(&self) -> bool {
        self.owed_bytes > 0 && !self.is_enough()
    }

    fn is_enough(&self) -> bool {
        self.bytes >= self.excess.cooling_bytes
    }

    fn push(&mut self, cooling: Cooling) {
        self.bytes += cooling.bytes;
        self.cooling.push_back(cooling);
    }

    /// Says since when those are marked that were marked just now. Returns whether there are any, and there should be more.
    fn end_marking(&mut self, since: Epoch) -> bool {
        let marked = self.cooling.iter_mut().rev().take_while(|cooling| cooling.since == Epoch::MAX);
        let count = marked.map(|cooling| cooling.since = since).count();
        count > 0 && !self.is_enough()
    }

    /// Lets all stay in memory.
    fn spare(&mut self) {
        self.bytes = 0;
        self.cooling.drain(..).for_each(|cooling| cooling.end());
    }

    /// Evicts rows that have cooled, the longest first, as many as should leave, or for now.
    fn evict<I: Isolation>(&mut self, shared: &ErmiaShared, cold: &ColdRows, guard: &Guard<'_>) -> Remains {
        let bytes = self.excess.leaving_bytes.min(LEAVING_BYTES);
        let ripe = self.take_ripe::<I>(shared.horizon.look_horizon(), bytes);
        if ripe.is_empty() {
            return Remains::Later;
        }
        // Of those that were used meanwhile nothing is to be done.
        let leaving: Vec<_> = ripe.into_iter().filter(Cooling::is_cooling).collect();
        match evict_all::<I>(cold, guard, &leaving) {
            Ok(bytes) => {
                self.owed_bytes = self.owed_bytes.saturating_sub(bytes);
                Remains::Now
            }
            Err(_) => {
                // The disk takes nothing: memory stays as full as it is.
                leaving.iter().for_each(Cooling::end);
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
            self.bytes -= cooling.bytes;
            ripe.push(cooling);
        }
        ripe
    }
}

impl Cooling {
    fn slot(&self) -> &AtomicU64 {
        // SAFETY: the engine keeps all of its stores; one that was dropped is skipped before, under the pin of the caller.
        unsafe { self.store.as_ref() }.slot(self.oid)
    }

    fn is_dropped(&self) -> bool {
        // SAFETY: the engine keeps all of its stores.
        unsafe { self.store.as_ref() }.is_dropped()
    }

    /// Returns whether nobody has used the record since it was marked. The caller is pinned.
    fn is_cooling(&self) -> bool {
        !self.is_dropped() && self.slot().load(Ordering::Acquire) == self.word
    }

    /// Lets the record stay in memory. The caller is pinned.
    fn end(&self) {
        if !self.is_dropped() {
            end_cooling(self.slot(), self.word);
        }
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

/// Writes rows, and lets those leave memory that nobody has used meanwhile. Returns how many bytes have left.
fn evict_all<I: Isolation>(cold: &ColdRows, guard: &Guard<'_>, leaving: &[Cooling]) -> std::io::Result<u64> {
    // SAFETY: the slots held these words under the guard of this caller.
    let rows: Vec<_> = leaving
        .iter()
        .map(|cooling| leaving_row(cooling.slot(), unsafe { cooling.version::<I>() }))
        .collect();
    let mut left_bytes = 0;
    for (cooling, place) in leaving.iter().zip(cold.write(&rows)?) {
        // AcqRel: [cold].
        let is_cold = cooling.slot().compare_exchange(
            cooling.word,
            place.to_slot(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if is_cold.is_ok() {
            cold.note_evicted();
            left_bytes += cooling.bytes;
            // SAFETY: nobody has found it since it was marked, nobody is left who had before, and nothing leads to it (C2).
            unsafe { cooling.version::<I>().free(guard) };
        } else {
            cold.forget(place);
        }
    }
    Ok(left_bytes)
}

impl Hand {
    /// Moves on to the next record, and returns it with its store. `None` at the end of a lap: the next one begins then.
    pub(super) fn advance(&mut self, shared: &ErmiaShared) -> Option<(NonNull<ErmiaStore>, Oid)> {
        loop {
            if self.store.is_none() {
                self.go_to(next_store(shared, TableId::NONE));
            }
            let store = self.store.as_ref()?;
            // The caller is pinned: a store that is not dropped now is there until it is not.
            if !store.is_dropped() {
                if self.next == self.end {
                    self.end = store.records().handed_out();
                }
                if self.next < self.end {
                    let oid = store.records().numbered(self.next);
                    self.next += 1;
                    return Some((NonNull::from(&**store), oid));
                }
            }
            let next = next_store(shared, store.id());
            self.go_to(next);
            self.store.as_ref()?;
        }
    }

    fn go_to(&mut self, store: Option<Arc<ErmiaStore>>) {
        *self = Hand { store, next: 0, end: 0 };
    }
}

/// Returns the store with the next id after this one that was not dropped.
fn next_store(shared: &ErmiaShared, after: TableId) -> Option<Arc<ErmiaStore>> {
    let stores = lock(&shared.stores);
    let mut next = stores.iter().filter(|(id, store)| **id > after && !store.is_dropped());
    next.next().map(|(_, store)| Arc::clone(store))
}
