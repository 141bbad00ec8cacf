//! What waits for the decision of a two-phase commit keeps its locks, and nobody waits for it.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_2pl::{LockingPrepared, LockingSession, NoWait, TwoPhaseLocking, WaitDie};
use ensilo_engine::{
    Abort, AbortReason, Direction, Engine, EngineOptions, Prepared, Read, Session, TableId, Write,
};
use ensilo_txn::Store;

type Waiting = TwoPhaseLocking<WaitDie>;

fn start<E: Engine>() -> (Arc<E>, Arc<E::Store>) {
    let engine = E::start(EngineOptions::default()).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    (engine, store)
}

fn insert(session: &mut impl Session<Store = Store>, store: &Store, key: &[u8]) -> Result<(), Abort> {
    let mut tx = session.begin();
    tx.insert(store, key, &[7], 8)?;
    tx.commit().map(|_| ())
}

fn set(session: &mut impl Session<Store = Store>, store: &Store, key: &[u8]) -> Result<(), Abort> {
    let mut tx = session.begin();
    let found = tx.find_to_write(store, key)?.unwrap();
    tx.patch(found, &[(0, 8)])?;
    tx.commit().map(|_| ())
}

fn set_or_insert(session: &mut impl Session<Store = Store>, store: &Store, key: &[u8]) -> Result<(), Abort> {
    let mut tx = session.begin();
    match tx.find_to_write(store, key)? {
        Some(found) => tx.patch(found, &[(0, 8)])?,
        None => _ = tx.insert(store, key, &[7], 8)?,
    }
    tx.commit().map(|_| ())
}

fn reason(outcome: Result<(), Abort>) -> Option<AbortReason> {
    outcome.err().map(|abort| abort.reason())
}

/// A transaction that reads `a`, the range up to `c`, writes `e`, and votes.
fn vote<'s>(session: &'s mut LockingSession<WaitDie>, store: &Store) -> LockingPrepared<'s, WaitDie> {
    let mut tx = session.begin();
    assert!(tx.find(store, b"a").unwrap().is_some());
    let up_to_c = (Bound::Excluded(&b"a"[..]), Bound::Included(&b"c"[..]));
    tx.scan_to_read(store, up_to_c, Direction::Forward, |_, _| (), |()| ControlFlow::Continue(())).unwrap();
    let found = tx.find_to_write(store, b"e").unwrap().unwrap();
    tx.patch(found, &[(0, 9)]).unwrap();
    tx.prepare().unwrap()
}

#[test]
fn a_prepared_transaction_keeps_its_locks_until_the_decision() {
    let (engine, store) = start::<Waiting>();
    let (mut voter, mut other) = (engine.session(), engine.session());
    [b"a", b"b", b"e"].iter().for_each(|key| insert(&mut other, &store, *key).unwrap());
    for is_committed in [true, false] {
        let prepared = vote(&mut voter, &store);
        assert_eq!(reason(set(&mut other, &store, b"a")), Some(AbortReason::PreparedRead));
        assert_eq!(reason(set(&mut other, &store, b"b")), Some(AbortReason::PreparedRead));
        assert_eq!(reason(insert(&mut other, &store, b"c")), Some(AbortReason::PreparedRead));
        assert_eq!(reason(set(&mut other, &store, b"e")), Some(AbortReason::PreparedLock));
        let mut reading = other.begin();
        assert_eq!(reading.get(&store, b"a", |row| row.word(0)).unwrap(), Some(7));
        reading.commit().unwrap();
        insert(&mut other, &store, if is_committed { b"f" } else { b"g" }).unwrap();
        if is_committed {
            prepared.commit().unwrap();
        } else {
            drop(prepared);
        }
        let mut reading = other.begin();
        assert_eq!(reading.get(&store, b"e", |row| row.word(0)).unwrap(), Some(9));
        reading.commit().unwrap();
    }
    [b"a", b"b", b"e"].iter().for_each(|key| set(&mut other, &store, *key).unwrap());
    insert(&mut other, &store, b"c").unwrap();
}

#[test]
fn a_prepared_transaction_that_is_leaked_keeps_its_locks() {
    let (engine, store) = start::<Waiting>();
    let (mut voter, mut other) = (engine.session(), engine.session());
    [b"a", b"b", b"e"].iter().for_each(|key| insert(&mut other, &store, *key).unwrap());
    let _leaked = std::mem::ManuallyDrop::new(vote(&mut voter, &store));
    for session in [&mut voter, &mut other] {
        assert_eq!(reason(set(session, &store, b"a")), Some(AbortReason::PreparedRead));
        assert_eq!(reason(set(session, &store, b"e")), Some(AbortReason::PreparedLock));
        assert_eq!(reason(insert(session, &store, b"c")), Some(AbortReason::PreparedRead));
    }
}

#[test]
fn a_transaction_that_is_leaked_gives_its_locks_back_with_the_next_one() {
    let (engine, store) = start::<Waiting>();
    let (mut leaking, mut other) = (engine.session(), engine.session());
    insert(&mut other, &store, b"a").unwrap();
    let mut leaked = std::mem::ManuallyDrop::new(leaking.begin());
    assert!(leaked.find_to_write(&store, b"a").unwrap().is_some());
    assert_eq!(reason(set(&mut other, &store, b"a")), Some(AbortReason::LockHeld));
    drop(leaking.begin());
    set(&mut other, &store, b"a").unwrap();
}

#[test]
fn another_attempt_keeps_the_age_of_the_first_one() {
    let (engine, store) = start::<Waiting>();
    let (mut older, mut younger) = (engine.session(), engine.session());
    insert(&mut older, &store, b"a").unwrap();
    drop(older.begin());
    let mut holding = younger.begin();
    assert!(holding.find_to_write(&store, b"a").unwrap().is_some());
    std::thread::scope(|scope| {
        older.retry_next();
        // It has begun first: it waits until the other one has ended.
        let waiting = scope.spawn(|| set(&mut older, &store, b"a"));
        std::thread::yield_now();
        holding.commit().unwrap();
        waiting.join().unwrap().unwrap();
    });
    let mut holding = younger.begin();
    assert!(holding.find(&store, b"a").unwrap().is_some());
    assert_eq!(reason(set(&mut older, &store, b"a")), Some(AbortReason::LockHeld), "it is younger now");
}

#[test]
fn a_scan_that_ends_early_locks_what_it_has_come_to() {
    let (engine, store) = start::<TwoPhaseLocking<NoWait>>();
    let (mut scanning, mut other) = (engine.session(), engine.session());
    [b"b", b"d", b"f"].iter().for_each(|key| insert(&mut other, &store, *key).unwrap());
    let all = (Bound::Unbounded, Bound::Unbounded);
    let held = Some(AbortReason::LockHeld);
    for (direction, inside, outside) in
        [(Direction::Forward, [b"a", b"b"], [b"c", b"f"]), (Direction::Reverse, [b"f", b"g"], [b"b", b"e"])]
    {
        let mut tx = scanning.begin();
        tx.scan_to_read(&store, all, direction, |_, _| (), |()| ControlFlow::Break(())).unwrap();
        for key in inside {
            assert_eq!(reason(insert(&mut other, &store, key)), held, "{key:?} {direction:?}");
        }
        for key in outside {
            assert_eq!(reason(insert(&mut other, &store, key)), None, "{key:?} {direction:?}");
        }
        drop(tx);
    }
    let mut tx = scanning.begin();
    tx.scan_to_read(&store, all, Direction::Forward, |_, _| (), |()| ControlFlow::Continue(())).unwrap();
    assert_eq!(reason(insert(&mut other, &store, b"z")), held);
    drop(tx);
    insert(&mut other, &store, b"z").unwrap();
}

#[test]
fn very_many_ranges_are_merged_and_all_of_them_locked() {
    let (engine, store) = start::<TwoPhaseLocking<NoWait>>();
    let (mut scanning, mut other) = (engine.session(), engine.session());
    let key = |number: u16| number.to_be_bytes();
    let mut tx = scanning.begin();
    for number in (0..1000).step_by(2) {
        let (low, high) = (key(number), key(number + 1));
        let bounds = (Bound::Included(&low[..]), Bound::Excluded(&high[..]));
        tx.scan_to_read(&store, bounds, Direction::Forward, |_, _| (), |()| ControlFlow::Continue(()))
            .unwrap();
    }
    for number in (0..1000).step_by(2) {
        assert_eq!(reason(insert(&mut other, &store, &key(number))), Some(AbortReason::LockHeld));
    }
    insert(&mut other, &store, &key(1)).unwrap();
    insert(&mut other, &store, &key(1001)).unwrap();
    tx.commit().unwrap();
    insert(&mut other, &store, &key(2)).unwrap();
}

/// Scans go on one by one behind the first key that the one before has met, as they do where each key needs more look-ups.
#[test]
fn scans_that_go_on_behind_each_other_lock_what_they_have_come_to_and_nothing_else() {
    let (engine, store) = start::<TwoPhaseLocking<NoWait>>();
    let (mut scanning, mut other) = (engine.session(), engine.session());
    let key = |number: u16| number.to_be_bytes();
    (1000..1200).step_by(2).for_each(|number| insert(&mut other, &store, &key(number)).unwrap());
    insert(&mut other, &store, &key(1)).unwrap();
    insert(&mut other, &store, &key(3001)).unwrap();
    let held = Some(AbortReason::LockHeld);
    for (direction, far) in [(Direction::Forward, 3001), (Direction::Reverse, 1)] {
        let mut tx = scanning.begin();
        for round in 0..100 {
            let (low, high) = match direction {
                Direction::Forward => (key(998 + 2 * round), key(1200)),
                Direction::Reverse => (key(998), key(1200 - 2 * round)),
            };
            let bounds = (Bound::Excluded(&low[..]), Bound::Excluded(&high[..]));
            tx.scan_to_read(&store, bounds, direction, |_, _| (), |()| ControlFlow::Break(())).unwrap();
        }
        let of_one = key(far);
        let of_one = (Bound::Included(&of_one[..]), Bound::Included(&of_one[..]));
        tx.scan_to_read(&store, of_one, direction, |_, _| (), |()| ControlFlow::Continue(())).unwrap();
        for number in [1001, 1100, 1197, far] {
            assert_eq!(
                reason(set_or_insert(&mut other, &store, &key(number))),
                held,
                "{number} {direction:?}"
            );
        }
        for number in [2, 998, 1200, 3000] {
            assert_eq!(
                reason(set_or_insert(&mut other, &store, &key(number))),
                None,
                "{number} {direction:?}"
            );
        }
        drop(tx);
    }
}
