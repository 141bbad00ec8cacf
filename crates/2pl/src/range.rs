//! Ranges of the keys of a store.

use std::ops::Bound;

use ensilo_engine::{KeyBounds, TableId};

use crate::key::LockKey;

/// A place between keys: before a key, or behind it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cut {
    key: LockKey,
    is_behind: bool,
}

/// The keys of a store between two places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockRange {
    low: Cut,
    high: Cut,
}

impl LockRange {
    pub(crate) fn new(table: TableId, (low, high): KeyBounds<'_>) -> Self {
        let cut = |key, is_behind| Cut { key: LockKey::new(table, key), is_behind };
        let low = match low {
            Bound::Included(key) => cut(key, false),
            Bound::Excluded(key) => cut(key, true),
            Bound::Unbounded => cut(&[], false),
        };
        let high = match high {
            Bound::Included(key) => cut(key, true),
            Bound::Excluded(key) => cut(key, false),
            Bound::Unbounded => Cut { key: LockKey::new(TableId(table.0 + 1), &[]), is_behind: false },
        };
        LockRange { low, high }
    }

    pub(crate) fn table(&self) -> TableId {
        self.low.key.table()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    pub(crate) fn contains(&self, key: &LockKey) -> bool {
        let is_low = if self.low.is_behind { self.low.key < *key } else { self.low.key <= *key };
        is_low && if self.high.is_behind { *key <= self.high.key } else { *key < self.high.key }
    }

    /// Returns whether all keys of the other range lie in this one.
    pub(crate) fn covers(&self, other: &LockRange) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// Returns whether both are of one store, without a gap between them.
    pub(crate) fn adjoins(&self, other: &LockRange) -> bool {
        // The end of a store is the start of the next one.
        self.table() == other.table() && self.low <= other.high && other.low <= self.high
    }

    /// Makes this the smallest range that covers both.
    pub(crate) fn extend_over(&mut self, other: &LockRange) {
        if other.low < self.low {
            self.low = other.low.clone();
        }
        if other.high > self.high {
            self.high = other.high.clone();
        }
    }

    /// Returns what of this range lies outside another one, which it covers: the parts that are not empty. All of it without another one.
    pub(crate) fn parts_beside(
        &self,
        covered: Option<&LockRange>,
    ) -> impl Iterator<Item = LockRange> + use<> {
        let between = |low: &Cut, high: &Cut| LockRange { low: low.clone(), high: high.clone() };
        let parts = match covered {
            None => [Some(self.clone()), None],
            Some(covered) => {
                // Also where an earlier growth was granted in part of the stripes: who was refused locks nothing any more.
                debug_assert!(self.covers(covered));
                [Some(between(&self.low, &covered.low)), Some(between(&covered.high, &self.high))]
            }
        };
        parts.into_iter().flatten().filter(|part| !part.is_empty())
    }

    /// Returns the bounds of a range that is not empty, as an ordered map takes them.
    pub(crate) fn bounds(&self) -> (Bound<&LockKey>, Bound<&LockKey>) {
        let low = match &self.low {
            Cut { key, is_behind: false } => Bound::Included(key),
            Cut { key, is_behind: true } => Bound::Excluded(key),
        };
        let high = match &self.high {
            Cut { key, is_behind: false } => Bound::Excluded(key),
            Cut { key, is_behind: true } => Bound::Included(key),
        };
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound::{Excluded, Included, Unbounded};

    use super::*;

    const TABLE: TableId = TableId(3);

    fn range(low: Bound<&[u8]>, high: Bound<&[u8]>) -> LockRange {
        LockRange::new(TABLE, (low, high))
    }

    #[test]
    fn a_range_contains_what_lies_within_its_bounds() {
        let key = |key: &[u8]| LockKey::new(TABLE, key);
        let half_open = range(Excluded(b"a"), Included(b"c"));
        let contained = [b"a", b"b", b"c", b"d"].map(|bytes| half_open.contains(&key(bytes)));
        assert_eq!(contained, [false, true, true, false]);
        let all = range(Unbounded, Unbounded);
        assert!(all.contains(&key(b"")) && all.contains(&key(&[255; 40])));
        let others = [2, 4].map(|table| LockKey::new(TableId(table), b""));
        assert!(others.iter().all(|key| !all.contains(key)));
    }

    #[test]
    fn a_range_is_empty_when_no_key_can_lie_in_it() {
        for (low, high) in [
            (Included(&b"b"[..]), Included(&b"a"[..])),
            (Excluded(b"a"), Included(b"a")),
            (Excluded(b"a"), Excluded(b"a")),
            (Unbounded, Excluded(b"")),
        ] {
            assert!(range(low, high).is_empty(), "{low:?} {high:?}");
        }
        assert!(!range(Included(b"a"), Included(b"a")).is_empty());
        assert!(!range(Unbounded, Unbounded).is_empty());
    }

    #[test]
    fn what_lies_beside_a_covered_range_is_in_two_parts_at_most() {
        let all = range(Included(b"a"), Included(b"f"));
        let beside = |covered: &LockRange| all.parts_beside(Some(covered)).collect::<Vec<_>>();
        let both = [range(Included(b"a"), Excluded(b"c")), range(Excluded(b"d"), Included(b"f"))];
        assert_eq!(beside(&range(Included(b"c"), Included(b"d"))), both);
        assert_eq!(beside(&range(Included(b"a"), Excluded(b"c"))), [range(Included(b"c"), Included(b"f"))]);
        assert!(beside(&all).is_empty());
        assert_eq!(all.parts_beside(None).collect::<Vec<_>>(), std::slice::from_ref(&all));
    }

    #[test]
    fn ranges_adjoin_where_there_is_no_gap_between_them() {
        let middle = range(Included(b"b"), Included(b"d"));
        let of_next_store = LockRange::new(TableId(TABLE.0 + 1), (Unbounded, Unbounded));
        for (other, adjoins) in [
            (range(Excluded(b"d"), Included(b"f")), true),
            (range(Included(b"d"), Unbounded), true),
            (range(Included(b"c"), Included(b"c")), true),
            (range(Excluded(b"a"), Excluded(b"b")), true),
            (range(Included(b"e"), Unbounded), false),
            (range(Unbounded, Included(b"a")), false),
        ] {
            assert_eq!((middle.adjoins(&other), other.adjoins(&middle)), (adjoins, adjoins), "{other:?}");
        }
        assert!(!range(Unbounded, Unbounded).adjoins(&of_next_store));
    }

    #[test]
    fn a_range_grows_over_another_one() {
        let mut grown = range(Included(b"b"), Excluded(b"c"));
        let other = range(Included(b"a"), Included(b"c"));
        assert!(!grown.covers(&other) && other.covers(&grown));
        grown.extend_over(&other);
        assert_eq!(grown, other);
        grown.extend_over(&range(Unbounded, Unbounded));
        assert_eq!(grown.bounds().0, Bound::Included(&LockKey::new(TABLE, b"")));
    }
}
