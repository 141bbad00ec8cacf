//! Look-ups of many keys at once: their descents are interleaved, so that the memory latency of one hides
//! behind the others.

use std::ops::ControlFlow;

use ensilo_engine::{Engine, ReadOf, RowRef};
use ensilo_row::{AsKey, Columns, GivenAs, KeyBuf, Row};

use super::{Found, ROWS_PER_LOOK, Table};
use crate::Result;
use crate::long_values::wanted_by;
use crate::row_words::RowWords;
use crate::transaction::{Inner, ReadTransaction};
use crate::unknown_value::{KnownRows, or_key};

impl<T: Row, E: Engine> Table<T, E> {
    /// Returns the rows with these primary keys, in the order of the keys; `None` stands for a missing one.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    pub fn get_many<'t, Q: AsKey<T::Key>>(
        &self,
        tx: &mut impl ReadTransaction<'t, E>,
        keys: &[Q],
    ) -> Result<Vec<Option<T>>>
    where
        T::Key: GivenAs<Q>,
    {
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
        keys: &[impl AsKey<T::Key>],
        mut each: impl FnMut(usize, Option<C>),
    ) -> Result<()> {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            self.in_blocks(inner, keys, |inner, first, block| {
                let decode = |at: usize, row: RowRef<'_>| {
                    or_key(C::decode(&keys[first + at].as_key(), &RowWords(row)), block[at].as_bytes())
                };
                let mut rows = KnownRows::default();
                inner.get_many(
                    &self.core.store,
                    self.core.form(wanted_by::<T, C>()),
                    block,
                    decode,
                    |at, columns| {
                        rows.pass(columns.transpose(), |columns| {
                            each(first + at, columns);
                            ControlFlow::Continue(())
                        })
                    },
                )?;
                rows.end(&self.core)
            })
        })
    }

    /// Calls `each` with the position of every key and its row, in the order of the keys; `None` stands for a
    /// missing row. The rows can be read and changed without another look-up.
    ///
    /// # Errors
    /// Those of every statement, see [`Table`].
    #[inline]
    pub fn find_many<'h, 't, Q: AsKey<T::Key>>(
        &'h self,
        tx: &mut impl ReadTransaction<'t, E>,
        keys: &[Q],
        mut each: impl FnMut(usize, Option<Found<'h, 't, T, E>>),
    ) -> Result<()>
    where
        T::Key: GivenAs<Q>,
    {
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            self.in_blocks(inner, keys, |inner, first, block| {
                inner.find_many(&self.core.store, block, |at, raw| {
                    let at = first + at;
                    each(at, raw.map(|raw| Found::new(self, keys[at].as_key().into_owned(), raw)));
                })
            })
        })
    }

    /// Calls `look_up` with one block of encoded keys after the other and the position of its first, so that a long request can be
    /// cancelled and keeps the encoded keys of one block alone.
    #[inline]
    fn in_blocks<Raw: ReadOf<E>>(
        &self,
        inner: &mut Inner<'_, Raw>,
        keys: &[impl AsKey<T::Key>],
        mut look_up: impl FnMut(&mut Inner<'_, Raw>, usize, &[KeyBuf]) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        for block in keys.chunks(ROWS_PER_LOOK) {
            inner.local.check_control()?;
            let mut encoded = std::mem::take(&mut inner.local.keys);
            if encoded.len() < block.len() {
                encoded.resize_with(block.len(), KeyBuf::new);
            }
            for (key, bytes) in block.iter().zip(&mut encoded) {
                self.encode_into(key, bytes)?;
            }
            inner.load_keys(&self.core, &encoded[..block.len()])?;
            look_up(inner, first, &encoded[..block.len()])?;
            inner.local.keys = encoded;
            first += block.len();
        }
        Ok(())
    }
}
