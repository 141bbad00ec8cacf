//! Loading records into the cache before the transactions begin that want them.
//!
//! The index starts to load the slot of each record that it finds, here follow the head of the newest version and its row; each step is
//! made for some records at once, so that they wait for memory together.

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
    // Behind the pin: a store that was not dropped by now stays as long as it lasts.
    if (0..count).any(|at| key(at).0.check(&shared.epochs).is_err()) {
        return;
    }
    for first in (0..count).step_by(GROUP) {
        prefetch_group::<I>(guard, GROUP.min(count - first), |at| key(first + at));
    }
}

fn prefetch_group<'k, I: Isolation>(
    guard: &Guard<'_>,
    len: usize,
    key: impl Fn(usize) -> (&'k ErmiaStore, &'k [u8]),
) {
    let mut oids = [None; GROUP];
    let in_index = |at| {
        let (store, bytes) = key(at);
        (store.index(), bytes)
    };
    Masstree::get_many_of(len, in_index, guard, |at, lookup| {
        oids[at] = match lookup {
            // SAFETY: the value was read from the store's index, under a pin.
            Lookup::Found(value) => Some(unsafe { Oid::from_index_value(value) }),
            Lookup::Missing(_) => None,
        };
    });
    let found = || (0..len).filter_map(|at| Some((key(at).0, oids[at]?)));
    found().for_each(|(store, oid)| store.load_header::<I>(oid));
    let versions = found().filter_map(|(store, oid)| store.in_memory::<I>(oid));
    versions.for_each(|version| version.record().prefetch_row());
}
