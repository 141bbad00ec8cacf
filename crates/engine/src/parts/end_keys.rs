//! The keys at the ends of an index.

use std::ops::{Bound, ControlFlow};

use ensilo_epoch::Guard;
use ensilo_index::{Direction, Masstree, NodeStamp, ScanVisitor};

/// Returns the smallest key of an index and the largest one; deleted ones count until they have left it.
#[must_use]
pub fn end_keys(index: &Masstree, guard: &Guard<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    end_key(index, Direction::Forward, guard).zip(end_key(index, Direction::Reverse, guard))
}

/// Returns the first key of an index in this direction; deleted ones count until they have left it.
fn end_key(index: &Masstree, direction: Direction, guard: &Guard<'_>) -> Option<Vec<u8>> {
    let mut end = EndKey(None);
    index.scan((Bound::Unbounded, Bound::Unbounded), direction, guard, &mut end);
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
