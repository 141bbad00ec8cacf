//! What statements do before they touch the rows of a table that is still loading (L1 and L3).

use ensilo_engine::{AbortReason, Direction, KeyBounds, Read, Store};
use ensilo_row::KeyBuf;

use super::cell::{LoadRows, Piece};
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::transaction::Inner;
use crate::{Error, Result};

impl<Raw: Read> Inner<'_, Raw> {
    /// Sees to it that the row under a primary key is in memory, if there is one.
    #[inline(always)]
    pub(crate) fn load_key(&mut self, table: &TableCore<Raw::Store>, key: &KeyBuf) -> Result<()> {
        if table.load.is_over() { Ok(()) } else { self.load_keys_now(table, std::slice::from_ref(key)) }
    }

    /// The same for several keys.
    #[inline(always)]
    pub(crate) fn load_keys(&mut self, table: &TableCore<Raw::Store>, keys: &[KeyBuf]) -> Result<()> {
        if table.load.is_over() { Ok(()) } else { self.load_keys_now(table, keys) }
    }

    /// Sees to it that rows may be written: nothing of the table was found damaged, and it is in memory as a whole if it has indexes. A row that is
    /// changed was found before, and one that is inserted has its key [loaded](Inner::load_key).
    #[inline(always)]
    pub(crate) fn load_to_write(&mut self, table: &TableCore<Raw::Store>) -> Result<()> {
        if table.is_loaded() { Ok(()) } else { self.load_to_write_now(table) }
    }

    /// Checks whether the transaction may read an index of the table, once all of its entries are there.
    #[inline(always)]
    pub(crate) fn check_index(
        &mut self,
        table: &TableCore<Raw::Store>,
        index: &IndexCore<Raw::Store>,
    ) -> Result<()> {
        if !table.load.is_over() {
            self.load_whole_now(table)?;
        }
        index.check(&table.name, self.local, self.epoch_shown)
    }

    /// Sees to it that the rows are in memory with which a scan begins.
    pub(super) fn load_piece(
        &mut self,
        table: &TableCore<Raw::Store>,
        bounds: KeyBounds<'_>,
        direction: Direction,
        blocks_max: usize,
    ) -> Result<Piece> {
        match table.load.get() {
            Some(load) => {
                let loaded = load.load_piece(bounds, direction, blocks_max);
                self.local.check_control()?;
                self.loaded(table, loaded)
            }
            None => Ok(Piece { end: None, blocks: 0 }),
        }
    }

    #[cold]
    fn load_keys_now(&mut self, table: &TableCore<Raw::Store>, keys: &[KeyBuf]) -> Result<()> {
        let load = |load: &dyn LoadRows<_>| keys.iter().try_for_each(|key| load.load_key(key.as_bytes()));
        let loaded = table.load.get().map_or(Ok(()), |of_table| load(&*of_table));
        self.loaded(table, loaded)
    }

    #[cold]
    fn load_to_write_now(&mut self, table: &TableCore<Raw::Store>) -> Result<()> {
        if let Some(of_pieces) = table.long.as_ref().and_then(|long| long.store.pieces.load.get()) {
            of_pieces.check_sound()?;
        }
        let Some(load) = table.load.get() else { return Ok(()) };
        // The set does not change meanwhile: who changes it waits for the whole table.
        if table.indexes.snapshot().is_empty() { load.check_sound() } else { self.load_whole_now(table) }
    }

    #[cold]
    fn load_whole_now(&mut self, table: &TableCore<Raw::Store>) -> Result<()> {
        let Some(load) = table.load.get() else { return Ok(()) };
        let loaded = load.load_whole(table, true, &|| self.local.check_control());
        self.loaded(table, loaded)
    }

    /// A transaction for which there is no memory is undone as ever.
    fn loaded<R>(&mut self, table: &TableCore<Raw::Store>, outcome: Result<R>) -> Result<R> {
        outcome.map_err(|error| match error {
            Error::OutOfMemory(_) => {
                let (reason, table) = (AbortReason::OutOfMemory, table.store.id());
                self.lost(ensilo_engine::Abort::new(reason, table, &[]))
            }
            error => error,
        })
    }
}
