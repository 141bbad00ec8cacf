//! Inserts, updates and deletes of static rows.

use ensilo_engine::{Engine, RowRef, WriteOf};
use ensilo_row::{AsKey, AutoKey, Columns, Key as _, KeyBuf, KeyedRow, Row, RowBuf, RowId};

use super::Table;
use crate::all_or_none::insert_all;
use crate::catalog::index_core::IndexCore;
use crate::error::WrongType;
use crate::long_values::wanted_by;
use crate::maintain;
use crate::row_ids::ROW_ID_END;
use crate::row_words::RowWords;
use crate::sequence::{ReservedKeys, insert_under_next};
use crate::transaction::{Inner, WriteTransaction};
use crate::{Error, Result};

impl<T: Row, E: Engine> Table<T, E> {
    /// Inserts a row and returns its primary key: the row's own, or the row id that the table assigns.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`]; [`Error::DuplicateKey`](crate::Error::DuplicateKey), which names the unique index unless it is the
    /// primary key; [`Error::RowTooLarge`](crate::Error::RowTooLarge), [`Error::KeyTooLong`](crate::Error::KeyTooLong). Nothing has changed then.
    #[inline]
    pub fn insert<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &T) -> Result<T::Key> {
        tx.statement(|inner| self.insert_row(inner, row))
    }

    /// Inserts a row under the next number that the table gives, and returns that. What `row` has in its key does not matter.
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// #[derive(Row)]
    /// #[row(table = "customer")]
    /// struct Customer {
    ///     #[row(key, auto)]
    ///     id: u32,
    ///     name: String,
    /// }
    ///
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let customers = db.table::<Customer>()?;
    /// let add = |name: &str| db.transact(|tx| customers.insert_auto(tx, &Customer { id: 0, name: name.to_owned() }));
    /// assert_eq!((add("Ada")?, add("Grace")?), (1, 2));
    /// // A row with a number of the program's choice, which is passed over when it is its turn.
    /// db.transact(|tx| customers.insert(tx, &Customer { id: 3, name: "Edsger".to_owned() }))?;
    /// assert_eq!(add("Barbara")?, 4);
    /// # Ok(()) }
    /// ```
    ///
    /// The numbers are those of a [`Sequence`](crate::generic::Sequence) that belongs to the table: 1, 2, 3 and so on, each given once, whether its row is
    /// committed, undone or deleted, with the gaps that sequences have. It is made when the table is first opened, or created, with
    /// a row type that says `#[row(key, auto)]`, and goes on behind the largest number that the table has then; programs that know the table otherwise
    /// may use it as well. Where a number is taken by a row that was inserted with it, the numbers go on behind the largest that the table has:
    /// so a row with the largest number of the type may be the last.
    ///
    /// # Keys of several columns
    /// One column of the key is `auto`, and `row` has the others, as the tenant of `(tenant, id)`:
    /// ```
    /// # use ensilo::{Database, Row};
    /// #[derive(Row)]
    /// #[row(table = "ticket")]
    /// struct Ticket {
    ///     #[row(key)]
    ///     tenant: u16,
    ///     #[row(key, auto)]
    ///     id: u64,
    ///     text: String,
    /// }
    ///
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let tickets = db.table::<Ticket>()?;
    /// let add = |tenant| db.transact(|tx| tickets.insert_auto(tx, &Ticket { tenant, id: 0, text: String::new() }));
    /// assert_eq!((add(7)?, add(9)?, add(7)?), ((7, 1), (9, 2), (7, 3)));
    /// # Ok(()) }
    /// ```
    /// All rows of the table share the one sequence: no number is given twice, whatever the other columns are, and those of one tenant
    /// are not consecutive. Where a number is taken, they go on behind the largest of the rows with the same columns before it.
    ///
    /// # Errors
    /// As [`Table::insert`], and of [`Sequence`](crate::generic::Sequence); [`Error::SequenceExhausted`] behind the largest number of the key's type;
    /// [`Error::UnknownValue`] where the key's type has a name for some numbers alone, and the next is none of them.
    pub fn insert_auto<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &T) -> Result<T::Key>
    where
        T: AutoKey,
    {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            self.insert_row_auto(inner, row, &mut ReservedKeys::for_rows(1)).map(|(key, _)| key)
        })
    }

    /// Inserts all of the rows under numbers that the table gives, or none of them, and returns their keys in the order of the rows. The numbers
    /// are reserved together, so that they follow each other unless a program has chosen some of them: see [`Table::insert_auto`].
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)]
    /// # #[row(table = "customer")]
    /// # struct Customer {
    /// #     #[row(key, auto)]
    /// #     id: u32,
    /// #     name: String,
    /// # }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let customers = db.table::<Customer>()?;
    /// let rows = ["Ada", "Grace", "Barbara"].map(|name| Customer { id: 0, name: name.to_owned() });
    /// assert_eq!(db.transact(|tx| customers.insert_many_auto(tx, &rows))?, [1, 2, 3]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Table::insert_auto`]. Nothing has changed then, except that the numbers are gone.
    pub fn insert_many_auto<'t, 'r>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        rows: impl IntoIterator<Item = &'r T>,
    ) -> Result<Vec<T::Key>>
    where
        T: AutoKey + 'r,
    {
        // The caller's iterator runs before anything has changed: it may panic.
        let rows: Vec<&T> = rows.into_iter().collect();
        let mut reserved = ReservedKeys::for_rows(rows.len());
        tx.statement(|inner| {
            insert_all(inner, &self.core, rows, |inner, row| self.insert_row_auto(inner, row, &mut reserved))
        })
    }

    /// Inserts a row of a table that assigns row ids under an id that the program has chosen, as for a row that had it elsewhere.
    ///
    /// The table passes over ids that such rows have when it assigns others. Once such a row is deleted, the table may assign its id to
    /// another row.
    ///
    /// It does not compile for a row type with key columns.
    ///
    /// # Errors
    /// As [`Table::insert`]; [`Error::WrongType`](crate::Error::WrongType) for ids from 2^59 on.
    pub fn insert_with_row_id<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        id: RowId,
        row: &T,
    ) -> Result<()>
    where
        T: Row<Key = RowId>,
    {
        const { assert!(T::INVENTS_ROW_ID, "the row has a primary key of its own") };
        check_row_id(id)?;
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&id)?;
            inner.local.row_ids.pass_over_chosen(id);
            self.insert_encoded(inner, row, &id, &bytes)
        })
    }

    /// Inserts all of the rows or none of them, and returns their primary keys.
    ///
    /// # Errors
    /// As [`Table::insert`]. Nothing has changed then.
    pub fn insert_many<'t, 'r>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        rows: impl IntoIterator<Item = &'r T>,
    ) -> Result<Vec<T::Key>>
    where
        T: 'r,
    {
        // The caller's iterator runs before anything has changed: it may panic.
        let rows: Vec<&T> = rows.into_iter().collect();
        tx.statement(|inner| {
            insert_all(inner, &self.core, rows, |inner, row| {
                let key = self.insert_row(inner, row)?;
                self.encode(&key).map(|bytes| (key, bytes))
            })
        })
    }

    /// Inserts the row, or replaces the row with the same key.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`]; [`Error::DuplicateKey`](crate::Error::DuplicateKey) for a unique index,
    /// [`Error::RowTooLarge`](crate::Error::RowTooLarge), [`Error::KeyTooLong`](crate::Error::KeyTooLong). Nothing has changed then.
    #[inline]
    pub fn upsert<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &T) -> Result<()>
    where
        T: KeyedRow,
    {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = row.key();
            let bytes = self.encode(&key)?;
            match inner.find_in_to_write(&self.core, &bytes)? {
                Some(found) => self.replace_found(inner, &key, found, row),
                None => self.insert_encoded(inner, row, &key, &bytes),
            }
        })
    }

    /// Inserts the row, unless there is one with its key: then that is returned, and nothing has changed.
    ///
    /// # Errors
    /// As [`Table::upsert`].
    pub fn insert_or_get<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &T) -> Result<Option<T>>
    where
        T: KeyedRow,
    {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = row.key();
            let bytes = self.encode(&key)?;
            let decode = |row: RowRef<'_>| T::decode(&key, &RowWords(row));
            let there = inner.get_in(&self.core, &bytes, wanted_by::<T, T>(), decode)?;
            match there {
                Some(there) => self.known(there, &key).map(Some),
                None => self.insert_encoded(inner, row, &key, &bytes).map(|()| None),
            }
        })
    }

    /// Changes the row with the key of `row` as [`Table::update`] does, and returns what `change` returns; or inserts `row`
    /// if there is none, and returns `None`.
    ///
    /// # Errors
    /// As [`Table::update`], but for [`Error::MissingRow`](crate::Error::MissingRow).
    pub fn update_or_insert<'t, C: Columns<T>, R>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        row: &T,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<Option<R>>
    where
        T: KeyedRow,
    {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = row.key();
            let bytes = self.encode(&key)?;
            match inner.find_in_to_write(&self.core, &bytes)? {
                Some(found) => self.update_found(inner, &key, found, change).map(Some),
                None => self.insert_encoded(inner, row, &key, &bytes).map(|()| None),
            }
        })
    }

    /// Replaces the row with the same key.
    ///
    /// # Errors
    /// As [`Table::upsert`]; [`Error::MissingRow`](crate::Error::MissingRow) when there is no row with its
    /// key.
    #[inline]
    pub fn replace<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &T) -> Result<()>
    where
        T: KeyedRow,
    {
        tx.statement(|inner| {
            let key = row.key();
            let found = self.find_existing(inner, &key)?;
            self.replace_found(inner, &key, found, row)
        })
    }

    /// Reads some columns of the row with this primary key, writes what `change` makes of them, and returns what `change`
    /// returns. `C` may be `T` for all columns.
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)] #[row(table = "counter")] struct Counter { #[row(key)] name: String, count: u64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let counters = db.table::<Counter>()?;
    /// # db.transact(|tx| counters.insert(tx, &Counter { name: "visits".to_owned(), count: 1 }))?;
    /// let count = db.transact(|tx| {
    ///     counters.update(tx, "visits", |counter: &mut Counter| {
    ///         counter.count += 1;
    ///         counter.count
    ///     })
    /// })?;
    /// assert_eq!(count, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Table::upsert`]; [`Error::MissingRow`](crate::Error::MissingRow) when there is no such row;
    /// [`Error::WrongType`](crate::Error::WrongType) when a column of the primary key was changed.
    #[inline]
    pub fn update<'t, C: Columns<T>, R>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: impl AsKey<T::Key>,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R> {
        tx.statement(|inner| {
            let found = self.find_existing(inner, &key)?;
            self.update_found(inner, &key.as_key(), found, change)
        })
    }

    /// Deletes the row with this primary key, and returns whether there was one.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn delete<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, key: impl AsKey<T::Key>) -> Result<bool> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            self.delete_row(inner, &key)
        })
    }

    /// Deletes the row with this primary key, and returns it; `None` if there is none.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn take<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: impl AsKey<T::Key>,
    ) -> Result<Option<T>> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&key)?;
            let Some(found) = inner.find_in_to_write(&self.core, &bytes)? else { return Ok(None) };
            let decode = |row: RowRef<'_>| T::decode(&key.as_key(), &RowWords(row));
            let form = self.core.form(wanted_by::<T, T>());
            let decoded = inner.read(form, found, || Ok(bytes.clone()), decode)?;
            let row = self.core.known(decoded, bytes.as_bytes())?;
            maintain::delete_row(inner, &self.core, &bytes, found)?;
            Ok(Some(row))
        })
    }

    #[inline(always)]
    fn insert_row(&self, inner: &mut Inner<'_, impl WriteOf<E>>, row: &T) -> Result<T::Key> {
        self.core.check(inner.local)?;
        let key = row.insert_key(|| inner.local.next_row_id());
        let bytes = self.encode(&key)?;
        match self.insert_encoded(inner, row, &key, &bytes) {
            Ok(()) => Ok(key),
            Err(error) if T::INVENTS_ROW_ID && error.is_duplicate_primary_key() => {
                self.insert_behind_chosen(inner, row)
            }
            Err(error) => Err(error),
        }
    }

    /// Inserts a row under the next number that the table gives, and returns its key as well as that in bytes.
    fn insert_row_auto(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        row: &T,
        reserved: &mut ReservedKeys,
    ) -> Result<(T::Key, KeyBuf)>
    where
        T: AutoKey,
    {
        row.encode(&mut inner.local.row);
        let given = self.encode(&row.key())?;
        let decode = |key: &KeyBuf| {
            T::Key::decode(key.as_bytes()).map_err(|_| self.core.unknown_value(key.as_bytes()))
        };
        let check = |key: &KeyBuf| decode(key).map(drop);
        let key = insert_under_next(inner, &self.core, reserved, &given, check)?;
        decode(&key).map(|decoded| (decoded, key))
    }

    /// Inserts a row that was about to get a row id which a program has chosen for another one.
    #[cold]
    fn insert_behind_chosen(&self, inner: &mut Inner<'_, impl WriteOf<E>>, row: &T) -> Result<T::Key> {
        loop {
            inner.local.row_ids.skip_block();
            let key = row.insert_key(|| inner.local.next_row_id());
            let bytes = self.encode(&key)?;
            match self.insert_encoded(inner, row, &key, &bytes) {
                Err(error) if error.is_duplicate_primary_key() => {}
                inserted => return inserted.map(|()| key),
            }
        }
    }

    #[inline(always)]
    fn delete_row(&self, inner: &mut Inner<'_, impl WriteOf<E>>, key: &impl AsKey<T::Key>) -> Result<bool> {
        let bytes = self.encode(key)?;
        maintain::delete_row_if_there(inner, &self.core, &bytes)
    }

    #[inline(always)]
    fn insert_encoded(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        row: &T,
        key: &T::Key,
        bytes: &KeyBuf,
    ) -> Result<()> {
        row.encode(&mut inner.local.row);
        maintain::insert_row(inner, &self.core, bytes, |index, stored, out| {
            self.index_key(index, row, stored, key, bytes, out);
        })
    }

    /// The key of a new row in an index: by the row type where it declares the index, otherwise by the
    /// schema.
    #[inline]
    fn index_key(
        &self,
        index: &IndexCore<E::Store>,
        row: &T,
        stored: &RowBuf,
        key: &T::Key,
        bytes: &KeyBuf,
        out: &mut KeyBuf,
    ) {
        match index.declared {
            Some(number) if self.numbers_agree => row.index_key(key, number, out),
            _ => maintain::stored_index_key(&self.core, index, bytes, stored, out),
        }
    }

    #[inline(always)]
    fn find_existing(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &impl AsKey<T::Key>,
    ) -> Result<E::Found> {
        self.core.check(inner.local)?;
        let bytes = self.encode(key)?;
        inner.find_row_to_write(&self.core, &bytes)
    }
}

/// Checks that a row may be given this id.
///
/// # Errors
/// [`Error::WrongType`].
pub(crate) fn check_row_id(id: RowId) -> Result<()> {
    if id < ROW_ID_END {
        return Ok(());
    }
    Err(Error::WrongType(WrongType::new("", "row ids are smaller than 2^59")))
}
