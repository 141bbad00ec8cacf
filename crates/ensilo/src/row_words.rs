//! The engine's rows as the row format's words.

use ensilo_engine::RowRef;
use ensilo_row::{KeyBuf, Malformed, Words};

/// A row in place. What is decoded from it counts only once the engine has checked that it was whole.
#[derive(Copy, Clone)]
pub(crate) struct RowWords<'a>(pub(crate) RowRef<'a>);

impl Words for RowWords<'_> {
    #[inline(always)]
    fn len_bytes(&self) -> usize {
        self.0.len_bytes()
    }

    #[inline(always)]
    fn word(&self, index: usize) -> u64 {
        self.0.word(index)
    }
}

/// Returns the primary key that an entry of an index holds.
#[inline]
pub(crate) fn primary_key_of(entry: RowRef<'_>) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.set_words(&RowWords(entry));
    key
}

/// Returns a copy of an encoded key.
#[inline]
pub(crate) fn key_of_bytes(bytes: &[u8]) -> KeyBuf {
    let mut key = KeyBuf::new();
    key.set(bytes);
    key
}

/// Unwraps what was decoded from a whole row.
///
/// # Panics
/// When it does not decode: rows are encoded by the schema that decodes them, and the engine has vouched that
/// this one is whole. Going on would serve damaged data.
#[inline]
pub(crate) fn whole<R>(decoded: Result<R, Malformed>) -> R {
    match decoded {
        Ok(value) => value,
        Err(malformed) => is_damaged(malformed),
    }
}

#[cold]
pub(crate) fn is_damaged(malformed: Malformed) -> ! {
    panic!("a stored row does not fit its schema: {malformed}")
}
