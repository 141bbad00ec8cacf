//! A prepared transaction: Silo's, with its locks, which stay until the decision.

use ensilo_engine::{Abort, Committed, Prepared};
use ensilo_txn::PreparedTransaction;

use crate::held::HeldLocks;
use crate::locking::Locking;

/// A transaction that waits for the decision of a two-phase commit. Dropping it is the decision to abort.
#[derive(Debug)]
pub struct LockingPrepared<'s, L: Locking> {
    /// Ended before the locks are given back: fields are dropped in this order.
    inner: PreparedTransaction<'s, L>,
    locks: HeldLocks<'s>,
}

impl<'s, L: Locking> LockingPrepared<'s, L> {
    pub(crate) fn new(inner: PreparedTransaction<'s, L>, locks: HeldLocks<'s>) -> Self {
        locks.0.prepare();
        LockingPrepared { inner, locks }
    }
}

impl<L: Locking> Prepared for LockingPrepared<'_, L> {
    fn commit(self) -> Result<Committed, Abort> {
        let LockingPrepared { inner, locks } = self;
        locks.0.begin_commit();
        let outcome = inner.commit();
        drop(locks);
        outcome
    }
}
