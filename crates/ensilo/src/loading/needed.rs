//! Which blocks of a table are loaded for a key, for the beginning of a range, and for all of it.

use std::ops::Bound;
use std::sync::atomic::Ordering;

use ensilo_engine::{Direction, Engine, KeyBounds};

use super::cell::{Control, LoadRows, Piece};
use super::table_blocks::{LoadBlock, begun_by};
use super::table_load::TableLoad;
use crate::catalog::table_core::TableCore;
use crate::shortage::with_room;
use crate::{Error, Result};

impl<E: Engine> LoadRows<E::Store> for TableLoad<E> {
    fn load_key(&self, key: &[u8]) -> Result<()> {
        for run in self.blocks.runs() {
            let begun = begun_by(run, Bound::Included(key), 0, false);
            let Some(last) = begun.checked_sub(1) else { continue };
            self.load_block(&run[last], &|| Ok(()))?;
            // L5: the key is in no other block, if this one begins where it is said to.
            run.get(begun).map_or(Ok(()), |behind| self.prove(behind))?;
        }
        Ok(())
    }

    fn load_piece(&self, bounds: KeyBounds<'_>, direction: Direction, blocks_max: usize) -> Result<Piece> {
        let mut piece = Piece { end: None, blocks: 0 };
        for run in self.blocks.runs() {
            match direction {
                Direction::Forward => self.load_run_up(run, bounds, blocks_max, &mut piece)?,
                Direction::Reverse => self.load_run_down(run, bounds, blocks_max, &mut piece)?,
            }
        }
        Ok(piece)
    }

    fn load_whole(&self, table: &TableCore<E::Store>, is_pinned: bool, control: Control<'_>) -> Result<()> {
        let load = || self.load_all(table, is_pinned, control);
        if is_pinned {
            return load();
        }
        with_room(&*self.shared.engine, || self.shared.state.blocks_done(), load)
    }

    fn check_sound(&self) -> Result<()> {
        self.failure.get().map_or(Ok(()), |why| Err(Error::LoadFailed(why.clone())))
    }

    fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
        // Nobody gets them any more.
        for left in self.blocks.all().iter().filter(|block| block.claim()) {
            self.shared.state.note_blocks(1, left.block.bytes as u64);
        }
        self.note_change();
        self.shared.state.note_table(self.id());
    }
}

impl<E: Engine> TableLoad<E> {
    /// Loads what is left of the table, and makes the entries of its indexes.
    fn load_all(&self, table: &TableCore<E::Store>, is_pinned: bool, control: Control<'_>) -> Result<()> {
        self.check_sound()?;
        self.is_wanted.store(true, Ordering::Relaxed);
        while self.has_next() {
            control()?;
            self.load_next()?;
        }
        // What others have taken, and what they have failed to load.
        for block in self.blocks.all() {
            control()?;
            self.load_block(block, control)?;
        }
        self.finish(table, is_pinned, control)
    }

    /// Loads the blocks of a run with which a scan of the range begins that goes up.
    fn load_run_up(
        &self,
        run: &[LoadBlock],
        (low, high): KeyBounds<'_>,
        blocks_max: usize,
        piece: &mut Piece,
    ) -> Result<()> {
        let first = begun_by(run, low, 0, false).saturating_sub(1);
        let end = begun_by(run, high, run.len(), true);
        let mut next = first + run[first..].iter().take_while(|block| block.is_loaded()).count();
        if next == first {
            next = end.min(first.saturating_add(blocks_max)).max(first);
            run[first..next].iter().try_for_each(|block| self.load_block(block, &|| Ok(())))?;
        }
        piece.blocks += next - first;
        if let Some(behind) = run.get(next) {
            self.prove(behind)?;
            let first_key = &behind.block.first_key;
            if piece.end.as_ref().is_none_or(|end| first_key < end) {
                piece.end = Some(first_key.clone());
            }
        }
        Ok(())
    }

    /// The same for a scan that goes down.
    fn load_run_down(
        &self,
        run: &[LoadBlock],
        (low, high): KeyBounds<'_>,
        blocks_max: usize,
        piece: &mut Piece,
    ) -> Result<()> {
        let end = begun_by(run, high, run.len(), true);
        run.get(end).map_or(Ok(()), |behind| self.prove(behind))?;
        let begin = begun_by(run, low, 0, false).saturating_sub(1);
        let mut last = end - run[..end].iter().rev().take_while(|block| block.is_loaded()).count();
        if last == end {
            last = begin.max(end.saturating_sub(blocks_max)).min(end);
            run[last..end].iter().rev().try_for_each(|block| self.load_block(block, &|| Ok(())))?;
        }
        piece.blocks += end - last;
        if last > 0 && last < end {
            let first_key = &run[last].block.first_key;
            if piece.end.as_ref().is_none_or(|end| first_key > end) {
                piece.end = Some(first_key.clone());
            }
        }
        Ok(())
    }
}
