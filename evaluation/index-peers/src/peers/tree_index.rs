//! `scc::TreeIndex`.

use scc::{Guard, TreeIndex};

use crate::keys::Key;
use crate::peer::Peer;

/// A concurrent B+-tree, made for reads.
pub(crate) struct TreeIndexMap<K: Key>(TreeIndex<K, u64>);

impl<K: Key> Peer<K> for TreeIndexMap<K> {
    const NAME: &'static str = "scc::TreeIndex";
    type Session<'m> = Guard;

    fn new() -> Self {
        TreeIndexMap(TreeIndex::new())
    }

    fn session(&self) -> Guard {
        Guard::new()
    }

    fn refresh(&self, session: &mut Guard) {
        *session = Guard::new();
    }

    #[inline]
    fn insert(&self, _: &mut Guard, key: K, value: u64) -> bool {
        self.0.insert_sync(key, value).is_ok()
    }

    #[inline]
    fn get(&self, guard: &mut Guard, key: K) -> Option<u64> {
        self.0.peek(&key, guard).copied()
    }

    #[inline]
    fn remove(&self, _: &mut Guard, key: K, _: u64) -> bool {
        self.0.remove_sync(&key)
    }

    #[inline]
    fn scan(&self, guard: &mut Guard, from: K, count: usize) -> (u64, u64) {
        let entries = self.0.range(from.., guard).take(count);
        entries.fold((0, 0), |(sum, count), (_, value)| (sum + value, count + 1))
    }
}
