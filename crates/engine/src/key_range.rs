//! The keys of a store in parts, so that several threads walk it at once.

use std::ops::Bound;

/// Range bounds over encoded keys.
pub type KeyBounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// A part of the keys of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Where it begins.
    pub low: Bound<Vec<u8>>,
    /// Where it ends.
    pub high: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: KeyRange = KeyRange { low: Bound::Unbounded, high: Bound::Unbounded };

    /// Returns at most `parts` ranges, at least one, which have each key once, in order. They divide what lies between the smallest
    /// key and the largest one, if there are any, evenly, as numbers: how many keys there are in each, nobody knows.
    #[must_use]
    pub fn divide(ends: Option<(Vec<u8>, Vec<u8>)>, parts: usize) -> Vec<KeyRange> {
        let bounds = ends.map(|(first, last)| bounds_between(&first, &last, parts)).unwrap_or_default();
        let lows = std::iter::once(Bound::Unbounded).chain(bounds.iter().cloned().map(Bound::Included));
        let highs = bounds.iter().cloned().map(Bound::Excluded).chain([Bound::Unbounded]);
        lows.zip(highs).map(|(low, high)| KeyRange { low, high }).collect()
    }

    /// Returns the bounds as a scan takes them.
    #[must_use]
    pub fn bounds(&self) -> KeyBounds<'_> {
        (self.low.as_ref().map(Vec::as_slice), self.high.as_ref().map(Vec::as_slice))
    }
}

/// Rising bounds, fewer than `parts`, that divide the keys from `first` to `last` by the eight bytes behind what both begin with.
fn bounds_between(first: &[u8], last: &[u8], parts: usize) -> Vec<Vec<u8>> {
    let common = first.iter().zip(last).take_while(|(left, right)| left == right).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(&key[common..]).for_each(|(to, from)| *to = *from);
        u64::from_be_bytes(bytes)
    };
    let (low, high) = (number(first), number(last));
    let step = u128::from(high.saturating_sub(low));
    let mut bounds: Vec<_> = (1..parts as u128)
        .map(|part| low + (step * part / parts as u128) as u64)
        .filter(|&bound| bound > low)
        .map(|bound| [&first[..common], &bound.to_be_bytes()].concat())
        .collect();
    bounds.dedup();
    bounds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_a_few_groups_are_divided_between_the_groups() {
        let bounds = bounds_between(&[0, 1, 0, 0, 1], &[0, 2, 0, 9, 9], 8);
        assert!(bounds.iter().any(|bound| bound.starts_with(&[0, 2]) || **bound < [0, 2][..]), "{bounds:?}");
        assert_eq!(bounds.len(), 7);
    }

    #[test]
    fn one_key_is_not_divided() {
        assert!(bounds_between(b"same", b"same", 8).is_empty());
        assert!(bounds_between(b"", b"", 8).is_empty());
        assert!(bounds_between(b"a", b"b", 1).is_empty());
    }

    proptest! {
        #[test]
        fn bounds_rise_between_the_ends(
            mut ends in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 2),
            parts in 1usize..40,
        ) {
            ends.sort();
            let bounds = bounds_between(&ends[0], &ends[1], parts);
            prop_assert!(bounds.len() < parts);
            prop_assert!(bounds.is_sorted_by(|left, right| left < right), "{:?}", bounds);
            prop_assert!(bounds.iter().all(|bound| *bound > ends[0]));
        }
    }
}
