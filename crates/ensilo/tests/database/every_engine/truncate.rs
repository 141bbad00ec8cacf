//! Truncating tables: what is left, what handles and consumers meet, and that each transaction sees all of a table's rows or none.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::variants::Failpoint;
use ensilo::{AbortReason, Columns, Error, Options, Order, Row, RowId, Value, generic};

use super::schema_changes::visit_beside_a_change;
use super::{
    Account, Database, Event, HookedEngine, Table, Visits, account, in_memory, queues::check_index, quick,
    with_accounts,
};
use crate::failpoints::hook_once;

fn is_refused<R: std::fmt::Debug>(result: Result<R, Error>) -> bool {
    matches!(&result, Err(Error::TableChanged(name)) if &**name == "account")
}

#[test]
fn a_truncated_table_is_empty_with_its_columns_and_indexes() {
    let (db, accounts) = with_accounts(500);
    db.create_index("account", "by_visits", [("visits", Order::Ascending)]).unwrap();
    db.drop_index("account", "by_email").unwrap();
    let schema = db.schema("account").unwrap();
    let by_visits = accounts.index::<u32>("by_visits").unwrap();
    db.truncate_table("account").unwrap();
    assert!(is_refused(db.transact(|tx| accounts.get(tx, 1))));
    assert!(is_refused(db.transact(|tx| accounts.insert(tx, &account(1)))));
    assert!(is_refused(db.transact(|tx| by_visits.scan().count(tx))));
    assert_eq!(db.schema("account").unwrap(), schema);
    assert_eq!(db.list_tables().unwrap(), ["account"]);
    let statistics = db.statistics().unwrap();
    let table = statistics.table("account").unwrap();
    assert_eq!((table.records, table.indexes.len()), (0, 2));
    assert!(table.indexes.iter().all(|index| index.records == 0));
    let accounts = db.open_dynamic_table("account").unwrap();
    assert!(db.transact(|tx| accounts.scan().collect(tx)).unwrap().is_empty());
    db.create_unique_index("account", "by_email", [("email", Order::Ascending)]).unwrap();
    let accounts: Table<Account> = db.open_table().unwrap();
    db.transact(|tx| accounts.insert_many(tx, &[account(1), account(7)])).unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().rows(tx)).unwrap(), [account(1), account(7)]);
    for index in ["by_owner", "by_email", "by_visits"] {
        check_index(&db, "account", index);
    }
    // As often as one likes, also when it is empty.
    for _ in 0..3 {
        db.truncate_table("account").unwrap();
    }
    assert_eq!(db.transact(|tx| db.open_table::<Account>()?.scan().count(tx)).unwrap(), 0);
    assert!(matches!(db.truncate_table("nobody"), Err(Error::UnknownTable(_))));
    assert!(matches!(db.truncate_table("ensilo.tables"), Err(Error::UnknownTable(_))));
    db.transact(|_| {
        assert!(matches!(db.truncate_table("account"), Err(Error::NestedRequest(_))));
        Ok(())
    })
    .unwrap();
    db.drop_table("account").unwrap();
    assert!(matches!(db.truncate_table("account"), Err(Error::UnknownTable(_))));
}

/// A database with hooks, which has five accounts and no events.
fn hooked() -> (generic::Database<HookedEngine>, generic::Table<Event, HookedEngine>) {
    let options = Options::default().epoch_interval(Duration::from_millis(1));
    let db: generic::Database<HookedEngine> = options.in_memory_with().unwrap();
    let (accounts, events) = (db.create_table::<Account>().unwrap(), db.create_table::<Event>().unwrap());
    db.transact(|tx| (0..5).try_for_each(|id| accounts.insert(tx, &account(id)).map(|_| ()))).unwrap();
    (db, events)
}

#[test]
fn a_request_that_opens_a_table_which_is_being_truncated_runs_again_behind_that() {
    let (db, _) = hooked();
    let (for_hook, (ended, of_request)) = (db.clone(), mpsc::channel());
    hook_once(Failpoint::TableRefused, 1, move || {
        // The truncation goes on when the first attempt has met it.
        let (db, ended, has_met) = (for_hook.clone(), ended.clone(), Arc::new(Barrier::new(2)));
        let met = Arc::clone(&has_met);
        thread::spawn(move || {
            let mut attempts = 0_u64;
            let count = db.transact(|tx| {
                attempts += 1;
                let accounts = db.open_table::<Account>();
                if attempts == 1 {
                    met.wait();
                }
                accounts?.scan().count(tx)
            });
            ended.send((count, attempts)).unwrap();
        });
        has_met.wait();
    });
    db.truncate_table("account").unwrap();
    let (count, attempts) = of_request.recv().unwrap();
    assert_eq!(count.unwrap(), 0);
    // It waits for the truncation only so long, before it is tried again.
    assert!(attempts > 1, "{attempts}");
    assert_eq!(db.statistics().unwrap().aborts_of(AbortReason::TableChanging), attempts - 1);
}

#[test]
fn a_session_that_opens_a_table_which_is_being_truncated_is_refused_and_goes_on() {
    let (db, events) = hooked();
    let (for_hook, (ended, of_session)) = (db.clone(), mpsc::channel());
    hook_once(Failpoint::TableRefused, 1, move || {
        let (db, events) = (for_hook.clone(), events.clone());
        let in_session = move || {
            let mut session = db.begin().unwrap();
            assert_eq!(events.scan().count(&mut session).unwrap(), 0);
            let refused = db.open_table::<Account>().unwrap_err();
            session.commit().unwrap();
            refused
        };
        ended.send(thread::spawn(in_session).join().unwrap()).unwrap();
    });
    db.truncate_table("account").unwrap();
    let refused = of_session.recv().unwrap();
    let is_changing = |abort: &ensilo::Abort| abort.reason() == AbortReason::TableChanging;
    assert!(matches!(&refused, Error::Aborted(abort) if is_changing(abort)), "{refused}");
    assert!(refused.is_retryable(), "{refused}");
}

#[test]
fn row_ids_go_on_in_a_truncated_table() {
    let db = quick();
    let events = db.table::<Event>().unwrap();
    let event = Event { kind: 0, text: "before".to_owned() };
    let before = db.transact(|tx| events.insert_many(tx, [&event; 3])).unwrap();
    db.truncate_table("event").unwrap();
    let events = db.table::<Event>().unwrap();
    let after: RowId = db.transact(|tx| events.insert(tx, &event)).unwrap();
    assert!(before.iter().all(|id| *id < after), "{after:?} after {before:?}");
}

#[test]
fn a_table_whose_columns_were_changed_is_truncated_as_it_is_since() {
    let (db, _) = with_accounts(3);
    let level = ensilo::SchemaChange::new().add("level", ensilo::ColumnType::U16, 3u16);
    db.change_table("account", &level).unwrap();
    db.truncate_table("account").unwrap();
    let table = db.open_dynamic_table("account").unwrap();
    let mut row: Vec<Value> =
        vec![1u32.into(), "owner".into(), 5i64.into(), Value::Null, 0u32.into(), 9u16.into()];
    db.transact(|tx| table.insert(tx, &row)).unwrap();
    assert_eq!(db.transact(|tx| table.get(tx, &[1u32.into()])).unwrap().as_ref(), Some(&row));
    // And changed again.
    let more = ensilo::SchemaChange::new().add("more", ensilo::ColumnType::Bool, true);
    db.change_table("account", &more).unwrap();
    row.push(true.into());
    let table = db.open_dynamic_table("account").unwrap();
    assert_eq!(db.transact(|tx| table.get(tx, &[1u32.into()])).unwrap(), Some(row));
}

#[test]
fn handles_are_refused_before_the_new_table_is_there_and_snapshots_miss_nothing_committed_before() {
    let db: generic::Database<HookedEngine> =
        Options::default().epoch_interval(Duration::from_millis(1)).in_memory_with().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    let events = db.create_table::<Event>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
    let event = Event { kind: 0, text: "committed before".to_owned() };
    db.transact(|tx| events.insert(tx, &event)).unwrap();
    let (for_hook, handle) = (db.clone(), accounts.clone());
    hook_once(Failpoint::TableRowsDeleted, 1, move || {
        assert!(is_refused(for_hook.transact(|tx| handle.get(tx, 1))));
        if <HookedEngine as ensilo::Engine>::SNAPSHOTS {
            // Whoever begins from now on, and may come to see the empty table, sees what was committed beside its rows.
            assert_eq!(for_hook.read_stale(|tx| events.scan().count(tx)).unwrap(), 1);
        }
    });
    db.truncate_table("account").unwrap();
    let accounts = db.open_table::<Account>().unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 0);
    if <HookedEngine as ensilo::Engine>::SNAPSHOTS {
        assert_eq!(db.read_stale(|tx| accounts.scan().count(tx)).unwrap(), 0);
    }
}

#[test]
fn a_table_is_used_while_its_truncation_waits_for_a_transaction_that_keeps_all_it_has_seen() {
    let (db, accounts) = with_accounts(3);
    let mut session = db.begin().unwrap();
    accounts.update(&mut session, 1, |columns: &mut Visits| columns.visits = 5).unwrap();
    thread::scope(|scope| {
        let truncation = scope.spawn(|| db.truncate_table("account"));
        visit_beside_a_change(&db, &accounts);
        assert!(!truncation.is_finished());
        // It commits with what it has written, before the rows go.
        session.commit().unwrap();
        truncation.join().unwrap().unwrap();
    });
    assert!(is_refused(db.transact(|tx| accounts.get(tx, 1))));
    assert_eq!(db.transact(|tx| db.open_table::<Account>()?.scan().count(tx)).unwrap(), 0);
}

#[test]
fn an_index_that_is_being_built_is_waited_for_by_the_caller() {
    for _ in 0..10 {
        let (db, _) = with_accounts(300);
        thread::scope(|scope| {
            let builder =
                scope.spawn(|| db.create_index("account", "by_visits", [("visits", Order::Ascending)]));
            while let Err(error) = db.truncate_table("account") {
                assert!(matches!(error, Error::IndexNotReady(_)), "{error}");
                thread::yield_now();
            }
            let built = builder.join().unwrap();
            assert!(matches!(built, Ok(()) | Err(Error::TableChanged(_))), "{built:?}");
        });
        assert_eq!(db.transact(|tx| db.open_table::<Account>()?.scan().count(tx)).unwrap(), 0);
    }
}

#[test]
fn at_the_memory_limit_a_table_is_truncated_and_its_memory_serves_others() {
    let limit = 16 << 20;
    let options = Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(2);
    let db = in_memory(options.memory_limit_bytes(limit));
    let mut events = db.create_table::<Event>().unwrap();
    let event = Event { kind: 0, text: "x".repeat(1000) };
    for _ in 0..3 {
        let (mut inserted, began) = (0, Instant::now());
        while inserted < 5000 {
            match db.transact(|tx| events.insert(tx, &event)) {
                Ok(_) => inserted += 1,
                Err(Error::OutOfMemory(_)) => thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{inserted} rows are there");
        }
        while db.transact(|tx| events.insert(tx, &event)).is_ok() {}
        db.truncate_table("event").unwrap();
        events = db.open_table().unwrap();
    }
}

/// What one thread has written last.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "last")]
struct Last {
    #[row(key)]
    thread: u32,
    number: u64,
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item", index(name = "by_number", columns(number, thread)))]
struct Item {
    #[row(key)]
    thread: u32,
    #[row(key)]
    number: u64,
}

#[derive(Columns)]
#[columns(of = Last)]
struct LastNumber {
    number: u64,
}

/// What is there of one thread: the number that it has written last, and those of its items.
type Seen = (u64, Vec<u64>);

/// Checks that the items are the last ones of the thread that were written, all of them from some number on.
fn check_seen((last, numbers): &Seen) {
    let count = numbers.len() as u64;
    assert!(count <= *last, "{numbers:?}, {last}");
    let expected: Vec<_> = (last + 1 - count..=*last).collect();
    assert_eq!(*numbers, expected, "the last one is {last}");
}

const WRITERS: u32 = 2;

fn write_next(db: &Database, items: &Table<Item>, lasts: &Table<Last>, thread: u32) -> Result<(), Error> {
    db.transact(|tx| {
        let number = lasts.get(tx, thread)?.map_or(1, |last| last.number + 1);
        items.insert(tx, &Item { thread, number })?;
        lasts.update(tx, thread, |last: &mut LastNumber| last.number = number)
    })
}

fn seen<'t, E: ensilo::Engine>(
    tx: &mut impl generic::ReadTransaction<'t, E>,
    items: &generic::Table<Item, E>,
    lasts: &generic::Table<Last, E>,
) -> Result<Vec<Seen>, Error> {
    let by_number = items.index::<(u64, u32)>("by_number")?;
    (0..WRITERS)
        .map(|thread| {
            let last = lasts.get(tx, thread)?.map_or(0, |last| last.number);
            let mut numbers: Vec<_> =
                items.prefix((thread,)).rows(tx)?.iter().map(|item| item.number).collect();
            let by_index = by_number.scan().primary_keys(tx)?;
            assert_eq!(by_index.iter().filter(|key| key.0 == thread).count(), numbers.len());
            numbers.sort_unstable();
            Ok((last, numbers))
        })
        .collect()
}

/// A database for the writers, which have written nothing yet.
fn with_writers() -> (Database, Table<Last>) {
    let db = quick();
    let lasts = db.table::<Last>().unwrap();
    db.table::<Item>().unwrap();
    let first = (0..WRITERS).map(|thread| Last { thread, number: 0 }).collect::<Vec<_>>();
    db.transact(|tx| lasts.insert_many(tx, &first)).unwrap();
    (db, lasts)
}

#[test]
fn each_transaction_sees_a_truncated_table_as_it_was_before_or_is_afterwards() {
    const TRUNCATIONS: usize = 15;
    let (db, lasts) = with_writers();
    let (stop, commits, looks) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    // So many are written until the next truncation: scans get through, however the engine has them end in a conflict.
    let written_max = AtomicU64::new(0);
    let write = |thread: u32| {
        let mut items = db.table::<Item>().unwrap();
        while !stop.load(Ordering::Relaxed) {
            if commits.load(Ordering::Relaxed) >= written_max.load(Ordering::Relaxed) {
                thread::yield_now();
                continue;
            }
            match write_next(&db, &items, &lasts, thread) {
                Ok(()) => _ = commits.fetch_add(1, Ordering::Relaxed),
                Err(Error::TableChanged(_)) => items = db.table().unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
    };
    let look = |stale: bool| {
        while !stop.load(Ordering::Relaxed) {
            let items = db.table::<Item>().unwrap();
            let found = match stale {
                true => db.read_stale(|tx| seen(tx, &items, &lasts)),
                false => db.transact(|tx| seen(tx, &items, &lasts)),
            };
            match found {
                Ok(found) => {
                    found.iter().for_each(check_seen);
                    looks.fetch_add(1, Ordering::Relaxed);
                }
                Err(Error::TableChanged(_) | Error::NoSnapshots) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        let _at_end = super::SetOnDrop(&stop);
        let (write, look) = (&write, &look);
        (0..WRITERS).for_each(|thread| _ = scope.spawn(move || write(thread)));
        [false, true].into_iter().for_each(|stale| _ = scope.spawn(move || look(stale)));
        for _ in 0..TRUNCATIONS {
            let (before, seen_before) = (commits.load(Ordering::Relaxed), looks.load(Ordering::Relaxed));
            written_max.store(before + 40, Ordering::Relaxed);
            while commits.load(Ordering::Relaxed) < before + 20
                || looks.load(Ordering::Relaxed) < seen_before + 2
            {
                thread::yield_now();
            }
            // They go on beside the truncation.
            written_max.store(commits.load(Ordering::Relaxed) + 40, Ordering::Relaxed);
            let lasts_before = db.transact(|tx| lasts.scan().rows(tx)).unwrap();
            db.truncate_table("item").unwrap();
            // What was committed before the call is gone, in this and all transactions to come.
            let items = db.table::<Item>().unwrap();
            for (last, before) in db.transact(|tx| seen(tx, &items, &lasts)).unwrap().iter().zip(lasts_before)
            {
                check_seen(last);
                assert!(
                    last.1.first().is_none_or(|first| *first > before.number),
                    "{last:?} after {before:?}"
                );
            }
        }
    });
    let items = db.table::<Item>().unwrap();
    let found = db.transact(|tx| seen(tx, &items, &lasts)).unwrap();
    found.iter().for_each(check_seen);
    assert_eq!(found.iter().map(|seen| seen.0).sum::<u64>(), commits.into_inner(), "no commit is lost");
    check_index(&db, "item", "by_number");
}
