//! Rows as asynchronous streams.

use std::cmp::Reverse;
use std::future::Future as _;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use ensilo::{AbortReason, Durability, Error, Options, Result, Row, RowStream, Text, Value};

use super::submit::block_on;
use super::{Account, Database, Table, Visits, account, in_memory, with_accounts};

/// More rows than are read at once.
const ROWS: u32 = 900;

/// What is left of the stream, up to an error.
fn rest<R>(mut rows: RowStream<R>) -> Result<Vec<R>> {
    let mut all = Vec::new();
    while let Some(row) = block_on(rows.next()) {
        all.push(row?);
    }
    assert!(block_on(rows.next()).is_none());
    Ok(all)
}

fn first<R>(rows: &mut RowStream<R>) -> R {
    block_on(rows.next()).unwrap().unwrap()
}

/// Waits until no transaction is under way that began before this.
fn wait_until_nothing_is_held(db: &Database) {
    let now = db.statistics().unwrap().epochs.global_epoch;
    while db.statistics().unwrap().epochs.oldest_pin.is_some_and(|pin| pin <= now) {
        std::thread::yield_now();
    }
}

#[test]
fn a_stream_gives_what_the_scan_gives() {
    let (db, accounts) = with_accounts(ROWS);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    for scan in [
        accounts.scan(),
        accounts.range(5..700).reverse(),
        accounts.range(5..700).limit(300),
        accounts.scan().limit(16),
        accounts.range(7..7),
        accounts.scan().limit(0),
    ] {
        let expected = db.transact(|tx| scan.clone().collect(tx)).unwrap();
        assert_eq!(rest(db.stream(scan)).unwrap(), expected);
    }
    for scan in [by_owner.scan(), by_owner.scan().reverse().limit(500), by_owner.prefix((super::owner(1),))] {
        let expected = db.transact(|tx| scan.clone().collect(tx)).unwrap();
        assert_eq!(rest(db.stream(scan)).unwrap(), expected);
    }
    let visits = rest(db.stream(accounts.range(3..5).columns::<Visits>())).unwrap();
    assert_eq!(visits, [(3, Visits { visits: 0 }), (4, Visits { visits: 0 })]);
    let dynamic = db.open_dynamic_table("account").unwrap();
    let scan = || dynamic.scan().by_index("by_email").unwrap().reverse().columns(&["balance"]).unwrap();
    let balances = rest(db.stream(scan())).unwrap().into_iter().map(|(_, columns)| columns);
    assert_eq!(balances.collect::<Vec<Vec<Value>>>(), db.transact(|tx| scan().collect(tx)).unwrap());
}

#[test]
fn a_stream_shows_one_moment_while_others_write() {
    let (db, accounts) = with_accounts(ROWS);
    let expected = db.transact(|tx| accounts.scan().collect(tx)).unwrap();
    let mut rows = db.stream(accounts.scan());
    let mut all = vec![first(&mut rows)];
    for round in 0..3 {
        db.transact(|tx| {
            accounts.delete(tx, 100 + round)?;
            accounts.insert(tx, &account(ROWS + round))?;
            accounts.update(tx, 700 + round, |row: &mut Visits| row.visits = 9)
        })
        .unwrap();
        all.extend((0..250).map(|_| first(&mut rows)));
    }
    all.extend(rest(rows).unwrap());
    assert_eq!(all, expected);
    // One that begins now shows all that was committed.
    let now = rest(db.stream(accounts.scan())).unwrap();
    assert_eq!(now, db.transact(|tx| accounts.scan().collect(tx)).unwrap());
    assert_eq!(now.len(), ROWS as usize);
}

#[test]
fn a_stream_may_be_older_where_that_is_allowed() {
    let db = in_memory(Options::default());
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
    let any = db.job().max_staleness(Duration::MAX).stream(accounts.scan());
    assert!(rest(any).unwrap().len() <= 1);
    let fresh = db.job().max_staleness(Duration::ZERO).stream(accounts.scan());
    assert_eq!(rest(fresh).unwrap().len(), 1);
}

#[test]
fn nothing_is_read_before_it_is_asked_for_and_no_thread_is_kept() {
    let db = in_memory(Options::default().pool_threads(1));
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..ROWS).try_for_each(|id| accounts.insert(tx, &account(id)).map(drop))).unwrap();
    let stream = || db.stream(accounts.scan());
    let (mut idle, mut other) = (stream(), stream());
    assert_eq!(futures_core::Stream::size_hint(&idle), (0, None));
    let mut given = 0;
    for _ in 0..400 {
        first(&mut idle);
        first(&mut other);
        given += 1;
        // What was read ahead of the consumer.
        assert!(futures_core::Stream::size_hint(&idle).0 <= 256);
        if given % 100 == 0 {
            // The only thread of the pool is free.
            assert_eq!(db.submit(|_| Ok(7)).unwrap().wait().unwrap(), 7);
        }
    }
    assert_eq!(rest(idle).unwrap().len(), 500);
    assert_eq!(rest(other).unwrap().len(), 500);
    wait_until_nothing_is_held(&db);
}

#[test]
fn a_stream_that_is_dropped_or_has_ended_holds_nothing() {
    let (db, accounts) = with_accounts(ROWS);
    let mut rows = db.stream(accounts.scan());
    first(&mut rows);
    // It holds a snapshot as long as it is there, which it has taken by now.
    let held = db.statistics().unwrap().epochs.global_epoch;
    while db.statistics().unwrap().epochs.global_epoch < held + 10 {
        assert!(db.statistics().unwrap().epochs.oldest_pin.unwrap() <= held);
    }
    drop(rows);
    wait_until_nothing_is_held(&db);
    let mut rows = db.stream(accounts.scan().limit(20));
    // Both batches are read, and the last rows not taken.
    (0..17).for_each(|_| _ = first(&mut rows));
    wait_until_nothing_is_held(&db);
    assert_eq!(rest(rows).unwrap().len(), 3);
}

#[test]
fn a_stream_that_is_dropped_in_the_queue_or_at_work_reads_no_more() {
    let db = in_memory(Options::default().pool_threads(1));
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..ROWS).try_for_each(|id| accounts.insert(tx, &account(id)).map(drop))).unwrap();
    for batches in [0, 16, 16 + 64] {
        let mut rows = db.stream(accounts.scan());
        (0..batches).for_each(|_| _ = first(&mut rows));
        let (release, gate) = mpsc::channel::<()>();
        let held = db.submit(move |_| Ok(gate.recv().is_err())).unwrap();
        let poll = pin!(rows.next()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending(), "the thread that would read is held");
        drop(rows);
        drop(release);
        assert!(held.wait().unwrap());
        wait_until_nothing_is_held(&db);
    }
}

#[test]
fn a_stream_that_nobody_asks_is_ended_when_it_is_too_old() {
    let millisecond = Duration::from_millis(1);
    let db = in_memory(
        Options::default()
            .epoch_interval(millisecond)
            .epochs_per_snapshot(2)
            .snapshot_age_limit(50 * millisecond),
    );
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| (0..ROWS).try_for_each(|id| accounts.insert(tx, &account(id)).map(drop))).unwrap();
    let mut rows = loop {
        let mut rows = db.stream(accounts.scan());
        // On a busy machine it may be too old at once.
        if block_on(rows.next()).unwrap().is_ok() {
            break rows;
        }
    };
    wait_until_nothing_is_held(&db);
    // What was read before is good.
    (0..15).for_each(|_| _ = first(&mut rows));
    let error = block_on(rows.next()).unwrap().unwrap_err();
    assert!(
        matches!(&error, Error::Aborted(abort) if abort.reason() == AbortReason::SnapshotTooOld
            && abort.table() == Some("account")),
        "{error:?}"
    );
    assert!(block_on(rows.next()).is_none());
}

#[test]
fn errors_end_a_stream() {
    let (db, accounts) = with_accounts(ROWS);
    let other = super::quick();
    assert!(matches!(rest(other.stream(accounts.scan())), Err(Error::UnknownTable(_))));
    let stored = db.job().durability(Durability::Stored).stream(accounts.scan());
    assert!(matches!(rest(stored), Err(Error::NotDurable)));
    let late = db.job().deadline(Instant::now()).stream(accounts.scan());
    assert!(matches!(rest(late), Err(Error::DeadlineExceeded)));
    let (inner, scanned) = (db.clone(), accounts.clone());
    let within_job = db.submit(move |_| Ok(rest(inner.stream(scanned.scan())).map(drop))).unwrap();
    assert!(matches!(within_job.wait().unwrap(), Err(Error::JobWaitsForJob)));

    let mut dropped = db.stream(accounts.scan());
    first(&mut dropped);
    db.drop_table("account").unwrap();
    let ended = rest(dropped);
    assert!(matches!(ended, Err(Error::UnknownTable(_))), "{ended:?}");
}

#[test]
fn closing_does_not_wait_for_a_stream_and_ends_it() {
    let (db, accounts) = with_accounts(ROWS);
    let mut rows = db.stream(accounts.scan());
    let unbegun = db.stream(accounts.scan());
    first(&mut rows);
    db.close().unwrap();
    (0..15).for_each(|_| _ = first(&mut rows));
    assert!(matches!(rest(rows), Err(Error::Closed)));
    assert!(matches!(rest(unbegun), Err(Error::Closed)));
    assert!(matches!(rest(db.stream(accounts.scan())), Err(Error::Closed)));
}

#[test]
fn a_stream_does_not_keep_the_database_open() {
    let (db, accounts) = with_accounts(ROWS);
    let mut rows = db.stream(accounts.scan());
    first(&mut rows);
    drop(db);
    (0..15).for_each(|_| _ = first(&mut rows));
    assert!(matches!(rest(rows), Err(Error::Closed)));
}

/// A table of which another program knows more values.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "light")]
struct Light {
    #[row(key)]
    id: u32,
    color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, ensilo::ColumnValue)]
enum Color {
    Red,
}

#[test]
fn rows_come_up_to_one_with_an_unknown_value() {
    let (db, _) = with_accounts(0);
    let lights: Table<Light> = db.table().unwrap();
    let dynamic = db.open_dynamic_table("light").unwrap();
    let put = |id: u32, color: u8| db.transact(|tx| dynamic.insert(tx, &[id.into(), color.into()])).unwrap();
    (0..20).for_each(|id| _ = put(id, 0));
    put(20, 7);
    put(21, 0);
    let mut rows = db.stream(lights.scan());
    for id in 0..20 {
        assert_eq!(first(&mut rows), (id, Light { id, color: Color::Red }));
    }
    let error = block_on(rows.next()).unwrap().unwrap_err();
    assert!(matches!(error, Error::UnknownValue(_)), "{error:?}");
    assert!(block_on(rows.next()).is_none());
}

#[test]
fn a_stream_goes_from_thread_to_thread() {
    let (db, accounts) = with_accounts(ROWS);
    let mut rows = db.stream(accounts.scan());
    let mut ids = Vec::new();
    for _ in 0..8 {
        (rows, ids) = std::thread::spawn(move || {
            for _ in 0..100 {
                ids.push(first(&mut rows).0);
            }
            (rows, ids)
        })
        .join()
        .unwrap();
    }
    ids.extend(rest(rows).unwrap().into_iter().map(|(id, _)| id));
    assert_eq!(ids, (0..ROWS).collect::<Vec<_>>());
}
