//! Scans: what is walked over is locked before it is read, block by block.
//!
//! A scan may end early, and what it has not come to stays free: the first row of a queue is read while others add rows behind it. So a scan looks
//! first, without a lock, where a block of the next few keys ends ([`Write::peek`]). It locks the range from where it is up to that key, and only
//! then reads it; the last block, which has fewer keys, ends where the scan's bounds do, also if the scan ends within it. Whatever has come or gone
//! between the look and the lock, under the lock the block is read as it is. The first block is one key, and those that follow grow.

use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Abort, Direction, Fault, KeyBounds, RowRef, Write};
use ensilo_txn::{Store, Transaction};

use crate::locking::Locking;
use crate::range::LockRange;
use crate::transaction::LockingTransaction;

/// So many times more keys has each block than the one before, up to a limit.
const BLOCK_GROWTH: usize = 16;
const BLOCK_LEN_MAX: usize = 4096;

impl<'s, L: Locking> LockingTransaction<'s, L> {
    /// Locks the keys within bounds block by block, and has `scan` read each block, until it breaks.
    pub(crate) fn scan_blocks(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut scan: impl FnMut(&mut Transaction<'s, L>, KeyBounds<'_>) -> Result<ControlFlow<()>, Abort>,
    ) -> Result<(), Abort> {
        self.locks.0.check()?;
        if L::FAULT == Some(Fault::SkipRangeLocks) || self.covers(store, bounds) {
            return scan(&mut self.inner, bounds).map(drop);
        }
        let (mut last_key, mut end, mut locked_at, mut len) = (Vec::new(), Vec::new(), None, 1);
        let mut is_first = true;
        loop {
            let from = if is_first { bounds } else { behind(bounds, direction, &last_key) };
            let is_last = !self.find_block_end(store, from, direction, len, &mut end)?;
            let block = if is_last { from } else { up_to(from, direction, &end) };
            let locked = self.locks.0.lock_range(store.id(), block, &mut locked_at);
            locked.map_err(|abort| self.inner.doom(abort))?;
            if scan(&mut self.inner, block)?.is_break() || is_last {
                return Ok(());
            }
            std::mem::swap(&mut last_key, &mut end);
            is_first = false;
            len = (len * BLOCK_GROWTH).min(BLOCK_LEN_MAX);
        }
    }

    fn covers(&self, store: &Store, bounds: KeyBounds<'_>) -> bool {
        self.locks.0.covers(&LockRange::new(store.id(), bounds))
    }

    /// Makes `end` the last of the next `len` keys; returns `false` when there are fewer.
    fn find_block_end(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        len: usize,
        end: &mut Vec<u8>,
    ) -> Result<bool, Abort> {
        let mut met = 0;
        // It may be decoded again and again, and the last time right before it is passed on.
        let note_key = |key: &[u8], _: RowRef<'_>| {
            end.clear();
            end.extend_from_slice(key);
        };
        let count = |()| {
            met += 1;
            if met == len { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.inner.peek(store, bounds, direction, note_key, count, drop)?;
        Ok(met == len)
    }
}

/// Returns the part of the bounds that a scan in this direction comes to behind a key.
fn behind<'k>((low, high): KeyBounds<'k>, direction: Direction, key: &'k [u8]) -> KeyBounds<'k> {
    match direction {
        Direction::Forward => (Bound::Excluded(key), high),
        Direction::Reverse => (low, Bound::Excluded(key)),
    }
}

/// Returns the part of the bounds that a scan in this direction comes to up to a key, which is in it.
fn up_to<'k>((low, high): KeyBounds<'k>, direction: Direction, key: &'k [u8]) -> KeyBounds<'k> {
    match direction {
        Direction::Forward => (low, Bound::Included(key)),
        Direction::Reverse => (Bound::Included(key), high),
    }
}
