//! Own writes to records that have left the tree.
//!
//! A transaction finds what it has written by the record that it wrote to. Another transaction may commit in between and put a larger row's
//! record into that one's place, or delete the row, and its record then leaves the tree. The writer cannot commit any more; but until it
//! finds that out it would read the other's row, or none, where it has written its own. So a read that may have come upon such a key
//! looks for it among the keys that were written, and ends the attempt if it is one.
//!
//! What may be such a key:
//! - a record that is not the transaction's own, with a version of the epoch in which the transaction began, or of a later one, or with
//!   none yet: others have come into the tree before;
//! - a key that is missing, or not in a range that was read, if a deletion may have left the tree since: the latest removal from a node
//!   on the way is of the epoch in which the transaction began, or of a later one; or the transaction has written over a record that was
//!   deleted before.

use std::hash::{BuildHasher, RandomState};

use super::addition::has_row;
use super::write_set::{RecordChange, WALKED_MAX, WriteEntry};
use ensilo_engine::parts::{HeldMemory, PointerMap, SetBuffer};
use ensilo_engine::{Abort, TableId};

/// What a transaction keeps to find lost writes.
#[derive(Debug)]
pub(super) struct LostWrites {
    /// Positions of writes by the hash of store and key, kept once they are more than [`WALKED_MAX`] and somebody has asked.
    keys: PointerMap,
    /// What the hashes begin with: nobody who chooses keys knows which of them collide.
    seed: u64,
    /// How many writes are in the map.
    mapped: usize,
    /// Positions of writes over records that were deleted before: these may leave the tree at any time.
    revived: SetBuffer<u32>,
}

impl LostWrites {
    pub(super) fn new() -> Self {
        let (keys, revived) = (PointerMap::default(), SetBuffer::new());
        let seed = RandomState::new().hash_one(0);
        LostWrites { keys, seed, mapped: 0, revived }
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.mapped = 0;
        self.revived.clear();
    }

    /// Notes that the write at this position is an insert over a deleted record.
    pub(super) fn note_revived(&mut self, at: u32, held: &mut HeldMemory) -> Result<(), Abort> {
        self.revived.push(at, held).map(|_| ())
    }

    /// Returns whether one of the writes is an insert over a deleted record.
    #[inline]
    pub(super) fn has_revived(&self) -> bool {
        !self.revived.is_empty()
    }

    /// Returns whether one of `writes`, with keys that are spans of `keys`, has this store and key.
    pub(super) fn has_written(
        &mut self,
        writes: &[WriteEntry],
        keys: &[u8],
        wanted: (TableId, &[u8]),
        held: &mut HeldMemory,
    ) -> Result<bool, Abort> {
        let name_of = |write: &WriteEntry| (write.record.store(), write.key.of(keys));
        if writes.len() <= WALKED_MAX {
            return Ok(writes.iter().any(|write| name_of(write) == wanted));
        }
        // The keys of the writes that came since the last time.
        held.add(self.keys.growth_bytes(writes.len() - self.mapped))?;
        for (at, write) in (self.mapped as u32..).zip(&writes[self.mapped..]) {
            let name = name_of(write);
            let found = find_position(&self.keys, hash_of(self.seed, name), |at| {
                name_of(&writes[at as usize]) == name
            });
            if let Err(free) = found {
                self.keys.insert(free, at);
            }
        }
        self.mapped = writes.len();
        let is_wanted = |at: u32| name_of(&writes[at as usize]) == wanted;
        Ok(find_position(&self.keys, hash_of(self.seed, wanted), is_wanted).is_ok())
    }

    /// Returns a write to a record that does not carry the version any more that was seen, or that has no row any more to add to: one of all, or
    /// else one of those over deleted records.
    pub(super) fn find(&self, writes: &[WriteEntry], is_any_lost: bool) -> Option<WriteEntry> {
        let has_moved = |write: &&WriteEntry| {
            let now = write.record.tid().unlocked();
            if matches!(write.change, RecordChange::Add(_)) { !has_row(now) } else { now != write.observed }
        };
        if is_any_lost {
            return writes.iter().find(has_moved).copied();
        }
        self.revived.iter().map(|&at| &writes[at as usize]).find(has_moved).copied()
    }
}

/// Returns the position of the write that is looked for, with a name of this hash, or else under which number it is to be put into the
/// map. Names with the same hash stand under numbers that follow each other.
#[inline]
fn find_position(keys: &PointerMap, hash: usize, is_wanted: impl Fn(u32) -> bool) -> Result<u32, usize> {
    let mut number = hash;
    while let Some(at) = keys.get(number) {
        if is_wanted(at) {
            return Ok(at);
        }
        number = number.wrapping_add(1);
    }
    Err(number)
}

/// Returns a number for a store and a key, rarely the same for two of them. It is asked for at most reads of a transaction that writes
/// much, and takes one multiplication for each eight bytes.
#[inline]
fn hash_of(seed: u64, (store, key): (TableId, &[u8])) -> usize {
    let (words, rest) = key.as_chunks::<8>();
    let mut hash = fold(seed ^ (u64::from(store.0) << 32 | key.len() as u64));
    for word in words {
        hash = fold(hash ^ u64::from_le_bytes(*word));
    }
    let last = match key.last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |last, &byte| last << 8 | u64::from(byte)),
    };
    fold(hash ^ last) as usize
}

/// Returns both halves of a product, in one: each bit of it depends on all bits of the number.
#[inline]
fn fold(number: u64) -> u64 {
    let product = u128::from(number ^ 0xa076_1d64_78bd_642f) * 0xe703_7ed1_a0b4_28db;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_with_the_same_hash_are_all_found() {
        let (mut keys, names) = (PointerMap::default(), ["a", "b", "c"]);
        for hash in [7, usize::MAX] {
            keys.clear();
            for (at, name) in (0..).zip(names) {
                let free = find_position(&keys, hash, |at| names[at as usize] == name).unwrap_err();
                keys.insert(free, at);
            }
            for (at, name) in (0..).zip(names) {
                assert_eq!(find_position(&keys, hash, |at| names[at as usize] == name), Ok(at));
            }
            assert!(find_position(&keys, hash, |_| false).is_err());
        }
    }

    #[test]
    fn hashes_of_keys_that_differ_a_little_differ() {
        let mut hashes = HashSet::new();
        let mut count = 0;
        for store in [2, 4, 1 << 20] {
            for len in 0..40 {
                let mut key = vec![0; len];
                for at in 0..len {
                    for byte in 1..=255 {
                        key[at] = byte;
                        hashes.insert(hash_of(0, (TableId(store), &key)));
                        count += 1;
                    }
                    key[at] = 0;
                }
                hashes.insert(hash_of(0, (TableId(store), &key)));
                count += 1;
            }
        }
        assert_eq!(hashes.len(), count);
    }
}
