//! Whole keys: one column, or a tuple of up to eight.

use std::borrow::Cow;

use super::{AsKey, AsKeyColumn, GivenAs, KeyBuf, KeyColumn, KeyPart, KeyReader};
use crate::Malformed;

/// The key of a table or index as a Rust type: one [`KeyColumn`] or a tuple of them.
///
/// ```
/// use ensilo_row::{Key, KeyBuf};
///
/// let mut key = KeyBuf::new();
/// (1u16, 2u8, 3u32).encode(&mut key);
/// assert_eq!(key.as_bytes(), [0, 1, 2, 0, 0, 0, 3]);
/// assert_eq!(<(u16, u8, u32)>::decode(key.as_bytes()), Ok((1, 2, 3)));
/// ```
pub trait Key: AsKey<Self> + GivenAs<Self> + Clone + 'static {
    /// The columns, to compare with a schema.
    const PARTS: &'static [KeyPart];
    /// The length of every encoded key in bytes, if always the same.
    const FIXED_LEN: Option<usize>;

    /// Appends the encoded key.
    #[inline(always)]
    fn append(&self, key: &mut KeyBuf) {
        self.append_key(key);
    }

    /// Makes `key` the encoded key.
    #[inline(always)]
    fn encode(&self, key: &mut KeyBuf) {
        key.clear();
        self.append(key);
    }

    /// Takes the key from the front of `key`.
    ///
    /// # Errors
    /// [`Malformed`] if no key of this type is encoded so.
    fn take(key: &mut KeyReader<'_>) -> Result<Self, Malformed>;

    /// Returns the key that is encoded by exactly these bytes.
    ///
    /// # Errors
    /// [`Malformed`] if there is none.
    #[inline(always)]
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if let Some(len) = Self::FIXED_LEN
            && bytes.len() != len
        {
            return Err(Malformed);
        }
        let mut reader = KeyReader::new(bytes);
        let key = Self::take(&mut reader)?;
        reader.finish()?;
        Ok(key)
    }
}

impl<K: KeyColumn> Key for K {
    const PARTS: &'static [KeyPart] = &[K::PART];
    const FIXED_LEN: Option<usize> = K::KEY_LEN;

    #[inline(always)]
    fn take(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
        K::decode_key(key)
    }
}

/// Returns the sum of the lengths, if all are known.
const fn sum(lens: &[Option<usize>]) -> Option<usize> {
    let mut total = 0;
    let mut index = 0;
    while index < lens.len() {
        match lens[index] {
            Some(len) => total += len,
            None => return None,
        }
        index += 1;
    }
    Some(total)
}

/// How a tuple is appended, chosen at compile time.
#[derive(Clone, Copy)]
enum Append {
    /// At most 8 bytes, gathered in a register and stored at once.
    Word(usize),
    /// At most 16 bytes, likewise.
    TwoWords(usize),
    /// Column by column.
    Columns,
}

const fn choose(total: Option<usize>, all_words: bool) -> Append {
    match total {
        Some(len @ 1..=8) if all_words => Append::Word(len),
        Some(len @ 9..=16) if all_words => Append::TwoWords(len),
        _ => Append::Columns,
    }
}

macro_rules! tuple_key {
    ($($name:ident $given:ident $index:tt),+) => {
        impl<$($name: KeyColumn),+> Key for ($($name,)+) {
            const PARTS: &'static [KeyPart] = &[$($name::PART),+];
            const FIXED_LEN: Option<usize> = sum(&[$($name::KEY_LEN),+]);

            #[inline(always)]
            fn take(key: &mut KeyReader<'_>) -> Result<Self, Malformed> {
                Ok(($($name::decode_key(key)?,)+))
            }
        }

        impl<$($name: KeyColumn, $given: AsKeyColumn<$name>),+> AsKey<($($name,)+)> for ($($given,)+) {
            #[inline(always)]
            fn append_key(&self, key: &mut KeyBuf) {
                match const { choose(sum(&[$($name::KEY_LEN),+]), $($name::IS_WORD)&&+) } {
                    // A reader loads the key's slice as one word: one store of that size is forwarded to it at once.
                    Append::Word(len) => {
                        let mut word = 0u64;
                        $(word = word.unbounded_shl(8 * $name::KEY_LEN.unwrap_or(0) as u32) | self.$index.column_bits();)+
                        key.append_part((word << (64 - 8 * len)).to_be_bytes(), len);
                    }
                    Append::TwoWords(len) => {
                        let mut words = 0u128;
                        $(words = words << (8 * $name::KEY_LEN.unwrap_or(0)) | u128::from(self.$index.column_bits());)+
                        key.append_part((words << (128 - 8 * len)).to_be_bytes(), len);
                    }
                    Append::Columns => {
                        $(self.$index.append_column(key);)+
                    }
                }
            }

            #[inline(always)]
            fn as_key(&self) -> Cow<'_, ($($name,)+)> {
                Cow::Owned(($(self.$index.to_column(),)+))
            }
        }
    };
}

tuple_key!(A QA 0);
tuple_key!(A QA 0, B QB 1);
tuple_key!(A QA 0, B QB 1, C QC 2);
tuple_key!(A QA 0, B QB 1, C QC 2, D QD 3);
tuple_key!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4);
tuple_key!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5);
tuple_key!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6);
tuple_key!(A QA 0, B QB 1, C QC 2, D QD 3, E QE 4, F QF 5, G QG 6, H QH 7);
