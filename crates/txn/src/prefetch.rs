//! Loading records into the cache before the transactions begin that want them, and what a transaction needs for its next changes.

use std::array;

use ensilo_engine::KeyChange;
use ensilo_epoch::{Guard, Participant};
use ensilo_index::{Lookup, Masstree};

use crate::record::RecordPtr;
use crate::silo::Variant;
use crate::store::Store;

/// The descents of one step.
const GROUP: usize = 32;

/// The changes of one step, each with up to two descents.
const CHANGES: usize = 8;

/// A tree, and a key to descend to in it.
pub(crate) type TreeKey<'k> = (&'k Masstree, &'k [u8]);

/// Starts to load the records under `count` keys, which `key` returns by their numbers.
pub(crate) fn prefetch_records<'k>(
    participant: &Participant,
    count: usize,
    key: impl Fn(usize) -> (&'k Store, &'k [u8]),
) {
    let guard = participant.pin();
    for first in (0..count).step_by(GROUP) {
        let len = GROUP.min(count - first);
        // Asked for once: what is checked is what is descended from.
        let keys: [_; GROUP] = array::from_fn(|at| (at < len).then(|| key(first + at)));
        // Behind the pin: a store that was not dropped by now stays as long as it lasts.
        if keys.iter().flatten().all(|(store, _)| !store.is_dropped()) {
            prefetch_trees(&guard, &keys.map(|key| key.map(|(store, bytes)| (store.index(), bytes))), len);
        }
    }
}

/// Starts to load what `count` changes of a transaction with this guard need, which `key` returns by their numbers. A deletion takes its record
/// to the tree of those later, if snapshots may need it.
pub(crate) fn prefetch_changes<'k, V: Variant>(
    guard: &Guard<'_>,
    count: usize,
    key: impl Fn(usize) -> (&'k Store, &'k [u8], KeyChange),
) {
    for first in (0..count).step_by(CHANGES) {
        let mut descents = [None; 2 * CHANGES];
        let mut len = 0;
        for at in first..count.min(first + CHANGES) {
            let (store, bytes, change) = key(at);
            if store.is_dropped() {
                return;
            }
            descents[len] = Some((store.index(), bytes));
            len += 1;
            if V::SNAPSHOTS && change == KeyChange::Delete {
                descents[len] = Some((store.deleted(), bytes));
                len += 1;
            }
        }
        // One descent alone waits for memory here as it would later.
        if len > 1 {
            prefetch_trees(guard, &descents, len);
        }
    }
}

/// Descends to the first `len` keys, of which there are so many, and starts to load the records that are found there.
pub(crate) fn prefetch_trees(guard: &Guard<'_>, keys: &[Option<TreeKey<'_>>], len: usize) {
    let in_tree = |at: usize| keys[at].unwrap_or_else(|| unreachable!("there are as many as the group has"));
    Masstree::get_many_of(len, in_tree, guard, |_, lookup| {
        if let Lookup::Found(value) = lookup {
            // SAFETY: a value of a store's tree is a record, read while pinned.
            unsafe { RecordPtr::from_index_value(value) }.prefetch_row();
        }
    });
}
