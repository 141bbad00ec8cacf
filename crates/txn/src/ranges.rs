//! The keys of a store in parts, so that several threads walk it at once.

use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Direction, KeyRange};
use ensilo_index::{NodeStamp, ScanVisitor};

use crate::engine::Silo;
use crate::silo::Variant;
use crate::store::Store;

impl<V: Variant> Silo<V> {
    /// The largest key of a store; deleted ones count until they have left the tree.
    #[must_use]
    pub fn last_key(&self, store: &Store) -> Option<Vec<u8>> {
        self.end_key(store, Direction::Reverse)
    }

    /// At most `parts` ranges, at least one, which have each key once, in order. They divide what lies between the smallest and the
    /// largest key evenly, as numbers: how many keys there are in each, nobody knows.
    #[must_use]
    pub fn key_ranges(&self, store: &Store, parts: usize) -> Vec<KeyRange> {
        let first = self.end_key(store, Direction::Forward);
        let last = self.end_key(store, Direction::Reverse);
        KeyRange::divide(first.zip(last), parts)
    }

    /// The key at one end of a store.
    fn end_key(&self, store: &Store, direction: Direction) -> Option<Vec<u8>> {
        let participant = self.epochs().participant();
        let mut end = EndKey(None);
        store.scan((Bound::Unbounded, Bound::Unbounded), direction, &participant.pin(), &mut end);
        end.0
    }
}

/// Takes the first key that it is shown.
struct EndKey(Option<Vec<u8>>);

impl ScanVisitor for EndKey {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], _: u64) -> ControlFlow<()> {
        self.0 = Some(key.to_vec());
        ControlFlow::Break(())
    }
}
