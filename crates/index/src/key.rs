//! A key as Masstree sees it: 8 bytes at a time.
//!
//! # Terms
//! - **layer**: a B+-tree over one 8-byte slice of the keys; the layer at depth `d` sorts by bytes `8d..8d+8`.
//! - **slice**: these bytes as a big-endian number, filled with zero bytes where the key ends.
//! - **kind**: how a slot goes on behind its slice. A key that ends within the slice has its length there, 0 to 8; one
//!   that goes on has [`SUFFIX`] if the slot holds its tail, [`LAYER`] if the slot holds a tree of tails, [`PATH`] if it holds
//!   what all these tails begin with, and a tree of what comes behind.
//! - **path**: whole slices that all keys behind a slot have in common, kept in the slot instead of a layer for each: see `path`.
//! - **class**: the kind as far as order goes: 0 to 8, or 9 for all that goes on. Slots are sorted by slice, then class;
//!   a shorter key comes before a longer one with the same slice bytes, since its slice is filled with zeros.

/// The kind of a slot with one key, which goes on behind the slice.
pub(crate) const SUFFIX: u8 = 9;
/// The kind of a slot that stands for all keys which go on behind the slice.
pub(crate) const LAYER: u8 = 10;
/// The kind of a slot that stands for the same, where all these keys share a path in front of the layer.
pub(crate) const PATH: u8 = 11;

/// The bytes of a key from some depth on.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct KeyTail<'k> {
    bytes: &'k [u8],
    slice: u64,
}

impl<'k> KeyTail<'k> {
    #[inline]
    pub(crate) fn new(bytes: &'k [u8]) -> Self {
        KeyTail { bytes, slice: slice_of(bytes) }
    }

    /// Returns all of it.
    #[inline]
    pub(crate) fn bytes(self) -> &'k [u8] {
        self.bytes
    }

    /// Returns the first 8 bytes as a number.
    #[inline]
    pub(crate) fn slice(self) -> u64 {
        self.slice
    }

    /// Its length if that is at most 8, otherwise [`SUFFIX`].
    #[inline]
    pub(crate) fn class(self) -> u8 {
        self.bytes.len().min(SUFFIX as usize) as u8
    }

    /// Returns whether it goes on behind the slice.
    #[inline]
    pub(crate) fn goes_on(self) -> bool {
        self.bytes.len() > 8
    }

    /// Returns what comes behind the slice. Panics if it does not go on.
    #[inline]
    pub(crate) fn suffix(self) -> &'k [u8] {
        &self.bytes[8..]
    }

    /// Returns the same key one layer down.
    #[inline]
    pub(crate) fn below(self) -> KeyTail<'k> {
        self.behind(8)
    }

    /// Returns the same key behind so many bytes. Panics if it is shorter.
    #[inline]
    pub(crate) fn behind(self, len_bytes: usize) -> KeyTail<'k> {
        KeyTail::new(&self.bytes[len_bytes..])
    }
}

/// Returns the class of a kind.
#[inline]
pub(crate) fn class_of(kind: u8) -> u8 {
    kind.min(SUFFIX)
}

/// Returns whether a slot of this kind leads to a layer.
#[inline]
pub(crate) fn leads_to_a_layer(kind: u8) -> bool {
    kind >= LAYER
}

/// Returns whether a slot of this kind has bytes in its node's bag: a suffix or a path.
#[inline]
pub(crate) fn has_bytes(kind: u8) -> bool {
    kind == SUFFIX || kind == PATH
}

/// Returns the first 8 bytes as a big-endian number, short ones filled with zeros at the end.
#[inline]
pub(crate) fn slice_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => short_slice_of(bytes),
    }
}

/// Fewer than 8 bytes: two loads that overlap, moved into place.
#[inline]
fn short_slice_of(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(head), Some(tail)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        let head = u64::from(u32::from_be_bytes(*head)) << 32;
        let tail = u64::from(u32::from_be_bytes(*tail)) << (64 - 8 * len);
        head | tail
    } else {
        bytes.iter().enumerate().fold(0, |slice, (place, &byte)| slice | u64::from(byte) << (56 - 8 * place))
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn slice_and_class_sort_like_the_bytes_of_short_keys(
            a in prop::collection::vec(0u8..3, 0..=8),
            b in prop::collection::vec(0u8..3, 0..=8),
        ) {
            let (x, y) = (KeyTail::new(&a), KeyTail::new(&b));
            prop_assert_eq!((x.slice(), x.class()).cmp(&(y.slice(), y.class())), a.cmp(&b));
        }

        #[test]
        fn the_slice_is_the_padded_bytes(a in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut padded = [0; 8];
            let len = a.len().min(8);
            padded[..len].copy_from_slice(&a[..len]);
            prop_assert_eq!(slice_of(&a), u64::from_be_bytes(padded));
        }
    }
}
