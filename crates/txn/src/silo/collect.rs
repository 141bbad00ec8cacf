//! What commits leave behind, and when it goes.
//!
//! # Source
//! Silo (SOSP 2013) §4.8 and §4.9. Three kinds of garbage:
//! - copies of old versions, and marks of those that were deleted: only snapshot transactions reach them, and commits that look for one to
//!   [renew](crate::record); they go when neither can;
//! - records replaced in the tree: snapshots reach them, and so does any transaction that found them before; they
//!   go in two steps, first by the snapshot horizon, then by the memory horizon;
//! - deleted records: they are unhooked from the tree by the worker's next transaction, so that others walk over few of them. Those that a
//!   snapshot may still need stand in a second tree meanwhile; they leave it by the snapshot horizon, and go by the memory horizon. The
//!   node that has lost the key keeps the TID of the deletion: it takes the place of the record for a commit that misses the key (a
//!   larger TID, and an answer that waits until the deletion is durable).
//!
//! # Invariants
//! O1. Every record has one owner, which frees it: a latest live record the tree; a copy or a replaced record the list of the
//!     worker that superseded it; a deleted record a list of the worker that deleted it, also when it has been
//!     superseded or unhooked since; a placeholder the transaction that made it, or the registry of prepared transactions that it was left to, until
//!     somebody commits into it.
//!
//! A worker frees some garbage before each of its transactions: a little, so that none takes noticeably longer, and more of a
//! *backlog*, which is what it could have freed one snapshot interval ago, so that it is rid of any amount within a bounded number
//! of transactions.

use ensilo_engine::{Failpoint, Fault, Tid};
use ensilo_epoch::{Epoch, Guard, Participant, RetireList};
use ensilo_index::{Inserted, Masstree, NodeId, Removal};
use ensilo_sync::Backoff;

use super::context::Context;
use super::garbage::{Garbage, Retired, Unhook};
use super::memory;
use super::prepared::registry::{Deferred, Obstacle};
use super::variant::{Variant, has_fault};
use super::write_set::WriteEntry;
use crate::prefetch::prefetch_trees;
use crate::record::RecordPtr;
use crate::registry::Registered;
use crate::shared::SiloShared;
use crate::store::Store;
use crate::tid::TidWord;

/// How many objects of each kind one call frees at least, as far as there are so many. A commit makes a few dozen, so that a worker
/// catches up.
const BUDGET_MIN: usize = 64;

/// How many at most: about half a millisecond.
const BUDGET_MAX: usize = 512;

/// So many objects of a kind are loaded together: they were used last when somebody wrote them, which may be long ago.
const GROUP: usize = 16;

/// A call frees one in so many objects of a backlog, such as a transaction leaves that has deleted a million rows.
const BACKLOG_PER_OBJECT: usize = 64;

/// What has passed, for a kind of garbage: what is ripe, and what was one snapshot interval ago.
#[derive(Copy, Clone)]
struct Horizons {
    ripe: Epoch,
    backlog: Epoch,
}

impl Horizons {
    /// Everything has passed.
    const ALL: Horizons = Horizons { ripe: Epoch::new(u64::MAX), backlog: Epoch::new(u64::MAX) };
}

/// Frees a bounded amount of what is ripe; true when nothing ripe is left.
pub(crate) fn collect_garbage<V: Variant>(
    shared: &SiloShared,
    participant: &Participant,
    context: &mut Context,
) -> bool {
    if !V::COLLECTS {
        return true;
    }
    let epochs = &shared.epochs;
    let memory_budget = budget(participant.retired_before(epochs.backlog_horizon(epochs.memory_horizon())));
    let mut is_done = participant.collect(memory_budget) < memory_budget;
    let ripe = epochs.snapshot_horizon();
    let horizons = Horizons { ripe, backlog: epochs.backlog_horizon(ripe) };
    let guard = participant.pin();
    is_done &= memory::collect::<V>(&guard, &mut context.garbage, BUDGET_MAX) < BUDGET_MAX;
    is_done &= for_ripe(
        context,
        horizons,
        |garbage| &mut garbage.versions,
        |versions, count| versions.ripe(ripe, count).for_each(Retired::prefetch),
        |context, retired| {
            free_version::<V>(shared, &guard, context, retired);
        },
    );
    is_done &= for_ripe(
        context,
        horizons,
        |garbage| &mut garbage.deleted,
        |deleted, count| prefetch_unhooks(shared, &guard, deleted.ripe(ripe, count), deleted_tree),
        |context, deleted| {
            end_deleted::<V>(shared, &guard, context, deleted);
        },
    );
    is_done &= for_ripe(
        context,
        horizons,
        |garbage| &mut garbage.late_unhooks,
        |unhooks, count| prefetch_unhooks(shared, &guard, unhooks.ripe(ripe, count), both_trees),
        |context, unhook| {
            take_out_or_wait::<V>(shared, &guard, context, unhook);
        },
    );
    drop(guard);
    take_out_deleted::<V>(shared, participant, context);
    is_done
}

/// Takes a bounded number of the records that this worker has deleted out of their trees.
pub(crate) fn take_out_deleted<V: Variant>(
    shared: &SiloShared,
    participant: &Participant,
    context: &mut Context,
) {
    let guard = participant.pin();
    for_ripe(
        context,
        Horizons::ALL,
        |garbage| &mut garbage.unhooks,
        |unhooks, count| {
            // What a small transaction has deleted is in the cache.
            if unhooks.len() >= GROUP {
                prefetch_unhooks(shared, &guard, unhooks.ripe(Horizons::ALL.ripe, count), both_trees);
            }
        },
        |context, unhook| {
            take_out_or_wait::<V>(shared, &guard, context, unhook);
        },
    );
}

/// Frees a bounded number of the ripe objects of a list; true when none is left. What it needs for the next ones is loaded for some of them
/// at once.
fn for_ripe<T>(
    context: &mut Context,
    horizons: Horizons,
    list: impl Fn(&mut Garbage) -> &mut RetireList<T>,
    load: impl Fn(&RetireList<T>, usize),
    mut free: impl FnMut(&mut Context, T),
) -> bool {
    let budget = budget(list(&mut context.garbage).len_before(horizons.backlog));
    for at in 0..budget {
        if at.is_multiple_of(GROUP) {
            load(list(&mut context.garbage), GROUP.min(budget - at));
        }
        let Some(object) = list(&mut context.garbage).pop_ripe(horizons.ripe) else { return true };
        free(context, object);
    }
    false
}

/// Starts to load what these deleted records and their keys lead to in trees of their stores.
fn prefetch_unhooks<'t>(
    shared: &'t SiloShared,
    guard: &Guard<'_>,
    unhooks: impl Iterator<Item = &'t Unhook>,
    trees: impl Fn(&Store) -> [Option<&Masstree>; 2],
) {
    let mut group = [None; GROUP];
    for (place, unhook) in group.iter_mut().zip(unhooks) {
        unhook.record.prefetch_header();
        *place = Some(unhook);
    }
    if group[1].is_none() {
        // One alone waits for memory here as it would later.
        return;
    }
    let mut descents = [None; 2 * GROUP];
    let mut len = 0;
    for unhook in group.into_iter().flatten() {
        // Behind the pin: a store that is registered by now stays as long as it lasts.
        let Registered::Store(store) = shared.stores.get(unhook.record.store()) else { continue };
        for tree in trees(store).into_iter().flatten() {
            descents[len] = Some((tree, unhook.key.as_slice()));
            len += 1;
        }
    }
    prefetch_trees(guard, &descents, len);
}

fn deleted_tree(store: &Store) -> [Option<&Masstree>; 2] {
    [Some(store.deleted()), None]
}

fn both_trees(store: &Store) -> [Option<&Masstree>; 2] {
    [Some(store.index()), Some(store.deleted())]
}

/// Returns how many objects a call frees of a kind that has this backlog.
fn budget(backlog: usize) -> usize {
    (backlog / BACKLOG_PER_OBJECT).clamp(BUDGET_MIN, BUDGET_MAX)
}

fn free_version<V: Variant>(shared: &SiloShared, guard: &Guard<'_>, context: &mut Context, retired: Retired) {
    match retired {
        Retired::Kept(version) if version.record().end_renewal() => {
            // What has superseded its new version did so by now.
            let epoch = shared.epochs.snapshot_of(shared.epochs.global_epoch());
            context.garbage.versions.push(epoch, retired);
        }
        Retired::Kept(version) => {
            context.counters.version_freed(version.size_bytes());
            // SAFETY: only `previous` links lead to it, and only snapshots before its successor follow them, and commits that rely on such a
            // snapshot (N2 of renewed copies); none is left. It was not renewed since it was put on the list (N4).
            unsafe { memory::free_kept::<V>(version, guard) }
        }
        Retired::Replaced(record) => {
            context.counters.version_freed(record.size_bytes());
            // SAFETY: it left the tree when it was replaced, and no snapshot follows the link to it any more; the list held it once.
            unsafe { memory::retire::<V>(record, guard, &mut context.garbage) }
        }
    }
}

/// Takes a deleted record out of the tree, or else lets it wait until no snapshot needs it.
fn take_out_or_wait<V: Variant>(
    shared: &SiloShared,
    guard: &Guard<'_>,
    context: &mut Context,
    unhook: Unhook,
) {
    if let Some(unfinished) = take_out::<V>(shared, guard, context, unhook) {
        let epoch = shared.epochs.snapshot_of(shared.epochs.global_epoch());
        context.garbage.late_unhooks.push(epoch, unfinished);
    }
}

/// Takes a deleted record out of the tree if it still is what its deleter left there. Returns it when somebody is using it right now: it
/// stays ours, whatever becomes of it.
fn take_out<V: Variant>(
    shared: &SiloShared,
    guard: &Guard<'_>,
    context: &mut Context,
    unhook: Unhook,
) -> Option<Unhook> {
    let Unhook { record, word, .. } = unhook;
    if !record.try_lock(word) {
        let now = record.tid();
        if now.is_locked() {
            return Some(unhook);
        }
        // An insert has superseded it and left it to its owner; snapshots may still pass through it. It is never brought back to life,
        // except by a planted fault: then it belongs to the tree.
        if !now.is_latest() {
            retire_superseded::<V>(shared, context, record);
        }
        context.counters.unhook_ended();
        return None;
    }
    match shared.stores.get(record.store()) {
        Registered::Store(store) => {
            V::reached(Failpoint::UnhookBegun);
            take_out_locked::<V>(shared, store, guard, context, unhook)
        }
        Registered::Draining => {
            record.publish(word);
            Some(unhook)
        }
        Registered::Gone => {
            // SAFETY: the tree is gone. O1: this list is its owner.
            unsafe { retire_locked::<V>(record, word, guard, &mut context.garbage) };
            context.counters.unhook_ended();
            None
        }
    }
}

/// Takes a deleted record that is locked out of its tree. One that a snapshot may need goes into the tree of those first: a snapshot that
/// misses the key in the first tree finds it in the second. Returns it, unlocked, if it has to stay where it is.
fn take_out_locked<V: Variant>(
    shared: &SiloShared,
    store: &Store,
    guard: &Guard<'_>,
    context: &mut Context,
    unhook: Unhook,
) -> Option<Unhook> {
    let Unhook { record, word, ref key } = unhook;
    let (key, value) = (key.as_slice(), record.index_value());
    let epoch = shared.epochs.snapshot_of(word.tid().epoch());
    // A row that was made and deleted within one snapshot interval has no version that any snapshot shows.
    let is_needed = V::SNAPSHOTS && record.previous().is_some() && shared.epochs.snapshot_horizon() <= epoch;
    if is_needed {
        // The second tree has one record a key, and may find no memory.
        let inserted = store.deleted().insert_if_absent(key, value, guard, &mut ());
        if inserted != Ok(Inserted::New) {
            record.publish(word);
            return Some(unhook);
        }
    }
    if remove_from_tree::<V>(shared, store, record, word, key, guard).is_err() {
        // A prepared transaction relies on the record or its node.
        if is_needed {
            store.deleted().remove(key, value, guard);
        }
        record.publish(word);
        return Some(unhook);
    }
    if is_needed {
        record.publish(word.superseded());
        context.garbage.deleted.push(epoch, unhook);
    } else {
        // SAFETY: it has left the tree, and no snapshot needs it. O1: the caller is its owner.
        unsafe { retire_locked::<V>(record, word, guard, &mut context.garbage) };
        context.counters.unhook_ended();
    }
    None
}

/// Frees a deleted record that no snapshot needs any more, and that has left its first tree long ago.
fn end_deleted<V: Variant>(shared: &SiloShared, guard: &Guard<'_>, context: &mut Context, deleted: Unhook) {
    let record = deleted.record;
    match shared.stores.get(record.store()) {
        Registered::Store(store) => {
            let is_removed = store.deleted().remove(deleted.key.as_slice(), record.index_value(), guard);
            assert!(is_removed, "a deleted record stands in the tree of those");
        }
        Registered::Draining => {
            let epoch = shared.epochs.snapshot_of(shared.epochs.global_epoch());
            return context.garbage.deleted.push(epoch, deleted);
        }
        Registered::Gone => {}
    }
    // SAFETY: it has left both trees, and snapshots that need it have ended. O1: the list owned it, once.
    unsafe { memory::retire::<V>(record, guard, &mut context.garbage) };
    context.counters.unhook_ended();
}

/// Takes back the placeholder at position `at` of the write set, since its insert did not commit, unless somebody has committed
/// into it: then it belongs to the tree.
///
/// This is decided here and now, while the transaction that made the placeholder is still pinned: once somebody else's commit
/// owns the record, it may be freed as soon as this pin ends. The wait is for a commit that is under way and does not wait for us: this
/// transaction holds no lock any more.
#[cold]
pub(super) fn withdraw_placeholder<V: Variant>(
    shared: &SiloShared,
    guard: &Guard<'_>,
    context: &mut Context,
    at: usize,
) {
    let WriteEntry { record, key, .. } = context.writes[at];
    let keys = std::mem::take(&mut context.keys);
    withdraw::<V>(shared, guard, context, record, key.of(&keys));
    context.keys = keys;
}

/// Does the same for a placeholder that another transaction may have made and left to the caller, which is pinned since before.
///
/// Where a prepared transaction stands in the way, the next one that ends goes on: nobody waits for a decision.
#[cold]
fn withdraw<V: Variant>(
    shared: &SiloShared,
    guard: &Guard<'_>,
    context: &mut Context,
    record: RecordPtr,
    key: &[u8],
) {
    let mut backoff = Backoff::new();
    loop {
        if record.try_lock(TidWord::PLACEHOLDER) {
            let Registered::Store(store) = shared.stores.get(record.store()) else {
                // The tree goes as a whole, with the placeholders in it.
                return record.publish(TidWord::PLACEHOLDER);
            };
            let removed = remove_from_tree::<V>(shared, store, record, TidWord::PLACEHOLDER, key, guard);
            let Err(obstacle) = removed else {
                let garbage = &mut context.garbage;
                // SAFETY: it has left the tree. O1: this transaction owned it.
                return unsafe { retire_locked::<V>(record, TidWord::PLACEHOLDER, guard, garbage) };
            };
            let is_deferred = shared.prepared.defer(record, key, obstacle);
            record.publish(TidWord::PLACEHOLDER);
            if is_deferred {
                return;
            }
            continue;
        }
        let now = record.tid();
        if now == TidWord::PLACEHOLDER.superseded() {
            // An insert of a larger row has replaced it and left it to its maker.
            return retire_superseded::<V>(shared, context, record);
        }
        if now.tid() != Tid::ZERO {
            // Somebody has committed into it. Whatever became of it since, it is not ours any more.
            return;
        }
        if now.is_prepared() && shared.prepared.defer(record, key, Obstacle::Lock) {
            return;
        }
        backoff.wait();
    }
}

/// Removes a locked, latest, absent record from its tree. On an error it is still there; it is locked in either case.
fn remove_from_tree<V: Variant>(
    shared: &SiloShared,
    store: &Store,
    record: RecordPtr,
    word: TidWord,
    key: &[u8],
    guard: &Guard<'_>,
) -> Result<(), Obstacle> {
    if shared.prepared.protects_record(record) {
        return Err(Obstacle::Record);
    }
    let may_change = |node| !shared.prepared.protects_node(node, || 0);
    let (value, tid) = (record.index_value(), word.tid());
    let number = if has_fault::<V>(Fault::ForgetRemovals) { 0 } else { tid.get() };
    let remove = || store.index().remove_if(key, value, number, guard, may_change);
    let removal = if V::RECORDS_HISTORY {
        shared.recorded_removals.note((store.id(), key.into()), tid, || {
            let removal = remove();
            (matches!(removal, Removal::Done | Removal::KeptLayer(_)), removal)
        })
    } else {
        remove()
    };
    match removal {
        Removal::Done => {}
        Removal::KeptLayer(node) => leave_layer(shared, store, key, node, guard),
        Removal::Refused(node) => return Err(Obstacle::Node(node)),
        Removal::NotThere => panic!("a latest record stands in the tree"),
    }
    Ok(())
}

/// Leaves an empty layer on the way to `key` to the next prepared transaction that ends, since one of them relies on `node`. Where
/// none does any more, the layer leaves the tree now.
#[cold]
fn leave_layer(shared: &SiloShared, store: &Store, key: &[u8], mut node: NodeId, guard: &Guard<'_>) {
    while !shared.prepared.defer_layer(store.id(), key, node) {
        match drop_layer(shared, store, key, guard) {
            Ok(()) => return,
            Err(again) => node = again,
        }
    }
}

fn drop_layer(shared: &SiloShared, store: &Store, key: &[u8], guard: &Guard<'_>) -> Result<(), NodeId> {
    store.index().drop_empty_layer(key, guard, |node| !shared.prepared.protects_node(node, || 0))
}

/// Carries out what was left to the caller, a prepared transaction that ends.
pub(super) fn carry_out_deferred<V: Variant>(
    shared: &SiloShared,
    guard: &Guard<'_>,
    context: &mut Context,
    deferred: Deferred,
) {
    let store = deferred.store();
    match deferred {
        Deferred::Placeholder { record, key } => {
            withdraw::<V>(shared, guard, context, record, key.as_slice());
        }
        Deferred::Layer { key, .. } => {
            // The tree of a dropped store goes as a whole.
            if let Registered::Store(store) = shared.stores.get(store)
                && let Err(node) = drop_layer(shared, store, key.as_slice(), guard)
            {
                leave_layer(shared, store, key.as_slice(), node, guard);
            }
        }
    }
    shared.prepared.end_deferred(store);
}

/// Frees the lock of a record that has left its tree, and retires it.
///
/// # Safety
/// The tree does not lead to it any more, and the caller owns it (O1).
unsafe fn retire_locked<V: Variant>(
    record: RecordPtr,
    word: TidWord,
    guard: &Guard<'_>,
    garbage: &mut Garbage,
) {
    record.publish(word.superseded());
    // SAFETY: whoever found it before sees that it is superseded and asks the tree again; the caller vouches for the rest.
    unsafe { memory::retire::<V>(record, guard, garbage) };
}

/// Keeps a superseded record of ours until no snapshot passes through it.
fn retire_superseded<V: Variant>(shared: &SiloShared, context: &mut Context, record: RecordPtr) {
    let epoch = shared.epochs.snapshot_of(shared.epochs.global_epoch());
    context.garbage.keep_replaced::<V>(epoch, record, &context.counters);
}
