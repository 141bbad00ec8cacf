//! Sequences: made, opened, listed and dropped.

use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_row::RowId;

use super::Database;
use crate::error::Name;
use crate::generic::Sequence;
use crate::row_ids::ROW_ID_END;
use crate::sequence::{
    CarriedSequence, SequenceCore, SequenceKey, SequenceNumber, SequenceOf, SequenceOptions,
};
use crate::{Error, Result};

/// The length of names, in bytes, as that of tables.
const NAME_LEN_MAX: usize = ensilo_row::NAME_LEN_MAX;

impl<E: Engine> Database<E> {
    /// Returns a handle to the sequence of this name, which is made if it is not there: it then gives 1, 2, 3 and so on, up to the largest
    /// number of the type `N`. A program calls it when it starts, whether it has run before or not.
    ///
    /// ```
    /// # use ensilo::{Database, Sequence};
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let orders: Sequence<u32> = db.sequence("order")?;
    /// let first = db.transact(|tx| orders.next(tx))?;
    /// assert_eq!((first, db.transact(|tx| orders.next(tx))?), (1, 2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidSequence`] when the sequence is there and gives numbers that the type does not have, and for names without or with
    /// more than 255 bytes; [`Error::Closed`]; [`Error::DamagedCatalog`], [`Error::LoadFailed`].
    /// When it is to be made: [`Error::NestedRequest`] inside a request
    /// or while this thread was the last to use an open transaction of a session, [`Error::ReadOnly`], [`Error::OutOfMemory`];
    /// [`Error::LogFailed`] as [`Database::transact`].
    pub fn sequence<N: SequenceNumber>(&self, name: &str) -> Result<Sequence<N, E>> {
        let core = match self.find_sequence(name)? {
            Some(core) => core,
            None => self.make_sequence::<N>(name, &SequenceOptions::new())?,
        };
        Sequence::new(&self.shared, core)
    }

    /// Like [`Database::sequence`], with options for a sequence that is made. One that is there has to have the same.
    ///
    /// # Errors
    /// As [`Database::sequence`]; [`Error::InvalidSequence`] when the options contradict each other or the type, or the sequence that is there
    /// has others, to which [`Database::alter_sequence`] is the remedy.
    pub fn sequence_with<N: SequenceNumber>(
        &self,
        name: &str,
        options: SequenceOptions,
    ) -> Result<Sequence<N, E>> {
        let definition = options.define(N::LEAST..=N::LARGEST)?;
        let core = match self.find_sequence(name)? {
            Some(core) => core,
            None => self.make_sequence::<N>(name, &options)?,
        };
        let there = core.definition();
        if there != definition {
            let differing = there.difference_from(&definition);
            let text = format!("{name} has {differing}; Database::alter_sequence gives it other options");
            return Err(Error::InvalidSequence(Name::new(text)));
        }
        Sequence::new(&self.shared, core)
    }

    /// Returns the names of all sequences that programs have made, in alphabetical order.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::DamagedCatalog`], [`Error::LoadFailed`].
    pub fn list_sequences(&self) -> Result<Vec<String>> {
        self.check_open()?;
        self.shared.list_sequences()
    }

    /// Gives a sequence other options, as if it had been made with them: what they do not set is as by default. [`Sequence::options`] has those of now, so
    /// that single ones can be changed. The sequence goes on behind the number that it gave last, with numbers
    /// which are reserved anew, so that none is left out; handles that there are go by the new options.
    ///
    /// ```
    /// # use ensilo::{Database, Sequence, SequenceOptions};
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let orders: Sequence<u32> = db.sequence("order")?;
    /// assert_eq!(db.transact(|tx| orders.next(tx))?, 1);
    /// let options = || SequenceOptions::new().increment(10).block_len(1000);
    /// db.alter_sequence::<u32>("order", options())?;
    /// assert_eq!(db.transact(|tx| orders.next(tx))?, 11);
    /// let orders: Sequence<u32> = db.sequence_with("order", options())?; // as the program that runs next
    /// # Ok(()) }
    /// ```
    ///
    /// Where the number that would come next is before the new bounds, the sequence goes on with the first number; where it is past them, the
    /// sequence is at its end, or begins a further cycle. The number that was given last is kept, so that wider bounds go on behind it. After a restart the
    /// number before the next one counts as given, if there is such a number of 64 bits. A sequence that changes its direction gives numbers again. After a crash the sequence is as it was
    /// before, or as it is then. It is not undone with a transaction, and not made in one.
    ///
    /// # Errors
    /// [`Error::UnknownSequence`]; [`Error::InvalidSequence`] when the options contradict each other or the type `N`, and for names without or with
    /// more than 255 bytes; [`Error::NestedRequest`], [`Error::ReadOnly`], [`Error::Closed`], [`Error::OutOfMemory`]; [`Error::LogFailed`] as
    /// [`Database::transact`].
    pub fn alter_sequence<N: SequenceNumber>(&self, name: &str, options: SequenceOptions) -> Result<()> {
        let definition = options.define(N::LEAST..=N::LARGEST)?;
        let core = self.known_sequence(name)?;
        self.shared.alter_sequence(&core, &definition)
    }

    /// Lets a sequence go on with the number `next`, wherever it is. Numbers that were given may be given again then: see
    /// [`Sequence::advance_past`] to go on behind a number in any case.
    ///
    /// ```
    /// # use ensilo::{Database, Sequence};
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let invoices: Sequence<u32> = db.sequence("invoice of this year")?;
    /// assert_eq!(db.transact(|tx| Ok((invoices.next(tx)?, invoices.next(tx)?)))?, (1, 2));
    /// db.restart_sequence("invoice of this year", 1u32)?;
    /// assert_eq!(db.transact(|tx| invoices.next(tx))?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// [`Sequence::last_given`] is the number before `next` until that is given. After a crash the sequence is as it was before, or goes on with `next`.
    ///
    /// # Errors
    /// As [`Database::alter_sequence`]; [`Error::InvalidSequence`] when `next` is not within the sequence's bounds.
    pub fn restart_sequence<N: SequenceNumber>(&self, name: &str, next: N) -> Result<()> {
        let core = self.known_sequence(name)?;
        self.shared.restart_sequence(&core, next.to_wide())
    }

    /// Sets the number with which the keys that a table gives ([`Table::insert_auto`](crate::generic::Table::insert_auto), [`Database::give_keys`]) go on. It
    /// helps where one row with a very large number has left none behind it. Numbers that rows have are passed over: where the next one
    /// is a row's, the table goes on behind the largest of the rows that have the same columns of the key before the number. If the number is the first
    /// column, a row that was deleted a moment ago, or is still in a snapshot, counts as well.
    ///
    /// # Errors
    /// [`Error::UnknownTable`]; [`Error::UnknownSequence`] when the table gives no keys; [`Error::InvalidSequence`] when `next` is none of the numbers
    /// that it gives, which are those from 1 to the largest of the column; otherwise as [`Database::restart_sequence`].
    pub fn restart_keys<N: SequenceNumber>(&self, table: &str, next: N) -> Result<()> {
        let table = self.table_core(table)?;
        self.shared.restart_keys(&table, next.to_wide())
    }

    /// Drops a sequence. Handles to it return [`Error::UnknownSequence`] from now on. One that is made with the same name later begins anew.
    ///
    /// # Errors
    /// [`Error::UnknownSequence`], [`Error::NestedRequest`], [`Error::ReadOnly`], [`Error::Closed`]; [`Error::LogFailed`] as [`Database::transact`].
    pub fn drop_sequence(&self, name: &str) -> Result<()> {
        self.shared.drop_sequence(name)
    }

    /// Returns all sequences, also those that give keys of tables, and where they are.
    #[doc(hidden)]
    pub fn carried_sequences(&self) -> Result<Vec<CarriedSequence>> {
        self.check_open()?;
        self.shared.carried_sequences()
    }

    /// Makes a sequence that goes on where one of another database is: its table, if it has one, is there and gives no keys yet.
    #[doc(hidden)]
    pub fn take_sequence(&self, carried: &CarriedSequence) -> Result<()> {
        if let SequenceOf::Program(name) = &carried.of
            && self.find_sequence(name)?.is_some()
        {
            return Err(Error::InvalidSequence(Name::new(format!("there is one named {name}"))));
        }
        self.shared.take_sequence(carried)
    }

    /// Returns a row id that is at least as large as all that were given, and that others may be given behind.
    #[doc(hidden)]
    pub fn largest_row_id(&self) -> RowId {
        self.shared.largest_row_id().min(RowId(ROW_ID_END.0 - 1))
    }

    fn find_sequence(&self, name: &str) -> Result<Option<Arc<SequenceCore>>> {
        self.check_open()?;
        if !(1..=NAME_LEN_MAX).contains(&name.len()) {
            return Err(Error::InvalidSequence(Name::new(format!("a name has 1 to {NAME_LEN_MAX} bytes"))));
        }
        self.shared.find_sequence(&SequenceKey::named(name), &name.into())
    }

    fn known_sequence(&self, name: &str) -> Result<Arc<SequenceCore>> {
        self.find_sequence(name)?.ok_or_else(|| Error::UnknownSequence(Name::new(name)))
    }

    fn make_sequence<N: SequenceNumber>(
        &self,
        name: &str,
        options: &SequenceOptions,
    ) -> Result<Arc<SequenceCore>> {
        let definition = options.define(N::LEAST..=N::LARGEST)?;
        self.shared.make_sequence(&SequenceKey::named(name), &name.into(), &definition, None)
    }
}
