//! What statements do to records. An abort of the engine becomes an error of this crate, and dooms the
//! transaction. Rows of a table are decoded as its [form](RowForm) says: as ones of its schema as it is, with the long values
//! that a statement asks for.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_engine::{Direction, KeyBounds, Read, RowRef, Store, Write};
use ensilo_row::KeyBuf;
use ensilo_sync::region::{self, Region};

use super::Inner;
use crate::Result;
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::entry_changes::EntryChange;
use crate::long_values::{RowForm, Wants};
use crate::older_rows::in_schema;
use crate::row_words::key_of_bytes;

impl<Raw: Read> Inner<'_, Raw> {
    /// Finds the record under a key.
    #[inline(always)]
    pub(crate) fn find(&mut self, store: &Raw::Store, key: &KeyBuf) -> Result<Option<Raw::Found>> {
        let _engine = region::enter(Region::Engine);
        self.raw.find(store, key.as_bytes()).map_err(|abort| self.lost(abort))
    }

    /// Finds the record of a row, or of none.
    #[inline(always)]
    pub(crate) fn find_in(
        &mut self,
        table: &TableCore<Raw::Store>,
        key: &KeyBuf,
    ) -> Result<Option<Raw::Found>> {
        self.load_key(table, key)?;
        self.find(&table.store, key)
    }

    /// Finds the row with a primary key.
    ///
    /// # Errors
    /// [`Error::MissingRow`](crate::Error::MissingRow).
    pub(crate) fn find_row(&mut self, table: &TableCore<Raw::Store>, key: &KeyBuf) -> Result<Raw::Found> {
        self.find_in(table, key)?.ok_or_else(|| table.missing(key.as_bytes()))
    }

    /// Finds a row and decodes it.
    #[inline(always)]
    pub(crate) fn get_in<R>(
        &mut self,
        table: &TableCore<Raw::Store>,
        key: &KeyBuf,
        wanted: impl Wants,
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        self.load_key(table, key)?;
        self.get(&table.store, table.form(wanted), key, decode)
    }

    /// Finds a record and decodes it.
    #[inline(always)]
    pub(crate) fn get<R, W: Wants>(
        &mut self,
        store: &Raw::Store,
        form: RowForm<'_, Raw::Store, W>,
        key: &KeyBuf,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        if const { !W::MAY_BE_LONG } || form.is_plain() {
            let decode = move |row: RowRef<'_>| {
                let _caller = caller.enter();
                decode(in_schema(form.older, row, converted))
            };
            return self.raw.get(store, key.as_bytes(), decode).map_err(|abort| self.lost(abort));
        }
        let decode_stored = |row: RowRef<'_>| {
            let _caller = caller.enter();
            form.decode(row, converted, &mut decode)
        };
        let decoded = self.raw.get(store, key.as_bytes(), decode_stored);
        engine.leave();
        match decoded.map_err(|abort| self.lost(abort))? {
            None => Ok(None),
            Some(Ok(value)) => Ok(Some(value)),
            Some(Err(short)) => self.decode_assembled(form, key, &short, decode).map(Some),
        }
    }

    /// Finds the records under many keys.
    #[inline(always)]
    pub(crate) fn find_many(
        &mut self,
        store: &Raw::Store,
        keys: &[KeyBuf],
        each: impl FnMut(usize, Option<Raw::Found>),
    ) -> Result<()> {
        let _engine = region::enter(Region::Engine);
        self.raw.find_many(store, keys, each).map_err(|abort| self.lost(abort))
    }

    /// Finds the records under many keys and decodes them, until `each` breaks. From a row on that lacks long values they are looked up one by one.
    #[inline(always)]
    pub(crate) fn get_many<R, W: Wants>(
        &mut self,
        store: &Raw::Store,
        form: RowForm<'_, Raw::Store, W>,
        keys: &[KeyBuf],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<()> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        if const { !W::MAY_BE_LONG } || form.is_plain() {
            let decode = move |at: usize, row: RowRef<'_>| {
                let _caller = caller.enter();
                decode(at, in_schema(form.older, row, converted))
            };
            let each = move |at, value| {
                let _caller = caller.enter();
                each(at, value)
            };
            return self.raw.get_many(store, keys, decode, each).map_err(|abort| self.lost(abort));
        }
        let decode_stored = |at: usize, row: RowRef<'_>| {
            let _caller = caller.enter();
            form.decode(row, converted, |row| decode(at, row)).map_err(drop)
        };
        let mut first_short = None;
        let each_stored = |at: usize, value: Option<std::result::Result<R, ()>>| {
            let _caller = caller.enter();
            pass_whole(value.transpose(), |value| each(at, value), |()| first_short = Some(at))
        };
        let read = self.raw.get_many(store, keys, decode_stored, each_stored);
        engine.leave();
        read.map_err(|abort| self.lost(abort))?;
        for (at, key) in keys.iter().enumerate().skip(first_short.unwrap_or(keys.len())) {
            let value = self.get(store, form, key, |row| decode(at, row))?;
            if each(at, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Decodes a record that was found, as it is stored.
    #[inline(always)]
    pub(crate) fn read_stored<R>(
        &mut self,
        found: Raw::Found,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<R> {
        let engine = region::enter(Region::Engine);
        let caller = engine.caller();
        let decode = move |row: RowRef<'_>| {
            let _caller = caller.enter();
            decode(row)
        };
        self.raw.read(found, decode).map_err(|abort| self.lost(abort))
    }

    /// Decodes a row that was found; `key` makes its key, should it lack long values.
    #[inline(always)]
    pub(crate) fn read<R, W: Wants>(
        &mut self,
        form: RowForm<'_, Raw::Store, W>,
        found: Raw::Found,
        key: impl FnOnce() -> Result<KeyBuf>,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<R> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        if const { !W::MAY_BE_LONG } || form.is_plain() {
            let decode = move |row: RowRef<'_>| {
                let _caller = caller.enter();
                decode(in_schema(form.older, row, converted))
            };
            return self.raw.read(found, decode).map_err(|abort| self.lost(abort));
        }
        let decode_stored = |row: RowRef<'_>| {
            let _caller = caller.enter();
            form.decode(row, converted, &mut decode)
        };
        let decoded = self.raw.read(found, decode_stored);
        engine.leave();
        match decoded.map_err(|abort| self.lost(abort))? {
            Ok(value) => Ok(value),
            Err(short) => self.decode_assembled(form, &key()?, &short, decode),
        }
    }

    /// Decodes the records of a range and passes them to `each`, with handles that are good for reading and
    /// writing. At a row that lacks long values the walk of the engine ends, and goes on behind it.
    #[inline(always)]
    pub(crate) fn scan<R, W: Wants>(
        &mut self,
        store: &Raw::Store,
        form: RowForm<'_, Raw::Store, W>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(Raw::Found, R) -> ControlFlow<()>,
    ) -> Result<()> {
        if const { !W::MAY_BE_LONG } || form.is_plain() {
            let engine = region::enter(Region::Engine);
            let (caller, converted) = (engine.caller(), &mut self.local.converted);
            let decode = move |key: &[u8], row: RowRef<'_>| {
                let _caller = caller.enter();
                decode(key, in_schema(form.older, row, converted))
            };
            let each = move |found, value| {
                let _caller = caller.enter();
                each(found, value)
            };
            let walk = self.raw.scan(store, bounds, direction, decode, each);
            return walk.map_err(|abort| self.lost(abort));
        }
        let mut last = None;
        while let Some(bounds) = behind(bounds, last.as_ref(), direction) {
            let engine = region::enter(Region::Engine);
            let (caller, converted) = (engine.caller(), &mut self.local.converted);
            let decode_stored = |key: &[u8], row: RowRef<'_>| {
                let _caller = caller.enter();
                form.decode(row, converted, |row| decode(key, row))
                    .map_err(|row| Box::new((key_of_bytes(key), row)))
            };
            let mut short = None;
            let each_stored = |found, value| {
                let _caller = caller.enter();
                pass_whole(value, |value| each(found, value), |row| short = Some((found, row)))
            };
            let walk = self.raw.scan(store, bounds, direction, decode_stored, each_stored);
            engine.leave();
            walk.map_err(|abort| self.lost(abort))?;
            let Some((found, short)) = short else { break };
            let (key, row) = *short;
            let value = self.decode_assembled(form, &key, &row, |row| decode(key.as_bytes(), row))?;
            if each(found, value).is_break() {
                break;
            }
            last = Some(key);
        }
        Ok(())
    }

    /// Like [`Inner::scan`], without handles.
    #[inline(always)]
    pub(crate) fn scan_to_read<R, W: Wants>(
        &mut self,
        store: &Raw::Store,
        form: RowForm<'_, Raw::Store, W>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        if const { !W::MAY_BE_LONG } || form.is_plain() {
            let engine = region::enter(Region::Engine);
            let (caller, converted) = (engine.caller(), &mut self.local.converted);
            let decode = move |key: &[u8], row: RowRef<'_>| {
                let _caller = caller.enter();
                decode(key, in_schema(form.older, row, converted))
            };
            let each = move |value| {
                let _caller = caller.enter();
                each(value)
            };
            let walk = self.raw.scan_to_read(store, bounds, direction, decode, each);
            return walk.map_err(|abort| self.lost(abort));
        }
        let mut last = None;
        while let Some(bounds) = behind(bounds, last.as_ref(), direction) {
            let engine = region::enter(Region::Engine);
            let (caller, converted) = (engine.caller(), &mut self.local.converted);
            let decode_stored = |key: &[u8], row: RowRef<'_>| {
                let _caller = caller.enter();
                form.decode(row, converted, |row| decode(key, row))
                    .map_err(|row| Box::new((key_of_bytes(key), row)))
            };
            let mut short = None;
            let each_stored = |value| {
                let _caller = caller.enter();
                pass_whole(value, &mut each, |row| short = Some(row))
            };
            let walk = self.raw.scan_to_read(store, bounds, direction, decode_stored, each_stored);
            engine.leave();
            walk.map_err(|abort| self.lost(abort))?;
            let Some(short) = short else { break };
            let (key, row): (KeyBuf, _) = *short;
            let value = self.decode_assembled(form, &key, &row, |row| decode(key.as_bytes(), row))?;
            if each(value).is_break() {
                break;
            }
            last = Some(key);
        }
        Ok(())
    }
}

/// Gives what was decoded of a whole row to `each`, and ends the walk at a short one, which it gives to `note`.
#[inline(always)]
fn pass_whole<R, S>(
    value: std::result::Result<R, S>,
    each: impl FnOnce(R) -> ControlFlow<()>,
    note: impl FnOnce(S),
) -> ControlFlow<()> {
    match value {
        Ok(value) => each(value),
        Err(short) => {
            note(short);
            ControlFlow::Break(())
        }
    }
}

/// Returns what is left of the range behind the key that a walk has come to; `None` if nothing is.
#[inline(always)]
fn behind<'k>(
    (low, high): KeyBounds<'k>,
    last: Option<&'k KeyBuf>,
    direction: Direction,
) -> Option<KeyBounds<'k>> {
    let Some(last) = last.map(KeyBuf::as_bytes) else { return Some((low, high)) };
    let is_left = |end: Bound<&[u8]>, is_inside: fn(&[u8], &[u8]) -> bool| match end {
        Bound::Included(end) | Bound::Excluded(end) => is_inside(last, end),
        Bound::Unbounded => true,
    };
    match direction {
        Direction::Forward => is_left(high, |last, end| last < end).then_some((Bound::Excluded(last), high)),
        Direction::Reverse => is_left(low, |last, end| last > end).then_some((low, Bound::Excluded(last))),
    }
}

impl<Raw: Write> Inner<'_, Raw> {
    /// Finds the record under a key, to write to it.
    #[inline(always)]
    pub(crate) fn find_to_write(&mut self, store: &Raw::Store, key: &KeyBuf) -> Result<Option<Raw::Found>> {
        let _engine = region::enter(Region::Engine);
        self.raw.find_to_write(store, key.as_bytes()).map_err(|abort| self.lost(abort))
    }

    /// Finds the record of a row, or of none, to write to it.
    #[inline(always)]
    pub(crate) fn find_in_to_write(
        &mut self,
        table: &TableCore<Raw::Store>,
        key: &KeyBuf,
    ) -> Result<Option<Raw::Found>> {
        self.load_key(table, key)?;
        self.find_to_write(&table.store, key)
    }

    /// Finds the row with a primary key, to write to it.
    ///
    /// # Errors
    /// [`Error::MissingRow`](crate::Error::MissingRow).
    #[inline(always)]
    pub(crate) fn find_row_to_write(
        &mut self,
        table: &TableCore<Raw::Store>,
        key: &KeyBuf,
    ) -> Result<Raw::Found> {
        match self.find_in_to_write(table, key)? {
            Some(found) => Ok(found),
            None => Err(table.missing(key.as_bytes())),
        }
    }

    /// Inserts the record in the scratch `local.row`, unless one has the key.
    #[inline(always)]
    pub(crate) fn insert_row(&mut self, store: &Raw::Store, key: &KeyBuf) -> Result<bool> {
        let _engine = region::enter(Region::Engine);
        let row = &self.local.row;
        let inserted = self.raw.insert(store, key.as_bytes(), row.words(), row.len_bytes());
        self.note_insert(store, inserted)
    }

    /// Inserts the record in the scratch `local.entry`, unless one has the key.
    pub(crate) fn insert_entry(&mut self, store: &Raw::Store, key: &KeyBuf) -> Result<bool> {
        let _engine = region::enter(Region::Engine);
        let entry = &self.local.entry;
        let inserted = self.raw.insert(store, key.as_bytes(), entry.words(), entry.len_bytes());
        self.note_insert(store, inserted)
    }

    /// Starts to load what these changes in indexes need.
    pub(crate) fn prefetch_changes(
        &mut self,
        changes: &[EntryChange],
        indexes: &[Arc<IndexCore<Raw::Store>>],
    ) {
        let _engine = region::enter(Region::Engine);
        self.raw.prefetch_changes(changes.len(), |at| {
            let EntryChange { index, change, ref key } = changes[at];
            (&*indexes[index].store, key.as_bytes(), change)
        });
    }

    #[inline(always)]
    fn note_insert(
        &mut self,
        store: &Raw::Store,
        inserted: Result<bool, ensilo_engine::Abort>,
    ) -> Result<bool> {
        let is_new = inserted.map_err(|abort| self.lost(abort))?;
        if is_new {
            self.local.records.inserted(store.id());
        }
        Ok(is_new)
    }

    /// Deletes a record of the store.
    #[inline(always)]
    pub(crate) fn delete(&mut self, store: &Raw::Store, found: Raw::Found) -> Result<()> {
        self.local.records.deleted(store.id());
        self.local.steps += 1;
        self.deleted_in |= 1 << (store.id().0 % 64);
        let _engine = region::enter(Region::Engine);
        self.raw.delete(found).map_err(|abort| self.lost(abort))
    }
}
