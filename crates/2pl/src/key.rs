//! Keys as locks name them: a store and the bytes of a key, short ones in place.

use std::cmp::Ordering;
use std::fmt;

use ensilo_engine::TableId;

/// The longest key that is kept in place.
const INLINE_MAX: usize = 30;

/// A key of a store.
#[derive(Clone)]
pub(crate) struct LockKey {
    table: TableId,
    bytes: KeyBytes,
}

#[derive(Clone)]
enum KeyBytes {
    Inline { len: u8, bytes: [u8; INLINE_MAX] },
    Heap(Box<[u8]>),
}

impl LockKey {
    #[inline]
    pub(crate) fn new(table: TableId, key: &[u8]) -> Self {
        let bytes = if key.len() <= INLINE_MAX {
            let mut bytes = [0; INLINE_MAX];
            bytes[..key.len()].copy_from_slice(key);
            KeyBytes::Inline { len: key.len() as u8, bytes }
        } else {
            KeyBytes::Heap(key.into())
        };
        LockKey { table, bytes }
    }

    pub(crate) fn table(&self) -> TableId {
        self.table
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            KeyBytes::Inline { len, bytes } => &bytes[..usize::from(*len)],
            KeyBytes::Heap(bytes) => bytes,
        }
    }

    #[inline]
    pub(crate) fn is(&self, table: TableId, key: &[u8]) -> bool {
        self.table == table && self.bytes() == key
    }

    /// Returns a number that differs between most keys.
    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        let (words, rest) = self.bytes().as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
        words.fold(0, |hash: u64, word| (hash.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

impl Ord for LockKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.table.cmp(&other.table).then_with(|| self.bytes().cmp(other.bytes()))
    }
}

impl PartialOrd for LockKey {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for LockKey {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.is(other.table, other.bytes())
    }
}

impl Eq for LockKey {}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockKey").field(&self.table.0).field(&self.bytes()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_by_store_and_bytes_whether_in_place_or_not() {
        let long = [b'b'; INLINE_MAX + 1];
        let keys = [(1, &b""[..]), (1, b"a"), (1, &long[..INLINE_MAX]), (1, &long), (1, b"c"), (2, b"")];
        let keys = keys.map(|(table, key)| LockKey::new(TableId(table), key));
        assert!(keys.is_sorted_by(|left, right| left < right), "{keys:?}");
        assert_eq!(keys[3], keys[3].clone());
        assert!(keys[3].is(TableId(1), &long) && !keys[3].is(TableId(2), &long));
    }
}
