//! The standard library's map behind a lock.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{PoisonError, RwLock};

use crate::keys::Key;
use crate::peer::Peer;

/// `RwLock<BTreeMap>`.
pub(crate) struct LockedBTreeMap<K>(RwLock<BTreeMap<K, u64>>);

impl<K: Key> Peer<K> for LockedBTreeMap<K> {
    const NAME: &'static str = "RwLock<BTreeMap>";
    type Session<'m> = ();

    fn new() -> Self {
        LockedBTreeMap(RwLock::new(BTreeMap::new()))
    }

    fn session(&self) {}

    fn refresh(&self, (): &mut ()) {}

    #[inline]
    fn insert(&self, (): &mut (), key: K, value: u64) -> bool {
        match self.0.write().unwrap_or_else(PoisonError::into_inner).entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(value);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    #[inline]
    fn get(&self, (): &mut (), key: K) -> Option<u64> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied()
    }

    fn get_many(&self, (): &mut (), keys: &[K]) -> (u64, u64) {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter()
            .filter_map(|key| map.get(key))
            .fold((0, 0), |(sum, count), value| (sum + value, count + 1))
    }

    #[inline]
    fn remove(&self, (): &mut (), key: K, _: u64) -> bool {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&key).is_some()
    }

    #[inline]
    fn scan(&self, (): &mut (), from: K, count: usize) -> (u64, u64) {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let entries = map.range(from..).take(count);
        entries.fold((0, 0), |(sum, count), (_, value)| (sum + value, count + 1))
    }
}
