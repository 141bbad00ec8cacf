//! Loading records into the cache before the transactions begin that want them.

use std::array;

use ensilo_epoch::{Guard, Participant};
use ensilo_index::{Lookup, Masstree};

use crate::record::RecordPtr;
use crate::store::Store;

/// The keys of one step.
const GROUP: usize = 32;

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
        prefetch_group(&guard, &keys, len);
    }
}

fn prefetch_group(guard: &Guard<'_>, keys: &[Option<(&Store, &[u8])>; GROUP], len: usize) {
    // Behind the pin: a store that was not dropped by now stays as long as it lasts.
    if keys.iter().flatten().any(|(store, _)| store.is_dropped()) {
        return;
    }
    let in_index = |at: usize| match keys[at] {
        Some((store, bytes)) => (store.index(), bytes),
        None => unreachable!("there are as many as the group has"),
    };
    Masstree::get_many_of(len, in_index, guard, |_, lookup| {
        if let Lookup::Found(value) = lookup {
            // SAFETY: a value of a store's tree is a record, read while pinned.
            unsafe { RecordPtr::from_index_value(value) }.prefetch_row();
        }
    });
}
