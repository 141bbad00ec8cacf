//! Ranges of keys: what a scan by range is given.

use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::{AsKey, Key, KeyBuf};

/// A range of keys `K`: `..`, `a..b`, `a..=b`, `a..`, `..b`, `..=b`, or a pair of [`Bound`]s, each bound of which is whatever
/// stands for a key in a look-up ([`AsKey`]): `"a".."b"` for `String`, `(7, "a")..=(7, "b")` for `(u32, String)`.
///
/// Any other [`RangeBounds`] is given as its two bounds: `(range.start_bound(), range.end_bound())`.
///
/// ```
/// use std::ops::Bound;
///
/// use ensilo_row::{AsKeyRange, Key};
///
/// fn bounds<K: Key>(range: impl AsKeyRange<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
///     let (low, high) = range.key_bounds();
///     (low.map(|key| key.as_bytes().to_vec()), high.map(|key| key.as_bytes().to_vec()))
/// }
/// assert_eq!(bounds::<String>("a".."b"), bounds::<String>("a".to_owned().."b".to_owned()));
/// assert_eq!(bounds::<(u32, String)>((7, "a")..), (Bound::Included(b"\0\0\0\x07a\0".to_vec()), Bound::Unbounded));
/// ```
///
/// Each bound is a whole key; the keys that begin with some columns are a [prefix](super::KeyPrefix):
/// ```compile_fail,E0277
/// # use ensilo_row::{AsKeyRange, Key};
/// # fn scan<K: Key>(range: impl AsKeyRange<K>) {}
/// scan::<(u32, String)>((7,)..(8,));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no range of keys `{K}`",
    note = "a range is `..`, `a..b`, `a..=b`, `a..`, `..b`, `..=b` or a pair of `Bound`s, of keys as a look-up takes them"
)]
pub trait AsKeyRange<K: Key> {
    /// Returns both bounds, encoded.
    fn key_bounds(&self) -> (Bound<KeyBuf>, Bound<KeyBuf>);
}

impl<K: Key> AsKeyRange<K> for RangeFull {
    #[inline(always)]
    fn key_bounds(&self) -> (Bound<KeyBuf>, Bound<KeyBuf>) {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

macro_rules! range {
    ($($range:ty),+) => {$(
        impl<K: Key, Q: AsKey<K>> AsKeyRange<K> for $range {
            #[inline]
            fn key_bounds(&self) -> (Bound<KeyBuf>, Bound<KeyBuf>) {
                (self.start_bound().map(encoded::<K, Q>), self.end_bound().map(encoded::<K, Q>))
            }
        }
    )+};
}

range!(Range<Q>, RangeInclusive<Q>, RangeFrom<Q>, RangeTo<Q>, RangeToInclusive<Q>, (Bound<Q>, Bound<Q>));

#[inline]
fn encoded<K: Key, Q: AsKey<K>>(key: &Q) -> KeyBuf {
    let mut bytes = KeyBuf::new();
    key.append_key(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds<K: Key>(range: impl AsKeyRange<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
        let (low, high) = range.key_bounds();
        (low.map(|key| key.as_bytes().to_vec()), high.map(|key| key.as_bytes().to_vec()))
    }

    #[test]
    fn every_kind_of_range_has_the_bounds_that_it_says() {
        use Bound::{Excluded, Included, Unbounded};
        let (a, b) = (b"a\0".to_vec(), b"b\0".to_vec());
        assert_eq!(bounds::<String>(..), (Unbounded, Unbounded));
        assert_eq!(bounds::<String>("a".."b"), (Included(a.clone()), Excluded(b.clone())));
        assert_eq!(bounds::<String>("a"..="b"), (Included(a.clone()), Included(b.clone())));
        assert_eq!(bounds::<String>("a"..), (Included(a.clone()), Unbounded));
        assert_eq!(bounds::<String>(.."b"), (Unbounded, Excluded(b.clone())));
        assert_eq!(bounds::<String>(..="b"), (Unbounded, Included(b.clone())));
        assert_eq!(
            bounds::<String>((Excluded("a"), Included("b"))),
            (Excluded(a.clone()), Included(b.clone()))
        );
        assert_eq!(bounds::<String>((Unbounded, Excluded("b"))), (Unbounded, Excluded(b.clone())));
        let owned = "a".to_owned().."b".to_owned();
        assert_eq!(bounds::<String>(&owned.start..&owned.end), (Included(a.clone()), Excluded(b.clone())));
        assert_eq!(bounds::<String>((owned.start_bound(), owned.end_bound())), (Included(a), Excluded(b)));
    }

    #[test]
    fn numbers_take_the_type_of_the_key() {
        assert_eq!(bounds::<u16>(1..2), bounds::<u16>(1u16..2u16));
        assert_eq!(bounds::<(u8, u16)>((1, 2)..=(1, 3)), bounds::<(u8, u16)>((1u8, 2u16)..=(1u8, 3u16)));
        assert_eq!(bounds::<(u8, String)>((1, "a")..), bounds::<(u8, String)>((1u8, "a".to_owned())..));
    }
}
