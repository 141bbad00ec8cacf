//! One column of what a row can be looked up by: a value of the column, or a borrowed text or bytes.

use std::cmp::Reverse;

use super::{KeyBuf, KeyColumn, escaped};
use crate::{ColumnValue, Text};

/// A column `C` of a key, or what stands for one: `&str` and `&String` for `String` and [`Text`], `&[u8]` and `&[u8; N]` for `Vec<u8>`, and
/// [`Reverse`] of one of these where the column is descending.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no column `{C}` of a key",
    note = "a column of a key is given by its own type, a text as `&str` and bytes as `&[u8]` as well"
)]
pub trait AsKeyColumn<C: KeyColumn> {
    /// Returns its encoding as a number, where [`KeyColumn::IS_WORD`].
    fn column_bits(&self) -> u64;

    /// Appends its encoding.
    fn append_column(&self, key: &mut KeyBuf);

    /// Returns the column itself; a text that is too long is cut off.
    fn to_column(&self) -> C;
}

impl<C: KeyColumn> AsKeyColumn<C> for C {
    #[inline(always)]
    fn column_bits(&self) -> u64 {
        self.key_bits()
    }

    #[inline(always)]
    fn append_column(&self, key: &mut KeyBuf) {
        self.encode_key(key);
    }

    #[inline(always)]
    fn to_column(&self) -> C {
        self.clone()
    }
}

/// A column that holds text: `String` and [`Text`].
#[diagnostic::on_unimplemented(
    message = "a `&str` stands for a text, and the column is a `{Self}`",
    label = "this `&str` is given for a column `{Self}`",
    note = "a key is given by its columns in their order, each by its own type; texts as `&str` and bytes as `&[u8]` as well"
)]
pub trait TextColumn: ColumnValue {
    /// Returns the text, without its end where it is too long.
    fn of_text(text: &str) -> Self;
}

impl TextColumn for String {
    #[inline]
    fn of_text(text: &str) -> Self {
        text.to_owned()
    }
}

impl<const N: usize> TextColumn for Text<N> {
    #[inline]
    fn of_text(text: &str) -> Self {
        Text::truncated(text)
    }
}

/// Implements what stands for columns of any length, none of which is a word: the bytes that are encoded, and the column.
macro_rules! borrowed_column {
    ($([$($generics:tt)*] $borrowed:ty => $column:ty: |$this:ident| $bytes:expr, $own:expr;)+) => {$(
        impl<$($generics)*> AsKeyColumn<$column> for $borrowed {
            #[inline(always)]
            fn column_bits(&self) -> u64 {
                0
            }

            #[inline]
            fn append_column(&self, key: &mut KeyBuf) {
                let $this = self;
                escaped::encode($bytes, key);
            }

            #[inline]
            fn to_column(&self) -> $column {
                let $this = self;
                $own
            }
        }
    )+};
}

borrowed_column! {
    [S: TextColumn] &str => S: |text| text.as_bytes(), S::of_text(text);
    [S: TextColumn] &String => S: |text| text.as_bytes(), S::of_text(text);
    [] &[u8] => Vec<u8>: |bytes| bytes, bytes.to_vec();
    [const N: usize] &[u8; N] => Vec<u8>: |bytes| *bytes, bytes.to_vec();
    [] &Vec<u8> => Vec<u8>: |bytes| bytes, (*bytes).clone();
}

/// Implements the same for descending columns.
macro_rules! descending_column {
    ($([$($generics:tt)*] $borrowed:ty => $column:ty;)+) => {$(
        impl<$($generics)*> AsKeyColumn<Reverse<$column>> for Reverse<$borrowed> {
            #[inline(always)]
            fn column_bits(&self) -> u64 {
                0
            }

            #[inline]
            fn append_column(&self, key: &mut KeyBuf) {
                let start = key.len();
                AsKeyColumn::<$column>::append_column(&self.0, key);
                key.invert_from(start);
            }

            #[inline]
            fn to_column(&self) -> Reverse<$column> {
                Reverse(AsKeyColumn::<$column>::to_column(&self.0))
            }
        }
    )+};
}

descending_column! {
    [S: TextColumn] &str => S;
    [S: TextColumn] &String => S;
    [] &[u8] => Vec<u8>;
}
