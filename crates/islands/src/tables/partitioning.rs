//! Which instance has which rows of a table.
//!
//! Rows are placed by the first columns of their primary key, as the key's bytes have them. They have the order of the values, and no value is
//! encoded as the beginning of another one (see `ensilo_row`'s keys): so where the columns end is found from the front.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Bound;

use crc_fast::CrcAlgorithm;
use ensilo::ColumnType;
use ensilo::row::{Key, KeyBuf, KeyPart, KeyPrefix};
use serde::{Deserialize, Serialize};

use super::statement::Range;
use crate::recorded::PartitionKey;

/// Which instance has which rows of a table with the primary key `K`.
///
/// It is stored with the table and stays as it is, as the number of instances does. [`Redistribution`](super::Redistribution) copies the tables of a
/// database that is closed to another one, with another partitioning or another number of instances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partitioning<K> {
    pub(super) any: AnyPartitioning,
    key: PhantomData<fn() -> K>,
}

/// A [`Partitioning`] of any table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AnyPartitioning {
    /// By the hash of the first columns of the key.
    Hash { columns: u8 },
    /// Each instance but the first one has the rows from one of these keys on.
    Ranges { from: Vec<Vec<u8>> },
    /// Every instance has every row.
    Replicated,
}

/// Where a row, or a range, is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Places {
    One(u16),
    /// At all of these, from the first one up to and with the second one.
    Several(u16, u16),
    /// At each instance the same.
    Everywhere,
}

impl<K: Key> Partitioning<K> {
    /// Spreads rows over the instances by a hash of the whole primary key, as [`hash_of_first`](Self::hash_of_first) does with all of its columns.
    #[must_use]
    pub fn hash() -> Self {
        Self::hash_of_first(K::PARTS.len())
    }

    /// Spreads rows by a hash of the first columns of the primary key: those that have these in common are at one instance, and ranges of them are
    /// read there alone.
    ///
    /// That holds for several tables together: rows of any tables are at one instance if the values of the columns that decide are the same, and of
    /// the same types. So the orders of a customer, with the customer as the first column of their key, are where a customer is whose key is that
    /// column.
    ///
    /// # Panics
    /// When the key has not so many columns, or for none.
    #[must_use]
    pub fn hash_of_first(columns: usize) -> Self {
        assert!((1..=K::PARTS.len()).contains(&columns), "the key has {} columns", K::PARTS.len());
        Self::of(AnyPartitioning::Hash { columns: columns as u8 })
    }

    /// Gives each instance but the first one the rows from one of these beginnings of keys on, in their order, and the first one those before; so
    /// there is one beginning less than instances. A beginning is a tuple of the first columns of a key: `ranges([(100,), (200,)])` for three
    /// instances.
    ///
    /// # Panics
    /// When one of them is not after the one before.
    #[must_use]
    pub fn ranges<B: KeyPrefix<K>>(beginnings: impl IntoIterator<Item = B>) -> Self {
        let encoded = |beginning: B| {
            let mut key = KeyBuf::new();
            beginning.append_prefix(&mut key);
            key.as_bytes().to_vec()
        };
        let from: Vec<Vec<u8>> = beginnings.into_iter().map(encoded).collect();
        assert!(from.is_sorted_by(|first, second| first < second), "each beginning is after the one before");
        Self::of(AnyPartitioning::Ranges { from })
    }

    /// Keeps every row at every instance: what is read often and written rarely. It is read at any instance, and each write is carried out at all of
    /// them.
    #[must_use]
    pub fn replicated() -> Self {
        Self::of(AnyPartitioning::Replicated)
    }

    fn of(any: AnyPartitioning) -> Self {
        Partitioning { any, key: PhantomData }
    }
}

impl fmt::Display for AnyPartitioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyPartitioning::Hash { columns } => write!(f, "hash_of_first({columns})"),
            AnyPartitioning::Ranges { from } => write!(f, "ranges with {} beginnings", from.len()),
            AnyPartitioning::Replicated => f.write_str("replicated"),
        }
    }
}

impl AnyPartitioning {
    /// Returns what is wrong with it for so many instances.
    pub(super) fn problem(&self, instances: u16) -> Option<String> {
        match self {
            AnyPartitioning::Ranges { from } if from.len() + 1 != usize::from(instances) => Some(format!(
                "{instances} instances need {} beginnings of ranges, and there are {}",
                instances - 1,
                from.len()
            )),
            _ => None,
        }
    }

    /// Returns how many columns of the key decide about the place of a row.
    pub(super) fn columns(&self, parts: &[KeyPart]) -> usize {
        match self {
            AnyPartitioning::Hash { columns } => usize::from(*columns),
            AnyPartitioning::Ranges { from } => {
                let has = |beginning: &[u8], columns: &usize| {
                    first_columns(&parts[..*columns], beginning).is_some_and(|first| first == beginning)
                };
                let columns_of =
                    |beginning: &Vec<u8>| (0..=parts.len()).find(|columns| has(beginning, columns));
                from.iter().filter_map(columns_of).max().unwrap_or(0)
            }
            AnyPartitioning::Replicated => 0,
        }
    }

    /// Returns where the row with this key is.
    pub(super) fn place_of(&self, parts: &[KeyPart], key: &[u8], instances: u16) -> Places {
        match self {
            AnyPartitioning::Replicated => Places::Everywhere,
            AnyPartitioning::Ranges { from } => Places::One(last_up_to(from, key)),
            AnyPartitioning::Hash { columns } => {
                let Some(first) = first_columns(&parts[..usize::from(*columns)], key) else {
                    unreachable!("a whole key has all its columns");
                };
                Places::One(hash(first, instances))
            }
        }
    }

    /// Returns where the rows of a range of the primary key are.
    pub(super) fn places_of(&self, parts: &[KeyPart], range: &Range, instances: u16) -> Places {
        let all = Places::Several(0, instances - 1);
        match self {
            AnyPartitioning::Replicated => Places::Everywhere,
            _ if range.index.is_some() => all,
            AnyPartitioning::Ranges { from } => {
                let first = key_of(&range.low).map_or(0, |low| last_up_to(from, low));
                let last = key_of(&range.high).map_or(instances - 1, |high| {
                    if range.of_prefixes { last_of_prefix(from, high) } else { last_up_to(from, high) }
                });
                if first >= last { Places::One(first) } else { Places::Several(first, last) }
            }
            AnyPartitioning::Hash { columns } => {
                let first = |end| first_columns(&parts[..usize::from(*columns)], key_of(end)?);
                match (first(&range.low), first(&range.high)) {
                    // Whatever lies between keys with the same beginning has it as well.
                    (Some(low), Some(high)) if low == high => Places::One(hash(low, instances)),
                    _ => all,
                }
            }
        }
    }

    /// Returns the partition key of the row with this key; `None` if every instance has it.
    pub(super) fn partition_key(&self, parts: &[KeyPart], key: &[u8]) -> Option<PartitionKey> {
        match self {
            AnyPartitioning::Replicated => None,
            AnyPartitioning::Ranges { .. } => Some(PartitionKey::One(first_bytes(key, 0))),
            AnyPartitioning::Hash { columns } => {
                let first = first_columns(&parts[..usize::from(*columns)], key);
                Some(first.map_or(PartitionKey::Everywhere, |first| PartitionKey::One(hash64(first))))
            }
        }
    }

    /// Returns the partition key that stands for a range of the primary key, or of an index; `None` if every instance has its rows.
    pub(super) fn partition_key_of_range(&self, parts: &[KeyPart], range: &Range) -> Option<PartitionKey> {
        let (low, high) = (key_of(&range.low), key_of(&range.high));
        Some(match (self, low, high) {
            (AnyPartitioning::Replicated, ..) => return None,
            (AnyPartitioning::Ranges { .. }, Some(low), Some(high)) if range.index.is_none() => {
                let rest = if range.of_prefixes { 0xff } else { 0 };
                let (low, high) = (first_bytes(low, 0), first_bytes(high, rest));
                if low < high { PartitionKey::Range(low, high) } else { PartitionKey::One(low) }
            }
            (AnyPartitioning::Hash { columns }, Some(low), Some(high)) if range.index.is_none() => {
                let first = |key| first_columns(&parts[..usize::from(*columns)], key);
                match (first(low), first(high)) {
                    (Some(low), Some(high)) if low == high => PartitionKey::One(hash64(low)),
                    _ => PartitionKey::Everywhere,
                }
            }
            _ => PartitionKey::Everywhere,
        })
    }
}

fn key_of(end: &Bound<Vec<u8>>) -> Option<&[u8]> {
    match end {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

/// Returns the last instance whose range begins at this key or before.
fn last_up_to(from: &[Vec<u8>], key: &[u8]) -> u16 {
    from.partition_point(|beginning| &beginning[..] <= key) as u16
}

/// Returns the last instance whose range begins at a key that begins with this, or before.
fn last_of_prefix(from: &[Vec<u8>], prefix: &[u8]) -> u16 {
    from.partition_point(|beginning| &beginning[..] <= prefix || beginning.starts_with(prefix)) as u16
}

fn hash(bytes: &[u8], instances: u16) -> u16 {
    (hash64(bytes) % u64::from(instances)) as u16
}

fn hash64(bytes: &[u8]) -> u64 {
    crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes)
}

/// Returns the first eight bytes of a key as a number, so that numbers have the order of keys; a shorter one goes on with bytes of this value.
fn first_bytes(key: &[u8], rest: u8) -> u64 {
    let mut first = [rest; 8];
    first.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(first)
}

/// Returns the beginning of a key that has these columns, if they are all there.
pub(super) fn first_columns<'k>(parts: &[KeyPart], key: &'k [u8]) -> Option<&'k [u8]> {
    let mut rest = key;
    for part in parts {
        rest = rest.get(column_len(part, rest)?..)?;
    }
    Some(&key[..key.len() - rest.len()])
}

/// Returns how many bytes the column takes that a key begins with.
fn column_len(part: &KeyPart, key: &[u8]) -> Option<usize> {
    // The bytes of a descending column are inverted.
    let zero = if part.order.is_descending() { 0xff } else { 0 };
    let before = usize::from(part.nullable);
    if part.nullable && *key.first()? == part.order.null_byte() {
        return Some(before);
    }
    let len = match part.column_type {
        ColumnType::FixedText { .. } | ColumnType::Text | ColumnType::Bytes => {
            key.get(before..)?.iter().position(|byte| *byte == zero)? + 1
        }
        fixed => fixed.width() as usize,
    };
    Some(before + len)
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    type Long = (Option<u16>, String, Reverse<Vec<u8>>, [u8; 3], Reverse<Option<i64>>, u128);

    fn encoded(key: &impl Key) -> Vec<u8> {
        let mut bytes = KeyBuf::new();
        key.encode(&mut bytes);
        bytes.as_bytes().to_vec()
    }

    fn prefix(first: &impl KeyPrefix<Long>) -> Vec<u8> {
        let mut bytes = KeyBuf::new();
        first.append_prefix(&mut bytes);
        bytes.as_bytes().to_vec()
    }

    proptest! {
        #[test]
        fn the_first_columns_of_a_key_are_found(
            a in any::<Option<u16>>(), b in ".{0,8}", c in any::<Vec<u8>>(), d in any::<[u8; 3]>(), e in any::<Option<i64>>(), f in any::<u128>()
        ) {
            let (c, e) = (Reverse(c), Reverse(e));
            let key = encoded(&(a, b.clone(), c.clone(), d, e, f));
            let found = |columns: usize| first_columns(&Long::PARTS[..columns], &key).map(<[u8]>::to_vec);
            prop_assert_eq!(found(1), Some(prefix(&(a,))));
            prop_assert_eq!(found(2), Some(prefix(&(a, b.clone()))));
            prop_assert_eq!(found(3), Some(prefix(&(a, b.clone(), c.clone()))));
            prop_assert_eq!(found(4), Some(prefix(&(a, b.clone(), c.clone(), d))));
            prop_assert_eq!(found(5), Some(prefix(&(a, b, c, d, e))));
            prop_assert_eq!(found(6), Some(key.clone()));
            prop_assert_eq!(first_columns(Long::PARTS, &key[..key.len() - 1]), None);
        }

        #[test]
        fn partition_keys_have_the_order_of_ranges_and_tell_hashed_rows_apart(a in any::<(u8, u32)>(), b in any::<(u8, u32)>()) {
            let key = |partitioning: &Partitioning<(u8, u32)>, key| match partitioning.any.partition_key(<(u8, u32)>::PARTS, &encoded(key)) {
                Some(PartitionKey::One(key)) => key,
                other => panic!("{other:?}"),
            };
            let ranges = Partitioning::<(u8, u32)>::ranges(Vec::<(u8,)>::new());
            prop_assert_eq!(key(&ranges, &a).cmp(&key(&ranges, &b)), a.cmp(&b));
            let hashed = Partitioning::<(u8, u32)>::hash_of_first(1);
            prop_assert_eq!(key(&hashed, &a) == key(&hashed, &b), a.0 == b.0);
            let range = |low: &(u8, u32), high: &(u8, u32)| Range {
                index: None,
                low: Bound::Included(encoded(low)),
                high: Bound::Included(encoded(high)),
                of_prefixes: false,
                is_reverse: false,
                limit: 1,
            };
            let [first, last] = [&a, &b].map(|end| key(&ranges, end));
            let of_range = if first < last { PartitionKey::Range(first, last) } else { PartitionKey::One(first) };
            prop_assert_eq!(ranges.any.partition_key_of_range(<(u8, u32)>::PARTS, &range(&a, &b)), Some(of_range));
            let of_hash = if a.0 == b.0 { PartitionKey::One(key(&hashed, &a)) } else { PartitionKey::Everywhere };
            prop_assert_eq!(hashed.any.partition_key_of_range(<(u8, u32)>::PARTS, &range(&a, &b)), Some(of_hash));
        }

        #[test]
        fn a_range_is_where_its_rows_are(low in any::<(u8, u8)>(), high in any::<(u8, u8)>(), key in any::<(u8, u8)>(), columns in 1usize..3, beginnings in any::<[u8; 2]>()) {
            let mut beginnings = beginnings.map(|first| (first,)).to_vec();
            beginnings.sort_unstable();
            beginnings.dedup();
            let instances = beginnings.len() as u16 + 1;
            for partitioning in [Partitioning::<(u8, u8)>::ranges(beginnings).any, Partitioning::<(u8, u8)>::hash_of_first(columns).any] {
                let place = partitioning.place_of(<(u8, u8)>::PARTS, &encoded(&key), instances);
                let Places::One(place) = place else { panic!("{place:?}") };
                for of_prefixes in [false, true] {
                    let (low, high) = if of_prefixes { (vec![low.0], vec![high.0]) } else { (encoded(&low), encoded(&high)) };
                    let is_within = encoded(&key) >= low && (encoded(&key) <= high || of_prefixes && encoded(&key).starts_with(&high));
                    let range = Range { index: None, low: Bound::Included(low), high: Bound::Included(high), of_prefixes, is_reverse: false, limit: 1 };
                    let has = match partitioning.places_of(<(u8, u8)>::PARTS, &range, instances) {
                        Places::One(one) => one == place,
                        Places::Several(first, last) => (first..=last).contains(&place),
                        Places::Everywhere => false,
                    };
                    prop_assert!(has || !is_within);
                }
            }
        }
    }
}
