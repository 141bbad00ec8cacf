//! Sequences: numbers that are given one after the other, and never again.
//!
//! # What is stored
//! Each sequence is a row of the table `ensilo.sequences` ([`rows`]), which is made with the first one and, but for its name, is a table like all
//! others: logged, checkpointed, recovered. The row has the last number that *may* have been given. Numbers come from memory ([`state`]),
//! a block at a time: before the first of a block is given, a transaction of its own writes the block's last one into the row.
//!
//! # Why no number is given twice
//! - S1: a number is given after the transaction that has reserved it has committed, in epoch `r`.
//! - S2: a transaction that has got the number commits later, hence in an epoch from `r` on. Epochs are stored in order and as a whole, so that
//!   where this transaction survives a crash the reservation does, and the next opening goes on behind it. Nobody waits for the disk.
//! - S3: a number may also leave the database by an answer to a request that has written nothing, or by its error. Such an answer counts as stored
//!   once epoch `r` is, like one that follows from rows of that epoch ([`Local::note_numbers`](crate::local::Local)).
//!
//! So what a request returns that waits for the disk is never given again. A number that was returned with
//! [`Durability::Visible`](crate::Durability::Visible), and was in no transaction that survives a crash, may be.

mod alter;
mod auto_keys;
mod carried;
mod definition;
mod number;
mod options;
mod rows;
mod sequence_core;
mod sequences;
mod state;
mod stored;
mod table_numbers;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ensilo_engine::{Engine, WriteOf};

pub(crate) use self::auto_keys::{ReservedKeys, insert_under_next};
pub use self::carried::{CarriedSequence, SequenceOf, SequencePosition};
pub use self::number::SequenceNumber;
pub use self::options::SequenceOptions;
pub(crate) use self::sequence_core::{SequenceCore, SequenceKey};
pub(crate) use self::sequences::Sequences;
use self::state::Given;
pub(crate) use self::table_numbers::Numbers;
use crate::error::Name;
use crate::shared::DatabaseShared;
use crate::transaction::{Inner, WriteTransaction};
use crate::{Error, Result, Silo};

/// Numbers of the type `N` that are given one after the other, and never again.
///
/// [`Database::sequence`](crate::generic::Database::sequence) makes one, or opens the one that is there. This is a handle: it is cheap to clone,
/// can be used from any thread, and is not tied to a transaction. It does not keep the database open.
///
/// ```
/// use ensilo::{Database, Row, Sequence};
///
/// #[derive(Row)]
/// #[row(table = "ticket")]
/// struct Ticket {
///     #[row(key)]
///     number: u32,
///     customer: u32,
/// }
///
/// # fn main() -> ensilo::Result<()> {
/// let db = Database::in_memory()?;
/// let tickets = db.table::<Ticket>()?;
/// let numbers: Sequence<u32> = db.sequence("ticket")?;
/// let sell = |customer| {
///     db.transact(|tx| {
///         let number = numbers.next(tx)?;
///         tickets.insert(tx, &Ticket { number, customer })
///     })
/// };
/// assert_eq!((sell(7)?, sell(9)?), (1, 2));
/// # Ok(()) }
/// ```
///
/// # Guarantees
/// - Each number is given once, whoever asks, unless the sequence was made to [cycle](SequenceOptions::cycle) or is
///   [sent back](crate::generic::Database::restart_sequence). A crash changes nothing of it: a number
///   that is in a transaction which has survived, or was returned by a request that waits for the disk (see
///   [`Durability`](crate::Durability)), is not given again. One that was returned with [`Durability::Visible`](crate::Durability::Visible),
///   or used between the statements of a transaction, may be given again after a crash if no transaction with it has survived.
/// - Numbers are given in order: of two calls one after the other, on whichever threads, the second gets the later number.
/// - Numbers have gaps. A transaction that is undone, or run again after a conflict, does not give back what it got, so that
///   nobody waits for its end. After a crash up to a [block](SequenceOptions::block_len) of them is left out; after
///   [`Database::close`](crate::generic::Database::close), or the drop of the last handle, none is, unless the sequence is in
///   use at that moment or there is no memory. Where there must be no gap, count in a row: see
///   [queues and counters](crate::guide::queues_and_counters).
///
/// All threads share one sequence: a call takes a lock for a few nanoseconds, and one call of a block a short transaction.
/// Where that is too much, or numbers need not be small and in order, [row ids](crate::RowId) are free of it.
///
/// # Errors
/// Besides the errors that a method names, each may return
/// [`Error::UnknownSequence`] when the sequence was dropped or belongs to another database than the transaction,
/// [`Error::SequenceExhausted`] at its end, [`Error::ReadOnly`], [`Error::Closed`], and, when it reserves numbers, [`Error::OutOfMemory`],
/// [`Error::LogFailed`], [`Error::LoadFailed`] and [`Error::TooManyTransactions`]. The transaction can go on.
pub struct Sequence<N, E: Engine = Silo> {
    shared: Arc<DatabaseShared<E>>,
    core: Arc<SequenceCore>,
    numbers: PhantomData<fn() -> N>,
}

impl<N: SequenceNumber, E: Engine> Sequence<N, E> {
    /// Returns the handle, if the sequence gives numbers of the type.
    pub(crate) fn new(shared: &Arc<DatabaseShared<E>>, core: Arc<SequenceCore>) -> Result<Self> {
        let definition = core.definition();
        if definition.min < N::LEAST || definition.max > N::LARGEST {
            let (min, max) = (definition.min, definition.max);
            return Err(Error::InvalidSequence(Name::new(format!(
                "{} has numbers from {min} to {max}, and not of the type {}",
                core.name,
                std::any::type_name::<N>(),
            ))));
        }
        Ok(Sequence { shared: Arc::clone(shared), core, numbers: PhantomData })
    }

    /// Returns the sequence's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the options that the sequence has now, each of them set: to change one of them by
    /// [`Database::alter_sequence`](crate::generic::Database::alter_sequence), or to show them.
    pub fn options(&self) -> SequenceOptions {
        SequenceOptions::of(&self.core.definition())
    }

    /// Gives the next number.
    ///
    /// # Errors
    /// See [`Sequence`].
    pub fn next<'t>(&self, tx: &mut impl WriteTransaction<'t, E>) -> Result<N> {
        tx.statement(|inner| {
            let given = self.give(inner, 1)?;
            N::of_wide(given.first).ok_or_else(|| self.core.exhausted())
        })
    }

    /// Gives the next `count` numbers, which nobody else gets any of in between.
    ///
    /// ```
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = ensilo::Database::in_memory()?;
    /// let tickets: ensilo::Sequence<u64> = db.sequence("ticket")?;
    /// let reserved: Vec<u64> = db.transact(|tx| Ok(tickets.reserve(tx, 1000)?.collect()))?;
    /// assert_eq!((reserved[0], reserved[999]), (1, 1000));
    /// # Ok(()) }
    /// ```
    ///
    /// Where the sequence cycles and has not as many left, they are the first ones of the next cycle.
    ///
    /// # Errors
    /// See [`Sequence`]. Where not all of them are left none is given.
    pub fn reserve<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        count: u32,
    ) -> Result<SequenceNumbers<N>> {
        if count == 0 {
            return Ok(SequenceNumbers { next: 0, increment: 0, left: 0, numbers: PhantomData });
        }
        tx.statement(|inner| {
            let Given { first, increment, .. } = self.give(inner, u64::from(count))?;
            Ok(SequenceNumbers { next: first, increment, left: count, numbers: PhantomData })
        })
    }

    /// Sees to it that all numbers from now on come behind `number`, as after rows with numbers from elsewhere were inserted. Does nothing if
    /// the next number is behind it anyway. Which of the numbers behind it comes next depends on what was reserved: with an increment of ten, numbers that
    /// are not reserved yet go on from `number`, and need not be multiples of ten any more. One that begins anew at its end
    /// ([`SequenceOptions::cycle`](crate::SequenceOptions::cycle)) does so here as well.
    ///
    /// Like the numbers that are given it is not undone with the transaction.
    ///
    /// # Errors
    /// See [`Sequence`].
    pub fn advance_past<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, number: N) -> Result<()> {
        tx.statement(|inner| {
            self.check(inner)?;
            let epoch = self.shared.pass_over_numbers(&self.core, number.to_wide())?;
            inner.local.note_numbers(epoch);
            Ok(())
        })
    }

    /// Returns the number that was given last, by whichever thread, or passed over; `None` if there is none. Right after an opening that follows a
    /// crash it is the last one that may have been given.
    ///
    /// Others may get further ones while this returns, so that it is good for displays, and not to choose numbers by.
    #[must_use]
    pub fn last_given(&self) -> Option<N> {
        self.core.position().and_then(N::of_wide)
    }

    fn give(&self, inner: &mut Inner<'_, impl WriteOf<E>>, count: u64) -> Result<Given> {
        self.check(inner)?;
        let given = self.shared.give_numbers(&self.core, count, &(N::LEAST..=N::LARGEST))?;
        inner.local.note_numbers(given.epoch);
        Ok(given)
    }

    /// Checks whether a statement of this transaction may use the sequence.
    fn check(&self, inner: &Inner<'_, impl WriteOf<E>>) -> Result<()> {
        if inner.local.database != self.shared.id() {
            let name = format!("{} in this transaction's database", self.core.name);
            return Err(Error::UnknownSequence(Name::new(name)));
        }
        inner.local.check_control()
    }
}

/// Numbers that [`Sequence::reserve`] has given together, in order.
pub struct SequenceNumbers<N> {
    next: i128,
    increment: i64,
    left: u32,
    numbers: PhantomData<fn() -> N>,
}

impl<N: SequenceNumber> Iterator for SequenceNumbers<N> {
    type Item = N;

    fn next(&mut self) -> Option<N> {
        self.left = self.left.checked_sub(1)?;
        let number = N::of_wide(self.next);
        debug_assert!(number.is_some(), "the first and the last are of the type");
        self.next += i128::from(self.increment);
        number
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl<N: SequenceNumber> ExactSizeIterator for SequenceNumbers<N> {}

impl<N> fmt::Debug for SequenceNumbers<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SequenceNumbers")
            .field("next", &self.next)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl<N, E: Engine> Clone for Sequence<N, E> {
    fn clone(&self) -> Self {
        Sequence { shared: Arc::clone(&self.shared), core: Arc::clone(&self.core), numbers: PhantomData }
    }
}

impl<N, E: Engine> fmt::Debug for Sequence<N, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequence").field("name", &self.core.name).finish_non_exhaustive()
    }
}
