//! An index that does not fit the rows keeps nothing but itself away: it is named, and can be made anew.

use ensilo::generic::{Database, Table};
use ensilo::variants::Failpoint;
use ensilo::{Engine, Error, IndexState, Order, Value};

use super::*;
use crate::failpoints::{FaultySilo, hook_once};

const ROWS: u32 = 400;
/// The value that three rows have.
const SHARED: i64 = 7_000;

fn with_balance(id: u32, balance: i64) -> Account {
    Account { balance, ..account(id) }
}

fn open_by<E: Engine>(disk: &Arc<SimulatedDisk>) -> Database<E> {
    options().open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(DIRECTORY)).unwrap()
}

/// Leaves a database on the disk in which the rows 1, 3 and 5 share a value of the unique index `by_balance`.
fn make_broken(disk: &Arc<SimulatedDisk>) {
    let db = open_by::<FaultySilo>(disk);
    let accounts = db.create_table::<Account>().unwrap();
    let last = ROWS - 2;
    let balance = |id| if id == last { SHARED } else { i64::from(id) };
    let rows: Vec<_> = (0..ROWS).step_by(2).map(|id| with_balance(id, balance(id))).collect();
    db.transact(|tx| accounts.insert_many(tx, &rows)).unwrap();
    let (for_hook, table) = (db.clone(), accounts.clone());
    hook_once(Failpoint::IndexRowsDone, 1, move || {
        for_hook.transact(|tx| table.insert(tx, &with_balance(1, SHARED))).unwrap();
        for_hook.transact(|tx| table.delete(tx, last)).unwrap();
    });
    db.create_unique_index("account", "by_balance", [("balance", Order::Ascending)]).unwrap();
    db.transact(|tx| accounts.insert(tx, &with_balance(3, SHARED))).unwrap();
    db.transact(|tx| accounts.delete(tx, 0)).unwrap();
    db.transact(|tx| accounts.insert(tx, &with_balance(5, 5))).unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
}

fn broken<E: Engine>(db: &Database<E>) -> Vec<(String, String)> {
    let statistics = db.statistics().unwrap();
    statistics.broken_indexes().map(|(table, index)| (table.name.clone(), index.name.clone())).collect()
}

fn state<E: Engine>(db: &Database<E>) -> IndexState {
    let statistics = db.statistics().unwrap();
    let table = statistics.table("account").unwrap();
    let index = table.indexes.iter().find(|index| index.name == "by_balance").unwrap();
    assert_eq!(index.is_ready, index.state == IndexState::Ready);
    if index.is_ready {
        assert_eq!(index.records, table.records);
    }
    index.state
}

fn set_balance<E: Engine>(
    db: &Database<E>,
    accounts: &Table<Account, E>,
    id: u32,
    balance: i64,
) -> Result<()> {
    db.transact(|tx| accounts.update(tx, id, |row: &mut Balance| row.balance = balance))
}

/// The indexes show exactly the rows, and the unique one refuses what is taken.
fn check_indexes<E: Engine>(db: &Database<E>) {
    let accounts = db.open_table::<Account>().unwrap();
    let by_balance = accounts.index::<i64>("by_balance").unwrap();
    let by_owner = accounts.index::<u32>("by_owner").unwrap();
    assert_eq!(state(db), IndexState::Ready);
    let mut rows = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    rows.sort_by_key(|row| (row.owner, row.id));
    assert_eq!(db.transact(|tx| by_owner.scan().rows(tx)).unwrap(), rows);
    rows.sort_by_key(|row| row.balance);
    assert_eq!(db.transact(|tx| by_balance.scan().rows(tx)).unwrap(), rows);
    for row in &rows {
        let taken = db.transact(|tx| accounts.insert(tx, &with_balance(100_001, row.balance)));
        assert!(matches!(taken, Err(Error::DuplicateKey(_))), "{taken:?}");
    }
}

#[test]
fn a_broken_index_is_named_and_keeps_no_row_away() {
    let disk = Arc::new(SimulatedDisk::new());
    make_broken(&disk);
    let db = open(&disk);
    let accounts = super::accounts(&db);
    assert_eq!(broken(&db), [("account".to_owned(), "by_balance".to_owned())]);
    assert!(db.schema("account").unwrap().index("by_balance").is_some());
    // Reading it is an error, whatever it would have shown.
    let by_balance = accounts.index::<i64>("by_balance").unwrap();
    let dynamic = db.open_dynamic_table("account").unwrap();
    let by_handle = db.transact(|tx| by_balance.get(tx, 2)).unwrap_err();
    let by_name = db.transact(|tx| dynamic.scan().by_index("by_balance")?.collect(tx)).unwrap_err();
    for error in [by_handle, by_name] {
        let text = error.to_string();
        assert!(text.contains("by_balance of table account") && text.contains("rebuild_index"), "{text}");
        assert!(!error.is_retryable());
        let Error::IndexBroken(broken) = error else { panic!("{error:?}") };
        assert_eq!((broken.table(), broken.name()), ("account", "by_balance"));
    }
    // Rows, the other index and every kind of write work.
    let by_owner = accounts.index::<u32>("by_owner").unwrap();
    let rows = all_rows(&db);
    assert_eq!(rows.len() as u32, ROWS / 2 + 1);
    assert_eq!(db.transact(|tx| by_owner.scan().count(tx)).unwrap(), rows.len());
    set_balance(&db, &accounts, 5, SHARED).unwrap();
    set_balance(&db, &accounts, 2, 4).unwrap();
    set_balance(&db, &accounts, 2, 2).unwrap();
    db.transact(|tx| accounts.insert(tx, &with_balance(7, 2))).unwrap();
    assert!(db.transact(|tx| accounts.delete(tx, 7)).unwrap());
    assert_eq!(db.transact(|tx| accounts.duplicates(tx, "by_balance")).unwrap(), [vec![1, 3, 5]]);
    let keys = [[1u32], [3], [5]].map(|key| key.map(Value::from).to_vec()).to_vec();
    assert_eq!(db.transact(|tx| dynamic.duplicates(tx, "by_balance")).unwrap(), [keys]);
    assert!(db.transact(|tx| accounts.duplicates(tx, "by_owner")).unwrap().is_empty());
    assert!(matches!(db.transact(|tx| accounts.duplicates(tx, "by_note")), Err(Error::UnknownIndex(_))));
    // It stays so over a reopening.
    db.close().unwrap();
    assert_eq!(broken(&open(&disk)).len(), 1);
}

#[test]
fn a_broken_index_is_rebuilt_once_no_two_rows_share_a_key() {
    let disk = Arc::new(SimulatedDisk::new());
    make_broken(&disk);
    let db = open(&disk);
    let accounts = super::accounts(&db);
    let by_balance = accounts.index::<i64>("by_balance").unwrap();
    let refused = db.rebuild_index("account", "by_balance");
    assert!(matches!(&refused, Err(Error::DuplicateKey(key)) if key.index() == Some("by_balance")));
    assert_eq!(state(&db), IndexState::Broken);
    assert!(matches!(db.transact(|tx| by_balance.get(tx, 2)), Err(Error::IndexBroken(_))));
    // What is written between two attempts is not in the entries that the first one has left.
    set_balance(&db, &accounts, 2, 9_000).unwrap();
    db.transact(|tx| accounts.delete(tx, 4)).unwrap();
    db.transact(|tx| accounts.insert(tx, &with_balance(9, 2))).unwrap();
    for group in db.transact(|tx| accounts.duplicates(tx, "by_balance")).unwrap() {
        db.transact(|tx| group[1..].iter().try_for_each(|id| accounts.delete(tx, id).map(|_| ()))).unwrap();
    }
    db.rebuild_index("account", "by_balance").unwrap();
    check_indexes(&db);
    assert_eq!(db.transact(|tx| by_balance.get(tx, 2)).unwrap(), Some(with_balance(9, 2)));
    assert!(broken(&db).is_empty());
    // A second time there is nothing to do.
    db.rebuild_index("account", "by_balance").unwrap();
    assert!(matches!(db.rebuild_index("account", "by_note"), Err(Error::UnknownIndex(_))));
    assert!(matches!(db.rebuild_index("event", "by_note"), Err(Error::UnknownTable(_))));
    db.close().unwrap();
    let db = open(&disk);
    assert!(broken(&db).is_empty());
    check_indexes(&db);
}

#[test]
fn writers_go_on_while_a_broken_index_is_rebuilt() {
    let disk = Arc::new(SimulatedDisk::new());
    make_broken(&disk);
    let db = open_by::<HookedEngine>(&disk);
    let accounts = db.open_table::<Account>().unwrap();
    for id in [1, 3] {
        set_balance(&db, &accounts, id, i64::from(id)).unwrap();
    }
    // Two rows get one value before the builder comes to the old one: it is given up.
    let (for_hook, table) = (db.clone(), accounts.clone());
    hook_once(Failpoint::IndexIntroduced, 1, move || {
        assert!(matches!(for_hook.rebuild_index("account", "by_balance"), Err(Error::IndexNotReady(_))));
        assert!(matches!(for_hook.drop_index("account", "by_balance"), Err(Error::IndexNotReady(_))));
        for_hook.transact(|tx| table.insert(tx, &with_balance(7, 390))).unwrap();
    });
    let refused = db.rebuild_index("account", "by_balance");
    assert!(matches!(refused, Err(Error::DuplicateKey(_))), "{refused:?}");
    assert_eq!(broken(&db).len(), 1);
    // The same, and the old one goes before the builder comes to it.
    db.transact(|tx| accounts.delete(tx, 7)).unwrap();
    let (for_hook, table) = (db.clone(), accounts.clone());
    hook_once(Failpoint::IndexRowsDone, 1, move || {
        for_hook.transact(|tx| table.insert(tx, &with_balance(7, 390))).unwrap();
        assert!(matches!(
            set_balance(&for_hook, &table, 9, 390),
            Err(Error::DuplicateKey(_) | Error::MissingRow(_))
        ));
        set_balance(&for_hook, &table, 390, 391).unwrap();
    });
    db.rebuild_index("account", "by_balance").unwrap();
    check_indexes(&db);
}

#[test]
fn a_broken_index_is_dropped_for_good_with_or_without_its_table() {
    let disk = Arc::new(SimulatedDisk::new());
    make_broken(&disk);
    let db = open(&disk);
    db.drop_index("account", "by_balance").unwrap();
    assert!(broken(&db).is_empty());
    db.close().unwrap();
    let db = open(&disk);
    assert!(broken(&db).is_empty());
    assert!(matches!(super::accounts(&db).index::<i64>("by_balance"), Err(Error::UnknownIndex(_))));
    drop(db);
    let disk = Arc::new(SimulatedDisk::new());
    make_broken(&disk);
    let db = open_by::<HookedEngine>(&disk);
    let for_hook = db.clone();
    hook_once(Failpoint::IndexIntroduced, 1, move || for_hook.drop_table("account").unwrap());
    let accounts = db.open_table::<Account>().unwrap();
    db.transact(|tx| accounts.delete(tx, 3)).unwrap();
    assert!(matches!(db.rebuild_index("account", "by_balance"), Err(Error::UnknownTable(_))));
    assert_eq!(db.list_tables().unwrap(), [""; 0]);
}
