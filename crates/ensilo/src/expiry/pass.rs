//! Removes the rows that have expired at one moment, by one small transaction after the other.
//!
//! A transaction that meets a conflict is made anew with fewer rows, down to one: so others that use a few of them do not keep the rest. A row that
//! cannot be removed by itself stays until the next pass.
//!
//! A look along the primary key reads the rows, so that it ends at the first one that cannot be read back from the disk, and does not say which that
//! is: those before it go by smaller and smaller transactions, those behind it stay. A look along an index reads none of them.

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;
use ensilo_row::KeyBuf;

use super::ExpiryCore;
use super::target::Target;
use crate::attempt::{self, RetryPolicy, UNPROTECTED_ATTEMPTS};
use crate::outcome::{Outcome, Visible};
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// The most rows that one transaction removes.
const BATCH_LEN_MAX: usize = 128;

/// How often a transaction is tried again at once after a conflict.
const RETRIES: u32 = 1;

/// The same for a transaction with one row: not so often that it would get ahead of others.
const RETRIES_ALONE: u32 = 5;

const _: () = assert!(RETRIES_ALONE < UNPROTECTED_ATTEMPTS, "others go first");

/// The rows that had expired when it began, or what is left of them.
pub(super) struct Pass<E: Engine> {
    target: Target<E::Store>,
    batch_len: usize,
    pub(super) removed: u64,
    /// Once it is durable, so is all that was removed.
    pub(super) epoch: Epoch,
    /// Why a row cannot be removed, if that does not depend on others.
    pub(super) failure: Option<Error>,
}

impl<E: Engine> Pass<E> {
    /// Begins with the rows that have expired by now.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownColumn`], [`Error::InvalidOption`], [`Error::Closed`].
    pub(super) fn begin(shared: &DatabaseShared<E>, expiry: &ExpiryCore) -> Result<Self> {
        let target = shared.expired(expiry)?;
        Ok(Pass { target, batch_len: BATCH_LEN_MAX, removed: 0, epoch: Epoch::new(0), failure: None })
    }

    /// Removes all that it finds.
    ///
    /// # Errors
    /// Those of [`Pass::step`], and why a row cannot be removed if that does not depend on others.
    pub(super) fn run(&mut self, shared: &DatabaseShared<E>, expiry: &ExpiryCore) -> Result<()> {
        while self.step(shared, expiry)? {}
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Removes the next rows, and returns whether there may be others.
    ///
    /// # Errors
    /// Those of requests that delete rows by an index.
    pub(super) fn step(&mut self, shared: &DatabaseShared<E>, expiry: &ExpiryCore) -> Result<bool> {
        let mut found = Vec::new();
        let Visible { value: removed, epoch } = match self.remove_batch(shared, &mut found) {
            Ok(visible) => visible,
            Err(undone) => return self.go_on_after(undone.error, found, expiry),
        };
        shared.expiries.note_removed(expiry, removed);
        self.removed += removed;
        self.epoch = self.epoch.max(epoch);
        let may_have_more = found.len() == self.batch_len;
        self.batch_len = (2 * self.batch_len).min(BATCH_LEN_MAX);
        if let Some(last) = found.pop() {
            self.target.continue_after(last);
        }
        Ok(may_have_more)
    }

    /// Removes what is there of the next rows; `found` says which these are, also if that fails.
    fn remove_batch(&self, shared: &DatabaseShared<E>, found: &mut Vec<KeyBuf>) -> Outcome<u64> {
        let retries = if self.batch_len == 1 { RETRIES_ALONE } else { RETRIES };
        attempt::run(shared, RetryPolicy::internal(retries), &mut |_| (), |tx| {
            found.clear();
            *found = self.target.look(&mut tx.inner, self.batch_len)?;
            let mut removed = 0;
            for key in found.iter() {
                removed += u64::from(self.target.remove(&mut tx.inner, key)?);
            }
            Ok(removed)
        })
    }

    /// Goes on with fewer rows after an error, or after the one row that has led to it; or returns the error if all rows would.
    fn go_on_after(&mut self, error: Error, mut found: Vec<KeyBuf>, expiry: &ExpiryCore) -> Result<bool> {
        let may_depend_on_rows =
            matches!(error, Error::Aborted(_) | Error::RowUnreadable(_) | Error::OutOfMemory(_));
        if may_depend_on_rows && self.batch_len > 1 {
            self.batch_len /= 2;
            return Ok(true);
        }
        let row = found.pop().filter(|_| matches!(error, Error::Aborted(_) | Error::RowUnreadable(_)));
        let Some(row) = row else { return Err(error) };
        expiry.note_postponed();
        if matches!(error, Error::RowUnreadable(_)) {
            self.failure = Some(error);
        }
        self.target.continue_after(row);
        Ok(true)
    }
}
