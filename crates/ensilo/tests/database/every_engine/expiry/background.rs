//! The thread that removes rows: how it goes on with several tables, without a handle, and beside a clock that is slow, panics or has the database.

use std::sync::Barrier;
use std::sync::atomic::AtomicBool;

use super::*;

/// A clock whose first call by the background lasts until the test lets go.
struct SlowClock {
    now: i64,
    is_over: AtomicBool,
    begins: Barrier,
    ends: Barrier,
}

impl SlowClock {
    fn at(now: i64) -> Arc<Self> {
        let (begins, ends) = (Barrier::new(2), Barrier::new(2));
        Arc::new(SlowClock { now, is_over: AtomicBool::new(false), begins, ends })
    }

    fn options(self: &Arc<Self>) -> ExpiryOptions {
        let clock = Arc::clone(self);
        let options = ExpiryOptions::new("expires").check_interval(Duration::from_millis(1));
        options.clock(move || {
            let is_background = thread::current().name() == Some(BACKGROUND);
            if is_background && !clock.is_over.swap(true, Ordering::SeqCst) {
                clock.begins.wait();
                clock.ends.wait();
            }
            Timestamp::from_micros(clock.now)
        })
    }
}

fn is_background() -> bool {
    thread::current().name() == Some(BACKGROUND)
}

#[test]
fn an_interval_of_any_length_keeps_no_other_table() {
    let (db, _) = with_tokens(quick(), 10);
    let (sender, looks) = mpsc::channel();
    let by_hand = ExpiryOptions::new("expires").check_interval(Duration::MAX).clock(move || {
        if is_background() {
            sender.send(()).unwrap();
            return Timestamp::from_micros(-1);
        }
        Timestamp::from_micros(7)
    });
    let by_hand = db.expire_rows("token", by_hand).unwrap();
    looks.recv().unwrap();
    let clock = Clock::default();
    clock.set(4);
    let by_itself = db.expire_rows("token", clock.options("expires")).unwrap();
    until("they are removed", || ids(&db) == [5, 6, 7, 8, 9, 10]);
    assert_eq!(by_hand.remove_now().unwrap(), 3);
    clock.set(8);
    until("it goes on", || ids(&db) == [9, 10]);
    assert!(looks.try_recv().is_err(), "the other has looked once");
    assert!(by_itself.failure().is_none());
    db.close().unwrap();
}

#[test]
fn a_clock_that_panics_is_a_failure_until_it_does_not() {
    let (db, _) = with_tokens(quick(), 3);
    let panics = Arc::new(AtomicBool::new(true));
    let by = |panics: &Arc<AtomicBool>| {
        let panics = Arc::clone(panics);
        let options = ExpiryOptions::new("expires").check_interval(Duration::from_millis(1));
        options.clock(move || {
            assert!(!is_background() || !panics.load(Ordering::SeqCst), "on purpose");
            Timestamp::from_micros(1)
        })
    };
    // After this one's failure there is no time at which it is tried again.
    let never = by(&panics).check_interval(Duration::MAX);
    let never = db.expire_rows("token", never).unwrap();
    until("it has failed", || never.statistics().failures == 1);
    let expiry = db.expire_rows("token", by(&panics)).unwrap();
    let is_clock = |error| matches!(error, Some(Error::InvalidOption(text)) if text.contains("clock"));
    until("it has failed twice", || expiry.statistics().failures >= 2);
    assert!(is_clock(expiry.failure()) && is_clock(never.failure()));
    assert_eq!(ids(&db), [0, 1, 2, 3]);
    panics.store(false, Ordering::SeqCst);
    until("they are removed", || ids(&db) == [2, 3]);
    until("that is over", || expiry.failure().is_none());
    assert_eq!(never.statistics().failures, 1);
}

#[test]
fn nothing_is_removed_once_the_handle_was_dropped() {
    let (db, _) = with_tokens(quick(), 3);
    // Before the thread knows of it.
    let slow = SlowClock::at(i64::MIN);
    let busy = db.expire_rows("token", slow.options()).unwrap();
    slow.begins.wait();
    let clock = Clock::default();
    clock.set(i64::MAX);
    drop(db.expire_rows("token", clock.options("expires")).unwrap());
    slow.ends.wait();
    until("it is forgotten", || Arc::strong_count(&clock.0) == 1);
    drop(busy);
    until("the other is forgotten", || Arc::strong_count(&slow) == 1);
    // While the thread asks for the time.
    let slow = SlowClock::at(i64::MAX);
    let expiry = db.expire_rows("token", slow.options()).unwrap();
    slow.begins.wait();
    drop(expiry);
    slow.ends.wait();
    until("it is forgotten", || Arc::strong_count(&slow) == 1);
    assert_eq!(ids(&db), [0, 1, 2, 3]);
    assert_eq!(db.statistics().unwrap().expired_rows, 0);
}

#[test]
fn two_tables_in_arrears_are_both_served() {
    let (db, _) = with_tokens(quick(), 1000);
    let schema = Schema::builder("day").column("number", ColumnType::U32);
    let days = db.create_dynamic_table(schema.key([("number", Order::Ascending)]).build().unwrap()).unwrap();
    let insert = |ids: std::ops::Range<u32>| {
        let mut numbers = ids;
        db.transact(|tx| numbers.try_for_each(|number| days.insert(tx, &[number.into()]).map(|_| ())))
            .unwrap();
    };
    [0..500, 500..1000].into_iter().for_each(insert);
    let clock = Clock::default();
    clock.set(i64::MAX);
    let tokens = db.expire_rows("token", clock.options("expires")).unwrap();
    let days_go = db.expire_rows("day", clock.options("number").unit(TimeUnit::Days)).unwrap();
    until("one is empty", || ids(&db) == [1000]);
    until("the other is empty", || db.transact(|tx| days.scan().collect(tx)).unwrap().is_empty());
    until("they are counted", || db.statistics().unwrap().expired_rows == 2000);
    assert_eq!((tokens.statistics().removed_rows, days_go.statistics().removed_rows), (1000, 1000));
}

#[test]
fn closing_waits_for_a_look_that_is_under_way() {
    let (db, _) = with_tokens(quick(), 3000);
    let slow = SlowClock::at(i64::MAX);
    let expiry = db.expire_rows("token", slow.options()).unwrap();
    slow.begins.wait();
    thread::scope(|scope| {
        let closing = scope.spawn(|| db.close());
        until("requests are refused", || matches!(db.statistics(), Err(Error::Closed)));
        assert!(!closing.is_finished());
        slow.ends.wait();
        closing.join().unwrap().unwrap();
    });
    assert_eq!(expiry.statistics().removed_rows, 0);
    drop(expiry);
    assert_eq!(Arc::strong_count(&slow), 1, "its thread has ended");
}

#[test]
fn a_clock_that_has_the_database_goes_when_that_is_closed() {
    let (db, _) = with_tokens(quick(), 3);
    let (held, of_program) = (db.clone(), Arc::new(()));
    let kept = Arc::clone(&of_program);
    let options = ExpiryOptions::new("expires").clock(move || {
        let _ = (&held, &kept);
        Timestamp::from_micros(-1)
    });
    db.expire_rows("token", options).unwrap().detach();
    db.close().unwrap();
    assert_eq!(Arc::strong_count(&of_program), 1);
}
