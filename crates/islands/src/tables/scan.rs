//! Scans of tables over several instances.

use std::fmt;
use std::ops::Bound;

use ensilo::row::{Key, KeyBuf, KeyedRow};

use super::error::IslandError;
use super::partitioning::Places;
use super::reader::IslandRead;
use super::statement::{Answer, EncodedRow, Range, Statement};
use super::table::{IslandTable, decoded, unexpected, unknown_value};

/// A scan of an [`IslandTable`] in the order of its primary key or of an index, to be narrowed and then run in a transaction.
///
/// Those instances are asked that may have rows of the range, one after the other. The range is protected against phantoms at each of them.
#[must_use = "a scan does nothing until it is run in a transaction"]
pub struct IslandScan<'t, T: KeyedRow> {
    table: &'t IslandTable<T>,
    /// The number of the index among those of the row type.
    index: Option<usize>,
    range: Range,
}

impl<'t, T: KeyedRow> IslandScan<'t, T> {
    pub(super) fn new(table: &'t IslandTable<T>, (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>)) -> Self {
        let range = Range { index: None, low, high, of_prefixes: false, is_reverse: false, limit: u64::MAX };
        IslandScan { table, index: None, range }
    }

    /// Has the ends stand for all keys that begin with them.
    pub(super) fn of_prefixes(mut self) -> Self {
        self.range.of_prefixes = true;
        self
    }

    /// Gives the rows in the order of an index.
    pub(super) fn by_index(mut self, number: usize) -> Self {
        self.range.index = Some(T::schema().indexes()[number].name().to_owned());
        self.index = Some(number);
        self
    }

    /// Scans from the last row to the first.
    pub fn reverse(mut self) -> Self {
        self.range.is_reverse = true;
        self
    }

    /// Ends the scan after at most `limit` rows.
    pub fn limit(mut self, limit: usize) -> Self {
        self.range.limit = limit as u64;
        self
    }

    /// Returns the rows, in its order.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn collect(self, tx: &mut impl IslandRead) -> Result<Vec<T>, IslandError> {
        self.record(tx);
        let (first, last) = self.places(tx.home());
        let statement = Statement::Scan { table: self.table.name(), scan: self.range.clone() };
        let mut rows = Vec::new();
        for instance in first..=last {
            let Answer::Rows(of_instance) = self.table.ask(tx, instance, &statement)? else {
                return Err(unexpected());
            };
            rows.extend(of_instance);
        }
        self.in_order(rows, first < last)
    }

    /// Returns how many rows it gives.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn count(self, tx: &mut impl IslandRead) -> Result<u64, IslandError> {
        self.record(tx);
        let (first, last) = self.places(tx.home());
        let statement = Statement::Count { table: self.table.name(), scan: self.range.clone() };
        let mut count = 0;
        for instance in first..=last {
            let Answer::Count(of_instance) = self.table.ask(tx, instance, &statement)? else {
                return Err(unexpected());
            };
            count += of_instance;
        }
        Ok(count.min(self.range.limit))
    }

    /// Returns the first row, or `None`.
    ///
    /// # Errors
    /// See [`IslandTable`].
    pub fn first(self, tx: &mut impl IslandRead) -> Result<Option<T>, IslandError> {
        Ok(self.limit(1).collect(tx)?.pop())
    }

    /// Records that the range is read, where the transaction is recorded.
    fn record(&self, tx: &mut impl IslandRead) {
        let (partitioning, _) = self.table.partitioning();
        let Some(accesses) = tx.recorded() else { return };
        if let Some(key) = partitioning.partition_key_of_range(T::Key::PARTS, &self.range) {
            accesses.add(key, false);
        }
    }

    /// Returns the first and the last instance that is asked.
    fn places(&self, home: u16) -> (u16, u16) {
        let (partitioning, instances) = self.table.partitioning();
        match partitioning.places_of(T::Key::PARTS, &self.range, instances) {
            Places::One(instance) => (instance, instance),
            Places::Several(first, last) => (first, last),
            Places::Everywhere => (home, home),
        }
    }

    /// Returns the rows of instances in the order of the scan, and no more than it gives.
    fn in_order(&self, rows: Vec<EncodedRow>, is_of_several: bool) -> Result<Vec<T>, IslandError> {
        let mut sorted = Vec::with_capacity(rows.len());
        for (key_bytes, row) in rows {
            let key = T::Key::decode(&key_bytes).map_err(|_| unknown_value::<T>())?;
            let row: T = decoded(&key, &row)?;
            let place = match self.index.filter(|_| is_of_several) {
                None => key_bytes,
                Some(number) => {
                    let mut place = KeyBuf::new();
                    row.index_key(&key, number, &mut place);
                    place.as_bytes().to_vec()
                }
            };
            sorted.push((place, row));
        }
        if is_of_several {
            sorted.sort_by(|(first, _), (second, _)| match self.range.is_reverse {
                false => first.cmp(second),
                true => second.cmp(first),
            });
        }
        sorted.truncate(usize::try_from(self.range.limit).unwrap_or(usize::MAX));
        Ok(sorted.into_iter().map(|(_, row)| row).collect())
    }
}

impl<T: KeyedRow> fmt::Debug for IslandScan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IslandScan").field("table", self.table).field("range", &self.range).finish()
    }
}
