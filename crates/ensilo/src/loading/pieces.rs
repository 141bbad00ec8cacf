//! A range of a table in pieces, each of which is in memory when a scan comes to it.
//!
//! A scan that goes on takes longer and longer pieces: each is as long as all before it, in blocks. What is
//! loaded changes the nodes of the index behind the piece before, which the transaction may rely on already,
//! so that it is undone. The next attempt finds twice as much in memory.

use std::ops::Bound;

use ensilo_engine::{Direction, KeyBounds, Read};
use ensilo_row::KeyBuf;

use super::cell::Piece;
use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::row_words::key_of_bytes;
use crate::table::Bounds;
use crate::transaction::Inner;

/// See the module's documentation.
pub(crate) struct Pieces<'r> {
    whole: &'r Bounds,
    direction: Direction,
    place: Place,
    /// How many blocks have the pieces so far.
    blocks: usize,
}

/// Where the next piece begins.
enum Place {
    /// Nothing was given out.
    Begin,
    /// The piece that was given out last, and the range behind it.
    At(Box<PieceAndRest>),
    /// Nothing is left.
    End,
}

struct PieceAndRest {
    piece: Bounds,
    rest: Bounds,
}

impl<'r> Pieces<'r> {
    #[inline(always)]
    pub(crate) fn new(whole: &'r Bounds, direction: Direction) -> Self {
        Pieces { whole, direction, place: Place::Begin, blocks: 0 }
    }

    /// Returns the next piece of a range of the table's rows, which is in memory.
    #[inline(always)]
    pub(crate) fn next<Raw: Read>(
        &mut self,
        inner: &mut Inner<'_, Raw>,
        table: &TableCore<Raw::Store>,
    ) -> Result<Option<KeyBounds<'_>>> {
        if matches!(self.place, Place::Begin) && table.load.is_over() {
            self.place = Place::End;
            return Ok(self.whole.as_slices());
        }
        self.load_next(inner, table)
    }

    #[cold]
    fn load_next<Raw: Read>(
        &mut self,
        inner: &mut Inner<'_, Raw>,
        table: &TableCore<Raw::Store>,
    ) -> Result<Option<KeyBounds<'_>>> {
        loop {
            let rest = match std::mem::replace(&mut self.place, Place::End) {
                Place::Begin => self.whole.clone(),
                Place::At(before) => before.rest,
                Place::End => return Ok(None),
            };
            let Some(bounds) = rest.as_slices() else { return Ok(None) };
            let loaded = inner.load_piece(table, bounds, self.direction, self.blocks.max(1))?;
            self.blocks += loaded.blocks;
            let (piece, rest) = split(rest, self.direction, loaded);
            let is_empty = piece.as_slices().is_none();
            self.place = Place::At(Box::new(PieceAndRest { piece, rest }));
            if !is_empty {
                break;
            }
        }
        match &self.place {
            Place::At(next) => Ok(next.piece.as_slices()),
            Place::Begin | Place::End => unreachable!("set above"),
        }
    }
}

/// Splits a range where the part that is loaded ends. Either may be empty.
fn split(range: Bounds, direction: Direction, loaded: Piece) -> (Bounds, Bounds) {
    const NOTHING: Bounds = Bounds::new(Bound::Excluded(KeyBuf::new()), Bound::Excluded(KeyBuf::new()));
    let Some(end) = loaded.end else { return (range, NOTHING) };
    let (below, above) = range.split_at(&key_of_bytes(&end));
    match direction {
        Direction::Forward => (below, above),
        Direction::Reverse => (above, below),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> KeyBuf {
        key_of_bytes(&[byte])
    }

    fn piece(end: Option<u8>) -> Piece {
        Piece { end: end.map(|byte| Box::from([byte])), blocks: 1 }
    }

    /// Splits the keys from 3 to 7.
    fn split_some(direction: Direction, end: Option<u8>) -> [Option<(u8, u8)>; 2] {
        let range = Bounds::new(Bound::Included(key(3)), Bound::Included(key(7)));
        let (first, rest) = split(range, direction, piece(end));
        [first, rest].map(|bounds| {
            let inside: Vec<u8> = (0..20).filter(|&byte| bounds.contains(&key(byte))).collect();
            Some((*inside.first()?, *inside.last()?))
        })
    }

    #[test]
    fn a_range_is_split_where_the_loaded_part_ends() {
        let (up, down) = (Direction::Forward, Direction::Reverse);
        assert_eq!(split_some(up, Some(5)), [Some((3, 4)), Some((5, 7))]);
        assert_eq!(split_some(up, Some(7)), [Some((3, 6)), Some((7, 7))]);
        assert_eq!(split_some(up, Some(3)), [None, Some((3, 7))]);
        assert_eq!(split_some(down, Some(5)), [Some((5, 7)), Some((3, 4))]);
        assert_eq!(split_some(down, Some(3)), [Some((3, 7)), None]);
        assert_eq!(split_some(down, Some(7)), [Some((7, 7)), Some((3, 6))]);
        for direction in [up, down] {
            assert_eq!(split_some(direction, None), [Some((3, 7)), None]);
        }
        // Behind the range.
        assert_eq!(split_some(up, Some(9)), [Some((3, 7)), None]);
        assert_eq!(split_some(down, Some(1)), [Some((3, 7)), None]);
    }
}
