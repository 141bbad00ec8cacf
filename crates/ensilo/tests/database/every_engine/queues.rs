//! Tables as queues: rows that consumers take beside each other, and wait for.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;
use std::{future::Future, pin::Pin};

use ensilo::{AbortReason, Arrivals, Error, Result, Row, Text, Value};

use super::submit::block_on;
use super::{
    Account, Balance, Database, SEES_LATER_COMMITS, Table, Transaction, Visits, account, owner, quick,
    with_accounts,
};

/// So long a wait may take that must end.
const LIMIT: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "job", index(name = "by_urgency", columns(urgency desc, id)))]
pub(crate) struct Job {
    #[row(key)]
    pub(crate) id: u64,
    pub(crate) urgency: u32,
    /// The last one of a consumer.
    pub(crate) is_last: bool,
}

pub(crate) fn job(id: u64) -> Job {
    Job { id, urgency: (id % 7) as u32, is_last: false }
}

pub(crate) fn with_jobs(count: u64) -> (Database, Table<Job>) {
    let db = quick();
    let jobs = db.create_table::<Job>().unwrap();
    db.transact(|tx| (0..count).try_for_each(|id| jobs.insert(tx, &job(id)).map(drop))).unwrap();
    (db, jobs)
}

fn take(db: &Database, jobs: &Table<Job>) -> Option<u64> {
    db.transact(|tx| jobs.scan().take_first(tx)).unwrap().map(|(id, _)| id)
}

fn insert(db: &Database, jobs: &Table<Job>, id: u64) {
    db.transact(|tx| jobs.insert(tx, &job(id)).map(drop)).unwrap();
}

/// Returns how many conflicts there were: all aborts but those that a closure has asked for.
fn conflicts(db: &Database) -> u64 {
    let statistics = db.statistics().unwrap();
    statistics.aborts_total() - statistics.aborts_of(AbortReason::User)
}

/// Every row has its entry, and no entry is left over.
pub(super) fn check_index(db: &Database, table: &str, index: &str) {
    let table = db.open_dynamic_table(table).unwrap();
    let check = db.transact(|tx| table.check_index(tx, index)).unwrap();
    assert!(check.is_whole(), "{check:?}");
}

/// Returns whether anything has come; it does not wait.
fn has_come(arrivals: &mut Arrivals) -> bool {
    arrivals.wait_timeout(Duration::ZERO).unwrap()
}

#[test]
fn consumers_take_every_row_once_and_in_order() {
    const JOBS: u64 = 4_000;
    let (db, jobs) = with_jobs(JOBS);
    let before = conflicts(&db);
    let taken: Vec<Vec<u64>> = thread::scope(|scope| {
        let consume = || std::iter::from_fn(|| take(&db, &jobs)).collect();
        let consumers: Vec<_> = (0..4).map(|_| scope.spawn(consume)).collect();
        consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect()
    });
    assert!(taken.iter().all(|ids| ids.is_sorted()));
    let mut all = taken.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..JOBS));
    assert!(conflicts(&db) - before <= JOBS / 100, "{} conflicts", conflicts(&db) - before);
    assert_eq!(db.statistics().unwrap().table("job").unwrap().records, 0);
    check_index(&db, "job", "by_urgency");
}

#[test]
fn consumers_that_wait_take_all_that_producers_insert() {
    const PRODUCERS: u64 = 3;
    const JOBS: u64 = 500;
    const CONSUMERS: u64 = 4;
    let (db, jobs) = with_jobs(0);
    let consume = || {
        let mut arrivals = jobs.watch().unwrap();
        let mut taken = Vec::new();
        loop {
            match db.transact(|tx| jobs.scan().take_first(tx)).unwrap() {
                Some((_, job)) if job.is_last => return taken,
                Some((id, _)) => taken.push(id),
                None => assert!(arrivals.wait_timeout(LIMIT).unwrap(), "a wake-up was lost"),
            }
        }
    };
    let mut all = thread::scope(|scope| {
        let consumers: Vec<_> = (0..CONSUMERS).map(|_| scope.spawn(consume)).collect();
        let (db, jobs) = (&db, &jobs);
        let produce = |producer| move || (0..JOBS).for_each(|at| insert(db, jobs, at * PRODUCERS + producer));
        let producers: Vec<_> = (0..PRODUCERS).map(|producer| scope.spawn(produce(producer))).collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        for id in 0..CONSUMERS {
            let last = Job { is_last: true, ..job(u64::MAX - id) };
            db.transact(|tx| jobs.insert(tx, &last).map(drop)).unwrap();
        }
        let taken = consumers.into_iter().map(|consumer| consumer.join().unwrap());
        taken.collect::<Vec<_>>().concat()
    });
    all.sort_unstable();
    assert!(all.into_iter().eq(0..PRODUCERS * JOBS), "each is taken once");
    assert!(conflicts(&db) <= PRODUCERS * JOBS / 100, "{} conflicts", conflicts(&db));
}

/// Over an engine that reads as of the begin, the row that has come since is not there for the transaction.
#[test]
fn a_row_that_has_come_before_the_one_taken_is_no_conflict() {
    for reads_first in [false, true] {
        let (db, jobs) = with_jobs(0);
        [10, 20].into_iter().for_each(|id| insert(&db, &jobs, id));
        let mut session = db.begin().unwrap();
        if reads_first {
            jobs.get(&mut session, 20).unwrap();
        }
        insert(&db, &jobs, 5);
        let (taken, _) = jobs.scan().take_first(&mut session).unwrap().unwrap();
        session.commit().unwrap();
        assert_eq!(taken, if SEES_LATER_COMMITS { 5 } else { 10 });
        let mut session = db.begin().unwrap();
        insert(&db, &jobs, 3);
        let by_urgency = jobs.index::<(Reverse<u32>, u64)>("by_urgency").unwrap();
        assert!(by_urgency.scan().take_first(&mut session).unwrap().is_some());
        session.commit().unwrap();
    }
}

#[test]
fn a_consumer_that_waits_inside_a_transaction_gets_the_row_that_comes() {
    let (db, jobs) = with_jobs(0);
    let mut arrivals = jobs.watch().unwrap();
    let taken = thread::scope(|scope| {
        let mut has_looked = false;
        let consumer = db.transact(|tx| {
            loop {
                if let Some((id, _)) = jobs.scan().take_first(tx)? {
                    return Ok(id);
                }
                if !std::mem::replace(&mut has_looked, true) {
                    scope.spawn(|| insert(&db, &jobs, 7));
                }
                assert!(arrivals.wait_timeout(LIMIT)?, "no row has come");
            }
        });
        consumer.unwrap()
    });
    assert_eq!(taken, 7);
}

#[test]
fn no_wake_up_is_lost_when_two_hand_a_row_to_each_other() {
    const TIMES: u64 = 5_000;
    let db = quick();
    let tables = ["ping", "pong"].map(|name| db.create_table_named::<Job>(name).unwrap());
    thread::scope(|scope| {
        for [from, to] in [[0, 1], [1, 0]] {
            let (db, tables) = (&db, &tables);
            scope.spawn(move || {
                for round in 0..TIMES {
                    // Anew each time: the registration is what a commit may miss.
                    let mut arrivals = tables[from].watch().unwrap();
                    if from == 0 {
                        insert(db, &tables[to], round);
                    }
                    let taken = std::iter::repeat_with(|| take(db, &tables[from]));
                    let mut taken = taken.inspect(|taken| {
                        let has_come = taken.is_some() || arrivals.wait_timeout(LIMIT).unwrap();
                        assert!(has_come, "a wake-up was lost in round {round}");
                    });
                    assert_eq!(taken.by_ref().flatten().next(), Some(round));
                    if from == 1 {
                        insert(db, &tables[to], round);
                    }
                }
            });
        }
    });
}

#[test]
fn a_row_that_is_given_up_is_there_again() {
    let (db, jobs) = with_jobs(2);
    let nobody_else = |id| {
        assert_eq!(id, 0);
        let other = thread::scope(|scope| scope.spawn(|| second_is_first(&db, &jobs)).join().unwrap());
        assert!(other, "the row that is taken is passed over");
    };
    let refused = db.transact(|tx| {
        nobody_else(jobs.scan().take_first(tx)?.unwrap().0);
        Err::<(), _>(Error::rollback("not now"))
    });
    assert!(matches!(refused, Err(Error::User(_))));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        db.transact(|tx| -> Result<()> {
            nobody_else(jobs.scan().take_first(tx)?.unwrap().0);
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    let mut session = db.begin().unwrap();
    nobody_else(jobs.scan().take_first(&mut session).unwrap().unwrap().0);
    session.rollback().unwrap();
    session.begin().unwrap();
    nobody_else(jobs.scan().take_first(&mut session).unwrap().unwrap().0);
    drop(session);
    assert_eq!([take(&db, &jobs), take(&db, &jobs), take(&db, &jobs)], [Some(0), Some(1), None]);
}

/// Returns whether the first row that can be taken just now is that of id 1. It stays.
fn second_is_first(db: &Database, jobs: &Table<Job>) -> bool {
    let mut session = db.begin().unwrap();
    jobs.scan().take_first(&mut session).unwrap().unwrap().0 == 1
}

#[test]
fn transactions_that_take_do_not_depend_on_each_other() {
    let (db, jobs) = with_jobs(5);
    let mut sessions: Vec<_> = (0..4).map(|_| db.begin().unwrap()).collect();
    for (at, session) in sessions.iter_mut().enumerate() {
        assert_eq!(jobs.scan().take_first(session).unwrap().unwrap().0, at as u64);
    }
    // Before, between and behind what they have taken; and one that they have passed over.
    db.transact(|tx| jobs.insert_many(tx, &[job(10), job(11)]).map(drop)).unwrap();
    assert_eq!(jobs.scan().take_first(&mut sessions[3]).unwrap().unwrap().0, 4);
    sessions.remove(0).rollback().unwrap();
    assert_eq!(take(&db, &jobs), Some(0));
    insert(&db, &jobs, 0);
    sessions.iter_mut().rev().for_each(|session| session.commit().unwrap());
    let left = db.transact(|tx| jobs.scan().rows(tx)).unwrap();
    assert_eq!(left, [job(0), job(10), job(11)]);
    assert_eq!(conflicts(&db), 0);
}

#[test]
fn finding_nothing_conflicts_with_nobody() {
    let (db, jobs) = with_jobs(1);
    let mut holder = db.begin().unwrap();
    jobs.scan().take_first(&mut holder).unwrap().unwrap();
    let mut session = db.begin().unwrap();
    assert_eq!(jobs.scan().take_first(&mut session).unwrap(), None);
    insert(&db, &jobs, 5);
    holder.rollback().unwrap();
    jobs.insert(&mut session, &job(7)).unwrap();
    session.commit().unwrap();
}

#[test]
fn a_transaction_takes_its_own_rows_and_not_what_it_has_deleted() {
    let (db, jobs) = with_jobs(2);
    db.transact(|tx| {
        jobs.delete(tx, 0)?;
        jobs.insert(tx, &job(7))?;
        jobs.update(tx, 1, |job: &mut Job| job.urgency = 9)?;
        assert_eq!(jobs.scan().take_first(tx)?, Some((1, Job { urgency: 9, ..job(1) })));
        assert_eq!(jobs.scan().take_first(tx)?, Some((7, job(7))));
        assert_eq!(jobs.scan().take_first(tx)?, None);
        // What it has taken it may insert again, and take again.
        jobs.insert(tx, &job(1))?;
        assert_eq!(jobs.scan().take_first(tx)?, Some((1, job(1))));
        jobs.insert(tx, &job(1))?;
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| jobs.scan().rows(tx)).unwrap(), [job(1)]);
}

#[test]
fn rows_are_taken_in_ranges_from_both_ends_and_up_to_a_limit() {
    let (db, jobs) = with_jobs(10);
    let mut holder = db.begin().unwrap();
    assert_eq!(jobs.range(3..6).take_first(&mut holder).unwrap().unwrap().0, 3);
    assert_eq!(jobs.scan().reverse().take_first(&mut holder).unwrap().unwrap().0, 9);
    db.transact(|tx| {
        let ids = |taken: Option<(u64, Job)>| taken.map(|(id, _)| id);
        assert_eq!(ids(jobs.range(3..).limit(1).take_first(tx)?), None, "one row, which is taken");
        assert_eq!(ids(jobs.range(3..).limit(0).take_first(tx)?), None);
        assert_eq!(ids(jobs.range(3..).limit(2).take_first(tx)?), Some(4));
        assert_eq!(ids(jobs.scan().reverse().take_first(tx)?), Some(8));
        assert_eq!(ids(jobs.range(3..=4).take_first(tx)?), None);
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_are_taken_in_the_order_of_an_index() {
    let (db, jobs) = with_jobs(10);
    let by_urgency = jobs.index::<(Reverse<u32>, u64)>("by_urgency").unwrap();
    let mut holder = db.begin().unwrap();
    assert_eq!(by_urgency.scan().take_first(&mut holder).unwrap(), Some((6, job(6))));
    assert_eq!(jobs.scan().take_first(&mut holder).unwrap().unwrap().0, 0);
    db.transact(|tx| {
        assert_eq!(by_urgency.scan().take_first(tx)?, Some((5, job(5))));
        assert_eq!(
            by_urgency.prefix((Reverse(0),)).take_first(tx)?,
            Some((7, job(7))),
            "0 is taken by its key"
        );
        assert_eq!(by_urgency.prefix((Reverse(0),)).take_first(tx)?, None);
        assert_eq!(by_urgency.equal((Reverse(6), 6)).take_first(tx)?, None);
        jobs.update(tx, 1, |job: &mut Job| job.urgency = 50)?;
        assert_eq!(by_urgency.scan().take_first(tx)?.map(|(id, _)| id), Some(1));
        Ok(())
    })
    .unwrap();
    holder.commit().unwrap();
    assert_eq!(db.transact(|tx| jobs.scan().count(tx)).unwrap(), 5);
    check_index(&db, "job", "by_urgency");
}

#[test]
fn an_index_gives_rows_in_its_range_only_while_others_move_them() {
    const ROWS: u32 = 200;
    let (db, accounts) = with_accounts(ROWS);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    let mut all: Vec<u32> = thread::scope(|scope| {
        let consume = |number| {
            let (db, by_owner) = (&db, &by_owner);
            move || {
                let next = || db.transact(|tx| by_owner.prefix((owner(number),)).take_first(tx)).unwrap();
                let taken = std::iter::from_fn(next).inspect(|(_, row): &(u32, Account)| {
                    assert_eq!(row.owner, owner(number));
                });
                taken.map(|(id, _)| id).collect::<Vec<_>>()
            }
        };
        let mover = scope.spawn(|| {
            for id in 0..ROWS {
                let moved = db.transact(|tx| {
                    accounts.update(tx, id, |row: &mut Account| row.owner = owner((id + 1) % 3))
                });
                assert!(matches!(moved, Ok(()) | Err(Error::MissingRow(_))), "{moved:?}");
            }
        });
        let consumers: Vec<_> = (0..3).map(|number| scope.spawn(consume(number))).collect();
        mover.join().unwrap();
        let taken: Vec<_> = consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect();
        taken.into_iter().chain((0..3).flat_map(|number| consume(number)())).collect()
    });
    all.sort_unstable();
    assert!(all.into_iter().eq(0..ROWS));
    check_index(&db, "account", "by_owner");
}

#[test]
fn dynamic_tables_are_queues_too() {
    let (db, accounts) = with_accounts(6);
    let table = db.open_dynamic_table("account").unwrap();
    let mut arrivals = table.watch().unwrap();
    let mut session = db.begin().unwrap();
    accounts.scan().take_first(&mut session).unwrap().unwrap();
    let (key, columns) = db
        .transact(|tx| table.scan().columns(&["owner", "balance"])?.take_first(tx))
        .unwrap()
        .expect("the second one");
    assert_eq!((key, columns), (vec![1u32.into()], vec!["bert".into(), 10i64.into()]));
    let take_id = |index: &str, low: Bound<&[Value]>, high: Bound<&[Value]>| {
        let taken = db.transact(|tx| {
            let scan = table.scan().by_index(index)?.between(low, high)?;
            scan.columns(&["id"])?.take_first(tx)
        });
        taken.unwrap().map(|(_, columns)| columns)
    };
    // The richest of them first.
    let low: [Value; 1] = ["bert".into()];
    let id = take_id("by_owner", Bound::Included(&low), Bound::Unbounded);
    assert_eq!(id, Some(vec![4u32.into()]));
    // A bound that goes on into the primary key of a unique index.
    let high = |id: u32| -> [Value; 2] { ["2@example.org".into(), id.into()] };
    let by_email = |id| take_id("by_email", Bound::Unbounded, Bound::Excluded(&high(id)));
    assert_eq!((by_email(2), by_email(3)), (None, Some(vec![2u32.into()])));
    assert!(!has_come(&mut arrivals));
    db.transact(|tx| table.update(tx, &[3u32.into()], &[("visits", 7u32.into())])).unwrap();
    assert!(has_come(&mut arrivals));
    session.commit().unwrap();
    ["by_owner", "by_email"].iter().for_each(|index| check_index(&db, "account", index));
}

/// Where the bound goes on into the primary key of a unique index, the index is walked beyond it.
#[test]
fn a_row_that_has_come_beside_the_range_is_no_conflict() {
    let (db, accounts) = with_accounts(6);
    let table = db.open_dynamic_table("account").unwrap();
    let mut session = db.begin().unwrap();
    accounts.get(&mut session, 1).unwrap();
    db.transact(|tx| accounts.insert(tx, &account(7))).unwrap();
    let (low, high): ([Value; 1], [Value; 2]) =
        (["7@example.org".into()], ["7@example.org".into(), 3u32.into()]);
    let scan = table.scan().by_index("by_email").unwrap();
    let scan = scan.between(Bound::Included(&low), Bound::Excluded(&high)).unwrap();
    assert_eq!(scan.columns(&["id"]).unwrap().take_first(&mut session).unwrap(), None);
    session.commit().unwrap();
}

/// Writes a row.
type Way<'a> = Box<dyn FnMut() + 'a>;

#[test]
fn what_inserts_or_changes_rows_of_the_table_ends_a_wait_and_nothing_else() {
    let (db, accounts) = with_accounts(3);
    let jobs = db.create_table::<Job>().unwrap();
    let mut arrivals = accounts.watch().unwrap();
    assert!(!has_come(&mut arrivals));
    insert(&db, &jobs, 1);
    db.transact(|tx| accounts.delete(tx, 2)).unwrap();
    db.transact(|tx| accounts.get(tx, 1)).unwrap();
    db.read_stale(|_| Ok(())).unwrap();
    let undone = db.transact(|tx| {
        accounts.insert(tx, &account(77))?;
        Err::<(), _>(Error::rollback("not now"))
    });
    assert!(undone.is_err() && !has_come(&mut arrivals));

    let mut ways: Vec<(&str, Way<'_>)> = Vec::new();
    let write = |body: fn(&mut Transaction<'_>, &Table<Account>) -> Result<()>| {
        let (db, accounts) = (db.clone(), accounts.clone());
        Box::new(move || db.transact(|tx| body(tx, &accounts)).unwrap())
    };
    ways.push(("insert", write(|tx, accounts| accounts.insert(tx, &account(10)).map(drop))));
    ways.push(("upsert", write(|tx, accounts| accounts.upsert(tx, &account(11)))));
    ways.push(("replace", write(|tx, accounts| accounts.replace(tx, &account(11)))));
    ways.push(("patch", write(|tx, accounts| accounts.update(tx, 1, |row: &mut Visits| row.visits += 1))));
    ways.push(("move", write(|tx, accounts| accounts.update(tx, 1, |row: &mut Balance| row.balance += 1))));
    ways.push(("found", write(|tx, accounts| accounts.find(tx, 1)?.unwrap().set(tx, Visits { visits: 9 }))));
    let submitted = || {
        let accounts = accounts.clone();
        db.submit(move |tx| accounts.insert(tx, &account(12))).unwrap().wait().unwrap();
    };
    ways.push(("submit", Box::new(submitted)));
    let by_session = || {
        let mut session = db.begin().unwrap();
        accounts.insert(&mut session, &account(13)).unwrap();
        session.commit().unwrap();
    };
    ways.push(("session", Box::new(by_session)));
    for (name, mut way) in ways {
        way();
        assert!(has_come(&mut arrivals), "{name}");
        assert!(!has_come(&mut arrivals), "{name}: once");
    }
}

#[test]
fn a_commit_that_began_before_the_table_was_watched_ends_a_wait() {
    let (db, jobs) = with_jobs(0);
    let mut session = db.begin().unwrap();
    jobs.insert(&mut session, &job(1)).unwrap();
    let mut arrivals = jobs.watch().unwrap();
    assert_eq!(take(&db, &jobs), None);
    session.commit().unwrap();
    assert!(has_come(&mut arrivals));
}

#[test]
fn a_row_that_is_given_up_ends_a_wait() {
    let (db, jobs) = with_jobs(1);
    let mut holder = db.begin().unwrap();
    jobs.scan().take_first(&mut holder).unwrap().unwrap();
    let waiter = thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut arrivals = jobs.watch().unwrap();
            loop {
                if let Some(id) = take(&db, &jobs) {
                    return id;
                }
                assert!(arrivals.wait_timeout(LIMIT).unwrap(), "a wake-up was lost");
            }
        });
        drop(holder);
        waiter.join().unwrap()
    });
    assert_eq!(waiter, 0);
    let mut arrivals = jobs.watch().unwrap();
    insert(&db, &jobs, 1);
    assert!(has_come(&mut arrivals));
    assert_eq!(take(&db, &jobs), Some(1));
    assert!(!has_come(&mut arrivals), "a row that was taken is gone");
}

#[test]
fn a_committed_take_ends_a_wait_only_if_it_was_passed_over() {
    let (db, jobs) = with_jobs(2);
    let mut arrivals = jobs.watch().unwrap();
    let mut holder = db.begin().unwrap();
    assert_eq!(jobs.scan().take_first(&mut holder).unwrap(), Some((0, job(0))));
    assert_eq!(take(&db, &jobs), Some(1), "0 is passed over");
    assert!(!has_come(&mut arrivals));
    holder.commit().unwrap();
    assert!(has_come(&mut arrivals), "0 may have been inserted again meanwhile");
    insert(&db, &jobs, 2);
    assert!(has_come(&mut arrivals));
    holder.begin().unwrap();
    assert_eq!(jobs.scan().take_first(&mut holder).unwrap(), Some((2, job(2))));
    holder.commit().unwrap();
    assert!(!has_come(&mut arrivals), "nothing was passed over");
}

#[test]
fn no_wake_up_is_lost_when_a_row_comes_back_before_its_claim_has_ended() {
    const ROWS: u32 = 20_000;
    let (db, accounts) = with_accounts(ROWS);
    let jobs = db.create_table::<Job>().unwrap();
    for round in 0..5 {
        insert(&db, &jobs, 1);
        let mut holder = db.begin().unwrap();
        jobs.scan().take_first(&mut holder).unwrap().unwrap();
        // The commit is long: it deletes the row first, and gives the claim up last.
        for id in 0..ROWS {
            accounts.update(&mut holder, id, |row: &mut Visits| row.visits += 1).unwrap();
        }
        thread::scope(|scope| {
            let consumer = scope.spawn(|| {
                let mut arrivals = jobs.watch().unwrap();
                while take(&db, &jobs).is_none() {
                    assert!(arrivals.wait_timeout(LIMIT).unwrap(), "a wake-up was lost in round {round}");
                }
            });
            let producer = scope.spawn(|| {
                let request = || db.request().retries(u32::MAX);
                let again = || request().transact(|tx| jobs.insert(tx, &job(1)).map(drop));
                while let Err(error) = again() {
                    assert!(matches!(error, Error::DuplicateKey(_)), "{error:?}");
                }
            });
            holder.commit().unwrap();
            producer.join().unwrap();
            consumer.join().unwrap();
        });
    }
}

/// Waits for a table on a thread of its own, while `end` ends that.
fn wait_beside(arrivals: Arrivals, end: impl FnOnce()) -> Result<bool> {
    let mut arrivals = arrivals;
    thread::scope(|scope| {
        let waiter = scope.spawn(move || arrivals.wait_timeout(LIMIT));
        end();
        waiter.join().unwrap()
    })
}

#[test]
fn a_wait_ends_when_the_table_is_dropped() {
    let (db, jobs) = with_jobs(0);
    let ended = wait_beside(jobs.watch().unwrap(), || db.drop_table("job").unwrap());
    assert!(matches!(&ended, Err(Error::UnknownTable(name)) if &**name == "job"), "{ended:?}");
    assert!(matches!(jobs.watch(), Err(Error::UnknownTable(_))));
    let anew = db.create_table::<Job>().unwrap();
    let mut arrivals = anew.watch().unwrap();
    insert(&db, &anew, 1);
    assert!(has_come(&mut arrivals));
}

#[test]
fn a_wait_ends_when_the_database_is_closed() {
    let (db, jobs) = with_jobs(0);
    let (mut first, mut second) = (jobs.watch().unwrap(), jobs.watch().unwrap());
    let ended = wait_beside(jobs.watch().unwrap(), || db.close().unwrap());
    assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
    assert!(matches!(first.wait(), Err(Error::Closed)));
    assert!(matches!(block_on(&mut second), Err(Error::Closed)));
    assert!(matches!(jobs.watch(), Err(Error::Closed)));
    let (db, jobs) = with_jobs(0);
    let ended = wait_beside(jobs.watch().unwrap(), || drop(db));
    assert!(matches!(ended, Err(Error::Closed)), "{ended:?}");
}

#[test]
fn a_job_of_the_pool_that_waits_ends_when_the_database_is_closed() {
    let (db, jobs) = with_jobs(0);
    let mut arrivals = jobs.watch().unwrap();
    let job = db.submit(move |_| arrivals.wait()).unwrap();
    db.close().unwrap();
    assert!(matches!(job.wait(), Err(Error::Closed)));
}

/// Counts, by the references to it, the wakers that are kept, and how often it was woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn arrivals_are_awaited_again_and_again_and_keep_one_waker() {
    let (db, jobs) = with_jobs(0);
    let mut arrivals = jobs.watch().unwrap();
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(Arc::clone(&counter));
    let poll = |arrivals: &mut Arrivals| Pin::new(arrivals).poll(&mut Context::from_waker(&waker));
    for round in 1..=3 {
        (0..10).for_each(|_| assert!(poll(&mut arrivals).is_pending()));
        assert_eq!(Arc::strong_count(&counter), 3, "one is kept");
        insert(&db, &jobs, round);
        assert_eq!((counter.0.load(Ordering::Relaxed), Arc::strong_count(&counter)), (round as usize, 2));
        assert!(matches!(poll(&mut arrivals), Poll::Ready(Ok(()))));
    }
    assert!(poll(&mut arrivals).is_pending());
    drop(arrivals);
    assert_eq!(Arc::strong_count(&counter), 2, "none is kept");
    let taken = block_on(async {
        let mut arrivals = jobs.watch()?;
        let mut taken = HashSet::new();
        let inserter = thread::spawn({
            let (db, jobs) = (db.clone(), jobs.clone());
            move || (10..20).for_each(|id| insert(&db, &jobs, id))
        });
        while taken.len() < 13 {
            match take(&db, &jobs) {
                Some(id) => assert!(taken.insert(id)),
                None => (&mut arrivals).await?,
            }
        }
        inserter.join().unwrap();
        Ok::<_, Error>(taken)
    });
    assert_eq!(taken.unwrap(), (1..=3).chain(10..20).collect());
}
