//! The version orders: for every key that was ever written its versions by TID.
//!
//! # Layout
//! Keys are numbered in their sorted order, so a key range is a range of numbers. The versions of all keys lie in one
//! array, grouped by key and sorted by TID within the group; `starts` says where each group begins.

use std::collections::HashMap;
use std::ops::{Bound, Range};

use crate::history::{Epoch, History, InitialVersion, Key, KeyRange, Tid, Transaction};

/// The number of a written key in sorted order.
pub(crate) type KeyId = u32;

/// The writer of a version that was there before the first transaction.
pub(crate) const INITIAL: u32 = u32::MAX;

/// One version of one key.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Version {
    pub(crate) tid: Tid,
    pub(crate) epoch: Epoch,
    /// Index of the transaction that wrote it, or [`INITIAL`].
    pub(crate) writer: u32,
    pub(crate) absent: bool,
}

/// The version orders of all written keys.
pub(crate) struct Versions<'h> {
    ids: HashMap<&'h Key, KeyId>,
    keys: Vec<&'h Key>,
    starts: Vec<usize>,
    versions: Vec<Version>,
}

impl<'h> Versions<'h> {
    /// Collects the versions that a history wrote.
    pub(crate) fn of(history: &'h History) -> Versions<'h> {
        let (mut ids, keys) = number_keys(history);
        let mut sorted: Vec<(KeyId, Version)> = Vec::new();
        for_each_version(history, |key, version| sorted.push((ids[key], version)));
        sorted.sort_unstable_by_key(|(key, version)| (*key, version.tid, version.epoch, version.writer));
        let mut starts = vec![0; keys.len() + 1];
        for (key, _) in &sorted {
            starts[*key as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        ids.shrink_to_fit();
        Versions { ids, keys, starts, versions: sorted.into_iter().map(|(_, version)| version).collect() }
    }

    /// Returns the number of a key, if it was ever written.
    pub(crate) fn id(&self, key: &Key) -> Option<KeyId> {
        self.ids.get(key).copied()
    }

    /// Returns the key with this number.
    pub(crate) fn key(&self, id: KeyId) -> &'h Key {
        self.keys[id as usize]
    }

    /// Returns the versions of a key by TID.
    pub(crate) fn of_key(&self, id: KeyId) -> &[Version] {
        &self.versions[self.starts[id as usize]..self.starts[id as usize + 1]]
    }

    /// Returns the numbers of all written keys of a range.
    pub(crate) fn in_range(&self, range: &KeyRange) -> Range<KeyId> {
        let before_low = |key: &&Key| {
            key.table < range.table
                || key.table == range.table
                    && match &range.low {
                        Bound::Unbounded => false,
                        Bound::Included(low) => key.bytes < *low,
                        Bound::Excluded(low) => key.bytes <= *low,
                    }
        };
        let up_to_high = |key: &&Key| {
            key.table < range.table
                || key.table == range.table
                    && match &range.high {
                        Bound::Unbounded => true,
                        Bound::Included(high) => key.bytes <= *high,
                        Bound::Excluded(high) => key.bytes < *high,
                    }
        };
        let low = self.keys.partition_point(before_low) as KeyId;
        let high = self.keys.partition_point(up_to_high) as KeyId;
        low..high.max(low)
    }

    /// Returns the numbers of all written keys.
    pub(crate) fn ids(&self) -> Range<KeyId> {
        0..self.keys.len() as KeyId
    }

    /// Returns how many versions there are.
    pub(crate) fn len(&self) -> usize {
        self.versions.len()
    }
}

/// Returns the position after the newest version of an epoch before `horizon`: the number of versions before the horizon.
pub(crate) fn position_before(versions: &[Version], horizon: Epoch) -> usize {
    versions.partition_point(|version| version.epoch < horizon)
}

fn number_keys(history: &History) -> (HashMap<&Key, KeyId>, Vec<&Key>) {
    let mut ids: HashMap<&Key, KeyId> = HashMap::new();
    for_each_version(history, |key, _| {
        ids.entry(key).or_default();
    });
    let mut keys: Vec<&Key> = ids.keys().copied().collect();
    keys.sort_unstable();
    assert!(KeyId::try_from(keys.len()).is_ok(), "a history has at most 2^32 keys");
    for (id, key) in keys.iter().enumerate() {
        ids.insert(key, id as KeyId);
    }
    (ids, keys)
}

fn for_each_version<'h>(history: &'h History, mut each: impl FnMut(&'h Key, Version)) {
    for initial in &history.initial {
        let InitialVersion { key, tid, absent } = initial;
        each(key, Version { tid: *tid, epoch: Epoch(0), writer: INITIAL, absent: *absent });
    }
    for (writer, transaction) in history.transactions.iter().enumerate() {
        let Transaction { tid, epoch, .. } = transaction;
        for write in &transaction.writes {
            each(
                &write.key,
                Version { tid: *tid, epoch: *epoch, writer: writer as u32, absent: write.absent },
            );
        }
    }
}
