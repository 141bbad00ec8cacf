//! How much memory each account holds.
//!
//! Each heap counts what its owner allocated and freed, per account, in counters that only the owner writes. A heap
//! may free more of an account than it allocated, so that a counter alone may be negative (it wraps); the sum over all
//! heaps is what the account holds. What comes from the general-purpose allocator is counted on its account, and
//! once more by itself, because it is no part of what the pool has taken from the system.
//!
//! # Layout
//! The counters of accounts 0 to 63 lie in the heap. Further ones lie in segments that are made when an account of
//! theirs is first used: segment `i` has `64 << i` counters, from account `64 << i` on.

use std::array;
use std::sync::OnceLock;

use ensilo_sync::atomic::Ordering;
// Counters are part of no protocol.
use ensilo_sync::unchecked::AtomicU64;

/// The table, the index or the part of the engine that memory is counted on: one account for each.
///
/// Number accounts from 1 on without large gaps: counters take memory up to the highest number used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

impl AccountId {
    /// The engine itself.
    pub const SYSTEM: AccountId = AccountId(0);
}

/// What a pool holds at some moment. While others allocate and free, the parts may be off by what they do meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that were taken from the system: by the pool, which the limit bounds, and in blocks of the general-purpose allocator.
    pub mapped_bytes: u64,
    /// Bytes in live blocks, each counted with the size of its class.
    pub live_bytes: u64,
    /// The live bytes of each account that holds any, in order of the accounts.
    pub by_account: Vec<(AccountId, u64)>,
}

impl Usage {
    /// Returns the live bytes of one account.
    #[must_use]
    pub fn of(&self, account: AccountId) -> u64 {
        self.by_account
            .binary_search_by_key(&account, |&(id, _)| id)
            .map_or(0, |place| self.by_account[place].1)
    }
}

/// Accounts with their counters in the heap itself.
const NEAR: usize = 64;

/// Segments enough for every `u32`.
const SEGMENTS: usize = (u32::BITS - NEAR.ilog2()) as usize;

/// One heap's counters.
#[derive(Debug)]
pub(crate) struct Accounts {
    near: [AtomicU64; NEAR],
    segments: [OnceLock<Box<[AtomicU64]>>; SEGMENTS],
    /// Of all accounts, the bytes in blocks of the general-purpose allocator.
    general: AtomicU64,
}

impl Accounts {
    pub(crate) fn new() -> Self {
        Accounts {
            near: array::from_fn(|_| AtomicU64::new(0)),
            segments: array::from_fn(|_| OnceLock::new()),
            general: AtomicU64::new(0),
        }
    }

    /// Counts `bytes` more in a block of the general-purpose allocator, or fewer if that is a wrapped negative. As
    /// [`Accounts::add_as_owner`].
    pub(crate) fn add_general_as_owner(&self, account: AccountId, bytes: u64) {
        self.add_as_owner(account, bytes);
        add(&self.general, bytes);
    }

    /// Returns the bytes in blocks of the general-purpose allocator; a wrapped negative where others allocated what
    /// this heap freed.
    pub(crate) fn general_bytes(&self) -> u64 {
        self.general.load(Ordering::Relaxed)
    }

    /// Counts `bytes` more, or fewer if that is a wrapped negative. Called by the owner of the heap alone.
    #[inline]
    pub(crate) fn add_as_owner(&self, account: AccountId, bytes: u64) {
        let counter = match self.near.get(account.0 as usize) {
            Some(counter) => counter,
            None => self.far(account),
        };
        add(counter, bytes);
    }

    #[cold]
    fn far(&self, account: AccountId) -> &AtomicU64 {
        let segment = (account.0 / NEAR as u32).ilog2() as usize;
        let counters =
            self.segments[segment].get_or_init(|| (0..NEAR << segment).map(|_| AtomicU64::new(0)).collect());
        &counters[account.0 as usize - (NEAR << segment)]
    }

    /// Adds these counters to a sum over heaps, which is indexed by account.
    pub(crate) fn add_to(&self, sum: &mut Vec<u64>) {
        add_part(sum, 0, &self.near);
        for (segment, counters) in self.segments.iter().enumerate() {
            if let Some(counters) = counters.get() {
                add_part(sum, NEAR << segment, counters);
            }
        }
    }
}

#[inline]
fn add(counter: &AtomicU64, bytes: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

fn add_part(sum: &mut Vec<u64>, first: usize, counters: &[AtomicU64]) {
    sum.resize(sum.len().max(first + counters.len()), 0);
    for (total, counter) in sum[first..].iter_mut().zip(counters) {
        *total = total.wrapping_add(counter.load(Ordering::Relaxed));
    }
}

/// Returns the usage that a sum over all heaps amounts to.
pub(crate) fn usage(mapped_bytes: u64, sum: &[u64]) -> Usage {
    let by_account: Vec<_> = (0..)
        .map(AccountId)
        .zip(sum.iter().copied())
        // A sum is negative for a moment when its parts were read around a move from heap to heap.
        .filter(|&(_, bytes)| bytes.cast_signed() > 0)
        .collect();
    let live_bytes = by_account.iter().map(|(_, bytes)| bytes).sum();
    Usage { mapped_bytes, live_bytes, by_account }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_counted_apart() {
        let (one, two) = (Accounts::new(), Accounts::new());
        let ids = [0, 1, 63, 64, 65, 127, 128, 1000, 70_000].map(AccountId);
        for (bytes, id) in (1u64..).zip(ids) {
            one.add_as_owner(id, 100 + bytes);
            two.add_as_owner(id, 100u64.wrapping_neg());
        }
        let mut sum = Vec::new();
        one.add_to(&mut sum);
        two.add_to(&mut sum);
        let usage = usage(0, &sum);
        assert_eq!(usage.by_account, ids.into_iter().zip(1..).collect::<Vec<_>>());
        assert_eq!((usage.live_bytes, usage.of(AccountId(65)), usage.of(AccountId(66))), (45, 5, 0));
    }
}
