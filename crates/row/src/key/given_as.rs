//! Which keys may be given as what, so that the compiler finds the one type that a look-up of no or untyped keys can mean.

use std::cmp::Reverse;

use super::KeyColumn;
use crate::Text;

/// A key that look-ups of many take as `Q`s: as itself, and with borrowed texts and bytes as in [`AsKey`](super::AsKey).
///
/// It says of the key what [`AsKey`](super::AsKey) says of what is given, so that the compiler can go from the one to the other: where no
/// column is a text or bytes, there is one such `Q`, and `get_many(tx, &[])` or `get_many(tx, &[id.into()])` need not name it. That is why
/// it leaves out references to keys.
///
/// ```
/// use ensilo_row::{AsKey, GivenAs, Key};
///
/// fn count<K: Key + GivenAs<Q>, Q: AsKey<K>>(keys: &[Q]) -> usize {
///     keys.len()
/// }
/// assert_eq!(count::<(u32, i64), _>(&[]), 0);
/// assert_eq!(count::<u64, _>(&[7u32.into()]), 1);
/// assert_eq!(count::<(u32, String), _>(&[(7, "a"), (7, "b")]), 2);
/// ```
///
/// A key with a text is given in more than one way, and its type has to be named: `get_many::<String>(tx, &[])`.
/// ```compile_fail,E0283
/// # use ensilo_row::{AsKey, GivenAs, Key};
/// # fn count<K: Key + GivenAs<Q>, Q: AsKey<K>>(keys: &[Q]) -> usize { keys.len() }
/// count::<String, _>(&[]);
/// ```
/// ```compile_fail,E0308
/// # use ensilo_row::{AsKey, GivenAs, Key};
/// # fn count<K: Key + GivenAs<Q>, Q: AsKey<K>>(keys: &[Q]) -> usize { keys.len() }
/// count::<u32, _>(&["a"]);
/// ```
#[diagnostic::on_unimplemented(
    message = "keys `{Self}` are not given as `{Q}`",
    label = "this is a list of `{Q}`",
    note = "a key is given by its columns in their order, as a tuple where there are several, with `&str` for texts and `&[u8]` for bytes"
)]
pub trait GivenAs<Q> {}

impl<C: KeyColumn> GivenAs<C> for C {}

impl GivenAs<&str> for String {}
impl GivenAs<&String> for String {}
impl<const N: usize> GivenAs<&str> for Text<N> {}
impl<const N: usize> GivenAs<&String> for Text<N> {}
impl GivenAs<&[u8]> for Vec<u8> {}
impl<const N: usize> GivenAs<&[u8; N]> for Vec<u8> {}
impl GivenAs<&Vec<u8>> for Vec<u8> {}
impl GivenAs<Reverse<&str>> for Reverse<String> {}
impl<const N: usize> GivenAs<Reverse<&str>> for Reverse<Text<N>> {}
impl GivenAs<Reverse<&String>> for Reverse<String> {}
impl<const N: usize> GivenAs<Reverse<&String>> for Reverse<Text<N>> {}
impl GivenAs<Reverse<&[u8]>> for Reverse<Vec<u8>> {}

macro_rules! tuple {
    ($($name:ident $given:ident)+) => {
        impl<$($name: KeyColumn + GivenAs<$given>, $given),+> GivenAs<($($given,)+)> for ($($name,)+) {}
    };
}

tuple!(A QA);
tuple!(A QA B QB);
tuple!(A QA B QB C QC);
tuple!(A QA B QB C QC D QD);
tuple!(A QA B QB C QC D QD E QE);
tuple!(A QA B QB C QC D QD E QE F QF);
tuple!(A QA B QB C QC D QD E QE F QF G QG);
tuple!(A QA B QB C QC D QD E QE F QF G QG H QH);
