//! Statements on the rows of a table over several instances.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::{fmt, slice};

use ensilo::row::{Key, KeyBuf, KeyPrefix, KeyedRow, RowBuf};

use super::database::DatabaseNumber;
use super::error::IslandError;
use super::index::IslandIndex;
use super::partitioning::{AnyPartitioning, Places};
use super::reader::IslandRead;
use super::scan::IslandScan;
use super::statement::{Answer, EncodedRow, Statement, Writing};
use super::transaction::IslandTransaction;
use crate::commit::RefusalReason;
use crate::recorded::PartitionKey;

/// A table over several instances. [`IslandDatabase::table`](super::IslandDatabase::table) opens it.
///
/// Rows are read and written as a whole, and have a primary key of their own; a row has a mebibyte at most, as in any table. Of what
/// [`Table`](ensilo::Table) has, there are no single columns, queues, watches or row ids here, and no request for them.
///
/// # Errors
/// Every statement may return [`IslandError::Refused`], whereupon the transaction has ended, and [`IslandError::Unfit`] in a transaction of another
/// database.
pub struct IslandTable<T: KeyedRow> {
    partitioning: AnyPartitioning,
    instances: u16,
    database: DatabaseNumber,
    rows: PhantomData<fn() -> T>,
}

impl<T: KeyedRow> IslandTable<T> {
    pub(super) fn new(partitioning: AnyPartitioning, instances: u16, database: DatabaseNumber) -> Self {
        IslandTable { partitioning, instances, database, rows: PhantomData }
    }

    /// Returns the row with this primary key, or `None`.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn get(&self, tx: &mut impl IslandRead, key: impl Borrow<T::Key>) -> Result<Option<T>, IslandError> {
        Ok(self.get_many(tx, slice::from_ref(key.borrow()))?.pop().flatten())
    }

    /// Returns whether there is a row with this primary key.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn contains(&self, tx: &mut impl IslandRead, key: impl Borrow<T::Key>) -> Result<bool, IslandError> {
        Ok(self.get(tx, key)?.is_some())
    }

    /// Returns the rows with these primary keys, in their order. Each instance is asked once.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn get_many(&self, tx: &mut impl IslandRead, keys: &[T::Key]) -> Result<Vec<Option<T>>, IslandError> {
        let mut rows: Vec<Option<T>> = keys.iter().map(|_| None).collect();
        let encoded: Vec<Vec<u8>> = keys.iter().map(encoded_key).collect();
        self.record(tx, encoded.iter(), false);
        for (instance, numbers) in self.by_reader(tx.home(), &encoded) {
            let encoded = numbers.iter().map(|at| encoded[*at].clone()).collect();
            let answer = self.ask(tx, instance, &Statement::Get { table: self.name(), keys: encoded })?;
            let Answer::Got(got) = answer else { return Err(unexpected()) };
            for (at, row) in numbers.into_iter().zip(got) {
                rows[at] = row.map(|row| decoded(&keys[at], &row)).transpose()?;
            }
        }
        Ok(rows)
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::DuplicateKey`].
    pub fn insert(&self, tx: &mut IslandTransaction<'_>, row: &T) -> Result<(), IslandError> {
        self.write(tx, Writing::Insert, slice::from_ref(row))
    }

    /// Inserts rows. Each instance is asked once.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::DuplicateKey`], whereupon the transaction has ended.
    pub fn insert_many(&self, tx: &mut IslandTransaction<'_>, rows: &[T]) -> Result<(), IslandError> {
        self.write(tx, Writing::Insert, rows)
    }

    /// Inserts a row, or replaces the one with the same primary key.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::DuplicateKey`] for a unique index.
    pub fn upsert(&self, tx: &mut IslandTransaction<'_>, row: &T) -> Result<(), IslandError> {
        self.write(tx, Writing::Upsert, slice::from_ref(row))
    }

    /// Inserts rows, or replaces those with the same primary keys. Each instance is asked once.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::DuplicateKey`] for a unique index, whereupon the transaction has ended.
    pub fn upsert_many(&self, tx: &mut IslandTransaction<'_>, rows: &[T]) -> Result<(), IslandError> {
        self.write(tx, Writing::Upsert, rows)
    }

    /// Replaces the row with the same primary key.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::MissingRow`]; [`IslandError::DuplicateKey`] for a unique index.
    pub fn replace(&self, tx: &mut IslandTransaction<'_>, row: &T) -> Result<(), IslandError> {
        self.write(tx, Writing::Replace, slice::from_ref(row))
    }

    /// Replaces the rows with the same primary keys. Each instance is asked once.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::MissingRow`] and, for a unique index, [`IslandError::DuplicateKey`], whereupon the transaction has ended.
    pub fn replace_many(&self, tx: &mut IslandTransaction<'_>, rows: &[T]) -> Result<(), IslandError> {
        self.write(tx, Writing::Replace, rows)
    }

    /// Reads the row with this primary key, and writes what `change` makes of it.
    ///
    /// # Errors
    /// See [`IslandTable`]; [`IslandError::MissingRow`]; [`IslandError::DuplicateKey`] for a unique index; [`IslandError::Unfit`] when the primary
    /// key was changed.
    pub fn update(
        &self,
        tx: &mut IslandTransaction<'_>,
        key: impl Borrow<T::Key>,
        change: impl FnOnce(&mut T),
    ) -> Result<(), IslandError> {
        let key = key.borrow();
        let mut row = self.get(tx, key)?.ok_or_else(|| IslandError::MissingRow { table: self.name() })?;
        change(&mut row);
        if encoded_key(&row.key()) != encoded_key(key) {
            let message = "an update changes the primary key; delete the row and insert it under its new key";
            return Err(IslandError::Unfit(format!("table {}: {message}", T::schema().name())));
        }
        self.replace(tx, &row)
    }

    /// Deletes the row with this primary key, and returns whether there was one.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn delete(
        &self,
        tx: &mut IslandTransaction<'_>,
        key: impl Borrow<T::Key>,
    ) -> Result<bool, IslandError> {
        let key = encoded_key(key.borrow());
        let statement = |key: &Vec<u8>| Statement::Delete { table: self.name(), keys: vec![key.clone()] };
        self.record(tx, std::iter::once(&key), true);
        let mut deleted = None;
        for instance in self.writers(&key) {
            let Answer::Deleted(there) = self.ask(tx, instance, &statement(&key))? else {
                return Err(unexpected());
            };
            let is_first = deleted.is_none();
            if !is_first && deleted != there.first().copied() {
                return Err(replicas_differ(tx));
            }
            deleted = there.first().copied();
        }
        Ok(deleted.unwrap_or(false))
    }

    /// Returns the instance that has the row with this primary key, also where there is none yet; `None` if every instance has it.
    pub fn instance_of(&self, key: impl Borrow<T::Key>) -> Option<u16> {
        match self.partitioning.place_of(T::Key::PARTS, &encoded_key(key.borrow()), self.instances) {
            Places::One(instance) => Some(instance),
            Places::Several(..) | Places::Everywhere => None,
        }
    }

    /// Returns a scan of all rows.
    pub fn scan(&self) -> IslandScan<'_, T> {
        IslandScan::new(self, (Bound::Unbounded, Bound::Unbounded))
    }

    /// Returns a scan of the rows with primary keys in `range`.
    pub fn range(&self, range: impl RangeBounds<T::Key>) -> IslandScan<'_, T> {
        IslandScan::new(self, (range.start_bound().map(encoded_key), range.end_bound().map(encoded_key)))
    }

    /// Returns a scan of the rows with primary keys that begin with these columns: `(a,)`, `(a, b)`, and so on.
    pub fn prefix(&self, prefix: impl KeyPrefix<T::Key>) -> IslandScan<'_, T> {
        let mut key = KeyBuf::new();
        prefix.append_prefix(&mut key);
        let key = key.as_bytes().to_vec();
        IslandScan::new(self, (Bound::Included(key.clone()), Bound::Included(key))).of_prefixes()
    }

    /// Returns the index of this name.
    ///
    /// # Errors
    /// [`IslandError::Unfit`] when there is none, or `K` are not the types of its columns.
    pub fn index<K: Key>(&self, name: &str) -> Result<IslandIndex<'_, T, K>, IslandError> {
        IslandIndex::open(self, name)
    }

    fn write(&self, tx: &mut IslandTransaction<'_>, how: Writing, rows: &[T]) -> Result<(), IslandError> {
        let mut by_instance: BTreeMap<u16, Vec<EncodedRow>> = BTreeMap::new();
        for row in rows {
            let (key, mut buf) = (encoded_key(&row.key()), RowBuf::new());
            row.encode(&mut buf);
            self.record(tx, std::iter::once(&key), true);
            let encoded = (key, bytes_of(&buf));
            for instance in self.writers(&encoded.0) {
                by_instance.entry(instance).or_default().push(encoded.clone());
            }
        }
        for (number, (instance, of_instance)) in by_instance.into_iter().enumerate() {
            let answer =
                self.ask(tx, instance, &Statement::Write { table: self.name(), how, rows: of_instance })?;
            let problem = match answer {
                Answer::Written => continue,
                Answer::Duplicate { index } => IslandError::DuplicateKey { table: self.name(), index },
                Answer::Missing => IslandError::MissingRow { table: self.name() },
                _ => return Err(unexpected()),
            };
            if rows.len() > 1 {
                tx.give_up(
                    RefusalReason::Rejected,
                    "a statement has written some of its rows, and could not write others",
                );
            } else if number > 0 {
                return Err(replicas_differ(tx));
            }
            return Err(problem);
        }
        Ok(())
    }

    /// Returns the numbers of those of the keys whose rows each instance is asked for.
    fn by_reader(&self, home: u16, keys: &[Vec<u8>]) -> BTreeMap<u16, Vec<usize>> {
        let mut numbers: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (at, key) in keys.iter().enumerate() {
            let writers = self.writers(key);
            let reader = if writers.contains(&home) { home } else { *writers.start() };
            numbers.entry(reader).or_default().push(at);
        }
        numbers
    }

    /// Returns the instances at which the row with this key is written.
    fn writers(&self, key: &[u8]) -> std::ops::RangeInclusive<u16> {
        match self.partitioning.place_of(T::Key::PARTS, key, self.instances) {
            Places::One(instance) => instance..=instance,
            Places::Several(first, last) => first..=last,
            Places::Everywhere => 0..=self.instances - 1,
        }
    }

    /// Records accesses to the rows with these keys, where the transaction is recorded.
    fn record<'k>(&self, tx: &mut impl IslandRead, keys: impl Iterator<Item = &'k Vec<u8>>, writes: bool) {
        let Some(accesses) = tx.recorded() else { return };
        for key in keys {
            match self.partitioning.partition_key(T::Key::PARTS, key) {
                Some(key) => accesses.add(key, writes),
                None if writes => accesses.add(PartitionKey::Everywhere, true),
                // It is read wherever the transaction is.
                None => {}
            }
        }
    }

    /// Has an instance answer a statement on this table.
    pub(super) fn ask(
        &self,
        tx: &mut impl IslandRead,
        instance: u16,
        statement: &Statement,
    ) -> Result<Answer, IslandError> {
        if tx.database() != self.database {
            return Err(IslandError::Unfit(format!("table {} is one of another database", self.name())));
        }
        tx.ask(instance, statement)
    }

    pub(super) fn name(&self) -> String {
        T::schema().name().to_owned()
    }

    pub(super) fn partitioning(&self) -> (&AnyPartitioning, u16) {
        (&self.partitioning, self.instances)
    }
}

/// Returns the error of a transaction that has found a row at one instance, and not the same at another one: others have changed it meanwhile.
fn replicas_differ(tx: &mut IslandTransaction<'_>) -> IslandError {
    let message = "a replicated row was changed meanwhile";
    tx.give_up(RefusalReason::Conflict, message);
    IslandError::Refused(crate::commit::Refusal::new(RefusalReason::Conflict, message))
}

pub(super) fn unexpected() -> IslandError {
    IslandError::Unfit("an instance has answered something else".to_owned())
}

pub(super) fn unknown_value<T: KeyedRow>() -> IslandError {
    let table = T::schema().name();
    IslandError::Unfit(format!("a row of table {table} has a value that the program's types do not have"))
}

pub(super) fn encoded_key(key: &impl Key) -> Vec<u8> {
    let mut bytes = KeyBuf::new();
    key.encode(&mut bytes);
    bytes.as_bytes().to_vec()
}

fn bytes_of(row: &RowBuf) -> Vec<u8> {
    let mut bytes: Vec<u8> = row.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(row.len_bytes());
    bytes
}

pub(super) fn decoded<T: KeyedRow>(key: &T::Key, row: &[u8]) -> Result<T, IslandError> {
    let mut buf = RowBuf::new();
    buf.set_bytes(row);
    T::decode(key, &buf).map_err(|_| unknown_value::<T>())
}

impl<T: KeyedRow> Clone for IslandTable<T> {
    fn clone(&self) -> Self {
        IslandTable::new(self.partitioning.clone(), self.instances, self.database)
    }
}

impl<T: KeyedRow> fmt::Debug for IslandTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IslandTable")
            .field("name", &T::schema().name())
            .field("partitioning", &self.partitioning)
            .finish()
    }
}
