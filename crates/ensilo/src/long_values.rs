//! Long values: texts and bytes that lie beside the rows that they belong to, in pieces.
//!
//! A value of more than [`INLINE_LEN_MAX`] bytes leaves its row. In its place the row says how long it is, its checksum and its number
//! ([`LongValue`](ensilo_row::LongValue)); its bytes lie in records of a second store that the table has, its *long values*. So what copies,
//! logs or keeps a row because of another column, does not do so with the value. It is made of what every engine offers: pieces are records like
//! all others, which the transaction of the row reads and writes.
//!
//! ```text
//! split      a row that is to be written becomes a short one, and what is to be done to pieces
//! pieces     does that, once the row is written: writes those that are others than before, deletes those that nobody needs
//! form       how a statement reads rows: which columns it asks for
//! assemble   makes of a short row one that has the values that a statement asks for
//! store      the second store
//! ```
//!
//! # Layout
//! The key of a piece is the primary key, the number of the value among the long values of the row as a `u16`, and that of the piece as a `u16`,
//! both big endian. The record is the bytes of the piece: [`PIECE_LEN`] of them, but for the last one, which has the rest. Numbers are given
//! anew in each row, so that no column has to have one in the catalog; one stays with its column for as long as that has a long value.
//!
//! # Invariants
//! - V1: a row is written by the transaction that writes and deletes the pieces of its long values. So pieces are there exactly for what committed
//!   rows say of them, whatever crashes.
//! - V2: who writes pieces has written their row, and who writes a row that others have written is in conflict with them, also without a look at
//!   it. So who writes a row knows all pieces of the one that it replaces: from what that says.
//! - V3: whoever finds no long value in a table where there is none yet ([`LongStore::is_used`]) is right: it asks after the row that it is
//!   about to replace has joined its read set, and who writes the first piece says so before it commits. So rows are replaced without a
//!   look at them, until there is a long value.
//! - V4: nothing but the value leaves this module: a decoder refuses what stands in its place, and what was put together has the length and the
//!   checksum that its row says.
//! - V5: what there is of the pieces that a statement touches is in memory before it writes anything: behind that nothing fails that leaves the
//!   transaction as it is.
//!
//! # What does not fit
//! An engine that validates at the commit may show a row and pieces of different moments to a transaction that is about to abort. Where they do not
//! fit, the transaction is undone as for any conflict ([`Read::check_reads`](ensilo_engine::Read::check_reads)). Where all reads are of one
//! moment it is damage: [`Error::RowUnreadable`](crate::Error::RowUnreadable). Such a row can be replaced and deleted.
//!
//! # Where values stay in their rows
//! - Where the piece's key would be longer than a key may be.
//! - In tables of a database from before there were long values, until their columns are changed. Values of older rows stay as they are until
//!   they are written anew.
//! - In tables of which a salvage has lost the row that names their long values, until their columns are changed.
//! - In tables of the system.
//! - Where changes are kept for the change feed: there each change is logged with the whole row, and all pieces would be written with it. That is
//!   what a row costs that has its values in itself. Rows that have long values from before get them back when they are written.
//!
//! # Indexes
//! A long value is in no index: every key of one would be too long. What stands in its place makes a key that is refused.

mod assemble;
mod form;
mod pieces;
mod split;
mod store;

use ensilo_row::KeyBuf;

pub(crate) use form::{Nothing, RowForm, Wanted, Wants, may_be_long, wanted_by};
pub(crate) use pieces::{delete_pieces, write_pieces};
pub(crate) use split::{before_change, before_delete, before_insert, is_written_whole};
pub(crate) use store::{LongStore, LongValues, can_have_long_values, drop_store};

/// A value of more bytes leaves its row. A piece has so many: four of them, with what engines put before them, lie in 64 KiB of memory, and a
/// few take the log's way for short entries.
pub(crate) const INLINE_LEN_MAX: usize = PIECE_LEN;
const PIECE_LEN: usize = (16 << 10) - 128;

/// What a piece's key has behind the primary key.
const SUFFIX_LEN: usize = 4;

/// Makes `out` the key of a piece.
fn set_piece_key(out: &mut KeyBuf, key: &KeyBuf, number: u16, piece: usize) {
    out.set(key.as_bytes());
    out.append_array(number.to_be_bytes());
    // A row of 32 MiB has fewer.
    out.append_array((piece as u16).to_be_bytes());
}

/// Returns the primary key in the key of a piece; `None` if it is none of a piece.
pub(crate) fn row_key_of(piece_key: &[u8]) -> Option<&[u8]> {
    piece_key.len().checked_sub(SUFFIX_LEN).map(|len| &piece_key[..len])
}

/// Returns how many pieces a value has.
const fn pieces_of(len_bytes: usize) -> usize {
    len_bytes.div_ceil(PIECE_LEN)
}
