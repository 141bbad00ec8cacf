//! The first columns of a key: what a scan by prefix is given.

use super::{AsKey, AsKeyColumn, Key, KeyBuf, KeyColumn};

/// The first columns of a key `K`, as a tuple: `()`, `(A,)` or `(A, B)` for `K = (A, B)`; `()` or `(K,)` for one column. Texts
/// and bytes may be borrowed as in [`AsKey`]: `("a",)`, or `(7, "a")`.
///
/// A prefix has no more columns than its key has, and is a tuple also where it is one column:
/// ```
/// # use ensilo_row::{Key, KeyPrefix};
/// # fn scan<K: Key>(prefix: impl KeyPrefix<K>) {}
/// scan::<(u32, String)>(());
/// scan::<(u32, String)>((7,));
/// scan::<(u32, String)>((7, "name"));
/// ```
/// ```compile_fail,E0277
/// # use ensilo_row::{Key, KeyPrefix};
/// # fn scan<K: Key>(prefix: impl KeyPrefix<K>) {}
/// scan::<(u32, String)>((7, "name", 1));
/// ```
/// ```compile_fail,E0277
/// # use ensilo_row::{Key, KeyPrefix};
/// # fn scan<K: Key>(prefix: impl KeyPrefix<K>) {}
/// scan::<(u32, String)>(7);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no prefix of the key `{K}`",
    note = "a prefix is a tuple of the key's first columns, in their order and at most as many; that of one column is written `(a,)`"
)]
pub trait KeyPrefix<K: Key> {
    /// Appends the encoded columns.
    fn append_prefix(&self, key: &mut KeyBuf);
}

impl<K: Key> KeyPrefix<K> for () {
    #[inline(always)]
    fn append_prefix(&self, _key: &mut KeyBuf) {}
}

impl<C: KeyColumn, Q: AsKeyColumn<C>> KeyPrefix<C> for (Q,) {
    #[inline(always)]
    fn append_prefix(&self, key: &mut KeyBuf) {
        self.0.append_column(key);
    }
}

macro_rules! prefix {
    ($($name:ident $given:ident)+ $(, $rest:ident)*) => {
        impl<$($name: KeyColumn, $given: AsKeyColumn<$name>,)+ $($rest: KeyColumn),*>
            KeyPrefix<($($name,)+ $($rest,)*)> for ($($given,)+)
        {
            #[inline(always)]
            fn append_prefix(&self, key: &mut KeyBuf) {
                AsKey::<($($name,)+)>::append_key(self, key);
            }
        }
    };
}

/// Implements the prefixes of a tuple, of which the part in brackets is the first.
macro_rules! prefixes {
    ([$($name:ident $given:ident)+]) => {
        prefix!($($name $given)+);
    };
    ([$($name:ident $given:ident)+] $next:ident $next_given:ident $($rest:ident $rest_given:ident)*) => {
        prefix!($($name $given)+, $next $(, $rest)*);
        prefixes!([$($name $given)+ $next $next_given] $($rest $rest_given)*);
    };
}

prefixes!([A QA]);
prefixes!([A QA] B QB);
prefixes!([A QA] B QB C QC);
prefixes!([A QA] B QB C QC D QD);
prefixes!([A QA] B QB C QC D QD E QE);
prefixes!([A QA] B QB C QC D QD E QE F QF);
prefixes!([A QA] B QB C QC D QD E QE F QF G QG);
prefixes!([A QA] B QB C QC D QD E QE F QF G QG H QH);

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
        type Five = (u16, String, u8, Vec<u8>, String);
        let owned = (7, text.clone(), 8, vec![0], text);
        assert_eq!(encoded::<Five>((7, "a\0b")), encoded::<Five>((7, owned.1.clone())));
        assert_eq!(encoded::<Five>((7, "a\0b", 8, b"\0")), encoded::<Five>((7, owned.1.clone(), 8, vec![0])));
        assert_eq!(encoded::<Five>((7, "a\0b", 8, b"\0", "a\0b")), encoded::<Five>(owned));
    }
}
