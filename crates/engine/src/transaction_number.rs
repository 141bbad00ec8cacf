//! Numbers of transactions: what a handle says of the transaction that has found it.

use std::sync::atomic::{AtomicU64, Ordering};

/// So many low bits count the transactions of one worker.
const COUNT_BITS: u32 = 24;

static NEXT_BLOCK: AtomicU64 = AtomicU64::new(0);

/// Tells a transaction from all others of the process: 2^40 blocks of 2^24 transactions each are handed out to workers, and none twice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TransactionNumber(u64);

impl TransactionNumber {
    /// Returns the first of a new block.
    #[must_use]
    pub fn fresh() -> Self {
        // Relaxed: the blocks need only differ.
        TransactionNumber(NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) << COUNT_BITS)
    }

    /// Returns the worker's next one.
    #[must_use]
    #[inline(always)]
    pub fn next(self) -> Self {
        let next = self.0 + 1;
        if next & ((1 << COUNT_BITS) - 1) == 0 { TransactionNumber::fresh() } else { TransactionNumber(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_block_is_followed_by_another_block() {
        let first = TransactionNumber::fresh();
        assert_eq!(first.next(), TransactionNumber(first.0 + 1));
        let (last, handed_out) =
            (TransactionNumber(first.0 | ((1 << COUNT_BITS) - 1)), TransactionNumber::fresh());
        let next = last.next();
        assert!(next.0 > handed_out.0, "{next:?} may be that of another worker");
        assert_eq!(next.0 & ((1 << COUNT_BITS) - 1), 0);
    }
}
