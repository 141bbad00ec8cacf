//! Tables and indexes that come and go.

use std::cmp::Reverse;
use std::sync::mpsc;

use ensilo::variants::Failpoint;
use ensilo::{AbortReason, Error, Options, Order, Row, generic};

use super::snapshots::wait_for_snapshot;
use super::{
    Account, Database, Engine, Event, HookedEngine, LOCKS, SEES_LATER_COMMITS, Table, Transaction, account,
    change_what_was_read, in_memory, quick, with_accounts,
};
use crate::failpoints::hook_once;

#[test]
fn tables_are_listed_opened_and_dropped() {
    let db = quick();
    db.create_table::<Event>().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    assert_eq!(db.list_tables().unwrap(), ["account", "event"]);
    assert_eq!(&db.schema("account").unwrap(), Account::schema());
    db.transact(|tx| db_insert(&db, tx)).unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    db.drop_table("account").unwrap();
    assert_eq!(db.list_tables().unwrap(), ["event"]);
    assert!(matches!(db.transact(|tx| accounts.get(tx, 1)), Err(Error::UnknownTable(_))));
    assert!(matches!(db.transact(|tx| accounts.insert(tx, &account(1))), Err(Error::UnknownTable(_))));
    assert!(matches!(accounts.index::<u32>("by_owner"), Err(Error::UnknownTable(_))));
    let again = db.create_table::<Account>().unwrap();
    assert_eq!(db.transact(|tx| again.scan().count(tx)).unwrap(), 0);
}

#[test]
fn a_table_is_opened_or_made() {
    let db = quick();
    let accounts = db.table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
    let again = db.table::<Account>().unwrap();
    assert_eq!(db.transact(|tx| again.get(tx, 1)).unwrap(), Some(account(1)));
    // Where it is there already, also within a request.
    assert_eq!(db.transact(|tx| db.table::<Account>()?.scan().count(tx)).unwrap(), 1);
    let named = db.table_named::<Account>("other").unwrap();
    assert_eq!(db.transact(|tx| named.scan().count(tx)).unwrap(), 0);
    assert!(matches!(db.table_named::<Account>("ensilo.tables"), Err(Error::InvalidSchema(_))));
    let dynamic = db.dynamic_table(Account::schema()).unwrap();
    assert_eq!(db.transact(|tx| dynamic.scan().collect(tx)).unwrap().len(), 1);
    db.dynamic_table(Event::schema()).unwrap();
    assert_eq!(db.list_tables().unwrap(), ["account", "event", "other"]);
}

#[test]
fn of_many_that_open_or_make_a_table_one_makes_it() {
    let db = quick();
    std::thread::scope(|scope| {
        for id in 0..8 {
            let db = &db;
            scope.spawn(move || {
                let accounts = db.table::<Account>().unwrap();
                db.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
            });
        }
    });
    assert_eq!(db.transact(|tx| db.table::<Account>()?.scan().count(tx)).unwrap(), 8);
}

/// A second handle to a table sees the same rows.
fn db_insert(db: &Database, tx: &mut Transaction<'_>) -> ensilo::Result<()> {
    db.open_table::<Account>()?.insert(tx, &account(1)).map(|_| ())
}

#[test]
fn an_index_made_later_has_all_rows_and_is_kept() {
    let (db, accounts) = with_accounts(500);
    db.create_index("account", "by_balance", [("balance", Order::Descending), ("owner", Order::Ascending)])
        .unwrap();
    let by_balance = accounts.index::<(Reverse<i64>, ensilo::Text<16>)>("by_balance").unwrap();
    db.transact(|tx| {
        let keys = by_balance.scan().primary_keys(tx)?;
        assert_eq!(keys, (0..500).rev().collect::<Vec<u32>>());
        accounts.delete(tx, 400)?;
        accounts.update(tx, 3, |row: &mut Account| row.balance = 1_000_000)?;
        accounts.insert(tx, &Account { balance: -1, ..account(1000) })?;
        let keys = by_balance.scan().primary_keys(tx)?;
        assert_eq!((keys[0], keys[499], keys.len()), (3, 1000, 500));
        Ok(())
    })
    .unwrap();
    assert!(db.schema("account").unwrap().index("by_balance").is_some());
    // The row type does not declare it, and still fits.
    db.open_table::<Account>().unwrap();
    db.drop_index("account", "by_balance").unwrap();
    assert!(matches!(db.transact(|tx| by_balance.scan().count(tx)), Err(Error::UnknownIndex(_))));
    db.transact(|tx| accounts.insert(tx, &account(400)).map(|_| ())).unwrap();
}

#[test]
fn a_unique_index_over_duplicates_is_refused_and_leaves_nothing() {
    let (db, accounts) = with_accounts(300);
    let refused = db.create_unique_index("account", "one_owner", [("owner", Order::Ascending)]);
    assert!(matches!(&refused, Err(Error::DuplicateKey(key)) if key.index() == Some("one_owner")));
    assert!(matches!(accounts.index::<ensilo::Text<16>>("one_owner"), Err(Error::UnknownIndex(_))));
    db.transact(|tx| accounts.insert(tx, &account(301)).map(|_| ())).unwrap();
    db.create_unique_index("account", "one_balance", [("balance", Order::Ascending)]).unwrap();
    let taken = db.transact(|tx| accounts.insert(tx, &Account { balance: 10, ..account(400) }).map(|_| ()));
    assert!(matches!(&taken, Err(Error::DuplicateKey(key)) if key.index() == Some("one_balance")));
}

#[test]
fn an_index_that_a_row_is_too_long_for_is_refused() {
    let db = quick();
    let events = db.create_table::<Event>().unwrap();
    db.transact(|tx| events.insert(tx, &Event { kind: 0, text: "x".repeat(10_000) })).unwrap();
    let refused = db.create_index("event", "by_text", [("text", Order::Ascending)]);
    assert!(matches!(refused, Err(Error::KeyTooLong(_))));
    assert!(db.schema("event").unwrap().indexes().is_empty());
}

#[test]
fn a_row_that_is_too_long_for_an_index_can_be_changed_and_deleted_while_that_is_built() {
    let db: generic::Database<HookedEngine> = Options::default().in_memory_with().unwrap();
    let events = db.create_table::<Event>().unwrap();
    let long = |kind| Event { kind, text: "x".repeat(10_000) };
    let ids = db
        .transact(|tx| (0..3).map(|kind| events.insert(tx, &long(kind))).collect::<Result<Vec<_>, _>>())
        .unwrap();
    let in_hook = (db.clone(), events.clone());
    hook_once(Failpoint::IndexIntroduced, 1, move || {
        // On another thread: this one has a change of the catalog under way.
        let (db, events) = in_hook.clone();
        let ids = ids.clone();
        let changing = std::thread::spawn(move || {
            let refused = db.transact(|tx| events.insert(tx, &long(3)).map(drop));
            assert!(matches!(refused, Err(Error::KeyTooLong(_))), "{refused:?}");
            let short = Event { kind: 7, text: "short".into() };
            db.transact(|tx| events.update(tx, ids[0], |event| *event = short.clone())).unwrap();
            db.transact(|tx| events.delete(tx, ids[1])).unwrap();
            assert_eq!(db.transact(|tx| events.scan().delete(tx)).unwrap(), 2);
            db.transact(|tx| events.insert(tx, &short).map(drop)).unwrap();
        });
        changing.join().unwrap();
    });
    db.create_index("event", "by_text", [("text", Order::Ascending)]).unwrap();
    let by_text = events.index::<String>("by_text").unwrap();
    assert_eq!(db.transact(|tx| by_text.scan().count(tx)).unwrap(), 1);
}

#[test]
fn dropping_a_declared_index_makes_opening_say_so() {
    let (db, accounts) = with_accounts(3);
    db.drop_index("account", "by_owner").unwrap();
    assert!(matches!(db.open_table::<Account>(), Err(Error::SchemaMismatch(_))));
    db.transact(|tx| accounts.insert(tx, &account(9)).map(|_| ())).unwrap();
    db.create_index("account", "by_owner", [("owner", Order::Ascending), ("balance", Order::Descending)])
        .unwrap();
    let again = db.open_table::<Account>().unwrap();
    let by_owner = again.index::<(ensilo::Text<16>, Reverse<i64>)>("by_owner").unwrap();
    assert_eq!(db.transact(|tx| by_owner.scan().count(tx)).unwrap(), 4);
    assert!(Account::schema().index("by_owner").is_some());
}

/// Drops the table of accounts on another thread: on this one a transaction is under way.
fn drop_accounts(db: &Database) {
    std::thread::scope(|scope| scope.spawn(|| db.drop_table("account")).join().unwrap().unwrap());
}

#[test]
fn what_was_written_into_a_table_that_was_dropped_since_is_not_committed() {
    let (db, accounts) = with_accounts(1);
    let events = db.create_table::<Event>().unwrap();
    let mut writer = db.begin().unwrap();
    writer.with(|tx| accounts.insert(tx, &account(5))).unwrap();
    writer.with(|tx| events.insert(tx, &Event { kind: 0, text: "written".into() })).unwrap();
    let mut reader = db.begin().unwrap();
    reader.with(|tx| accounts.get(tx, 0)).unwrap();
    reader.with(|tx| events.insert(tx, &Event { kind: 0, text: "read".into() })).unwrap();
    let mut neither = db.begin().unwrap();
    neither.with(|tx| events.insert(tx, &Event { kind: 0, text: "neither".into() })).unwrap();
    let mut looker = db.begin().unwrap();
    assert_eq!(looker.with(|tx| accounts.get(tx, 7)).unwrap(), None);
    looker.with(|tx| events.insert(tx, &Event { kind: 0, text: "missed".into() })).unwrap();
    let mut scanner = db.begin().unwrap();
    let by_owner = accounts.index::<(ensilo::Text<16>, Reverse<i64>)>("by_owner").unwrap();
    assert_eq!(
        scanner.with(|tx| by_owner.prefix((ensilo::Text::new("nobody").unwrap(),)).count(tx)).unwrap(),
        0
    );
    scanner.with(|tx| events.insert(tx, &Event { kind: 0, text: "scanned".into() })).unwrap();
    drop_accounts(&db);
    for mut undone in [writer, reader, looker, scanner] {
        let error = undone.commit().unwrap_err();
        assert!(matches!(&error, Error::UnknownTable(name) if &**name == "account"), "{error}");
    }
    neither.commit().unwrap();
    let left = db.transact(|tx| events.scan().rows(tx)).unwrap();
    assert_eq!(left.iter().map(|event| &*event.text).collect::<Vec<_>>(), ["neither"]);
}

#[test]
fn a_request_whose_table_is_dropped_before_its_commit_is_told_which() {
    let (db, accounts) = with_accounts(1);
    let mut attempts = 0;
    let outcome = db.transact(|tx| {
        attempts += 1;
        accounts.insert(tx, &account(5))?;
        drop_accounts(&db);
        Ok(())
    });
    assert!(matches!(outcome, Err(Error::UnknownTable(name)) if &*name == "account"));
    assert_eq!(attempts, 2);
}

/// Reads every row by the index, and calls `meanwhile` at the first one, on another thread.
fn scan_while<'t>(
    accounts: &Table<Account>,
    tx: &mut impl generic::ReadTransaction<'t, Engine>,
    meanwhile: impl FnOnce() + Send,
) -> ensilo::Result<()> {
    let by_owner = accounts.index::<(ensilo::Text<16>, Reverse<i64>)>("by_owner")?;
    let mut meanwhile = Some(meanwhile);
    by_owner.scan().for_each(tx, |_, _| {
        if let Some(meanwhile) = meanwhile.take() {
            std::thread::scope(|scope| scope.spawn(meanwhile).join().unwrap());
        }
    })
}

#[test]
fn every_kind_of_request_reports_a_table_dropped_meanwhile() {
    let told = [
        |db: &Database, accounts: &Table<Account>| {
            db.read_stale(|tx| scan_while(accounts, tx, || db.drop_table("account").unwrap()))
        },
        |db: &Database, accounts: &Table<Account>| {
            db.transact(|tx| scan_while(accounts, tx, || db.drop_table("account").unwrap()))
        },
        |db: &Database, accounts: &Table<Account>| {
            db.request()
                .retries(0)
                .transact(|tx| scan_while(accounts, tx, || db.drop_table("account").unwrap()))
        },
        |db: &Database, accounts: &Table<Account>| {
            let mut open = db.begin().unwrap();
            open.with(|tx| scan_while(accounts, tx, || db.drop_table("account").unwrap()))
        },
    ];
    for request in told {
        let (db, accounts) = with_accounts(500);
        wait_for_snapshot(&db);
        let error = request(&db, &accounts).unwrap_err();
        assert!(matches!(&error, Error::UnknownTable(name) if &**name == "account"), "{error}");
    }
}

#[test]
fn a_snapshot_whose_index_is_dropped_meanwhile_is_told_which() {
    let (db, accounts) = with_accounts(500);
    wait_for_snapshot(&db);
    let error = db
        .read_stale(|tx| scan_while(&accounts, tx, || db.drop_index("account", "by_owner").unwrap()))
        .unwrap_err();
    assert!(
        matches!(&error, Error::UnknownIndex(of) if (of.table(), of.name()) == ("account", "by_owner")),
        "{error}"
    );
}

#[test]
fn an_index_that_is_dropped_before_the_commit_takes_nothing_with_it() {
    let (db, accounts) = with_accounts(1);
    db.create_index("account", "by_balance", [("balance", Order::Ascending)]).unwrap();
    let mut tx = db.begin().unwrap();
    tx.with(|tx| accounts.insert(tx, &account(5))).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| db.drop_index("account", "by_balance")).join().unwrap().unwrap();
    });
    tx.commit().unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 5)).unwrap(), Some(account(5)));
}

#[test]
fn a_reader_of_a_dropped_index_does_not_commit_beside_writers() {
    let (db, accounts) = with_accounts(1);
    let by_owner = accounts.index::<(ensilo::Text<16>, Reverse<i64>)>("by_owner").unwrap();
    let by_email = accounts.index::<Option<String>>("by_email").unwrap();
    let mut misses = db.begin().unwrap();
    assert_eq!(misses.with(|tx| by_owner.prefix((account(1).owner,)).count(tx)).unwrap(), 0);
    let mut finds = db.begin().unwrap();
    assert_eq!(finds.with(|tx| by_email.get(tx, &account(0).email)).unwrap(), Some(account(0)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            db.drop_index("account", "by_owner").unwrap();
            db.drop_index("account", "by_email").unwrap();
            db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
        });
    });
    change_what_was_read(|| db.request().retries(0).transact(|tx| accounts.delete(tx, 0).map(drop)));
    assert_eq!(misses.with(|tx| accounts.get(tx, 1)).unwrap(), SEES_LATER_COMMITS.then(|| account(1)));
    for (mut undone, index) in [(misses, "account.by_owner"), (finds, "account.by_email")] {
        let error = undone.commit().unwrap_err();
        assert!(
            matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::StoreDropped),
            "{error}"
        );
        assert!(error.to_string().contains(index), "{error}");
    }
}

/// Inserts this account on a thread of its own, as often as it takes; `first_abort` gets the reason why it does not at first.
fn insert_on_thread(
    db: &generic::Database<HookedEngine>,
    accounts: &generic::Table<Account, HookedEngine>,
    id: u32,
    first_abort: mpsc::Sender<AbortReason>,
) -> std::thread::JoinHandle<ensilo::Result<u32>> {
    let (db, accounts) = (db.clone(), accounts.clone());
    std::thread::spawn(move || {
        let request = db.request().retries(u32::MAX).on_abort(|abort| {
            // Only the first one is waited for.
            let _ = first_abort.send(abort.reason());
        });
        request.transact(|tx| accounts.insert(tx, &account(id)))
    })
}

#[test]
fn writers_keep_a_dropped_index_until_its_readers_have_ended() {
    let db: generic::Database<HookedEngine> = Options::default().in_memory_with().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let by_owner = accounts.index::<(ensilo::Text<16>, Reverse<i64>)>("by_owner").unwrap();
    let mut reader = db.begin().unwrap();
    assert_eq!(reader.with(|tx| by_owner.prefix((account(1).owner,)).count(tx)).unwrap(), 0);
    let (hand_over, writer) = mpsc::channel();
    let dropping = {
        let (db, accounts) = (db.clone(), accounts.clone());
        std::thread::spawn(move || {
            let (for_hook, accounts) = (db.clone(), accounts.clone());
            hook_once(Failpoint::IndexDropped, 1, move || {
                let (tell, first_abort) = mpsc::channel();
                hand_over.send(insert_on_thread(&for_hook, &accounts, 1, tell)).unwrap();
                // It does not commit without an entry while the drop is not done, nor against the reader's lock.
                let reason = if LOCKS { AbortReason::LockHeld } else { AbortReason::StoreDropped };
                assert_eq!(first_abort.recv(), Ok(reason));
            });
            db.drop_index("account", "by_owner")
        })
    };
    dropping.join().unwrap().unwrap();
    assert_eq!(writer.recv().unwrap().join().unwrap().unwrap(), 1);
    assert_eq!(reader.with(|tx| accounts.get(tx, 1)).unwrap(), SEES_LATER_COMMITS.then(|| account(1)));
    let error = reader.commit().unwrap_err();
    assert!(
        matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::StoreDropped),
        "{error}"
    );
    assert!(matches!(db.transact(|tx| by_owner.scan().count(tx)), Err(Error::UnknownIndex(_))));
}

#[test]
fn several_tables_have_rows_of_one_type() {
    let db = in_memory(Options::default());
    let tables = ["account_1", "account_2"].map(|name| db.create_table_named::<Account>(name).unwrap());
    for (table, id) in tables.iter().zip([1, 2]) {
        db.transact(|tx| table.insert(tx, &account(id))).unwrap();
    }
    assert_eq!(db.list_tables().unwrap(), ["account_1", "account_2"]);
    let again = db.open_table_named::<Account>("account_2").unwrap();
    assert_eq!(db.transact(|tx| again.scan().rows(tx)).unwrap(), [account(2)]);
    assert!(matches!(db.open_table::<Account>(), Err(Error::UnknownTable(_))));
    assert!(matches!(db.create_table_named::<Account>("account_1"), Err(Error::TableExists(_))));
    assert!(matches!(db.create_table_named::<Account>(""), Err(Error::InvalidSchema(_))));
}
