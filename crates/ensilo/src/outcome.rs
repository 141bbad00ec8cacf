//! How a request has ended, before anybody has waited for the disk.

use ensilo_engine::AbortReason;
use ensilo_epoch::Epoch;

use crate::{Error, Result};

/// How a request has ended.
pub(crate) type Outcome<R> = Result<Visible<R>, Box<Undone>>;

/// What a request has made visible, and the epoch that has to be durable before it is stored.
pub(crate) struct Visible<R> {
    pub(crate) value: R,
    pub(crate) epoch: Epoch,
}

/// Why a request has ended without a commit, and the epoch that has to be durable before the error is: it may
/// follow from what was read.
#[derive(Debug)]
pub(crate) struct Undone {
    pub(crate) error: Error,
    pub(crate) epoch: Epoch,
    /// Whether the error is an abort of this very attempt. An abort that a closure passes on, of another
    /// database or of an earlier transaction, is an error of the closure's own.
    pub(crate) is_own_abort: bool,
}

impl Undone {
    /// The engine has undone the attempt.
    #[cold]
    pub(crate) fn by_abort(abort: ensilo_engine::Abort) -> Self {
        Undone { is_own_abort: true, ..Error::from_raw(abort).into() }
    }

    /// Returns whether another attempt may end otherwise.
    pub(crate) fn is_conflict(&self) -> bool {
        self.is_own_abort && matches!(&self.error, Error::Aborted(abort) if may_retry(abort.reason()))
    }

    /// Returns whether the attempt has ended because what it had read did not stay as it was.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_by(AbortReason::ReadValidation)
    }

    /// Returns whether the attempt has ended because a number that it has not read has no room for a sum: the next one reads it.
    pub(crate) fn is_unread_sum(&self) -> bool {
        self.is_by(AbortReason::SumOutOfRange)
    }

    /// Returns whether the attempt has ended because a table was being changed that it was to open.
    pub(crate) fn is_by_changing_table(&self) -> bool {
        self.is_by(AbortReason::TableChanging)
    }

    fn is_by(&self, reason: AbortReason) -> bool {
        self.is_own_abort && matches!(&self.error, Error::Aborted(abort) if abort.reason() == reason)
    }

    /// Returns whether the attempt has ended because there was no room for what it has to remember.
    pub(crate) fn is_too_large(&self) -> bool {
        self.is_own_abort && matches!(self.error, Error::OutOfMemory(_) | Error::TransactionTooLarge(_))
    }

    /// Returns whether the memory limit has ended this attempt.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.is_own_abort && matches!(self.error, Error::OutOfMemory(_))
    }
}

/// An error that does not depend on any row.
impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        Undone { error, epoch: Epoch::new(0), is_own_abort: false }
    }
}

impl From<Error> for Box<Undone> {
    fn from(error: Error) -> Self {
        Box::new(error.into())
    }
}

/// Returns the epoch that has to be durable before the outcome is stored.
#[inline]
pub(crate) fn epoch_of<R>(outcome: &Outcome<R>) -> Epoch {
    match outcome {
        Ok(visible) => visible.epoch,
        Err(undone) => undone.epoch,
    }
}

/// Returns whether a transaction that was undone for this reason is worth another attempt.
///
/// When a store was dropped, the next attempt finds out which one: it ends with an error after a table, and
/// goes on without an index.
pub(crate) fn may_retry(reason: AbortReason) -> bool {
    reason.is_retryable() || reason == AbortReason::StoreDropped
}
