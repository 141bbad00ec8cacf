//! Which rows some open transaction is about to take.
//!
//! A claim keeps nobody from anything but from taking the row. It lasts until the end of the attempt that has
//! made it, however that ends, because the attempt owns it and drops it. Nobody waits for a claim, so claims
//! cannot deadlock.
//!
//! A claim notes that others have passed over its row. Then the watchers of the table are woken when it ends,
//! since the row may be there by then, even after a commit that has deleted it: another transaction may have
//! inserted it again before the claim has ended.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex};

use ensilo_engine::TableId;
use ensilo_sync::CachePadded;

use super::{Queues, TableQueue};
use crate::mutex::lock;

/// So many locks share the claims of a database.
const SHARDS: usize = 64;

/// A table's id and the encoded primary key of one of its rows.
type ClaimedRow = Arc<[u8]>;

/// The number of a worker, which has one transaction at a time.
type Owner = u64;

/// A claim of one row.
#[derive(Debug)]
struct Claim {
    owner: Owner,
    /// Whether another transaction has asked for the row since.
    is_passed_over: bool,
}

type ClaimsByRow = HashMap<ClaimedRow, Claim>;

/// The claims of all transactions.
#[derive(Debug)]
pub(super) struct Claims {
    shards: Box<[CachePadded<Mutex<ClaimsByRow>>]>,
    /// Tells the shard of a row.
    hasher: RandomState,
}

/// What a transaction has claimed. Dropping it gives the claims up, as those of a transaction that did not
/// commit.
#[derive(Debug)]
pub(crate) struct HeldClaims {
    queues: Arc<Queues>,
    owner: Owner,
    held: Vec<(ClaimedRow, Arc<TableQueue>)>,
    /// The row that is asked for, in memory that is used again.
    row: Vec<u8>,
}

/// What has come of asking for a claim.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimOutcome {
    /// The row is claimed from now on.
    Claimed,
    /// The transaction had claimed it before.
    Own,
    /// Another transaction has claimed it.
    Taken,
}

impl Claims {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| CachePadded::new(Mutex::default())).collect();
        Claims { shards, hasher: RandomState::new() }
    }

    fn shard(&self, row: &[u8]) -> &Mutex<ClaimsByRow> {
        &self.shards[self.hasher.hash_one(row) as usize % SHARDS]
    }

    /// Ends a claim, and returns whether others have passed over its row.
    fn remove(&self, row: &[u8]) -> bool {
        lock(self.shard(row)).remove(row).is_some_and(|claim| claim.is_passed_over)
    }
}

impl HeldClaims {
    /// Returns the claims of a transaction of this worker that has none.
    pub(crate) fn new(queues: &Arc<Queues>, owner: Owner) -> Self {
        HeldClaims { queues: Arc::clone(queues), owner, held: Vec::new(), row: Vec::new() }
    }

    /// Claims a row, unless another transaction has.
    pub(super) fn try_claim(
        &mut self,
        (table, queue): (TableId, &Arc<TableQueue>),
        key: &[u8],
    ) -> ClaimOutcome {
        self.row.clear();
        self.row.extend_from_slice(&table.0.to_le_bytes());
        self.row.extend_from_slice(key);
        let mut shard = lock(self.queues.claims.shard(&self.row));
        match shard.get_mut(&self.row[..]) {
            Some(claim) if claim.owner == self.owner => ClaimOutcome::Own,
            Some(claim) => {
                claim.is_passed_over = true;
                ClaimOutcome::Taken
            }
            None => {
                let row: ClaimedRow = self.row[..].into();
                // First here: a claim that is not held is never given up.
                self.held.push((Arc::clone(&row), Arc::clone(queue)));
                shard.insert(row, Claim { owner: self.owner, is_passed_over: false });
                ClaimOutcome::Claimed
            }
        }
    }

    /// Gives up the last claim: its row turned out not to be there. Others may have passed it over meanwhile.
    pub(super) fn give_up_last(&mut self) {
        if let Some((row, queue)) = self.held.pop() {
            self.queues.claims.remove(&row);
            queue.wake();
        }
    }

    /// Gives up all claims after the commit: the rows are deleted. What others have passed over may be a row
    /// that was inserted again since.
    pub(crate) fn end_committed(mut self) {
        let claims = &self.queues.claims;
        self.held.retain(|(row, _)| claims.remove(row));
        self.wake_watchers();
    }

    /// Wakes the watchers of the tables of the rows that are still held. Their claims have ended.
    fn wake_watchers(&mut self) {
        self.held.dedup_by(|(_, queue), (_, before)| Arc::ptr_eq(queue, before));
        self.held.drain(..).for_each(|(_, queue)| queue.wake());
    }
}

impl Drop for HeldClaims {
    fn drop(&mut self) {
        for (row, _) in &self.held {
            self.queues.claims.remove(row);
        }
        self.wake_watchers();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_claim_lasts_until_it_is_given_up() {
        let (queues, queue) = (Queues::new(), Arc::<TableQueue>::default());
        let (table, other) = ((TableId(17), &queue), (TableId(19), &queue));
        let (mut one, mut two) = (HeldClaims::new(&queues, 1), HeldClaims::new(&queues, 2));
        assert_eq!(one.try_claim(table, b"a"), ClaimOutcome::Claimed);
        assert_eq!(one.try_claim(table, b"a"), ClaimOutcome::Own);
        assert_eq!(two.try_claim(table, b"a"), ClaimOutcome::Taken);
        assert_eq!(two.try_claim(other, b"a"), ClaimOutcome::Claimed);
        assert_eq!(two.try_claim(table, b"b"), ClaimOutcome::Claimed);
        two.give_up_last();
        assert_eq!(one.try_claim(table, b"b"), ClaimOutcome::Claimed);
        one.end_committed();
        assert_eq!(two.try_claim(table, b"a"), ClaimOutcome::Claimed);
        drop(two);
        assert!(queues.claims.shards.iter().all(|shard| lock(shard).is_empty()));
    }

    #[test]
    fn a_committed_claim_wakes_watchers_only_if_it_was_passed_over() {
        let (queues, queue) = (Queues::new(), Arc::<TableQueue>::default());
        let other = Arc::<TableQueue>::default();
        let (mut one, mut two) = (HeldClaims::new(&queues, 1), HeldClaims::new(&queues, 2));
        for key in [b"a", b"b", b"c"] {
            assert_eq!(one.try_claim((TableId(17), &queue), key), ClaimOutcome::Claimed);
            assert_eq!(one.try_claim((TableId(17), &queue), key), ClaimOutcome::Own);
        }
        assert_eq!(two.try_claim((TableId(17), &queue), b"b"), ClaimOutcome::Taken);
        assert_eq!(two.try_claim((TableId(17), &queue), b"c"), ClaimOutcome::Taken);
        assert_eq!(two.try_claim((TableId(19), &other), b"a"), ClaimOutcome::Claimed);
        one.end_committed();
        assert_eq!(queue.arrivals(), 1, "once for all of them");
        two.end_committed();
        assert_eq!(other.arrivals(), 0);
    }
}
