//! `crossbeam-skiplist`.

use crossbeam_skiplist::SkipMap;

use crate::keys::Key;
use crate::peer::Peer;

/// A lock-free skip list.
pub(crate) struct SkipListMap<K>(SkipMap<K, u64>);

impl<K: Key> Peer<K> for SkipListMap<K> {
    const NAME: &'static str = "crossbeam-skiplist";
    type Session<'m> = ();

    fn new() -> Self {
        SkipListMap(SkipMap::new())
    }

    fn session(&self) {}

    fn refresh(&self, (): &mut ()) {}

    #[inline]
    fn insert(&self, (): &mut (), key: K, value: u64) -> bool {
        // The entry is the one that was there if the key is not new; the values of all keys differ.
        *self.0.get_or_insert(key, value).value() == value
    }

    #[inline]
    fn get(&self, (): &mut (), key: K) -> Option<u64> {
        self.0.get(&key).map(|entry| *entry.value())
    }

    #[inline]
    fn remove(&self, (): &mut (), key: K, _: u64) -> bool {
        self.0.remove(&key).is_some()
    }

    #[inline]
    fn scan(&self, (): &mut (), from: K, count: usize) -> (u64, u64) {
        let entries = self.0.range(from..).take(count);
        entries.fold((0, 0), |(sum, count), entry| (sum + *entry.value(), count + 1))
    }
}
