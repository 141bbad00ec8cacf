//! The first columns of a key: what a scan by prefix is given.

use super::{Key, KeyBuf, KeyColumn};

/// The first columns of a key `K`, as a tuple: `()`, `(A,)` or `(A, B)` for `K = (A, B)`; `()` or `(K,)` for one column.
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
