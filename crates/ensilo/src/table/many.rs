//! Look-ups of many keys at once: their descents are interleaved, so that the memory latency of one hides
//! behind the others.

use ensilo_engine::{Engine, ReadOf};
use ensilo_row::{Columns, KeyBuf, Row};
use ensilo_sync::region::{self, Region};

use super::{Found, ROWS_PER_LOOK, Table};
use crate::Result;
use crate::row_words::{RowWords, whole};
use crate::transaction::{Inner, ReadTransaction};

impl<T: Row, E: Engine> Table<T, E> {
    /// Returns the rows with these primary keys, in the order of the keys; `None` stands for a missing one.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn get_many<'t>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        keys: &[T::Key],
    ) -> Result<Vec<Option<T>>> {
        let mut rows = Vec::with_capacity(keys.len());
        self.get_columns_many::<T>(tx, keys, |_, row| rows.push(row))?;
        Ok(rows)
    }

    /// Calls `each` with the position of every key and some columns of its row, in the order of the keys;
    /// `None` stands for a missing row.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn get_columns_many<'t, C: Columns<T>>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        keys: &[T::Key],
        mut each: impl FnMut(usize, Option<C>),
    ) -> Result<()> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let mut found = std::mem::take(&mut inner.local.found);
            found.clear();
            self.find_raw(inner, keys, |_, raw| found.push(raw))?;
            for (at, (key, raw)) in keys.iter().zip(&found).enumerate() {
                if at % ROWS_PER_LOOK == 0 {
                    inner.local.check_control()?;
                }
                let Some(raw) = *raw else {
                    each(at, None);
                    continue;
                };
                each(at, Some(whole(inner.read(raw, |row| C::decode(key, &RowWords(row)))?)));
            }
            inner.local.found = found;
            Ok(())
        })
    }

    /// Calls `each` with the position of every key and its row, in the order of the keys; `None` stands for a
    /// missing row. The rows can be read and changed without another look-up.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn find_many<'h, 't>(
        &'h self,
        tx: &mut impl ReadTransaction<'t, E>,
        keys: &[T::Key],
        mut each: impl FnMut(usize, Option<Found<'h, 't, T, E>>),
    ) -> Result<()> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let found = |at: usize, raw| Found::new(self, keys[at].clone(), raw);
            self.find_raw(inner, keys, |at, raw| each(at, raw.map(|raw| found(at, raw))))
        })
    }

    /// Goes block by block, so that a long request can be cancelled and keeps the encoded keys of one block
    /// alone.
    #[inline]
    fn find_raw(
        &self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        keys: &[T::Key],
        mut each: impl FnMut(usize, Option<E::Found>),
    ) -> Result<()> {
        let mut first = 0;
        for block in keys.chunks(ROWS_PER_LOOK) {
            inner.local.check_control()?;
            self.find_block(inner, block, |at, raw| each(first + at, raw))?;
            first += block.len();
        }
        Ok(())
    }

    #[inline]
    fn find_block(
        &self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        keys: &[T::Key],
        each: impl FnMut(usize, Option<E::Found>),
    ) -> Result<()> {
        let mut encoded = std::mem::take(&mut inner.local.keys);
        if encoded.len() < keys.len() {
            encoded.resize_with(keys.len(), KeyBuf::new);
        }
        for (key, bytes) in keys.iter().zip(&mut encoded) {
            self.encode_into(key, bytes)?;
        }
        inner.load_keys(&self.core, &encoded[..keys.len()])?;
        let engine = region::enter(Region::Engine);
        let outcome = inner.raw.find_many(&self.core.store, &encoded[..keys.len()], each);
        engine.leave();
        inner.local.keys = encoded;
        outcome.map_err(|abort| inner.lost(abort))
    }
}
