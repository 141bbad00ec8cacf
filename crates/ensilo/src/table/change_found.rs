//! Changes of static rows that were found: their columns in place where that goes, or else the row as a whole.

use ensilo_engine::{Engine, ReadOf, RowRef, WriteOf};
use ensilo_row::{Columns, Row};
use ensilo_sync::region::{self, Region};

use super::Table;
use super::found::refuse_other_key;
use crate::Result;
use crate::catalog::index_set::column_mask;
use crate::long_values::{may_be_long, wanted_by};
use crate::maintain;
use crate::older_rows::is_replaced_whole;
use crate::row_words::{RowWords, whole};
use crate::transaction::Inner;

impl<T: Row, E: Engine> Table<T, E> {
    #[inline]
    pub(super) fn update_found<C: Columns<T>, R>(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &T::Key,
        found: E::Found,
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R> {
        inner.load_to_write(&self.core)?;
        if !self.can_patch::<C>(inner, found)? {
            maintain::copy_row(inner, &self.core, found)?;
            let mut columns = self.decode_before::<C>(inner, key)?;
            let returned = change(&mut columns);
            return self.rewrite(inner, key, found, &columns).map(|()| returned);
        }
        let read = inner.read_stored(found, |row| {
            let row = RowWords(row);
            C::decode(key, &row).map(|columns| (columns, C::patch_base(&row)))
        });
        let (mut columns, base) = self.known(read?, key)?;
        let returned = change(&mut columns);
        self.patch(inner, key, found, &columns, base).map(|()| returned)
    }

    #[inline]
    pub(super) fn set_found<C: Columns<T>>(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &T::Key,
        found: E::Found,
        columns: &C,
    ) -> Result<()> {
        inner.load_to_write(&self.core)?;
        if !self.can_patch::<C>(inner, found)? {
            maintain::copy_row(inner, &self.core, found)?;
            return self.rewrite(inner, key, found, columns);
        }
        let base = inner.read_stored(found, |row| C::patch_base(&RowWords(row)))?;
        self.patch(inner, key, found, columns, base)
    }

    /// Decodes columns of the row in `local.before`, with their long values.
    fn decode_before<C: Columns<T>>(&self, inner: &mut Inner<'_, impl ReadOf<E>>, key: &T::Key) -> Result<C> {
        let form = self.core.form(wanted_by::<T, C>());
        if const { !may_be_long::<T, C>() } || !form.lacks_values(&inner.local.before) {
            return self.known(C::decode(key, &inner.local.before), key);
        }
        let before = std::mem::take(&mut inner.local.before);
        let decode = |row: RowRef<'_>| C::decode(key, &RowWords(row));
        let decoded = inner.decode_assembled(form, &self.encode(key)?, &before, decode);
        inner.local.before = before;
        self.known(decoded?, key)
    }

    /// Returns whether an update of these columns overwrites words in place: all of fixed width, none part of an index, and
    /// the row none that is replaced as a whole.
    ///
    /// Called after the row has joined the read set (M2 of `maintain`).
    #[inline(always)]
    fn can_patch<C: Columns<T>>(
        &self,
        inner: &mut Inner<'_, impl ReadOf<E>>,
        found: E::Found,
    ) -> Result<bool> {
        let columns = const { column_mask(C::COLUMNS) };
        if !C::PATCHABLE || self.core.indexes.load(inner.pinned).touches(columns) {
            return Ok(false);
        }
        is_replaced_whole(inner, &self.core, found).map(|is_replaced| !is_replaced)
    }

    #[inline(always)]
    fn patch<C: Columns<T>>(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &T::Key,
        found: E::Found,
        columns: &C,
        mut words: C::Patch,
    ) -> Result<()> {
        refuse_other_key::<T, C>(columns, key)?;
        columns.patch(&mut words);
        inner.note_change(&self.core);
        let _engine = region::enter(Region::Engine);
        inner.raw.patch(found, words.as_ref()).map_err(|abort| inner.lost(abort))
    }

    /// Makes a whole new row of the one in `local.before` and `columns`.
    fn rewrite<C: Columns<T>>(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &T::Key,
        found: E::Found,
        columns: &C,
    ) -> Result<()> {
        refuse_other_key::<T, C>(columns, key)?;
        let local = &mut *inner.local;
        whole(columns.rewrite(&local.before, &mut local.row));
        let bytes = self.encode(key)?;
        let indexes = self.core.indexes.load(inner.pinned);
        maintain::change_row(inner, &self.core, indexes, &bytes, found)
    }

    #[inline]
    pub(super) fn replace_found(
        &self,
        inner: &mut Inner<'_, impl WriteOf<E>>,
        key: &T::Key,
        found: E::Found,
        row: &T,
    ) -> Result<()> {
        inner.load_to_write(&self.core)?;
        let bytes = self.encode(key)?;
        let indexes = self.core.indexes.load(inner.pinned);
        if indexes.indexes.is_empty() {
            row.encode(&mut inner.local.row);
            return maintain::replace_row(inner, &self.core, indexes, &bytes, found);
        }
        maintain::copy_row(inner, &self.core, found)?;
        row.encode(&mut inner.local.row);
        maintain::change_row(inner, &self.core, indexes, &bytes, found)
    }
}
