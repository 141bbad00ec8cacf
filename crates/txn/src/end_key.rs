//! The keys at the ends of a store.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::Direction;
use ensilo_epoch::Epochs;
use ensilo_index::{NodeStamp, ScanVisitor};

use crate::store::Store;

/// Returns the first key of a store in this direction; deleted ones count until they have left the tree.
pub(crate) fn end_key(epochs: &Arc<Epochs>, store: &Store, direction: Direction) -> Option<Vec<u8>> {
    let participant = epochs.participant();
    let mut end = EndKey(None);
    store.scan((Bound::Unbounded, Bound::Unbounded), direction, &participant.pin(), &mut end);
    end.0
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
