//! A row that a statement has found: read and changed without another descent of the tree.

use std::fmt;
use std::marker::PhantomData;

use crate::Silo;
use ensilo_engine::{Engine, ReadOf};
use ensilo_row::{AsKey, Columns, Key, KeyBuf, Row};

use super::Table;
use crate::error::WrongType;
use crate::long_values::wanted_by;
use crate::maintain;
use crate::row_words::RowWords;
use crate::transaction::{Inner, ReadTransaction, WriteTransaction};
use crate::{Error, Result};

/// A row of the table `'h`, as the transaction `'t` has found it.
///
/// The handle is good for that transaction only, which the compiler checks. In a [`Session`](crate::Session)
/// its methods return [`Error::NoTransaction`] once that transaction has ended.
///
/// ```compile_fail
/// # use ensilo::{Database, Row, Table};
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// # let accounts: Table<Account> = db.create_table()?;
/// let found = db.transact(|tx| accounts.find(tx, 1))?; // error: the lifetime may not live long enough
/// # Ok(()) }
/// ```
///
/// # Errors
/// Every method may return the errors of every statement, see [`Table`], and [`Error::MissingRow`] when this transaction has deleted the row
/// meanwhile.
pub struct Found<'h, 't, T: Row, E: Engine = Silo> {
    table: &'h Table<T, E>,
    key: T::Key,
    /// It knows which transaction has found it: in a session the lifetime does not say it.
    raw: E::Found,
    /// Invariant: fits one transaction.
    brand: PhantomData<fn(&'t ()) -> &'t ()>,
}

impl<T: Row, E: Engine> Table<T, E> {
    /// Returns the row with this primary key, or `None`. It can be read and changed without another look-up.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn find<'h, 't>(
        &'h self,
        tx: &mut impl ReadTransaction<'t, E>,
        key: impl AsKey<T::Key>,
    ) -> Result<Option<Found<'h, 't, T, E>>> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&key)?;
            let found = inner.find_in(&self.core, &bytes)?;
            Ok(found.map(|found| Found::new(self, key.as_key().into_owned(), found)))
        })
    }

    /// Returns the row with this primary key, or `None`, for a transaction that is about to change it: like [`Table::find`], but
    /// over an engine that locks what is read ([`two_phase_locking`](crate::two_phase_locking)) it is locked for the change at once.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn find_to_write<'h, 't>(
        &'h self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: impl AsKey<T::Key>,
    ) -> Result<Option<Found<'h, 't, T, E>>> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&key)?;
            let found = inner.find_in_to_write(&self.core, &bytes)?;
            Ok(found.map(|found| Found::new(self, key.as_key().into_owned(), found)))
        })
    }
}

impl<'h, 't, T: Row, E: Engine> Found<'h, 't, T, E> {
    #[inline(always)]
    pub(super) fn new(table: &'h Table<T, E>, key: T::Key, raw: E::Found) -> Self {
        Found { table, key, raw, brand: PhantomData }
    }

    /// Returns the row's primary key.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &T::Key {
        &self.key
    }

    /// Reads the row.
    ///
    /// # Errors
    /// See [`Found`].
    #[inline]
    pub fn row(&self, tx: &mut impl ReadTransaction<'t, E>) -> Result<T> {
        self.columns(tx)
    }

    /// Reads some columns of the row.
    ///
    /// # Errors
    /// See [`Found`].
    #[inline]
    pub fn columns<C: Columns<T>>(&self, tx: &mut impl ReadTransaction<'t, E>) -> Result<C> {
        tx.statement(|inner| {
            let raw = self.current(inner)?;
            let form = self.table.core.form(wanted_by::<T, C>());
            let key = || self.table.encode(&self.key);
            let columns = inner.read(form, raw, key, |row| C::decode(&self.key, &RowWords(row)))?;
            self.table.known(columns, &self.key)
        })
    }

    /// Reads some columns of the row, writes what `change` makes of them, and returns what `change` returns.
    ///
    /// # Errors
    /// See [`Found`]; [`Error::WrongType`] when a column of the primary key was changed;
    /// [`Error::DuplicateKey`], [`Error::KeyTooLong`] and [`Error::RowTooLarge`] when the new row does not
    /// fit; nothing has changed then.
    #[inline]
    pub fn update<C: Columns<T>, R>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R> {
        tx.statement(|inner| {
            let raw = self.current(inner)?;
            self.table.update_found(inner, &self.key, raw, change)
        })
    }

    /// Writes some columns of the row, without reading them.
    ///
    /// # Errors
    /// As [`Found::update`].
    #[inline]
    pub fn set<C: Columns<T>>(&self, tx: &mut impl WriteTransaction<'t, E>, columns: C) -> Result<()> {
        tx.statement(|inner| {
            let raw = self.current(inner)?;
            self.table.set_found(inner, &self.key, raw, &columns)
        })
    }

    /// Replaces the whole row with `row`, which must have the same primary key.
    ///
    /// # Errors
    /// As [`Found::update`].
    pub fn replace(&self, tx: &mut impl WriteTransaction<'t, E>, row: &T) -> Result<()> {
        tx.statement(|inner| {
            let raw = self.current(inner)?;
            refuse_other_key::<T, T>(row, &self.key)?;
            self.table.replace_found(inner, &self.key, raw, row)
        })
    }

    /// Deletes the row.
    ///
    /// # Errors
    /// See [`Found`].
    #[inline]
    pub fn delete(self, tx: &mut impl WriteTransaction<'t, E>) -> Result<()> {
        tx.statement(|inner| {
            let raw = self.current(inner)?;
            let key = self.table.encode(&self.key)?;
            maintain::delete_row(inner, &self.table.core, &key, raw)
        })
    }

    /// Returns the engine's handle, unless this transaction has deleted the row since.
    #[inline(always)]
    fn current<Raw: ReadOf<E>>(&self, inner: &mut Inner<'_, Raw>) -> Result<E::Found> {
        if !inner.raw.has_found(self.raw) {
            return Err(Error::NoTransaction);
        }
        self.table.core.check(inner.local)?;
        if inner.may_have_deleted_in(&self.table.core.store) { self.find_again(inner) } else { Ok(self.raw) }
    }

    #[cold]
    fn find_again<Raw: ReadOf<E>>(&self, inner: &mut Inner<'_, Raw>) -> Result<E::Found> {
        let key = self.table.encode(&self.key)?;
        inner.find_row(&self.table.core, &key)
    }
}

/// Refuses columns that would change the row's primary key.
#[inline(always)]
pub(super) fn refuse_other_key<T: Row, C: Columns<T>>(columns: &C, key: &T::Key) -> Result<()> {
    if columns.keeps_key(key) { Ok(()) } else { Err(key_changed::<T>()) }
}

#[cold]
fn key_changed<T: Row>() -> Error {
    let schema = T::schema();
    let names: Vec<_> =
        schema.key_parts().iter().map(|part| schema.columns()[part.column].name.as_str()).collect();
    let names = names.join(", ");
    let problem = format!(
        "an update changes the primary key ({names}); delete the row and insert it under its new key"
    );
    Error::WrongType(WrongType::new(&names, problem))
}

impl<T: Row, E: Engine> fmt::Debug for Found<'_, '_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = KeyBuf::new();
        self.key.encode(&mut bytes);
        f.debug_struct("Found")
            .field("table", &self.table.name())
            .field("key", &bytes)
            .finish_non_exhaustive()
    }
}
