//! Where records come from and go to: slabs, or the general-purpose allocator.
//!
//! Memory from the general-purpose allocator cannot wait in the epochs' own lists: those give everything back to slabs. So a worker keeps
//! such records in a list of its own until the memory horizon has passed them, and the engine frees what is left when it goes.

use ensilo_engine::TableId;
use ensilo_epoch::{Guard, Participant};
use ensilo_slab::OutOfMemory;

use super::garbage::{Garbage, Retired};
use super::variant::Variant;
use super::write_set::KeptVersion;
use crate::record::RecordPtr;
use crate::tid::TidWord;

/// Returns a record of `table` with room for a row of `row_len_bytes`.
#[inline]
pub(crate) fn allocate<V: Variant>(
    guard: &Guard<'_>,
    table: TableId,
    row_len_bytes: usize,
    tid: TidWord,
) -> Result<RecordPtr, OutOfMemory> {
    if V::SLABS {
        RecordPtr::allocate(guard, table, row_len_bytes, tid)
    } else {
        RecordPtr::allocate_general(guard, table, row_len_bytes, tid)
    }
}

/// Frees a record that was never published, or that nobody can reach any more.
///
/// # Safety
/// No other thread has or can get the address, and it came from [`allocate`] for the same variant.
#[inline]
pub(crate) unsafe fn free<V: Variant>(record: RecordPtr, guard: &Guard<'_>) {
    // SAFETY: the caller's promise.
    unsafe { if V::SLABS { record.free(guard) } else { record.free_general(guard) } }
}

/// Frees what stands for an old version and was never linked, or that nobody can reach any more.
///
/// # Safety
/// No other thread has or can get the address, and a copy came from [`allocate`] for the same variant.
#[inline]
pub(super) unsafe fn free_kept<V: Variant>(version: KeptVersion, guard: &Guard<'_>) {
    // SAFETY: the caller's promise; the other two come from where they are given back to.
    unsafe {
        match version {
            KeptVersion::Copy(copy) => free::<V>(copy, guard),
            KeptVersion::ReserveCopy(copy) => copy.free_reserve(guard),
            KeptVersion::Mark(mark) => mark.free_general(guard),
        }
    }
}

/// Frees a record once every transaction that is pinned now has ended; never if the variant collects nothing.
///
/// # Safety
/// No transaction that begins after this call can find the record, it is retired once, and it came from [`allocate`] for the same
/// variant.
#[inline]
pub(crate) unsafe fn retire<V: Variant>(record: RecordPtr, guard: &Guard<'_>, garbage: &mut Garbage) {
    if !V::COLLECTS {
        return;
    }
    if V::SLABS {
        // SAFETY: the caller's promise.
        unsafe { record.retire(guard) };
    } else {
        garbage.retired.push(guard.participant().retire_epoch(), record);
    }
}

/// Frees at most `budget` retired records that nobody can reach any more, and returns how many.
pub(super) fn collect<V: Variant>(guard: &Guard<'_>, garbage: &mut Garbage, budget: usize) -> usize {
    if V::SLABS {
        return 0;
    }
    let horizon = guard.epochs().memory_horizon();
    let mut freed = 0;
    while freed < budget
        && let Some(record) = garbage.retired.pop_ripe(horizon)
    {
        // SAFETY: every transaction that was pinned when it was retired has ended; the list held it once.
        unsafe { free::<V>(record, guard) };
        freed += 1;
    }
    freed
}

/// Frees all records that the worker owns (O1) outside of slabs, when no transaction will run any more. Slabs go as a whole.
pub(crate) fn free_garbage<V: Variant>(participant: &Participant, garbage: Garbage) {
    let guard = participant.pin();
    let Garbage { versions, unhooks, late_unhooks, deleted, retired } = garbage;
    let mut records = Vec::new();
    for version in versions.into_items() {
        match version {
            // Slabs go as a whole.
            Retired::Kept(KeptVersion::Copy(_)) if V::SLABS => {}
            // SAFETY: O1: the list owns the version, once, and nobody is left who could reach it.
            Retired::Kept(version) => unsafe { free_kept::<V>(version, &guard) },
            Retired::Replaced(record) => records.push(record),
        }
    }
    if V::SLABS {
        return;
    }
    for list in [unhooks, late_unhooks, deleted] {
        records.extend(list.into_items().map(|unhook| unhook.record));
    }
    records.extend(retired.into_items());
    for record in records {
        // SAFETY: O1: the lists own these records, each once, and nobody is left who could reach them.
        unsafe { free::<V>(record, &guard) };
    }
}
