//! The first columns of a key: what a scan by prefix is given.

use super::{Key, KeyBuf, KeyColumn, TextColumn, escaped};

/// The first columns of a key `K`, as a tuple: `()`, `(A,)` or `(A, B)` for `K = (A, B)`; `()` or `(K,)` for one column. A
/// text that is the last of one or two of them may be a `&str`: `("a",)`, or `(7, "a")`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no prefix of the key `{K}`",
    note = "a prefix is a tuple of the key's first columns; that of one column is written `(a,)`"
)]
pub trait KeyPrefix<K: Key> {
    /// Appends the encoded columns.
    fn append_prefix(&self, key: &mut KeyBuf);
}

impl<K: Key> KeyPrefix<K> for () {
    #[inline(always)]
    fn append_prefix(&self, _key: &mut KeyBuf) {}
}

impl<K: KeyColumn> KeyPrefix<K> for (K,) {
    #[inline(always)]
    fn append_prefix(&self, key: &mut KeyBuf) {
        self.append(key);
    }
}

macro_rules! prefix {
    ($($name:ident)+ $(, $rest:ident)*) => {
        impl<$($name: KeyColumn,)+ $($rest: KeyColumn),*> KeyPrefix<($($name,)+ $($rest,)*)> for ($($name,)+) {
            #[inline(always)]
            fn append_prefix(&self, key: &mut KeyBuf) {
                self.append(key);
            }
        }
    };
}

/// Implements the prefixes of a tuple, of which the part in brackets is the first.
macro_rules! prefixes {
    ([$($name:ident)+]) => {
        prefix!($($name)+);
    };
    ([$($name:ident)+] $next:ident $($rest:ident)*) => {
        prefix!($($name)+, $next $(, $rest)*);
        prefixes!([$($name)+ $next] $($rest)*);
    };
}

prefixes!([A]);
prefixes!([A] B);
prefixes!([A] B C);
prefixes!([A] B C D);
prefixes!([A] B C D E);
prefixes!([A] B C D E F);
prefixes!([A] B C D E F G);
prefixes!([A] B C D E F G H);

impl<S: TextColumn> KeyPrefix<S> for (&str,) {
    #[inline]
    fn append_prefix(&self, key: &mut KeyBuf) {
        escaped::encode(self.0.as_bytes(), key);
    }
}

/// Implements prefixes that are or end with a borrowed text, of keys with so many columns behind it.
macro_rules! text_prefixes {
    ($($rest:ident)*) => {
        impl<S: TextColumn, $($rest: KeyColumn),*> KeyPrefix<(S, $($rest,)*)> for (&str,) {
            #[inline]
            fn append_prefix(&self, key: &mut KeyBuf) {
                escaped::encode(self.0.as_bytes(), key);
            }
        }

        impl<A: KeyColumn, S: TextColumn, $($rest: KeyColumn),*> KeyPrefix<(A, S, $($rest,)*)> for (A, &str) {
            #[inline]
            fn append_prefix(&self, key: &mut KeyBuf) {
                self.0.encode_key(key);
                escaped::encode(self.1.as_bytes(), key);
            }
        }
    };
}

text_prefixes!();
text_prefixes!(C);
text_prefixes!(C D);
text_prefixes!(C D E);
text_prefixes!(C D E F);
text_prefixes!(C D E F G);
text_prefixes!(C D E F G H);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;

    fn encoded<K: Key>(prefix: impl KeyPrefix<K>) -> Vec<u8> {
        let mut key = KeyBuf::new();
        prefix.append_prefix(&mut key);
        key.as_bytes().to_vec()
    }

    #[test]
    fn a_prefix_may_have_a_borrowed_text() {
        let (text, name) = ("a\0b".to_owned(), Text::<8>::truncated("name"));
        assert_eq!(encoded::<String>(("a\0b",)), encoded::<String>((text.clone(),)));
        assert_eq!(encoded::<(Text<8>, u32)>(("name",)), encoded::<(Text<8>, u32)>((name,)));
        assert_eq!(encoded::<(u16, String, u8)>((7, "a\0b")), encoded::<(u16, String, u8)>((7, text)));
    }
}
