//! What a row can be looked up by: its key, or one whose texts are borrowed.

use std::borrow::Cow;

use super::escaped;
use super::{Key, KeyBuf, KeyColumn};
use crate::{ColumnValue, Text};

/// A key `K`, or what stands for one: a reference to it, or the same with `&str` in the place of each `String` or
/// [`Text`](crate::Text), so that nothing has to be allocated for a look-up: `"name"` for `String`, `(7, "name")` for
/// `(u32, String)`, in tuples of up to four columns.
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no key `{K}`",
    note = "a row is looked up by the columns of its primary key in their order, as a tuple where there are several, with `&str` for texts"
)]
pub trait AsKey<K: Key> {
    /// Appends the encoded key.
    fn append_key(&self, key: &mut KeyBuf);

    /// Returns the key itself. A text that no key can hold, since it is too long, is cut off: there is no row to be read
    /// with such a key.
    fn as_key(&self) -> Cow<'_, K>;
}

impl<K: Key> AsKey<K> for K {
    #[inline(always)]
    fn append_key(&self, key: &mut KeyBuf) {
        self.append(key);
    }

    #[inline(always)]
    fn as_key(&self) -> Cow<'_, K> {
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

impl AsKey<Vec<u8>> for &[u8] {
    #[inline]
    fn append_key(&self, key: &mut KeyBuf) {
        escaped::encode(self, key);
    }

    #[inline]
    fn as_key(&self) -> Cow<'_, Vec<u8>> {
        Cow::Owned(self.to_vec())
    }
}

/// A column that holds text: `String` and [`Text`](crate::Text).
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

impl<S: TextColumn> AsKey<S> for &str {
    #[inline]
    fn append_key(&self, key: &mut KeyBuf) {
        escaped::encode(self.as_bytes(), key);
    }

    #[inline]
    fn as_key(&self) -> Cow<'_, S> {
        Cow::Owned(S::of_text(self))
    }
}

/// What is done with one column of a tuple, by its kind.
macro_rules! column {
    (append text $name:ident $key:ident) => {
        escaped::encode($name.as_bytes(), $key)
    };
    (append column $name:ident $key:ident) => {
        $name.encode_key($key)
    };
    (own text $name:ident) => {
        $name::of_text($name)
    };
    (own column $name:ident) => {
        $name.clone()
    };
}

/// Implements a tuple with the columns of these kinds.
macro_rules! borrowed_tuple {
    (@ {$($generics:tt)*} {$($done:tt)*} column $name:ident $($rest:tt)*) => {
        borrowed_tuple!(@ {$($generics)* $name: KeyColumn,} {$($done)* ($name column $name)} $($rest)*);
    };
    (@ {$($generics:tt)*} {$($done:tt)*} text $name:ident $($rest:tt)*) => {
        borrowed_tuple!(@ {$($generics)* $name: TextColumn,} {$($done)* ($name text &str)} $($rest)*);
    };
    (@ {$($generics:tt)*} {$(($name:ident $kind:ident $borrowed:ty))*}) => {
        #[allow(non_snake_case, reason = "a column has the name of its type")]
        impl<$($generics)*> AsKey<($($name,)*)> for ($($borrowed,)*) {
            #[inline]
            fn append_key(&self, key: &mut KeyBuf) {
                let ($($name,)*) = self;
                $(column!(append $kind $name key);)*
            }

            #[inline]
            fn as_key(&self) -> Cow<'_, ($($name,)*)> {
                let ($($name,)*) = self;
                Cow::Owned(($(column!(own $kind $name),)*))
            }
        }
    };
    ($($column:tt)+) => {
        borrowed_tuple!(@ {} {} $($column)+);
    };
}

borrowed_tuple!(text A);
borrowed_tuple!(text A column B);
borrowed_tuple!(column A text B);
borrowed_tuple!(text A text B);
borrowed_tuple!(text A column B column C);
borrowed_tuple!(column A text B column C);
borrowed_tuple!(column A column B text C);
borrowed_tuple!(text A text B column C);
borrowed_tuple!(text A column B text C);
borrowed_tuple!(column A text B text C);
borrowed_tuple!(text A text B text C);
borrowed_tuple!(text A column B column C column D);
borrowed_tuple!(column A text B column C column D);
borrowed_tuple!(column A column B text C column D);
borrowed_tuple!(column A column B column C text D);
borrowed_tuple!(text A text B column C column D);
borrowed_tuple!(text A column B text C column D);
borrowed_tuple!(text A column B column C text D);
borrowed_tuple!(column A text B text C column D);
borrowed_tuple!(column A text B column C text D);
borrowed_tuple!(column A column B text C text D);
borrowed_tuple!(text A text B text C column D);
borrowed_tuple!(text A text B column C text D);
borrowed_tuple!(text A column B text C text D);
borrowed_tuple!(column A text B text C text D);
borrowed_tuple!(text A text B text C text D);

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
        assert_eq!(*borrowed.as_key(), owned);
    }

    #[test]
    fn borrowed_texts_stand_for_owned_ones() {
        let text = || "a\0text".to_owned();
        check("a\0text", text());
        check("name", Text::<8>::truncated("name"));
        check(&b"\x01\0"[..], vec![1, 0]);
        check((7, "a\0text"), (7u32, text()));
        check(("name", 7), (Text::<4>::truncated("name"), 7u8));
        check(("name", "a\0text"), (Text::<4>::truncated("name"), text()));
        check((1, 2, "a\0text", 3), (1u8, 2u16, text(), 3i64));
    }

    #[test]
    fn a_text_that_is_too_long_is_no_key_that_a_row_has() {
        let mut bytes = KeyBuf::new();
        AsKey::<Text<3>>::append_key(&"long", &mut bytes);
        assert_eq!(Text::<3>::decode(bytes.as_bytes()), Err(crate::Malformed));
    }
}
