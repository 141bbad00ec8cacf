//! Loading records into the cache before the transactions begin that want them.
//!
//! The index starts to load the slot of each record that it finds, here follow the head of the newest version and its row; each step is
//! made for some records at once, so that they wait for memory together.

use std::array;

use ensilo_epoch::Guard;
use ensilo_index::{Lookup, Masstree};

use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::shared::ErmiaShared;
use crate::store::ErmiaStore;

/// The records of one step.
const GROUP: usize = 32;

/// Starts to load the newest versions under `count` keys, which `key` returns by their numbers. Those on the disk stay there. The guard
/// comes with a place in the table of transactions, so that versions stay.
pub(crate) fn prefetch_records<'k, I: Isolation>(
    shared: &ErmiaShared,
    guard: &Guard<'_>,
    count: usize,
    key: impl Fn(usize) -> (&'k ErmiaStore, &'k [u8]),
) {
    for first in (0..count).step_by(GROUP) {
        let len = GROUP.min(count - first);
        // Asked for once: what is checked is what is descended from.
        let keys: [_; GROUP] = array::from_fn(|at| (at < len).then(|| key(first + at)));
        // Behind the pin: a store that was not dropped by now stays as long as it lasts.
        if keys.iter().flatten().all(|(store, _)| store.check(&shared.epochs).is_ok()) {
            prefetch_group::<I>(guard, &keys, len);
        }
    }
}

fn prefetch_group<I: Isolation>(guard: &Guard<'_>, keys: &[Option<(&ErmiaStore, &[u8])>; GROUP], len: usize) {
    let mut oids = [None; GROUP];
    let in_index = |at: usize| match keys[at] {
        Some((store, bytes)) => (store.index(), bytes),
        None => unreachable!("there are as many as the group has"),
    };
    Masstree::get_many_of(len, in_index, guard, |at, lookup| {
        oids[at] = match lookup {
            // SAFETY: the value was read from the store's index, under a pin.
            Lookup::Found(value) => Some(unsafe { Oid::from_index_value(value) }),
            Lookup::Missing(_) => None,
        };
    });
    let found = || keys.iter().zip(oids).filter_map(|(key, oid)| Some(((*key)?.0, oid?)));
    found().for_each(|(store, oid)| store.load_header::<I>(oid));
    let versions = found().filter_map(|(store, oid)| store.in_memory::<I>(oid));
    versions.for_each(|version| version.record().prefetch_row());
}
