//! An end of a scan's range, as one layer sees it.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::key::{KeyTail, SUFFIX, class_of};

/// One end of a range of keys, from some layer on.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Edge<'b> {
    /// There is no end within this layer.
    Open,
    /// The range ends at this key.
    At {
        /// What is left of it from this layer on.
        key: KeyTail<'b>,
        /// Whether the key itself belongs to the range.
        inclusive: bool,
    },
}

/// Where a slot lies with regard to an edge.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Side {
    /// Within the range, with all keys behind it.
    Inside,
    /// Out of the range, with all keys behind it.
    Outside,
    /// The slot and the edge have the same slice and both go on behind it.
    On,
}

impl<'b> Edge<'b> {
    pub(crate) fn new(bound: Bound<&'b [u8]>) -> Self {
        match bound {
            Bound::Unbounded => Edge::Open,
            Bound::Included(key) => Edge::At { key: KeyTail::new(key), inclusive: true },
            Bound::Excluded(key) => Edge::At { key: KeyTail::new(key), inclusive: false },
        }
    }

    /// Returns the edge's slice, or `open` if there is no edge.
    #[inline]
    pub(crate) fn slice_or(self, open: u64) -> u64 {
        match self {
            Edge::Open => open,
            Edge::At { key, .. } => key.slice(),
        }
    }

    /// Returns the edge as the layer below its slice sees it.
    #[inline]
    pub(crate) fn below(self) -> Edge<'b> {
        match self {
            Edge::Open => Edge::Open,
            Edge::At { key, inclusive } => Edge::At { key: key.below(), inclusive },
        }
    }

    /// Returns where a slot lies if this is the low end.
    #[inline]
    pub(crate) fn of_low(self, slice: u64, kind: u8) -> Side {
        self.side(slice, kind, Ordering::Greater)
    }

    /// Returns where a slot lies if this is the high end.
    #[inline]
    pub(crate) fn of_high(self, slice: u64, kind: u8) -> Side {
        self.side(slice, kind, Ordering::Less)
    }

    #[inline]
    fn side(self, slice: u64, kind: u8, inside: Ordering) -> Side {
        let Edge::At { key, inclusive } = self else { return Side::Inside };
        match (slice, class_of(kind)).cmp(&(key.slice(), key.class())) {
            Ordering::Equal if key.class() == SUFFIX => Side::On,
            Ordering::Equal if inclusive => Side::Inside,
            order if order == inside => Side::Inside,
            _ => Side::Outside,
        }
    }

    /// Returns whether a key that ends like this is in the range, if this is the low end.
    #[inline]
    pub(crate) fn admits_as_low(self, bytes: &[u8]) -> bool {
        self.admits(bytes, Ordering::Greater)
    }

    /// Returns whether a key that ends like this is in the range, if this is the high end.
    #[inline]
    pub(crate) fn admits_as_high(self, bytes: &[u8]) -> bool {
        self.admits(bytes, Ordering::Less)
    }

    #[inline]
    fn admits(self, bytes: &[u8], inside: Ordering) -> bool {
        let Edge::At { key, inclusive } = self else { return true };
        match bytes.cmp(key.bytes()) {
            Ordering::Equal => inclusive,
            order => order == inside,
        }
    }
}
