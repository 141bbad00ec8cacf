//! Loading records into the cache before the transactions begin that want them.

use ensilo_epoch::Participant;
use ensilo_index::{Lookup, Masstree};

use crate::record::RecordPtr;
use crate::store::Store;

/// Starts to load the records under `count` keys, which `key` returns by their numbers.
pub(crate) fn prefetch_records<'k>(
    participant: &Participant,
    count: usize,
    key: impl Fn(usize) -> (&'k Store, &'k [u8]),
) {
    let guard = participant.pin();
    // Behind the pin: a store that was not dropped by now stays as long as it lasts.
    if (0..count).any(|at| key(at).0.is_dropped()) {
        return;
    }
    let in_index = |at| {
        let (store, bytes) = key(at);
        (store.index(), bytes)
    };
    Masstree::get_many_of(count, in_index, &guard, |_, lookup| {
        if let Lookup::Found(value) = lookup {
            // SAFETY: a value of a store's tree is a record, read while pinned.
            unsafe { RecordPtr::from_index_value(value) }.prefetch_row();
        }
    });
}
