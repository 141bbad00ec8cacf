//! Statements on rows that are encoded already, for crates that pass rows on between databases.

use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Direction, Engine, ReadOf};
use ensilo_row::{KeyBuf, Words as _};

use super::DynamicTable;
use crate::error::WrongType;
use crate::long_values::Wanted;
use crate::row_words::{RowWords, key_of_bytes};
use crate::table::{Bounds, ByIndex, ScanRange};
use crate::transaction::{Inner, ReadTransaction, WriteTransaction};
use crate::{Error, Result};

/// A table as encoded keys and rows. A row is the bytes of what [`Row::encode`](ensilo_row::Row::encode) makes.
#[derive(Debug)]
pub struct EncodedTable<'a, E: Engine>(&'a DynamicTable<E>);

/// Which rows of an [`EncodedTable`] a scan gives.
#[derive(Clone, Copy, Debug)]
pub struct EncodedScan<'a> {
    /// The index whose order they have; `None` for that of the primary key.
    pub index: Option<&'a str>,
    /// The ends of the range: whole keys, or, with `of_prefixes`, all that begin with these.
    pub low: Bound<&'a [u8]>,
    /// See `low`.
    pub high: Bound<&'a [u8]>,
    /// Whether the ends stand for all keys that begin with them.
    pub of_prefixes: bool,
    /// Whether the last one comes first.
    pub is_reverse: bool,
    /// The most rows.
    pub limit: usize,
}

impl<E: Engine> DynamicTable<E> {
    /// Returns the table as encoded rows.
    #[doc(hidden)]
    #[must_use]
    pub fn encoded(&self) -> EncodedTable<'_, E> {
        EncodedTable(self)
    }
}

impl<E: Engine> EncodedTable<'_, E> {
    /// Returns the row with this primary key, or `None`.
    ///
    /// # Errors
    /// Those of every statement.
    pub fn get<'t>(&self, tx: &mut impl ReadTransaction<'t, E>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let core = &self.0.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            inner.get_in(core, &key_of_bytes(key), Wanted::All, |row| bytes_of(&RowWords(row)))
        })
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// As [`DynamicTable::insert`]; [`Error::WrongType`] when the bytes are no row of the table.
    pub fn insert<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, key: &[u8], row: &[u8]) -> Result<()> {
        tx.statement(|inner| {
            let key = self.take_in(inner, key, row)?;
            self.0.insert_encoded(inner, &key)
        })
    }

    /// Inserts a row, or replaces the one with the same key.
    ///
    /// # Errors
    /// As [`DynamicTable::upsert`]; [`Error::WrongType`] when the bytes are no row of the table.
    pub fn upsert<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, key: &[u8], row: &[u8]) -> Result<()> {
        tx.statement(|inner| {
            let key = self.take_in(inner, key, row)?;
            match self.0.find_to_write(inner, &key)? {
                Some(found) => self.0.replace_found(inner, &key, found),
                None => self.0.insert_encoded(inner, &key),
            }
        })
    }

    /// Replaces the row with this key.
    ///
    /// # Errors
    /// As [`DynamicTable::replace`]; [`Error::WrongType`] when the bytes are no row of the table.
    pub fn replace<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, key: &[u8], row: &[u8]) -> Result<()> {
        tx.statement(|inner| {
            let key = self.take_in(inner, key, row)?;
            let found = self.0.find_existing(inner, &key)?;
            self.0.replace_found(inner, &key, found)
        })
    }

    /// Deletes the row with this primary key, and returns whether there was one.
    ///
    /// # Errors
    /// Those of every statement.
    pub fn delete<'t>(&self, tx: &mut impl WriteTransaction<'t, E>, key: &[u8]) -> Result<bool> {
        let core = &self.0.core;
        tx.statement(|inner| {
            core.check(inner.local)?;
            crate::maintain::delete_row_if_there(inner, core, &key_of_bytes(key))
        })
    }

    /// Calls `each` with the primary key and the row of each row that a scan gives, until it says that it has enough.
    ///
    /// # Errors
    /// Those of [`DynamicScan`](super::DynamicScan).
    pub fn scan<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        scan: EncodedScan<'_>,
        mut each: impl FnMut(&[u8], Vec<u8>) -> ControlFlow<()>,
    ) -> Result<()> {
        let core = &*self.0.core;
        let index = scan.index.map(|name| core.index(name)).transpose()?;
        let range = scan.range();
        let mut row = |(key, row): (KeyBuf, Vec<u8>)| each(key.as_bytes(), row);
        tx.statement(|inner| {
            core.check(inner.local)?;
            match &index {
                None => range.run_rows(
                    inner,
                    (core, Wanted::All),
                    |key, row| (key_of_bytes(key), bytes_of(&RowWords(row))),
                    row,
                ),
                Some(index) => ByIndex { table: core, index, range, wanted: Wanted::All }.run(
                    inner,
                    |_, _| true,
                    |key, row| (key.clone(), bytes_of(row)),
                    &mut row,
                ),
            }
        })
    }

    /// Makes the row the one that is to be written, and returns its key.
    fn take_in(&self, inner: &mut Inner<'_, impl ReadOf<E>>, key: &[u8], row: &[u8]) -> Result<KeyBuf> {
        let (core, local) = (&self.0.core, &mut *inner.local);
        core.check(local)?;
        let key = key_of_bytes(key);
        local.row.set_bytes(row);
        let checked = key.check_len().and_then(|()| local.row.check_len());
        checked.map_err(|error| self.0.refused_row(local, error))?;
        let (schema, mut values) = (&core.schema, Vec::new());
        let decoded = schema.decode_key(key.as_bytes(), &mut values);
        match decoded.and_then(|()| schema.decode_row(key.as_bytes(), &local.row, &mut values)) {
            Ok(()) => Ok(key),
            Err(_) => {
                // It is not written, but may have been long.
                local.note_long_row();
                Err(Error::WrongType(WrongType::new("", "the bytes are no row of the table")))
            }
        }
    }
}

impl EncodedScan<'_> {
    fn range(&self) -> ScanRange {
        let bounds = Bounds::new(self.low.map(key_of_bytes), self.high.map(key_of_bytes));
        ScanRange {
            bounds: if self.of_prefixes { bounds.of_prefixes() } else { bounds },
            direction: if self.is_reverse { Direction::Reverse } else { Direction::Forward },
            limit: self.limit,
        }
    }
}

fn bytes_of(row: &RowWords<'_>) -> Vec<u8> {
    let mut bytes = vec![0; row.len_bytes()];
    row.copy_bytes(0, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Row, Value};

    #[derive(Debug, PartialEq, Row)]
    #[row(table = "city", index(name = "by_people", columns(people)))]
    struct City {
        #[row(key)]
        id: u16,
        people: u64,
        name: String,
    }

    #[test]
    fn bytes_are_the_rows_that_others_see_and_anything_else_is_refused() {
        let db = Database::in_memory().unwrap();
        let cities = db.create_table::<City>().unwrap();
        let dynamic = db.open_dynamic_table("city").unwrap();
        let ulm = City { id: 7, people: 129_942, name: "Ulm".to_owned() };
        let bytes = db
            .transact(|tx| {
                cities.insert(tx, &ulm)?;
                Ok(dynamic.encoded().get(tx, &[0, 7])?.unwrap())
            })
            .unwrap();
        db.transact(|tx| {
            let encoded = dynamic.encoded();
            for (key, row) in
                [(&[0][..], &bytes[..]), (&[0, 8, 0], &bytes), (&[0, 8], &bytes[..3]), (&[0, 8], &[])]
            {
                for refused in [encoded.insert(tx, key, row), encoded.upsert(tx, key, row)] {
                    assert!(matches!(refused, Err(Error::WrongType(_))), "{refused:?}");
                }
            }
            assert!(matches!(encoded.replace(tx, &[0, 8], &bytes), Err(Error::MissingRow(_))));
            encoded.insert(tx, &[0, 8], &bytes)?;
            assert!(matches!(encoded.insert(tx, &[0, 8], &bytes), Err(Error::DuplicateKey(_))));
            assert!(encoded.delete(tx, &[0, 7])? && !encoded.delete(tx, &[0, 7])?);
            Ok(())
        })
        .unwrap();
        let all = db.transact(|tx| cities.scan().collect(tx)).unwrap();
        assert_eq!(all, [(8, City { id: 8, ..ulm })]);
        let by_people = db.transact(|tx| dynamic.scan().by_index("by_people")?.collect(tx)).unwrap();
        assert_eq!(by_people[0][0], Value::Unsigned(8));
    }

    #[test]
    fn a_scan_ends_when_it_is_told_to() {
        let db = Database::in_memory().unwrap();
        let cities = db.create_table::<City>().unwrap();
        let city = |id: u16| City { id, people: u64::from(100 - id), name: "Ulm".to_owned() };
        db.transact(|tx| (0..20).try_for_each(|id| cities.insert(tx, &city(id)).map(drop))).unwrap();
        let dynamic = db.open_dynamic_table("city").unwrap();
        for (index, expected) in [(None, [0, 1, 2]), (Some("by_people"), [19, 18, 17])] {
            let scan = EncodedScan {
                index,
                low: Bound::Unbounded,
                high: Bound::Unbounded,
                of_prefixes: false,
                is_reverse: false,
                limit: usize::MAX,
            };
            let mut ids = Vec::new();
            let mut enough = |key: &[u8], _: Vec<u8>| {
                ids.push(u16::from_be_bytes(key.try_into().unwrap()));
                if ids.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            db.read(|tx| dynamic.encoded().scan(tx, scan, &mut enough)).unwrap();
            assert_eq!(ids, expected);
        }
    }
}
