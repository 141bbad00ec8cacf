//! The tests of every engine: compiled for each of them, which is that of the module above.

use std::cmp::Reverse;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use ensilo::disk::Disk;
use ensilo::{Error, NullsLast, Options, Order, Row, Schema, Value, generic};
use ensilo_test_disk::SimulatedDisk;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::Engine;

type Database = generic::Database<Engine>;

/// A row with keys of every order.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item")]
#[row(index(name = "last", columns(rank nulls_last)))]
#[row(index(name = "first", columns(name desc nulls_first, rank)))]
#[row(index(name = "unique", columns(rank asc nulls_last, name desc nulls_first), unique))]
#[row(index(name = "plain", columns(rank, name desc)))]
struct Item {
    #[row(key, nulls_last)]
    group: Option<u8>,
    #[row(key, desc, nulls_first)]
    code: Option<String>,
    rank: Option<i8>,
    name: Option<String>,
}

/// The same table as it was before the place of nulls could be chosen.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item")]
struct PlainItem {
    #[row(key)]
    group: Option<u8>,
    #[row(key, desc)]
    code: Option<String>,
    rank: Option<i8>,
    name: Option<String>,
}

type Key = (NullsLast<Option<u8>>, Reverse<NullsLast<Option<String>>>);
type Last = NullsLast<Option<i8>>;
type First = (Reverse<NullsLast<Option<String>>>, Option<i8>);
type Unique = (NullsLast<Option<i8>>, Reverse<NullsLast<Option<String>>>);

impl Item {
    fn primary(&self) -> Key {
        (NullsLast(self.group), Reverse(NullsLast(self.code.clone())))
    }

    fn last(&self) -> Last {
        NullsLast(self.rank)
    }

    fn first(&self) -> First {
        (Reverse(NullsLast(self.name.clone())), self.rank)
    }

    fn unique(&self) -> Unique {
        (NullsLast(self.rank), Reverse(NullsLast(self.name.clone())))
    }

    fn is_never_equal(&self) -> bool {
        self.rank.is_none() || self.name.is_none()
    }
}

fn open(disk: &Arc<SimulatedDisk>) -> Database {
    let options =
        Options::default().log_file_bytes(1 << 20).log_buffers(4).recovery_threads(2).pool_threads(1);
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new("/db")).unwrap()
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), Just("\0".to_owned()), "[ab]{1,2}"]
}

fn item() -> impl Strategy<Value = Item> {
    (of(0..3u8), of(word()), of(-2..2i8), of(word())).prop_map(|(group, code, rank, name)| Item {
        group,
        code,
        rank,
        name,
    })
}

/// The items that a table can have, in the order of their primary keys.
fn model(items: Vec<Item>) -> Vec<Item> {
    let mut rows: Vec<Item> = Vec::new();
    for item in items {
        let is_taken = rows.iter().any(|row| {
            row.primary() == item.primary()
                || !item.is_never_equal() && !row.is_never_equal() && row.unique() == item.unique()
        });
        if !is_taken {
            rows.push(item);
        }
    }
    rows.sort_by_key(Item::primary);
    rows
}

/// The rows in the order of a key, and within it of the primary key.
fn sorted<K: Ord>(rows: &[Item], key: impl Fn(&Item) -> K) -> Vec<Item> {
    let mut sorted = rows.to_vec();
    sorted.sort_by_key(|row| (key(row), row.primary()));
    sorted
}

fn is_within<K: Ord>(key: &K, (low, high): &(Bound<K>, Bound<K>)) -> bool {
    (match low {
        Bound::Included(low) => key >= low,
        Bound::Excluded(low) => key > low,
        Bound::Unbounded => true,
    }) && match high {
        Bound::Included(high) => key <= high,
        Bound::Excluded(high) => key < high,
        Bound::Unbounded => true,
    }
}

fn bounds<K: Clone>(low: &K, high: &K, kind: usize) -> (Bound<K>, Bound<K>) {
    let bound = |key: &K, kind: usize| match kind {
        0 => Bound::Included(key.clone()),
        1 => Bound::Excluded(key.clone()),
        _ => Bound::Unbounded,
    };
    (bound(low, kind % 3), bound(high, kind / 3))
}

fn check(db: &Database, rows: &[Item], (low, high): &(Item, Item), kind: usize) {
    let items = db.table::<Item>().unwrap();
    let last = items.index::<Last>("last").unwrap();
    let first = items.index::<First>("first").unwrap();
    let unique = items.index::<Unique>("unique").unwrap();
    let by_primary = bounds(&low.primary(), &high.primary(), kind);
    let by_last = bounds(&low.last(), &high.last(), kind);
    let by_first = bounds(&low.first(), &high.first(), kind);
    let by_unique = bounds(&low.unique(), &high.unique(), kind);
    let only = |rows: Vec<Item>, keep: &dyn Fn(&Item) -> bool| -> Vec<Item> {
        rows.into_iter().filter(|row| keep(row)).collect()
    };
    let checked = db.transact(|tx| {
        assert_eq!(items.scan().rows(tx)?, rows);
        let expected = only(rows.to_vec(), &|row| is_within(&row.primary(), &by_primary));
        assert_eq!(items.range(by_primary.clone()).rows(tx)?, expected);
        let expected = only(rows.to_vec(), &|row| row.group == low.group);
        assert_eq!(items.prefix((NullsLast(low.group),)).rows(tx)?, expected);
        for row in rows {
            assert_eq!(items.get(tx, row.primary())?.as_ref(), Some(row));
        }
        let mut expected = only(sorted(rows, Item::last), &|row| is_within(&row.last(), &by_last));
        assert_eq!(last.range(by_last).rows(tx)?, expected);
        expected.reverse();
        assert_eq!(last.range(by_last).reverse().rows(tx)?, expected);
        let expected = only(sorted(rows, Item::first), &|row| is_within(&row.first(), &by_first));
        assert_eq!(first.range(by_first.clone()).rows(tx)?, expected);
        let expected = only(sorted(rows, Item::first), &|row| row.name == low.name);
        assert_eq!(first.prefix((Reverse(NullsLast(low.name.clone())),)).rows(tx)?, expected);
        let expected = only(sorted(rows, Item::unique), &|row| is_within(&row.unique(), &by_unique));
        assert_eq!(unique.range(by_unique.clone()).rows(tx)?, expected);
        for row in rows.iter().filter(|row| !row.is_never_equal()) {
            assert_eq!(unique.get(tx, row.unique())?.as_ref(), Some(row));
        }
        Ok(())
    });
    checked.unwrap();
    let dynamic = db.open_dynamic_table("item").unwrap();
    for index in ["last", "first", "unique", "plain"] {
        assert!(db.transact(|tx| dynamic.check_index(tx, index)).unwrap().is_whole(), "{index}");
    }
    // By values, and not by the row type.
    let rank = low.rank.map_or(Value::Null, Value::from);
    let by_value =
        db.transact(|tx| dynamic.scan().by_index("last")?.prefix(std::slice::from_ref(&rank))?.collect(tx));
    let expected = only(sorted(rows, Item::last), &|row| row.rank == low.rank);
    assert_eq!(by_value.unwrap().len(), expected.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_have_the_order_of_a_model(
        items in vec(item(), 0..30),
        ends in (item(), item()),
        kind in 0..9usize,
        changed in any::<prop::sample::Index>(),
        to in (of(-2..2i8), of(word())),
    ) {
        let disk = Arc::new(SimulatedDisk::new());
        let db = open(&disk);
        let table = db.table::<Item>().unwrap();
        let mut rows = model(items);
        db.transact(|tx| table.insert_many(tx, &rows)).unwrap();
        check(&db, &rows, &ends, kind);
        if !rows.is_empty() {
            let at = changed.index(rows.len());
            let updated = db.transact(|tx| table.update(tx, rows[at].primary(), |row: &mut Item| {
                (row.rank, row.name) = to.clone();
            }));
            match updated {
                Ok(()) => (rows[at].rank, rows[at].name) = to,
                Err(error) => prop_assert!(matches!(error, Error::DuplicateKey(_)), "{:?}", error),
            }
        }
        check(&db, &rows, &ends, kind);
        db.close().unwrap();
        check(&open(&disk), &rows, &ends, kind);
    }
}

#[test]
fn a_table_keeps_its_order_for_programs_that_say_another() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let plain = db.table::<PlainItem>().unwrap();
    let row = |group| PlainItem { group, code: None, rank: None, name: None };
    db.transact(|tx| plain.insert_many(tx, &[row(Some(1)), row(None)])).unwrap();
    db.create_index("item", "last", [("rank", Order::AscendingNullsLast)]).unwrap();
    let mismatch = db.table::<Item>().map(drop).unwrap_err();
    assert!(matches!(mismatch, Error::SchemaMismatch(_)), "{mismatch:?}");
    assert!(mismatch.to_string().contains("nulls"), "{mismatch}");
    db.close().unwrap();
    let db = open(&disk);
    let plain = db.table::<PlainItem>().unwrap();
    assert_eq!(db.transact(|tx| plain.scan().rows(tx)).unwrap(), [row(None), row(Some(1))]);
    // An index that was made beside it has the order that it was made with.
    let ranked = PlainItem { rank: Some(3), ..row(Some(2)) };
    db.transact(|tx| plain.insert(tx, &ranked)).unwrap();
    let last = plain.index::<Last>("last").unwrap();
    let rows = db.transact(|tx| last.scan().rows(tx)).unwrap();
    assert_eq!(rows, [ranked, row(None), row(Some(1))]);
    assert!(plain.index::<Option<i8>>("last").is_err());
}

#[test]
fn the_place_of_nulls_is_that_of_a_column_that_has_some() {
    let schema = Schema::builder("t").column("a", ensilo::ColumnType::U8);
    let refused = schema.clone().key([("a", Order::AscendingNullsLast)]).build();
    assert!(refused.unwrap_err().to_string().contains("says where nulls come, and column `a` has none"));
    assert!(schema.index("i", [("a", Order::DescendingNullsFirst)]).build().is_err());
}
