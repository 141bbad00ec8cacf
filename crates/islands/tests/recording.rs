//! What is recorded of the transactions of a database, through the public API.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::ErrorKind;
use std::thread;

use ensilo::Row;
use ensilo_islands::{
    Instances, IslandDatabase, IslandError, IslandTable, IslandsOptions, PartitionKey, Partitioning,
    Placement, Plan, RecordedAccess, RecordedTransactions, Topology,
};
use tempfile::TempDir;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "order", index(name = "by_item", columns(item)))]
struct Order {
    #[row(key)]
    customer: u32,
    #[row(key)]
    number: u32,
    item: u32,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "customer")]
struct Customer {
    #[row(key)]
    id: u32,
    balance: i64,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "price")]
struct Price {
    #[row(key)]
    item: u32,
    cents: i64,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "reading")]
struct Reading {
    #[row(key)]
    sensor: u32,
    #[row(key)]
    at: u32,
}

struct Shop {
    db: IslandDatabase,
    orders: IslandTable<Order>,
    customers: IslandTable<Customer>,
    prices: IslandTable<Price>,
    directory: TempDir,
}

fn shop() -> Shop {
    let topology = Topology::of_this_machine().unwrap();
    let plan = Plan::new(&topology, Instances::Count(2), Placement::System);
    let db = IslandsOptions::new(plan).workers(1).open_database().unwrap();
    let orders = db.table(Partitioning::hash_of_first(1)).unwrap();
    let customers = db.table(Partitioning::hash()).unwrap();
    let prices = db.table(Partitioning::replicated()).unwrap();
    Shop { db, orders, customers, prices, directory: tempfile::tempdir().unwrap() }
}

fn order(customer: u32, number: u32) -> Order {
    Order { customer, number, item: number % 3 }
}

impl Shop {
    /// Records the transactions that a closure makes, and returns what the file says of them.
    fn record(&self, made: impl FnOnce()) -> Vec<Vec<RecordedAccess>> {
        let file = self.directory.path().join("recorded");
        let recording = self.db.record(&file, 1000).unwrap();
        made();
        let count = recording.finish().unwrap();
        if count == 0 {
            return Vec::new();
        }
        let recorded = RecordedTransactions::from_file(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(recorded.transactions().len() as u64, count);
        recorded.transactions().to_vec()
    }
}

fn writes(accesses: &[RecordedAccess]) -> Vec<bool> {
    accesses.iter().map(|access| access.writes).collect()
}

#[test]
fn rows_of_several_tables_that_are_placed_together_have_one_key() {
    let shop = shop();
    let recorded = shop.record(|| {
        shop.db
            .transact(|tx| {
                assert_eq!(shop.customers.get(tx, 7)?, None);
                shop.orders.insert(tx, &order(7, 1))
            })
            .unwrap();
        shop.db.transact(|tx| shop.orders.prefix((7,)).collect(tx)).unwrap();
        shop.db.transact(|tx| shop.customers.get_many(tx, &[8, 7])).unwrap();
    });
    assert_eq!(
        recorded.iter().map(|all| writes(all)).collect::<Vec<_>>(),
        [vec![true], vec![false], vec![false, false]]
    );
    let seven = recorded[0][0].key;
    assert_eq!(recorded[1][0].key, seven);
    assert_eq!(recorded[2][1].key, seven);
    assert_ne!(recorded[2][0].key, seven);
}

#[test]
fn what_is_at_every_instance_is_recorded_so() {
    let shop = shop();
    let everywhere = |writes| vec![RecordedAccess { key: PartitionKey::Everywhere, writes }];
    let recorded = shop.record(|| {
        shop.db.transact(|tx| shop.prices.upsert(tx, &Price { item: 1, cents: 5 })).unwrap();
        // Wherever the transaction is.
        shop.db.transact(|tx| shop.prices.get(tx, 1)).unwrap();
        shop.db.transact(|tx| shop.orders.scan().count(tx)).unwrap();
        shop.db.transact(|tx| shop.orders.index::<u32>("by_item")?.equal(&1).collect(tx)).unwrap();
    });
    assert_eq!(recorded, [everywhere(true), everywhere(false), everywhere(false)]);
    let many: Vec<Customer> = (0..2000).map(|id| Customer { id, balance: 0 }).collect();
    let recorded = shop.record(|| shop.db.transact(|tx| shop.customers.insert_many(tx, &many)).unwrap());
    assert_eq!(recorded[0].len(), 1001);
    assert_eq!(recorded[0][1000], everywhere(true)[0]);
}

#[test]
fn a_range_of_rows_that_are_placed_by_ranges_is_recorded_as_one() {
    let shop = shop();
    let by_ranges: IslandTable<Reading> = shop.db.table(Partitioning::ranges([(500,)])).unwrap();
    let key = |sensor: u32, at: u32| u64::from(sensor) << 32 | u64::from(at);
    let recorded = shop.record(|| {
        shop.db.transact(|tx| by_ranges.range((1, 2)..(700, 3)).count(tx)).unwrap();
        shop.db.transact(|tx| by_ranges.prefix((7,)).count(tx)).unwrap();
        shop.db.transact(|tx| by_ranges.range((1, 2)..=(1, 2)).count(tx)).unwrap();
        shop.db.transact(|tx| by_ranges.range((1, 2)..).count(tx)).unwrap();
    });
    let keys: Vec<PartitionKey> = recorded.iter().flatten().map(|access| access.key).collect();
    let expected = [
        PartitionKey::Range(key(1, 2), key(700, 3)),
        PartitionKey::Range(key(7, 0), key(7, u32::MAX)),
        PartitionKey::One(key(1, 2)),
        PartitionKey::Everywhere,
    ];
    assert_eq!(keys, expected);
}

/// As with one instance: not instance by instance.
#[test]
fn rows_are_recorded_in_their_order_wherever_they_are() {
    let shop = shop();
    let ids: Vec<u32> = (0..50).collect();
    let customers: Vec<Customer> = ids.iter().map(|id| Customer { id: *id, balance: 0 }).collect();
    let recorded = shop.record(|| {
        shop.db.transact(|tx| shop.customers.insert_many(tx, &customers)).unwrap();
        for id in &ids {
            shop.db.transact(|tx| shop.customers.get(tx, id)).unwrap();
        }
    });
    let key = |access: &RecordedAccess| access.key;
    let written: Vec<PartitionKey> = recorded[0].iter().map(key).collect();
    let read: Vec<PartitionKey> = recorded[1..].iter().flatten().map(key).collect();
    assert_eq!(written, read);
}

#[test]
fn transactions_that_do_not_commit_are_not_recorded() {
    let shop = shop();
    let recorded = shop.record(|| {
        let undone = shop.db.transact(|tx| {
            shop.customers.delete(tx, 1)?;
            Err::<(), IslandError>(IslandError::rollback("no"))
        });
        assert!(matches!(undone, Err(IslandError::User(_))));
        let mut tx = shop.db.begin();
        shop.customers.get(&mut tx, 1).unwrap();
        drop(tx);
    });
    assert_eq!(recorded, Vec::<Vec<RecordedAccess>>::new());
    // Nor is what begins when the recording has ended.
    shop.db.transact(|tx| shop.customers.delete(tx, 1)).unwrap();
}

#[test]
fn a_recording_ends_at_its_limit() {
    let shop = shop();
    let file = shop.directory.path().join("recorded");
    let recording = shop.db.record(&file, 40).unwrap();
    thread::scope(|scope| {
        for thread in 0..4 {
            let insert = |id| shop.db.transact(|tx| shop.customers.upsert(tx, &Customer { id, balance: 1 }));
            scope.spawn(move || (0..25).for_each(|at| insert(thread * 25 + at).unwrap()));
        }
    });
    assert_eq!(recording.transactions(), 40);
    assert_eq!(recording.finish().unwrap(), 40);
    assert_eq!(RecordedTransactions::from_file(&file).unwrap().transactions().len(), 40);
}

#[test]
fn a_transaction_that_commits_when_the_recording_has_ended_is_not_recorded() {
    let shop = shop();
    for is_finished in [true, false] {
        let file = shop.directory.path().join(format!("recorded-{is_finished}"));
        let recording = shop.db.record(&file, 1000).unwrap();
        shop.db.transact(|tx| shop.customers.get(tx, 1)).unwrap();
        let mut late = shop.db.begin();
        shop.customers.upsert(&mut late, &Customer { id: 2, balance: 1 }).unwrap();
        match is_finished {
            true => assert_eq!(recording.finish().unwrap(), 1),
            false => drop(recording),
        }
        let recorded = || RecordedTransactions::from_file(&file).unwrap();
        assert_eq!(recorded().transactions().len(), 1);
        late.commit().unwrap();
        assert_eq!(recorded().transactions().len(), 1);
    }
}

#[test]
fn a_second_recording_and_a_file_that_is_there_are_refused() {
    let shop = shop();
    let [first, second] = ["first", "second"].map(|name| shop.directory.path().join(name));
    let recording = shop.db.record(&first, 10).unwrap();
    let busy = shop.db.record(&second, 10).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::ResourceBusy);
    assert!(busy.to_string().contains("first"), "{busy}");
    drop(recording);
    let there = shop.db.record(&first, 10).unwrap_err();
    assert_eq!(there.kind(), ErrorKind::AlreadyExists);
    assert!(there.to_string().contains("first"), "{there}");
    assert_eq!(shop.db.record(&second, 10).unwrap().finish().unwrap(), 0);
}

#[test]
fn a_file_that_cannot_be_made_is_an_error_and_nothing_is_recorded() {
    let shop = shop();
    let missing = shop.db.record(shop.directory.path().join("no/such/directory"), 10).unwrap_err();
    assert!(missing.to_string().contains("no/such/directory"), "{missing}");
    shop.db.transact(|tx| shop.customers.get(tx, 1)).unwrap();
}
