//! Numbers for new trades and evaluations, given out by blocks so that workers do not share a counter.
//!
//! Numbers come from outside of transactions: those of requests that do not commit are missing, which clause 2.2.5 allows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Numbers that a worker takes at a time.
const BLOCK: u64 = 4_096;

/// Where workers take blocks from.
#[derive(Debug)]
pub(super) struct Numbers {
    next: AtomicU64,
}

/// The numbers of one worker.
#[derive(Debug)]
pub(super) struct NumbersOfWorker<'a> {
    numbers: &'a Numbers,
    next: u64,
    end: u64,
}

impl Numbers {
    /// Numbers from `first` on.
    pub(super) fn new(first: u64) -> Self {
        Self { next: AtomicU64::new(first) }
    }

    /// A worker's part of them.
    pub(super) fn of_worker(&self) -> NumbersOfWorker<'_> {
        NumbersOfWorker { numbers: self, next: 0, end: 0 }
    }
}

impl NumbersOfWorker<'_> {
    /// A number that nobody else gets.
    pub(super) fn take(&mut self) -> u64 {
        if self.next == self.end {
            // Relaxed: that no number is taken twice is all.
            self.next = self.numbers.next.fetch_add(BLOCK, Relaxed);
            self.end = self.next + BLOCK;
        }
        self.next += 1;
        self.next - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_given_out_twice() {
        let numbers = Numbers::new(7);
        let (mut one, mut other) = (numbers.of_worker(), numbers.of_worker());
        let taken: std::collections::BTreeSet<u64> =
            (0..10_000).map(|at| if at % 3 == 0 { one.take() } else { other.take() }).collect();
        assert_eq!((taken.len(), taken.first()), (10_000, Some(&7)));
    }
}
