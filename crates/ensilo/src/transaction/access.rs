//! What statements do to records. An abort of the engine becomes an error of this crate, and dooms the
//! transaction. Rows of a table are decoded as ones of its schema as it is: `older` are those that it had before.

use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_engine::{Direction, KeyBounds, Read, RowRef, Store, Write};
use ensilo_row::KeyBuf;
use ensilo_sync::region::{self, Region};

use super::Inner;
use crate::Result;
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::entry_changes::EntryChange;
use crate::older_rows::{OlderRows, in_schema};

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
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        self.load_key(table, key)?;
        self.get(&table.store, table.older.as_deref(), key, decode)
    }

    /// Finds a record and decodes it.
    #[inline(always)]
    pub(crate) fn get<R>(
        &mut self,
        store: &Raw::Store,
        older: Option<&OlderRows>,
        key: &KeyBuf,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        let decode = move |row: RowRef<'_>| {
            let _caller = caller.enter();
            decode(in_schema(older, row, converted))
        };
        self.raw.get(store, key.as_bytes(), decode).map_err(|abort| self.lost(abort))
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

    /// Finds the records under many keys and decodes them, until `each` breaks.
    #[inline(always)]
    pub(crate) fn get_many<R>(
        &mut self,
        store: &Raw::Store,
        older: Option<&OlderRows>,
        keys: &[KeyBuf],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<()> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        let decode = move |at: usize, row: RowRef<'_>| {
            let _caller = caller.enter();
            decode(at, in_schema(older, row, converted))
        };
        let each = move |at, value| {
            let _caller = caller.enter();
            each(at, value)
        };
        self.raw.get_many(store, keys, decode, each).map_err(|abort| self.lost(abort))
    }

    /// Decodes a record that was found.
    #[inline(always)]
    pub(crate) fn read<R>(
        &mut self,
        older: Option<&OlderRows>,
        found: Raw::Found,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<R> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        let decode = move |row: RowRef<'_>| {
            let _caller = caller.enter();
            decode(in_schema(older, row, converted))
        };
        self.raw.read(found, decode).map_err(|abort| self.lost(abort))
    }

    /// Decodes the records of a range and passes them to `each`, with handles that are good for reading and
    /// writing.
    #[inline(always)]
    pub(crate) fn scan<R>(
        &mut self,
        store: &Raw::Store,
        older: Option<&OlderRows>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(Raw::Found, R) -> ControlFlow<()>,
    ) -> Result<()> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        let decode = move |key: &[u8], row: RowRef<'_>| {
            let _caller = caller.enter();
            decode(key, in_schema(older, row, converted))
        };
        let each = move |found, value| {
            let _caller = caller.enter();
            each(found, value)
        };
        self.raw.scan(store, bounds, direction, decode, each).map_err(|abort| self.lost(abort))
    }

    /// Like [`Inner::scan`], without handles.
    #[inline(always)]
    pub(crate) fn scan_to_read<R>(
        &mut self,
        store: &Raw::Store,
        older: Option<&OlderRows>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        let engine = region::enter(Region::Engine);
        let (caller, converted) = (engine.caller(), &mut self.local.converted);
        let decode = move |key: &[u8], row: RowRef<'_>| {
            let _caller = caller.enter();
            decode(key, in_schema(older, row, converted))
        };
        let each = move |value| {
            let _caller = caller.enter();
            each(value)
        };
        self.raw.scan_to_read(store, bounds, direction, decode, each).map_err(|abort| self.lost(abort))
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
