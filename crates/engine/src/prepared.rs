//! Two-phase commit as an engine offers it: a transaction that has voted to commit and waits for the decision.

use crate::abort::Abort;
use crate::committed::Committed;

/// A prepared transaction, which waits for the decision. Dropping it is the decision to abort.
///
/// It waits in memory alone: after a crash it is as if it had never been.
pub trait Prepared: Sized + Send {
    /// Carries out the decision to commit: all writes become visible at one point of the serial order.
    ///
    /// # Errors
    /// [`Abort`] only for a reason that keeps anybody from committing, so that nobody can help it: the log has failed since, or the last
    /// epoch has come. Nothing has changed.
    fn commit(self) -> Result<Committed, Abort>;

    /// Carries out the decision to abort; nothing has changed.
    fn abort(self) {}
}

/// The prepared transactions of an engine without two-phase commit: there are none.
#[derive(Debug)]
pub enum NeverPrepared {}

impl Prepared for NeverPrepared {
    fn commit(self) -> Result<Committed, Abort> {
        match self {}
    }
}
