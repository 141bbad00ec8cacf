//! What a row can be looked up by: its key, or one whose texts and bytes are borrowed.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::{AsKeyColumn, Key, KeyBuf, KeyColumn, TextColumn};
use crate::Text;

/// A key `K`, or what stands for one: a reference to it, or the same with `&str` in the place of each `String` or
/// [`Text`](crate::Text) and `&[u8]` in the place of each `Vec<u8>`, so that nothing has to be allocated for a look-up:
/// `"name"` for `String`, `(7, "name")` for `(u32, String)`. [`AsKeyColumn`] has all that stands for a column.
///
/// ```
/// use ensilo_row::{AsKey, Key, KeyBuf, Text};
///
/// fn encoded<K: Key>(key: impl AsKey<K>) -> Vec<u8> {
///     let mut bytes = KeyBuf::new();
///     key.append_key(&mut bytes);
///     bytes.as_bytes().to_vec()
/// }
/// assert_eq!(encoded::<String>("name"), encoded::<String>("name".to_owned()));
/// let owned: (u32, Text<8>) = (7, Text::truncated("name"));
/// assert_eq!(encoded::<(u32, Text<8>)>((7, "name")), encoded::<(u32, Text<8>)>(&owned));
/// ```
///
/// The columns are those of the key, in its order, and a borrowed text stands for nothing but a text:
/// ```compile_fail,E0277
/// # use ensilo_row::{AsKey, Key};
/// # fn look_up<K: Key>(key: impl AsKey<K>) {}
/// look_up::<(u32, String)>(("name", 7));
/// ```
/// ```compile_fail,E0277
/// # use ensilo_row::{AsKey, Key};
/// # fn look_up<K: Key>(key: impl AsKey<K>) {}
/// look_up::<(u32, String)>((7, "name", 1));
/// ```
/// ```compile_fail,E0277
/// # use ensilo_row::{AsKey, Key};
/// # fn look_up<K: Key>(key: impl AsKey<K>) {}
/// look_up::<u32>("name");
/// ```
/// ```compile_fail,E0277
/// # use ensilo_row::{AsKey, Key};
/// # fn look_up<K: Key>(key: impl AsKey<K>) {}
/// look_up::<String>(b"name");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key `{K}`",
    note = "a key is given by its columns in their order, as a tuple where there are several, with `&str` for texts and `&[u8]` for bytes"
)]
pub trait AsKey<K: Key> {
    /// Appends the encoded key.
    fn append_key(&self, key: &mut KeyBuf);

    /// Returns the key itself. A text that no key can hold, since it is too long, is cut off: there is no row to be read
    /// with such a key.
    fn as_key(&self) -> Cow<'_, K>;
}

impl<C: KeyColumn> AsKey<C> for C {
    #[inline(always)]
    fn append_key(&self, key: &mut KeyBuf) {
        self.encode_key(key);
    }

    #[inline(always)]
    fn as_key(&self) -> Cow<'_, C> {
        Cow::Borrowed(self)
    }
}

impl<K: Key> AsKey<K> for &K {
    #[inline(always)]
    fn append_key(&self, key: &mut KeyBuf) {
        (*self).append(key);
    }

    #[inline(always)]
    fn as_key(&self) -> Cow<'_, K> {
        Cow::Borrowed(self)
    }
}

/// Makes keys of one column of what stands for that column.
macro_rules! borrowed_column {
    ($([$($generics:tt)*] $borrowed:ty => $column:ty;)+) => {$(
        impl<$($generics)*> AsKey<$column> for $borrowed {
            #[inline]
            fn append_key(&self, key: &mut KeyBuf) {
                AsKeyColumn::<$column>::append_column(self, key);
            }

            #[inline]
            fn as_key(&self) -> Cow<'_, $column> {
                Cow::Owned(AsKeyColumn::<$column>::to_column(self))
            }
        }
    )+};
}

borrowed_column! {
    [S: TextColumn] &str => S;
    [const N: usize] &String => Text<N>;
    [S: TextColumn] Reverse<&str> => Reverse<S>;
    [S: TextColumn] Reverse<&String> => Reverse<S>;
    [] &[u8] => Vec<u8>;
    [const N: usize] &[u8; N] => Vec<u8>;
    [] Reverse<&[u8]> => Reverse<Vec<u8>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that both stand for the same key.
    fn check<K: Key + PartialEq + std::fmt::Debug>(borrowed: impl AsKey<K>, owned: K) {
        let bytes = |key: &dyn Fn(&mut KeyBuf)| {
            let mut bytes = KeyBuf::new();
            key(&mut bytes);
            bytes.as_bytes().to_vec()
        };
        let own = bytes(&|bytes| owned.append(bytes));
        assert_eq!(bytes(&|bytes| borrowed.append_key(bytes)), own);
        assert_eq!(bytes(&|bytes| owned.append_key(bytes)), own);
        assert_eq!(bytes(&|bytes| AsKey::<K>::append_key(&&owned, bytes)), own);
        assert_eq!(*borrowed.as_key(), owned);
        assert_eq!(*owned.as_key(), owned);
        assert_eq!(K::decode(&own), Ok(owned));
    }

    fn text() -> String {
        "a\0text".to_owned()
    }

    #[test]
    fn borrowed_texts_and_bytes_stand_for_owned_ones() {
        check("a\0text", text());
        check("name", Text::<8>::truncated("name"));
        check(&"name".to_owned(), Text::<8>::truncated("name"));
        check(Reverse(&"name".to_owned()), Reverse(Text::<8>::truncated("name")));
        check(Reverse(&text()), Reverse(text()));
        check(&b"\x01\0"[..], vec![1, 0]);
        check(b"\x01\0", vec![1, 0]);
        check(Reverse("a\0text"), Reverse(text()));
        check(Reverse(&b"\x01\0"[..]), Reverse(vec![1, 0]));
    }

    #[test]
    fn they_stand_for_any_column_of_a_tuple() {
        check(("a\0text",), (text(),));
        check((7, "a\0text"), (7u32, text()));
        check(("name", 7), (Text::<4>::truncated("name"), 7u8));
        check(("name", "a\0text"), (Text::<4>::truncated("name"), text()));
        check((&text(), &vec![1, 0]), (text(), vec![1u8, 0]));
        check((7, &"name".to_owned()), (7u32, Text::<8>::truncated("name")));
        check(("a\0text", None, &b"\0"[..]), (text(), None::<u32>, vec![0]));
        check((1, 2, "a\0text", 3), (1u8, 2u16, text(), 3i64));
        check((Reverse("a\0text"), 1, b"\0", 2, 3), (Reverse(text()), 1u8, vec![0u8], 2u16, 3i64));
        check(("a\0text", 1, "b", 2, "c", 3), (text(), 1u8, "b".to_owned(), 2u16, "c".to_owned(), 3i64));
        check((1, 2, 3, 4, 5, 6, "a\0text"), (1u8, 2u8, 3u8, 4u8, 5u8, 6u8, text()));
        check((1, 2, 3, 4, 5, 6, 7, "a\0text"), (1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u64, text()));
    }

    #[test]
    fn a_text_that_is_too_long_is_no_key_that_a_row_has() {
        let mut bytes = KeyBuf::new();
        AsKey::<Text<3>>::append_key(&"long", &mut bytes);
        assert_eq!(Text::<3>::decode(bytes.as_bytes()), Err(crate::Malformed));
    }
}
