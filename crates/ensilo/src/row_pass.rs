//! A pass over rows of a table: changes them by one small transaction after the other, and lets others go first.
//!
//! A transaction that meets a conflict is made anew with fewer rows, down to one: so others that use a few of them do not keep the rest. A row that
//! cannot be changed by itself stays until the next pass.
//!
//! A look along the primary key reads the rows, so that it ends at the first one that cannot be read back from the disk, and does not say which that
//! is: those before it are changed by smaller and smaller transactions, those behind it stay. A look along an index reads none of them.

use ensilo_engine::{Engine, TransactionOf};
use ensilo_epoch::Epoch;
use ensilo_row::KeyBuf;

use crate::attempt::{self, RetryPolicy, UNPROTECTED_ATTEMPTS};
use crate::outcome::{Outcome, Visible};
use crate::shared::DatabaseShared;
use crate::transaction::Inner;
use crate::{Error, Result};

/// The most rows that one transaction looks at.
const BATCH_LEN_MAX: usize = 128;

/// How often a transaction is tried again at once after a conflict.
const RETRIES: u32 = 1;

/// The same for a transaction with one row: not so often that it would get ahead of others.
const RETRIES_ALONE: u32 = 5;

const _: () = assert!(RETRIES_ALONE < UNPROTECTED_ATTEMPTS, "others go first");

/// Which rows a pass changes, and how.
pub(crate) trait PassTarget<E: Engine> {
    /// Finds the next `len` rows by a look that nothing depends on.
    fn look(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, len: usize) -> Result<Vec<FoundRow>>;

    /// Changes the row that was found there, and returns whether it has.
    fn change(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, key: &KeyBuf) -> Result<bool>;

    /// Goes on after this row.
    fn continue_after(&mut self, key: KeyBuf);
}

/// A row that a look has found.
pub(crate) struct FoundRow {
    /// Its primary key, or the key of its entry in the index that the look went along.
    pub(crate) key: KeyBuf,
    /// Whether it is to be changed.
    pub(crate) is_to_change: bool,
}

/// See the module's documentation.
pub(crate) struct RowPass<T> {
    target: T,
    batch_len: usize,
    pub(crate) changed: u64,
    /// Once it is durable, so is all that was changed.
    pub(crate) epoch: Epoch,
    /// Why a row cannot be changed, if that does not depend on others.
    pub(crate) failure: Option<Error>,
}

/// What has come of one transaction.
#[derive(Debug, Default)]
pub(crate) struct PassStep {
    pub(crate) looked_at: u64,
    pub(crate) changed: u64,
    /// Whether a row stays until the next pass.
    pub(crate) is_postponed: bool,
    /// Whether there may be other rows.
    pub(crate) may_have_more: bool,
}

impl<T> RowPass<T> {
    pub(crate) fn new(target: T) -> Self {
        RowPass { target, batch_len: BATCH_LEN_MAX, changed: 0, epoch: Epoch::new(0), failure: None }
    }

    /// Changes the next rows.
    ///
    /// # Errors
    /// Those of requests that look at the rows and change them.
    pub(crate) fn step<E: Engine>(&mut self, shared: &DatabaseShared<E>) -> Result<PassStep>
    where
        T: PassTarget<E>,
    {
        let mut found = Vec::new();
        let Visible { value: changed, epoch } = match self.change_batch(shared, &mut found) {
            Ok(visible) => visible,
            Err(undone) => return self.go_on_after(undone.error, found),
        };
        self.changed += changed;
        self.epoch = self.epoch.max(epoch);
        let (looked_at, may_have_more) = (found.len() as u64, found.len() == self.batch_len);
        self.batch_len = (2 * self.batch_len).min(BATCH_LEN_MAX);
        if let Some(last) = found.pop() {
            self.target.continue_after(last.key);
        }
        Ok(PassStep { looked_at, changed, is_postponed: false, may_have_more })
    }

    /// Changes what is there of the next rows; `found` says which these are, also if that fails.
    fn change_batch<E: Engine>(&self, shared: &DatabaseShared<E>, found: &mut Vec<FoundRow>) -> Outcome<u64>
    where
        T: PassTarget<E>,
    {
        let retries = if self.batch_len == 1 { RETRIES_ALONE } else { RETRIES };
        attempt::run(shared, RetryPolicy::internal(retries), &mut |_| (), |tx| {
            found.clear();
            *found = self.target.look(&mut tx.inner, self.batch_len)?;
            let mut changed = 0;
            for row in found.iter().filter(|row| row.is_to_change) {
                changed += u64::from(self.target.change(&mut tx.inner, &row.key)?);
            }
            Ok(changed)
        })
    }

    /// Goes on with fewer rows after an error, or after the one row that has led to it; or returns the error if all rows would.
    fn go_on_after<E: Engine>(&mut self, error: Error, mut found: Vec<FoundRow>) -> Result<PassStep>
    where
        T: PassTarget<E>,
    {
        let is_of_row = matches!(error, Error::RowUnreadable(_) | Error::RowTooLarge(_));
        let may_depend_on_rows = is_of_row
            || matches!(error, Error::Aborted(_) | Error::OutOfMemory(_) | Error::TransactionTooLarge(_));
        let go_on = PassStep { may_have_more: true, ..PassStep::default() };
        if may_depend_on_rows && self.batch_len > 1 {
            self.batch_len /= 2;
            return Ok(go_on);
        }
        let row = found.pop().filter(|_| is_of_row || matches!(error, Error::Aborted(_)));
        let Some(row) = row else { return Err(error) };
        if is_of_row {
            self.failure = Some(error);
        }
        self.target.continue_after(row.key);
        Ok(PassStep { looked_at: 1, is_postponed: true, ..go_on })
    }
}

#[cfg(test)]
mod tests {
    use ensilo_engine::{AbortReason, TableId};

    use super::*;
    use crate::generic::Database;
    use crate::row_words::key_of_bytes;

    /// 300 rows, of which a transaction can change ten.
    struct LongRows {
        at: u16,
    }

    const ROWS: u16 = 300;

    impl<E: Engine> PassTarget<E> for LongRows {
        fn look(&self, inner: &mut Inner<'_, TransactionOf<'_, E>>, len: usize) -> Result<Vec<FoundRow>> {
            if len > 10 {
                let abort = ensilo_engine::Abort::new(AbortReason::TransactionTooLarge, TableId::NONE, &[]);
                return Err(inner.lost(abort));
            }
            let row = |at: u16| FoundRow { key: key_of_bytes(&at.to_be_bytes()), is_to_change: true };
            Ok((self.at..ROWS).take(len).map(row).collect())
        }

        fn change(&self, _: &mut Inner<'_, TransactionOf<'_, E>>, _: &KeyBuf) -> Result<bool> {
            Ok(true)
        }

        fn continue_after(&mut self, key: KeyBuf) {
            let key = key.as_bytes();
            self.at = u16::from_be_bytes([key[0], key[1]]) + 1;
        }
    }

    #[test]
    fn a_transaction_that_is_too_large_is_made_anew_with_fewer_rows() {
        let db: Database<crate::Silo> = Database::in_memory().unwrap();
        let mut pass = RowPass::new(LongRows { at: 0 });
        while pass.step(&db.shared).unwrap().may_have_more {}
        assert_eq!((pass.changed, pass.target.at), (ROWS.into(), ROWS));
        assert!(pass.failure.is_none());
    }
}
