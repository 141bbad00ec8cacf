//! Letting rows leave memory during a replay, when no transaction has begun: whoever looks at a version has locked its record.

use ensilo_epoch::Guard;
use ensilo_slab::Heap;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::evict::{Evictor, LEAVING_BYTES, leaving_row};
use super::{COLD, COOLING, ColdRows, Leavers};
use crate::isolation::Isolation;
use crate::oid_array::DEAD;
use crate::replay::LOCKED;
use crate::shared::ErmiaShared;
use crate::version::Version;

/// How many ends of laps the hand comes to at most: it may begin in the middle of one.
const LAPS_MAX: usize = 2;

impl Evictor {
    /// Lets some rows leave. False if none are left that can, or the disk takes none.
    pub(crate) fn evict_at_rest<I: Isolation>(
        &mut self,
        shared: &ErmiaShared,
        cold: &ColdRows,
        guard: &Guard<'_>,
        leavers: Leavers,
    ) -> bool {
        cold.remove_empty(shared.horizon.look_horizon(), || guard.participant().retire_epoch());
        let mut leaving: Vec<(&AtomicU64, Version<I>)> = Vec::new();
        let (mut bytes, mut laps) = (0, 0);
        while bytes < LEAVING_BYTES && laps < LAPS_MAX {
            let Some((store, oid)) = self.hand.advance(shared) else {
                laps += 1;
                continue;
            };
            // SAFETY: the engine keeps all of its stores.
            let slot = unsafe { store.as_ref() }.slot(oid);
            if let Some(version) = try_lock::<I>(slot, leavers) {
                bytes += version.record().block().1.size() as u64;
                leaving.push((slot, version));
            }
        }
        let rows: Vec<_> = leaving.iter().map(|(slot, version)| leaving_row(slot, *version)).collect();
        let Ok(places) = cold.write(&rows) else {
            // Release: [replay].
            leaving.iter().for_each(|(slot, version)| slot.store(version.to_word(), Ordering::Release));
            return false;
        };
        for ((slot, version), place) in leaving.iter().zip(&places) {
            // Release: [replay], [cold].
            slot.store(place.to_slot(), Ordering::Release);
            cold.note_evicted();
            // SAFETY: nothing leads to it any more, and who looks at a version has locked its record.
            unsafe { version.free(guard) };
        }
        bytes >= LEAVING_BYTES
    }
}

/// Locks a record that may leave memory, is one of these, and that nobody else has locked, and returns its version.
fn try_lock<I: Isolation>(slot: &AtomicU64, leavers: Leavers) -> Option<Version<I>> {
    // Acquire: [replay].
    let word = slot.load(Ordering::Acquire);
    if word == 0 || word & (COLD | COOLING | DEAD | LOCKED) != 0 {
        return None;
    }
    // Acquire: [replay].
    slot.compare_exchange(word, word | LOCKED, Ordering::Acquire, Ordering::Relaxed).ok()?;
    // SAFETY: it leaves the record only under the lock.
    let version = unsafe { Version::<I>::from_word(word) }?;
    let is_too_small = || leavers == Leavers::Large && !Heap::is_large(version.record().block().1);
    if version.is_deletion() || is_too_small() {
        // Release: [replay].
        slot.store(word, Ordering::Release);
        return None;
    }
    Some(version)
}
