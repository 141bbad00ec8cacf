//! Who gets a lock, who waits, and who has to give way.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

const TABLE: TableId = TableId(1);

/// The transaction that began at this time. The smaller, the older.
fn waits(began_ns: u64) -> Requester {
    Requester { owner: Owner { began_ns, session: began_ns as u32 }, waits: true }
}

fn never_waits(began_ns: u64) -> Requester {
    Requester { waits: false, ..waits(began_ns) }
}

fn key(key: &[u8]) -> LockKey {
    LockKey::new(TABLE, key)
}

fn range(low: &[u8], high: &[u8]) -> LockRange {
    LockRange::new(TABLE, (Bound::Included(low), Bound::Included(high)))
}

/// Waits until so many transactions wait for locks.
fn await_waiting(table: &LockTable, count: usize) {
    while table.waiting() != count {
        thread::yield_now();
    }
}

const HELD: Result<Grant, AbortReason> = Err(AbortReason::LockHeld);

#[test]
fn many_hold_a_shared_lock_and_one_an_exclusive_one() {
    let table = LockTable::new();
    let (a, b) = (key(b"a"), key(b"b"));
    for began in [1, 2] {
        assert_eq!(table.lock_key(never_waits(began), &a, Mode::Shared), Ok(Grant::New));
    }
    assert_eq!(table.lock_key(never_waits(3), &a, Mode::Exclusive), HELD);
    assert_eq!(table.lock_key(never_waits(3), &b, Mode::Exclusive), Ok(Grant::New));
    for mode in [Mode::Shared, Mode::Exclusive] {
        assert_eq!(table.lock_key(never_waits(1), &b, mode), HELD);
        assert_eq!(table.lock_key(never_waits(3), &b, mode), Ok(Grant::Held));
    }
    [1, 2].iter().for_each(|&began| table.unlock_key(waits(began).owner, &a));
    table.unlock_key(waits(3).owner, &b);
    assert!(table.is_empty());
}

#[test]
fn a_younger_one_waits_for_an_older_one_that_commits() {
    let table = LockTable::new();
    let (a, older) = (key(b"a"), waits(1));
    for mode in [Mode::Shared, Mode::Exclusive] {
        assert_eq!(table.lock_key(older, &a, Mode::Exclusive), Ok(Grant::New));
        assert_eq!(table.lock_key(waits(2), &a, mode), HELD);
        table.begin_commit(older.owner);
        assert_eq!(table.lock_key(never_waits(2), &a, mode), HELD);
        thread::scope(|scope| {
            let younger = scope.spawn(|| table.lock_key(waits(2), &a, mode));
            await_waiting(&table, 1);
            table.unlock_key(older.owner, &a);
            table.end_commit(older.owner);
            assert_eq!(younger.join().unwrap(), Ok(Grant::New));
        });
        table.unlock_key(waits(2).owner, &a);
        // Of the session's next transaction it is not said.
        assert_eq!(table.lock_key(older, &a, Mode::Exclusive), Ok(Grant::New));
        assert_eq!(table.lock_key(waits(2), &a, mode), HELD);
        table.unlock_key(older.owner, &a);
    }
    assert!(table.is_empty());
}

#[test]
fn a_shared_lock_becomes_exclusive_when_nobody_else_holds_it() {
    let table = LockTable::new();
    let a = key(b"a");
    assert_eq!(table.lock_key(never_waits(1), &a, Mode::Shared), Ok(Grant::New));
    assert_eq!(table.lock_key(never_waits(2), &a, Mode::Shared), Ok(Grant::New));
    assert_eq!(table.lock_key(never_waits(1), &a, Mode::Exclusive), HELD);
    table.unlock_key(waits(1).owner, &a);
    assert_eq!(table.lock_key(never_waits(2), &a, Mode::Exclusive), Ok(Grant::Held));
    assert_eq!(table.lock_key(never_waits(1), &a, Mode::Shared), HELD);
    table.unlock_key(waits(2).owner, &a);
    assert!(table.is_empty());
}

#[test]
fn a_range_is_in_conflict_with_what_is_exclusive_in_it() {
    let table = LockTable::new();
    assert_eq!(table.lock_key(never_waits(1), &key(b"e"), Mode::Exclusive), Ok(Grant::New));
    assert_eq!(table.lock_range(never_waits(2), 0, &range(b"b", b"f")), Err(AbortReason::LockHeld));
    table.unlock_ranges(waits(2).owner, TABLE);
    assert_eq!(table.lock_range(never_waits(2), 0, &range(b"b", b"d")), Ok(()));
    assert_eq!(table.lock_range(never_waits(3), 0, &range(b"a", b"d")), Ok(()));
    assert_eq!(table.lock_key(never_waits(1), &key(b"c"), Mode::Shared), Ok(Grant::New));
    assert_eq!(table.lock_key(never_waits(1), &key(b"a"), Mode::Exclusive), HELD);
    assert_eq!(table.lock_key(never_waits(1), &key(b"g"), Mode::Exclusive), Ok(Grant::New));
    let of_other_table = LockKey::new(TableId(1 + SPACES as u32), b"c");
    assert_eq!(table.lock_key(never_waits(1), &of_other_table, Mode::Exclusive), Ok(Grant::New));
    [2, 3].iter().for_each(|&began| table.unlock_ranges(waits(began).owner, TABLE));
    for key in [key(b"c"), key(b"e"), key(b"g"), of_other_table] {
        table.unlock_key(waits(1).owner, &key);
    }
    assert!(table.is_empty());
}

#[test]
fn a_range_that_grows_is_in_conflict_with_what_it_comes_to() {
    let table = LockTable::new();
    assert_eq!(table.lock_range(never_waits(1), 0, &range(b"b", b"b")), Ok(()));
    assert_eq!(table.lock_key(never_waits(1), &key(b"b"), Mode::Exclusive), Ok(Grant::New));
    assert_eq!(table.lock_key(never_waits(2), &key(b"a"), Mode::Exclusive), Ok(Grant::New));
    assert_eq!(table.lock_range(never_waits(1), 0, &range(b"a", b"b")), Err(AbortReason::LockHeld));
    table.unlock_key(waits(2).owner, &key(b"a"));
    assert_eq!(table.lock_range(never_waits(1), 0, &range(b"a", b"b")), Ok(()));
    assert_eq!(table.lock_key(never_waits(2), &key(b"c"), Mode::Exclusive), Ok(Grant::New));
    assert_eq!(table.lock_range(never_waits(1), 0, &range(b"a", b"d")), Err(AbortReason::LockHeld));
    table.unlock_key(waits(2).owner, &key(b"c"));
    assert_eq!(table.lock_range(never_waits(1), 0, &range(b"a", b"d")), Ok(()));
    assert_eq!(table.lock_key(never_waits(2), &key(b"c"), Mode::Exclusive), HELD);
    table.unlock_ranges(waits(1).owner, TABLE);
    table.unlock_key(waits(1).owner, &key(b"b"));
    assert!(table.is_empty());
}

#[test]
fn a_range_grows_though_an_older_one_waits_for_a_key_in_it() {
    let table = LockTable::new();
    assert_eq!(table.lock_range(waits(9), 0, &range(b"b", b"c")), Ok(()));
    let waiting = |bytes: &[u8]| {
        let key = key(bytes);
        table.stripe(&key).lock().begin_to_wait(waits(1).owner, Request::Key(&key, Mode::Exclusive));
    };
    waiting(b"b");
    assert_eq!(table.lock_range(waits(9), 0, &range(b"b", b"d")), Ok(()));
    assert_eq!(table.lock_range(waits(8), 0, &range(b"b", b"b")), Err(AbortReason::LockHeld));
    waiting(b"f");
    assert_eq!(table.lock_range(waits(9), 0, &range(b"b", b"f")), Err(AbortReason::LockHeld));
}

#[test]
fn a_younger_transaction_gives_way_at_once() {
    let table = LockTable::new();
    let a = key(b"a");
    assert_eq!(table.lock_key(waits(1), &a, Mode::Exclusive), Ok(Grant::New));
    for mode in [Mode::Shared, Mode::Exclusive] {
        assert_eq!(table.lock_key(waits(2), &a, mode), HELD);
    }
    assert_eq!(table.lock_range(waits(2), 0, &range(b"a", b"a")), Err(AbortReason::LockHeld));
}

#[test]
fn an_older_transaction_waits_until_the_lock_is_free() {
    let table = LockTable::new();
    let a = key(b"a");
    for older in [(1, Mode::Exclusive), (2, Mode::Shared)] {
        assert_eq!(table.lock_key(waits(9), &a, Mode::Exclusive), Ok(Grant::New));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| table.lock_key(waits(older.0), &a, older.1));
            await_waiting(&table, 1);
            table.unlock_key(waits(9).owner, &a);
            assert_eq!(waiting.join().unwrap(), Ok(Grant::New));
        });
        table.unlock_key(waits(older.0).owner, &a);
    }
    assert_eq!(table.lock_key(waits(9), &a, Mode::Exclusive), Ok(Grant::New));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| table.lock_range(waits(3), 0, &range(b"a", b"b")));
        await_waiting(&table, 1);
        table.unlock_key(waits(9).owner, &a);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
    table.unlock_ranges(waits(3).owner, TABLE);
    assert!(table.is_empty());
}

#[test]
fn of_two_that_make_their_shared_lock_exclusive_the_older_one_waits() {
    let table = LockTable::new();
    let a = key(b"a");
    for began in [1, 2] {
        assert_eq!(table.lock_key(waits(began), &a, Mode::Shared), Ok(Grant::New));
    }
    thread::scope(|scope| {
        let older = scope.spawn(|| table.lock_key(waits(1), &a, Mode::Exclusive));
        await_waiting(&table, 1);
        assert_eq!(table.lock_key(waits(2), &a, Mode::Exclusive), HELD);
        table.unlock_key(waits(2).owner, &a);
        assert_eq!(older.join().unwrap(), Ok(Grant::Held));
    });
}

#[test]
fn a_wait_ends_by_time() {
    let table = LockTable::new();
    assert_eq!(table.lock_key(waits(2), &key(b"a"), Mode::Exclusive), Ok(Grant::New));
    let begin = Instant::now();
    assert_eq!(table.lock_key(waits(1), &key(b"a"), Mode::Shared), HELD);
    assert!(begin.elapsed() >= PATIENCE);
    assert_eq!(table.waiting(), 0);
    assert_eq!(table.lock_key(waits(2), &key(b"a"), Mode::Shared), Ok(Grant::Held));
}

#[test]
fn nobody_waits_for_a_prepared_transaction() {
    let table = LockTable::new();
    assert_eq!(table.lock_key(waits(9), &key(b"a"), Mode::Exclusive), Ok(Grant::New));
    assert_eq!(table.lock_key(waits(9), &key(b"b"), Mode::Shared), Ok(Grant::New));
    assert_eq!(table.lock_range(waits(9), 0, &range(b"c", b"d")), Ok(()));
    table.prepare_key(waits(9).owner, &key(b"a"));
    table.prepare_key(waits(9).owner, &key(b"b"));
    table.prepare_ranges(waits(9).owner, TABLE);
    let met = [b"a", b"b", b"c"].map(|bytes| table.lock_key(waits(1), &key(bytes), Mode::Exclusive));
    use AbortReason::{PreparedLock, PreparedRead};
    assert_eq!(met, [Err(PreparedLock), Err(PreparedRead), Err(PreparedRead)]);
    assert_eq!(table.lock_range(waits(1), 0, &range(b"a", b"b")), Err(PreparedLock));
    assert_eq!(table.lock_key(waits(1), &key(b"b"), Mode::Shared), Ok(Grant::New));
}

#[test]
fn what_is_granted_to_an_older_one_ends_the_wait_of_a_younger_one() {
    let table = LockTable::new();
    let a = key(b"a");
    assert_eq!(table.lock_key(waits(9), &a, Mode::Shared), Ok(Grant::New));
    thread::scope(|scope| {
        let younger = scope.spawn(|| table.lock_key(waits(5), &a, Mode::Exclusive));
        await_waiting(&table, 1);
        // It goes ahead of the one that waits, which must not wait for an older one.
        assert_eq!(table.lock_key(waits(1), &a, Mode::Shared), Ok(Grant::New));
        assert_eq!(younger.join().unwrap(), HELD);
    });
}

#[test]
fn the_oldest_gets_a_lock_that_others_share_by_turns() {
    let table = LockTable::new();
    let (a, is_over) = (key(b"a"), AtomicBool::new(false));
    thread::scope(|scope| {
        for session in [7, 8, 9] {
            let (table, a, is_over) = (&table, &a, &is_over);
            scope.spawn(move || {
                for began_ns in 2.. {
                    let owner = Owner { began_ns, session };
                    if table.lock_key(Requester { owner, waits: true }, a, Mode::Shared).is_ok() {
                        thread::yield_now();
                        table.unlock_key(owner, a);
                    }
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        for _ in 0..100 {
            // More than one attempt only where a thread has not run for as long as a wait lasts.
            while table.lock_key(waits(1), &a, Mode::Exclusive).is_err() {}
            table.unlock_key(waits(1).owner, &a);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(table.is_empty());
}
