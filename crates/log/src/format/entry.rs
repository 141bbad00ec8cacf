//! Log entries: what a transaction changed, appended by the worker that committed it.
//!
//! # Layout
//! ```text
//! transaction := tid u64 | writes varint | write*
//! write       := head u8 | [key_len varint] | table varint | key | rest
//!   head          bits 0-1: 0 put, 1 patch, 2 delete, 3 left out; bits 2-7: key length, or 63 when it follows as a varint
//!   rest of put     row_len varint | row bytes
//!   rest of patch   pairs varint | (word index varint, word u64)*
//!   rest of delete  nothing
//! ```
//! *Left out* stands alone, as one byte, in place of all writes of a transaction: the log was written to
//! measure what a log of TIDs costs, and nobody can recover from it.
//!
//! # Source
//! SiloR (OSDI 2014) §3.2 logs whole values. A patch logs the words of the row that changed, with their
//! values after the change, so that an entry means the same whatever was replayed before it.

use super::cursor::{Cursor, varint_bytes};

/// Key lengths from here on take a varint of their own.
pub(super) const LONG_KEY: u8 = 63;

/// Numbers below are varints of one byte.
const SMALL: u8 = 0x80;

/// Bits 0 and 1 of a head.
pub(super) const PUT: u8 = 0;
/// Bits 0 and 1 of a head.
pub(super) const PATCH: u8 = 1;
/// Bits 0 and 1 of a head.
pub(super) const DELETE: u8 = 2;
/// Bits 0 and 1 of a head.
pub(super) const LEFT_OUT: u8 = 3;

/// Bytes of the entry of a transaction that leaves its writes out.
pub const LEFT_OUT_BYTES: usize = transaction_bytes(1) + 1;

/// The most bytes that a pair of a patch takes.
pub const PATCH_PAIR_BYTES_MAX: usize = 5 + 8;

const VARINT_BYTES_MAX: usize = varint_bytes(u64::MAX);

/// Bytes of the head of a transaction with so many writes.
#[inline]
#[must_use]
pub const fn transaction_bytes(writes: usize) -> usize {
    8 + varint_bytes(writes as u64)
}

/// Bytes of a put.
#[inline]
#[must_use]
pub const fn put_bytes(table: u32, key_len: usize, row_len: usize) -> usize {
    delete_bytes(table, key_len) + varint_bytes(row_len as u64) + row_len
}

/// Bytes of a patch of the words with these indexes.
#[inline]
#[must_use]
pub fn patch_bytes(table: u32, key_len: usize, indexes: impl ExactSizeIterator<Item = u32>) -> usize {
    let head = delete_bytes(table, key_len) + varint_bytes(indexes.len() as u64);
    indexes.fold(head, |bytes, index| bytes + varint_bytes(u64::from(index)) + 8)
}

/// Returns the most bytes that a patch of so many words takes.
#[inline]
#[must_use]
pub const fn patch_bytes_max(table: u32, key_len: usize, pairs: usize) -> usize {
    delete_bytes(table, key_len) + varint_bytes(pairs as u64) + pairs * PATCH_PAIR_BYTES_MAX
}

/// Bytes of a delete; also those of each write before its own part.
#[inline]
#[must_use]
pub const fn delete_bytes(table: u32, key_len: usize) -> usize {
    let long = if key_len < LONG_KEY as usize { 0 } else { varint_bytes(key_len as u64) };
    1 + long + varint_bytes(table as u64) + key_len
}

/// Returns an upper bound, quickly computed, of the bytes of a write with a row, or with pairs, of `content`
/// bytes.
#[inline]
#[must_use]
pub const fn write_bytes_max(key_len: usize, content: usize) -> usize {
    1 + VARINT_BYTES_MAX + VARINT_BYTES_MAX + key_len + VARINT_BYTES_MAX + content
}

/// Begins the entry of a transaction. Exactly `writes` writes follow.
#[inline]
pub fn encode_transaction(cursor: &mut Cursor<'_>, tid: u64, writes: usize) {
    cursor.put_u64(tid);
    cursor.put_varint(writes as u64);
}

/// Appends a whole row of `row_len` bytes, given by its words.
///
/// # Panics
/// When there is no room, or fewer words than `row_len` asks for.
#[inline]
pub fn encode_put(
    cursor: &mut Cursor<'_>,
    table: u32,
    key: &[u8],
    row_len: usize,
    words: impl IntoIterator<Item = u64>,
) {
    encode_patched(cursor, table, key, row_len, words, []);
}

/// Appends a whole row as [`encode_put`] does, with words that take the place of the row's, each given with
/// its index; the last one of an index counts.
///
/// # Panics
/// As [`encode_put`], and when an index lies past the row.
#[inline]
pub(crate) fn encode_patched(
    cursor: &mut Cursor<'_>,
    table: u32,
    key: &[u8],
    row_len: usize,
    words: impl IntoIterator<Item = u64>,
    pairs: impl IntoIterator<Item = (u32, u64)>,
) {
    encode_head(cursor, PUT, table, key);
    cursor.put_varint(row_len as u64);
    let row = cursor.put_words(row_len, words);
    for (index, word) in pairs {
        let bytes = &mut row[index as usize * 8..];
        let len = bytes.len().min(8);
        bytes[..len].copy_from_slice(&word.to_le_bytes()[..len]);
    }
}

/// Appends words of a row, each with its index within the row.
#[inline]
pub fn encode_patch(
    cursor: &mut Cursor<'_>,
    table: u32,
    key: &[u8],
    pairs: impl ExactSizeIterator<Item = (u32, u64)>,
) {
    encode_head(cursor, PATCH, table, key);
    cursor.put_varint(pairs.len() as u64);
    for (index, word) in pairs {
        // Rows seldom have more words.
        if index < u32::from(SMALL) {
            let pair = cursor.take(1 + 8);
            pair[0] = index as u8;
            pair[1..].copy_from_slice(&word.to_le_bytes());
        } else {
            cursor.put_varint(u64::from(index));
            cursor.put_u64(word);
        }
    }
}

/// Appends that a row is gone.
#[inline]
pub fn encode_delete(cursor: &mut Cursor<'_>, table: u32, key: &[u8]) {
    encode_head(cursor, DELETE, table, key);
}

/// Appends that the writes of the transaction are left out.
#[inline]
pub(crate) fn encode_left_out(cursor: &mut Cursor<'_>) {
    cursor.put_u8(LEFT_OUT);
}

#[inline]
fn encode_head(cursor: &mut Cursor<'_>, kind: u8, table: u32, key: &[u8]) {
    if key.len() < usize::from(LONG_KEY) && table < u32::from(SMALL) {
        let head = cursor.take(2 + key.len());
        head[0] = kind | (key.len() as u8) << 2;
        head[1] = table as u8;
        copy_key(&mut head[2..], key);
    } else {
        encode_long_head(cursor, kind, table, key);
    }
}

#[cold]
fn encode_long_head(cursor: &mut Cursor<'_>, kind: u8, table: u32, key: &[u8]) {
    if key.len() < usize::from(LONG_KEY) {
        cursor.put_u8(kind | (key.len() as u8) << 2);
    } else {
        cursor.put_u8(kind | LONG_KEY << 2);
        cursor.put_varint(key.len() as u64);
    }
    cursor.put_varint(u64::from(table));
    cursor.put_bytes(key);
}

/// Copies a key, the usual ones without a call: as two words that may overlap.
#[inline]
fn copy_key(to: &mut [u8], key: &[u8]) {
    match key.len() {
        len @ 8..=16 => {
            to[..8].copy_from_slice(&key[..8]);
            to[len - 8..].copy_from_slice(&key[len - 8..]);
        }
        len @ 4..8 => {
            to[..4].copy_from_slice(&key[..4]);
            to[len - 4..].copy_from_slice(&key[len - 4..]);
        }
        _ => to.copy_from_slice(key),
    }
}
