//! Text and bytes in keys: escaped so that a terminator of one byte comes before everything.

use super::KeyBuf;
use crate::Malformed;
use crate::words::partial_word;

const END: u8 = 0;
const ESCAPE: u8 = 1;

/// Appends the bytes, escaped and terminated.
#[inline]
pub(crate) fn encode(bytes: &[u8], key: &mut KeyBuf) {
    let (chunks, rest) = bytes.as_chunks::<8>();
    for chunk in chunks {
        append_word(u64::from_le_bytes(*chunk), key);
    }
    let last = partial_word(rest);
    // Bytes past the end are 00: the first of them is the terminator. Make them another to look for what needs escapes.
    if needs_escape(last | u64::MAX << (8 * rest.len())) {
        append_escaped(rest, key);
        terminate(key);
    } else {
        key.append_part(last.to_le_bytes(), rest.len() + 1);
    }
}

/// Appends eight bytes, escaped.
#[inline(always)]
pub(crate) fn append_word(word: u64, key: &mut KeyBuf) {
    if needs_escape(word) {
        append_escaped(&word.to_le_bytes(), key);
    } else {
        key.append_array(word.to_le_bytes());
    }
}

/// Appends the terminator.
#[inline]
pub(crate) fn terminate(key: &mut KeyBuf) {
    key.append_array([END]);
}

/// Appends the bytes, escaped, one by one.
#[cold]
pub(crate) fn append_escaped(bytes: &[u8], key: &mut KeyBuf) {
    for byte in bytes {
        match *byte {
            byte @ (END | ESCAPE) => key.append_array([ESCAPE, byte + 1]),
            byte => key.append_array([byte]),
        }
    }
}

/// Returns whether one of the eight bytes is 00 or 01.
#[inline(always)]
const fn needs_escape(word: u64) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    // A byte b < 2 borrows in b - 2 and has its high bit clear; a borrow from below can only add a false alarm above a true one.
    word.wrapping_sub(ONES * 2) & !word & HIGHS != 0
}

/// Gives the bytes up to the terminator to `each` and returns what follows it; all bytes are xored with `flip` first.
#[inline]
pub(crate) fn decode(
    key: &[u8],
    flip: u8,
    mut each: impl FnMut(u8) -> Result<(), Malformed>,
) -> Result<&[u8], Malformed> {
    let mut at = 0;
    loop {
        let byte = key.get(at).ok_or(Malformed)? ^ flip;
        at += 1;
        match byte {
            END => return Ok(&key[at..]),
            ESCAPE => {
                let escaped = key.get(at).ok_or(Malformed)? ^ flip;
                at += 1;
                if !matches!(escaped, 1 | 2) {
                    return Err(Malformed);
                }
                each(escaped - 1)?;
            }
            byte => each(byte)?,
        }
    }
}
