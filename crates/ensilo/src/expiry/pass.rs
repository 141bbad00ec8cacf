//! Removes the rows that have expired at one moment, by one small transaction after the other ([`RowPass`]).

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;

use super::ExpiryCore;
use super::target::Target;
use super::turn::TakenTurn;
use crate::row_pass::RowPass;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

/// The rows that had expired when it began, or what is left of them.
pub(super) struct Pass<E: Engine>(RowPass<Target<E::Store>>);

impl<E: Engine> Pass<E> {
    /// Begins with the rows that have expired by now.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::UnknownColumn`], [`Error::InvalidOption`], [`Error::Closed`].
    pub(super) fn begin(shared: &DatabaseShared<E>, expiry: &ExpiryCore) -> Result<Self> {
        Ok(Pass(RowPass::new(shared.expired(expiry)?)))
    }

    /// Removes all that it finds.
    ///
    /// # Errors
    /// Those of [`Pass::step`], and why a row cannot be removed if that does not depend on others.
    pub(super) fn run(&mut self, shared: &DatabaseShared<E>, expiry: &ExpiryCore) -> Result<()> {
        while self.step(shared, expiry, expiry.turn.take(shared))? {}
        self.0.failure.take().map_or(Ok(()), Err)
    }

    /// Removes the next rows, and returns whether there may be others. `turn` is that of the table, where it could be taken.
    ///
    /// # Errors
    /// Those of requests that delete rows by an index.
    pub(super) fn step(
        &mut self,
        shared: &DatabaseShared<E>,
        expiry: &ExpiryCore,
        turn: Option<TakenTurn<'_>>,
    ) -> Result<bool> {
        let step = self.0.step(shared)?;
        if let Some(mut last) = turn {
            *last = self.0.epoch.max(*last);
            self.0.epoch = *last;
        }
        shared.expiries.note_removed(expiry, step.changed);
        if step.is_postponed {
            expiry.note_postponed();
        }
        Ok(step.may_have_more)
    }

    /// Returns how many rows it has removed, and the epoch with which that is durable, and what others removed before.
    pub(super) fn removed(&self) -> (u64, Epoch) {
        (self.0.changed, self.0.epoch)
    }

    /// Returns why a row cannot be removed, if that does not depend on others.
    pub(super) fn into_failure(self) -> Option<Error> {
        self.0.failure
    }
}
