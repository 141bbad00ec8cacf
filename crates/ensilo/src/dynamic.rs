//! Tables with rows that are known at run time only, for query languages and other programming languages.

mod add;
mod encoded;
mod scan;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Engine, ReadOf, WriteOf};
use ensilo_row::{KeyBuf, Malformed, PrimaryKey, RowError, RowId, Schema, Value};

pub use encoded::{EncodedScan, EncodedTable};
pub use scan::DynamicScan;

use crate::all_or_none::insert_all;
use crate::catalog::table_core::TableCore;
use crate::error::{NameInTable, WrongType};
use crate::local::Local;
use crate::long_values::{Nothing, Wanted, Wants};
use crate::maintain;
use crate::row_words::{RowWords, whole};
use crate::sequence::{ReservedKeys, insert_under_next};
use crate::table::check_row_id;
use crate::transaction::{Inner, ReadTransaction, WriteTransaction};
use crate::{Arrivals, Error, Result};

/// A table as rows of [`Value`]s: the same tables that [`Table`](crate::Table) shows as Rust structs.
///
/// A row has one value for each column of the schema, in its order. A key has one value for each column of
/// the primary key, in key order, or is the row id alone where the table assigns it.
///
/// ```
/// use ensilo::{ColumnType, Database, Order, Schema, Value};
/// # fn main() -> ensilo::Result<()> {
/// let db = Database::in_memory()?;
/// let schema = Schema::builder("city")
///     .column("name", ColumnType::Text)
///     .column("people", ColumnType::U64)
///     .key([("name", Order::Ascending)])
///     .build()
///     .unwrap();
/// let cities = db.create_dynamic_table(schema)?;
/// let people = db.transact(|tx| {
///     cities.insert(tx, &["Ulm".into(), 126_000u64.into()])?;
///     cities.update(tx, &["Ulm".into()], &[("people", 129_942u64.into())])?;
///     cities.get_columns(tx, &["Ulm".into()], &["people"])
/// })?;
/// assert_eq!(people, Some(vec![Value::Unsigned(129_942)]));
/// # Ok(()) }
/// ```
///
/// With the feature `json`, [`schema`](Self::schema) makes rows of JSON objects and JSON objects of rows (`Schema::row_from_json`,
/// `Schema::row_to_json`).
///
/// # Errors
/// Every statement may return those of the methods of [`Table`](crate::Table), and [`Error::WrongType`] when
/// a value does not fit its column or there are too few or too many; [`Error::UnknownColumn`]. Nothing has
/// changed then.
pub struct DynamicTable<E: Engine = Silo> {
    pub(crate) core: Arc<TableCore<E::Store>>,
    engine: PhantomData<fn(E) -> E>,
}

impl<E: Engine> DynamicTable<E> {
    pub(crate) fn new(core: Arc<TableCore<E::Store>>) -> Self {
        DynamicTable { core, engine: PhantomData }
    }

    /// Returns the table's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Returns the table's columns and primary key, and the indexes that it was created, or changed, with.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.core.schema
    }

    /// Watches the table, to wait for rows to come: see [`Arrivals`].
    ///
    /// # Errors
    /// As [`Table::watch`](crate::generic::Table::watch).
    pub fn watch(&self) -> Result<Arrivals> {
        Arrivals::of(&self.core)
    }

    /// Returns the row with this primary key, or `None`.
    ///
    /// # Errors
    /// See [`DynamicTable`].
    pub fn get<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, key: &[Value]) -> Result<Option<Vec<Value>>> {
        let key = self.encode_key(key)?;
        self.read(tx, &key, Wanted::All, |key, row, out| self.core.schema.decode_row(key, row, out))
    }

    /// Returns the named columns of the row with this primary key, in the order of `columns`, or `None`.
    ///
    /// # Errors
    /// See [`DynamicTable`].
    pub fn get_columns<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        key: &[Value],
        columns: &[&str],
    ) -> Result<Option<Vec<Value>>> {
        let (key, columns) = (self.encode_key(key)?, self.columns(columns)?);
        let decode = |key: &[u8], row: &RowWords<'_>, out: &mut Vec<Value>| {
            decode_columns(&self.core.schema, &columns, key, row, out)
        };
        self.read(tx, &key, Wanted::Columns(&columns), decode)
    }

    /// Returns whether there is a row with this primary key.
    ///
    /// # Errors
    /// See [`DynamicTable`].
    pub fn contains<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, key: &[Value]) -> Result<bool> {
        let key = self.encode_key(key)?;
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            Ok(inner.get_in(&self.core, &key, Nothing, |_| ())?.is_some())
        })
    }

    /// Inserts a row and returns its primary key: the row's own, or the row id that the table assigns.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::DuplicateKey`].
    pub fn insert<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &[Value]) -> Result<Vec<Value>> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = self.encode_row(inner, row)?;
            let key = self.insert_encoded_or_next(inner, key, row)?;
            let mut values = Vec::new();
            whole(self.core.schema.decode_key(key.as_bytes(), &mut values));
            Ok(values)
        })
    }

    /// Inserts a row under the next number that the table gives, and returns that; what `row` has in its place does not matter. The
    /// table gives numbers since a row type with `#[row(key, auto)]` was used for it, or
    /// [`Database::give_keys`](crate::generic::Database::give_keys) was called: see [`Table::insert_auto`](crate::generic::Table::insert_auto).
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::UnknownSequence`] when the table gives no keys; those of [`Sequence`](crate::generic::Sequence).
    pub fn insert_auto<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &[Value]) -> Result<Value> {
        let mut row = row.to_vec();
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            self.insert_row_auto(inner, &mut row, &mut ReservedKeys::for_rows(1)).map(|(number, _)| number)
        })
    }

    /// Inserts all of the rows under numbers that the table gives, or none of them, and returns the numbers in the order of the rows: see
    /// [`Table::insert_many_auto`](crate::generic::Table::insert_many_auto).
    ///
    /// # Errors
    /// As [`DynamicTable::insert_auto`]. Nothing has changed then, except that the numbers are gone.
    pub fn insert_many_auto<'t, R: Into<Vec<Value>>>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Vec<Value>> {
        // The caller's iterator runs before anything has changed: it may panic.
        let rows: Vec<Vec<Value>> = rows.into_iter().map(Into::into).collect();
        let mut reserved = ReservedKeys::for_rows(rows.len());
        tx.statement(|inner| {
            insert_all(inner, &self.core, rows, |inner, mut row| {
                self.insert_row_auto(inner, &mut row, &mut reserved)
            })
        })
    }

    /// Inserts a row of a table that assigns row ids under an id that the program has chosen: see
    /// [`Table::insert_with_row_id`](crate::Table::insert_with_row_id).
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::DuplicateKey`]; [`Error::WrongType`] when the table has a primary key of its own, and for ids
    /// from 2^59 on.
    pub fn insert_with_row_id<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        id: RowId,
        row: &[Value],
    ) -> Result<()> {
        if self.core.schema.primary_key() != &PrimaryKey::RowId {
            let why = "the table has a primary key, and no row ids";
            return Err(Error::WrongType(WrongType::new("", why)));
        }
        check_row_id(id)?;
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = self.encode_row_under(inner, row, |_| id)?;
            inner.local.row_ids.pass_over_chosen(id);
            self.insert_encoded(inner, &key)
        })
    }

    /// Inserts the row, or replaces the row with the same key. A table that assigns row ids always inserts.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::DuplicateKey`] for a unique index.
    pub fn upsert<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &[Value]) -> Result<()> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = self.encode_row(inner, row)?;
            // A row id is a new one.
            if self.core.schema.primary_key() == &PrimaryKey::RowId {
                return self.insert_encoded_or_next(inner, key, row).map(drop);
            }
            match self.find_to_write(inner, &key)? {
                Some(found) => self.replace_found(inner, &key, found),
                None => self.insert_encoded(inner, &key),
            }
        })
    }

    /// Replaces the row with the same key.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::MissingRow`], [`Error::DuplicateKey`] for a unique index.
    pub fn replace<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, row: &[Value]) -> Result<()> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let key = self.encode_row(inner, row)?;
            let found = self.find_existing(inner, &key)?;
            self.replace_found(inner, &key, found)
        })
    }

    /// Changes the named columns of the row with this primary key.
    ///
    /// # Errors
    /// See [`DynamicTable`]; [`Error::MissingRow`], [`Error::DuplicateKey`] for a unique index.
    pub fn update<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: &[Value],
        changes: &[(&str, Value)],
    ) -> Result<()> {
        let key = self.encode_key(key)?;
        let numbered = changes.iter().map(|(name, value)| Ok((self.column(name)?, value.clone())));
        let changes = numbered.collect::<Result<Vec<_>>>()?;
        tx.statement(|inner| {
            let found = self.find_existing(inner, &key)?;
            inner.load_to_write(&self.core)?;
            maintain::copy_row(inner, &self.core, found)?;
            let local = &mut *inner.local;
            let updated = self.core.schema.update_row(&local.before, &changes, &mut local.row);
            updated.map_err(|error| self.refused_row(local, error))?;
            let indexes = self.core.indexes.load(inner.pinned);
            maintain::change_row(inner, &self.core, indexes, &key, found)
        })
    }

    /// Deletes the row with this primary key, and returns whether there was one.
    ///
    /// # Errors
    /// See [`DynamicTable`].
    pub fn delete<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, key: &[Value]) -> Result<bool> {
        let key = self.encode_key(key)?;
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            maintain::delete_row_if_there(inner, &self.core, &key)
        })
    }

    /// Inserts a row under the next number that the table gives, and returns that and the row's key.
    fn insert_row_auto(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        row: &mut [Value],
        reserved: &mut ReservedKeys,
    ) -> Result<(Value, KeyBuf)> {
        let place = self.core.numbers()?.place();
        if let Some(number) = row.get_mut(self.core.schema.key_parts()[place].column) {
            // In the place of what does not matter, something that every number can be.
            *number = Value::Unsigned(0);
        }
        let given = self.encode_row(inner, row)?;
        let key = insert_under_next(inner, &self.core, reserved, &given, |_| Ok(()))?;
        let mut values = Vec::new();
        whole(self.core.schema.decode_key(key.as_bytes(), &mut values));
        Ok((values.swap_remove(place), key))
    }

    /// Encodes the row into the scratch and returns its key.
    fn encode_row(&self, inner: &mut Inner<'_, impl ReadOf<E>>, row: &[Value]) -> Result<KeyBuf> {
        self.encode_row_under(inner, row, Local::next_row_id)
    }

    /// Encodes the row into the scratch and returns its key; `row_id` is asked where the table has row ids.
    fn encode_row_under(
        &self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        row: &[Value],
        row_id: impl FnOnce(&mut Local<E::Found>) -> RowId,
    ) -> Result<KeyBuf> {
        let (schema, local) = (&self.core.schema, &mut *inner.local);
        let mut key = KeyBuf::new();
        schema
            .encode_insert_key(row, || row_id(local), &mut key)
            .and_then(|()| schema.encode_row(row, &mut local.row))
            .map_err(|error| self.refused_row(local, error))?;
        Ok(key)
    }

    /// Returns the error of a row that was refused while it was encoded.
    #[cold]
    pub(crate) fn refused_row(&self, local: &mut Local<E::Found>, error: RowError) -> Error {
        // As far as it was encoded it may have been long.
        local.note_long_row();
        self.refused(error)
    }

    pub(crate) fn encode_key(&self, key: &[Value]) -> Result<KeyBuf> {
        let mut bytes = KeyBuf::new();
        self.core.schema.encode_key(key, &mut bytes).map_err(|error| self.refused(error))?;
        Ok(bytes)
    }

    /// Inserts the row under this key or, if that is a row id which a program has chosen for another one, under the next that is free.
    fn insert_encoded_or_next(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        mut key: KeyBuf,
        row: &[Value],
    ) -> Result<KeyBuf> {
        let is_row_id = self.core.schema.primary_key() == &PrimaryKey::RowId;
        loop {
            match self.insert_encoded(inner, &key) {
                Err(error) if is_row_id && error.is_duplicate_primary_key() => {
                    inner.local.row_ids.skip_block();
                    key = self.encode_row(inner, row)?;
                }
                inserted => return inserted.map(|()| key),
            }
        }
    }

    fn insert_encoded(&self, inner: &mut Inner<'_, impl WriteOf<E>>, key: &KeyBuf) -> Result<()> {
        maintain::insert_row(inner, &self.core, key, |index, row, out| {
            maintain::stored_index_key(&self.core, index, key, row, out);
        })
    }

    fn replace_found(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &KeyBuf,
        found: E::Found,
    ) -> Result<()> {
        inner.load_to_write(&self.core)?;
        let indexes = self.core.indexes.load(inner.pinned);
        maintain::copy_row(inner, &self.core, found)?;
        maintain::change_row(inner, &self.core, indexes, key, found)
    }

    fn find_to_write(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &KeyBuf,
    ) -> Result<Option<E::Found>> {
        self.core.check(inner.local)?;
        inner.find_in_to_write(&self.core, key)
    }

    fn find_existing(&self, inner: &mut Inner<'_, impl WriteOf<E>>, key: &KeyBuf) -> Result<E::Found> {
        self.core.check(inner.local)?;
        inner.find_row_to_write(&self.core, key)
    }

    fn read<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        key: &KeyBuf,
        wanted: impl Wants,
        decode: impl Fn(&[u8], &RowWords<'_>, &mut Vec<Value>) -> Result<(), Malformed>,
    ) -> Result<Option<Vec<Value>>> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let read = inner.get_in(&self.core, key, wanted, |row| {
                let mut values = Vec::new();
                decode(key.as_bytes(), &RowWords(row), &mut values).map(|()| values)
            });
            Ok(read?.map(whole))
        })
    }

    fn columns(&self, names: &[&str]) -> Result<Vec<usize>> {
        names.iter().map(|name| self.column(name)).collect()
    }

    fn column(&self, name: &str) -> Result<usize> {
        let unknown = || Error::UnknownColumn(NameInTable::new(&*self.core.name, name));
        self.core.schema.column(name).ok_or_else(unknown)
    }

    #[cold]
    fn refused(&self, error: RowError) -> Error {
        Error::from_row(error, &self.core.name)
    }
}

/// Decodes columns; the schema has their numbers.
fn decode_columns(
    schema: &Schema,
    columns: &[usize],
    key: &[u8],
    row: &RowWords<'_>,
    out: &mut Vec<Value>,
) -> Result<(), Malformed> {
    schema.decode_columns(columns, key, row, out).map_err(|_| Malformed)
}

impl<E: Engine> Clone for DynamicTable<E> {
    fn clone(&self) -> Self {
        DynamicTable::new(Arc::clone(&self.core))
    }
}

impl<E: Engine> fmt::Debug for DynamicTable<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
