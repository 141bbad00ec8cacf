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

    /// Returns the edge as the layer behind a path sees it if this is the low end; none if no key behind the path is in the range.
    pub(crate) fn behind_path_as_low(self, path: &[u8]) -> Option<Edge<'b>> {
        self.behind_path(path, Ordering::Greater)
    }

    /// Returns the same if this is the high end.
    pub(crate) fn behind_path_as_high(self, path: &[u8]) -> Option<Edge<'b>> {
        self.behind_path(path, Ordering::Less)
    }

    fn behind_path(self, path: &[u8], inside: Ordering) -> Option<Edge<'b>> {
        let Edge::At { key, inclusive } = self else { return Some(Edge::Open) };
        if key.bytes().len() > path.len() && key.bytes().starts_with(path) {
            return Some(Edge::At { key: key.behind(path.len()), inclusive });
        }
        // Keys behind the path are longer than it: where the edge ends within it they come after the edge.
        let order = if path < key.bytes() { Ordering::Less } else { Ordering::Greater };
        (order == inside).then_some(Edge::Open)
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
