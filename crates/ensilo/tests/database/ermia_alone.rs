//! What is of ERMIA's engine alone: its level without the safety net, and what it cannot do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::ermia::{Ermia, Isolation, SnapshotIsolation};
use ensilo::generic::{self, Session};
use ensilo::variants::Failpoint;
use ensilo::{Error, Options, Order, Result, Row};

use super::every_engine::unique_builds::the_old_row_changes_between_read_and_entry;
use super::opened::{Table, with_accounts};
use crate::failpoints::{self, HookedErmia};
use crate::{Account, account};

/// Snapshot isolation, with a closure at its named places.
#[derive(Copy, Clone, Debug)]
struct Hooked;

impl Isolation for Hooked {
    type Dependencies = <SnapshotIsolation as Isolation>::Dependencies;
    const SERIALIZABLE: bool = false;

    fn reached(place: Failpoint) {
        failpoints::call(place);
    }
}

#[test]
fn a_row_that_changes_while_an_index_is_built_has_one_entry_under_snapshot_isolation() {
    the_old_row_changes_between_read_and_entry::<Ermia<Hooked>>();
}

#[test]
fn an_index_is_read_once_those_have_ended_that_began_before_its_last_entry() {
    let options = Options::default().epoch_interval(Duration::from_millis(1));
    let db: generic::Database<HookedErmia> = options.in_memory_with().unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(1))).unwrap();
    let has_ended = Arc::new(AtomicBool::new(false));
    let (for_hook, ended, mut has_begun) = (db.clone(), Arc::clone(&has_ended), false);
    failpoints::hook(move |place| match place {
        Failpoint::IndexRowsRead if !has_begun => {
            has_begun = true;
            let (db, accounts, ended) = (for_hook.clone(), accounts.clone(), Arc::clone(&ended));
            let begun = Arc::new(Barrier::new(2));
            let may_go_on = Arc::clone(&begun);
            thread::spawn(move || {
                let mut session = db.begin().unwrap();
                assert!(accounts.get(&mut session, 1).unwrap().is_some());
                begun.wait();
                // To this session the entry of the row is missing.
                for _ in 0..1_000 {
                    thread::yield_now();
                    assert!(accounts.get(&mut session, 1).unwrap().is_some());
                }
                ended.store(true, Ordering::SeqCst);
                session.commit().unwrap();
            });
            may_go_on.wait();
        }
        Failpoint::IndexFilled => assert!(ended.load(Ordering::SeqCst)),
        _ => {}
    });
    db.create_index("account", "by_visits", [("visits", Order::Ascending)]).unwrap();
    assert!(has_ended.load(Ordering::SeqCst));
}

#[test]
fn a_transaction_cannot_be_prepared_and_stays_open() {
    let (db, accounts) = with_accounts(1);
    let mut session = db.begin().unwrap();
    assert!(accounts.get(&mut session, 0).unwrap().is_some());
    assert!(matches!(session.prepare(), Err(Error::NoTwoPhaseCommit)));
    session.commit().unwrap();
}

/// What is truncated.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "thing")]
struct Thing {
    #[row(key)]
    id: u32,
}

/// What stays.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "other")]
struct Other {
    #[row(key)]
    id: u32,
    value: u64,
}

const OTHERS: [u32; 3] = [1, 2, 3];

fn read(others: &Table<Other>, tx: &mut Session<Ermia>, id: u32) -> Result<u64> {
    Ok(others.get(tx, id)?.map_or(0, |other| other.value))
}

fn set(others: &Table<Other>, tx: &mut Session<Ermia>, id: u32) -> Result<()> {
    others.update(tx, id, |other: &mut Other| other.value = 1)
}

/// A transaction `used` has used the table before it is truncated, and `last` sees the empty one. By what they have read of other rows, `last` comes
/// before `beside`, and that before `used`; where `last` begins behind the truncation one more comes in between. Returns whether all have
/// committed: then they belong to no serial order. How far the truncation is by each statement is a matter of time; no time makes that right.
fn goes_round_a_truncation(is_last_behind: bool) -> Result<bool> {
    let db = super::opened::quick();
    let things = db.create_table::<Thing>()?;
    let others = db.create_table::<Other>()?;
    db.transact(|tx| things.insert(tx, &Thing { id: 1 }))?;
    db.transact(|tx| others.insert_many(tx, &OTHERS.map(|id| Other { id, value: 0 })))?;
    let pause = || thread::sleep(Duration::from_millis(60));
    let first = db.begin()?;
    thread::scope(|scope| {
        let truncation = scope.spawn(|| db.truncate_table("thing"));
        pause();
        let mut used = db.begin()?;
        assert!(things.get(&mut used, 1)?.is_some());
        drop(first);
        let begin = Instant::now();
        while !matches!(db.transact(|tx| things.get(tx, 1)), Err(Error::TableChanged(_))) {
            if begin.elapsed() > Duration::from_secs(3) {
                // The truncation has begun so late that it waits for the one that has used the table.
                return Ok(false);
            }
            thread::yield_now();
        }
        pause();
        let mut beside = db.begin()?;
        let mut is_cycle = read(&others, &mut beside, OTHERS[0])? == 0;
        set(&others, &mut used, OTHERS[0])?;
        used.commit()?;
        pause();
        let mut last = db.begin()?;
        is_cycle &= read(&others, &mut last, OTHERS[1])? == 0;
        set(&others, &mut beside, OTHERS[1])?;
        beside.commit()?;
        let begin = Instant::now();
        while !truncation.is_finished() {
            if begin.elapsed() > Duration::from_secs(3) {
                // The last one has begun so early that the truncation waits for it.
                return Ok(false);
            }
            thread::yield_now();
        }
        let things = db.open_table::<Thing>()?;
        if is_last_behind {
            let mut between = last;
            last = db.begin()?;
            is_cycle &= read(&others, &mut last, OTHERS[2])? == 0;
            set(&others, &mut between, OTHERS[2])?;
            between.commit()?;
        }
        is_cycle &= things.get(&mut last, 1)?.is_none();
        last.commit()?;
        Ok(is_cycle)
    })
}

#[test]
fn nobody_who_sees_a_truncated_table_comes_before_who_has_used_it() {
    for is_last_behind in [false, true] {
        match goes_round_a_truncation(is_last_behind) {
            Ok(is_cycle) => assert!(!is_cycle, "is last behind the truncation: {is_last_behind}"),
            Err(Error::Aborted(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Over Silo's engine there is room for as many as memory holds.
#[test]
fn a_transaction_for_which_there_is_no_place_is_refused_and_others_go_on() {
    let (db, accounts) = with_accounts(1);
    let mut sessions = Vec::new();
    let refused = loop {
        match db.begin() {
            Ok(session) => sessions.push(session),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, Error::TooManyTransactions), "{refused:?}");
    assert!(sessions.len() > 60_000, "{}", sessions.len());
    assert!(db.transact(|tx| accounts.get(tx, 0)).unwrap().is_some());
    drop(sessions);
    db.begin().unwrap().commit().unwrap();
}

/// Over Silo's engine a deleted row takes memory until no snapshot needs it, and the limit bounds that.
#[test]
fn rows_that_are_deleted_and_inserted_again_beside_a_long_reader_leave_nothing() {
    const ROWS: u32 = 100;
    let (db, accounts) = with_accounts(ROWS);
    let delete_and_insert = |id: u32| {
        db.transact(|tx| accounts.delete(tx, id)).unwrap();
        db.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
    };
    let most = db.read_stale(|tx| {
        let rounds = (0..40).map(|_| {
            // In a thread of its own: this one has the snapshot.
            thread::scope(|scope| {
                _ = scope.spawn(|| (0..10 * ROWS).for_each(|at| delete_and_insert(at % ROWS)))
            });
            db.statistics().unwrap().memory.deleted_records
        });
        let most = rounds.max();
        assert_eq!(accounts.scan().count(tx)?, ROWS as usize);
        Ok(most)
    });
    // A snapshot is a long reader once 4,096 have committed in one epoch, or a fifth epoch begins, however long epochs take.
    assert!(most.unwrap() < Some(200 * u64::from(ROWS)), "of 400 deletions of each row");
}
