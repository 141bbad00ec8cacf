//! Rows that are removed once their time has passed: which ones, beside whom, and what keeps them from it.

mod background;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{
    ColumnType, Columns, Error, ExpiryOptions, Options, Order, Row, Schema, SchemaChange, TimeUnit,
    Timestamp, Value,
};

use super::{Database, Table, in_memory, queues::check_index, quick};

/// However slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of the tests in which nothing but `remove_now` is to remove rows.
const BACKGROUND: &str = "ensilo-expiry";

#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "token",
    index(name = "by_expiry", columns(expires)),
    index(name = "by_owner", columns(owner), unique)
)]
struct Token {
    #[row(key)]
    id: u32,
    owner: String,
    expires: Option<Timestamp>,
    visits: u32,
}

#[derive(Columns)]
#[columns(of = Token)]
struct Expires {
    expires: Option<Timestamp>,
}

#[derive(Columns)]
#[columns(of = Token)]
struct Visits {
    visits: u32,
}

fn at(micros: i64) -> Option<Timestamp> {
    Some(Timestamp::from_micros(micros))
}

fn token(id: u32, expires: Option<Timestamp>) -> Token {
    Token { id, owner: format!("owner {id}"), expires, visits: 0 }
}

/// A clock that stands still until it is set.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicI64>);

impl Clock {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn set(&self, micros: i64) {
        self.0.store(micros, Ordering::SeqCst);
    }

    /// Rows expire by this clock, and are looked for all the time.
    fn options(&self, column: &str) -> ExpiryOptions {
        let clock = self.clone();
        let options = ExpiryOptions::new(column).check_interval(Duration::from_millis(1));
        options.clock(move || Timestamp::from_micros(clock.now()))
    }

    /// Rows expire by this clock for those that ask for it; for the background it is always the beginning of time.
    fn options_without_background(&self, column: &str) -> ExpiryOptions {
        let clock = self.clone();
        self.options(column).clock(move || match thread::current().name() {
            Some(BACKGROUND) => Timestamp::from_micros(i64::MIN),
            _ => Timestamp::from_micros(clock.now()),
        })
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::yield_now();
    }
}

fn ids(db: &Database) -> Vec<u32> {
    db.transact(|tx| {
        let tokens = db.open_table::<Token>()?;
        Ok(tokens.scan().rows(tx)?.iter().map(|token| token.id).collect())
    })
    .unwrap()
}

/// A database with tokens, of which the first expires at 0, the next at 1, and so on, and with one that never does.
fn with_tokens(db: Database, count: u32) -> (Database, Table<Token>) {
    let tokens = db.create_table::<Token>().unwrap();
    let mut rows: Vec<_> = (0..count).map(|id| token(id, at(id.into()))).collect();
    rows.push(token(count, None));
    for rows in rows.chunks(500) {
        db.transact(|tx| tokens.insert_many(tx, rows)).unwrap();
    }
    (db, tokens)
}

#[test]
fn rows_are_removed_in_the_background_once_their_time_has_passed() {
    let (db, _) = with_tokens(quick(), 1000);
    let clock = Clock::default();
    clock.set(-1);
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    assert_eq!(expiry.remove_now().unwrap(), 0);
    for now in [0, 1, 17, 500] {
        clock.set(now);
        let left: Vec<u32> = (now as u32 + 1..=1000).collect();
        until("they are removed", || ids(&db) == left);
        until("they are counted", || expiry.statistics().removed_rows == now as u64 + 1);
    }
    clock.set(i64::MAX);
    until("all are removed but that without a time", || ids(&db) == [1000]);
    ["by_expiry", "by_owner"].iter().for_each(|index| check_index(&db, "token", index));
    until("they are counted", || db.statistics().unwrap().expired_rows == 1000);
    let statistics = db.statistics().unwrap();
    let [of_token] = &statistics.expiries[..] else { panic!("{:?}", statistics.expiries) };
    assert_eq!((&*of_token.table, &*of_token.column), ("token", "expires"));
    assert_eq!((of_token.removed_rows, of_token.failures, &of_token.failure), (1000, 0, &None));
    assert_eq!(statistics.table("token").unwrap().records, 1);
    assert!(expiry.failure().is_none());
}

#[test]
fn a_row_lives_on_for_as_long_as_was_said() {
    let (db, tokens) = with_tokens(quick(), 10);
    let clock = Clock::default();
    let options = clock.options_without_background("expires").after(Duration::from_micros(5));
    let expiry = db.expire_rows("token", options).unwrap();
    for (now, removed) in [(4, 0), (5, 1), (7, 2)] {
        clock.set(now);
        assert_eq!(expiry.remove_now().unwrap(), removed, "at {now}");
    }
    // An update before it is removed keeps it.
    clock.set(10);
    db.transact(|tx| tokens.update(tx, 4, |row: &mut Expires| row.expires = at(6))).unwrap();
    db.transact(|tx| tokens.update(tx, 5, |row: &mut Expires| row.expires = None)).unwrap();
    assert_eq!(expiry.remove_now().unwrap(), 1);
    assert_eq!(ids(&db), [4, 5, 6, 7, 8, 9, 10]);
    // Less than the clock tells apart is rounded up.
    let options = clock.options_without_background("expires").after(Duration::from_nanos(1));
    let expiry = db.expire_rows("token", options).unwrap();
    for (now, removed) in [(6, 0), (7, 2)] {
        clock.set(now);
        assert_eq!(expiry.remove_now().unwrap(), removed, "at {now}");
    }
    let for_ever = clock.options_without_background("expires").after(Duration::MAX);
    assert_eq!(db.expire_rows("token", for_ever).unwrap().remove_now().unwrap(), 0);
}

/// Makes a table with times in this order, before and after `now` in the column's own numbers, and returns how many rows are removed and which are
/// left.
fn removed_of(
    db: &Database,
    schema: Schema,
    (now, is_timestamp): (i128, bool),
    options: ExpiryOptions,
) -> (u64, Vec<u32>) {
    let is_nullable = schema.columns()[1].nullable;
    let table = db.create_dynamic_table(schema).unwrap();
    let value = |number: i128| match is_timestamp {
        true => Value::Timestamp(Timestamp::from_micros(number as i64)),
        false => Value::Int128(number),
    };
    let mut times = vec![value(0), value(now - 1), value(now), value(now + 1), value(now + 2)];
    times.extend(is_nullable.then_some(Value::Null));
    db.transact(|tx| {
        times
            .iter()
            .zip(0u32..)
            .try_for_each(|(time, id)| table.insert(tx, &[id.into(), time.clone()]).map(|_| ()))
    })
    .unwrap();
    let removed = db.expire_rows("t", options).unwrap().remove_now().unwrap();
    let left = db.transact(|tx| table.scan().columns(&["id"])?.collect(tx)).unwrap();
    let number = |row: &Vec<Value>| match row[0] {
        Value::Unsigned(id) => id as u32,
        ref other => panic!("{other:?}"),
    };
    let mut left: Vec<u32> = left.iter().map(number).collect();
    left.sort_unstable();
    db.drop_table("t").unwrap();
    (removed, left)
}

#[test]
fn times_of_all_types_are_found_in_all_orders() {
    const NOW: i64 = 10 * 86_400_000_000; // ten days
    let db = quick();
    let clock = Clock::default();
    clock.set(NOW);
    let micros = i128::from(NOW);
    for (column_type, unit, now) in [
        (ColumnType::I8, Some(TimeUnit::Days), 10),
        (ColumnType::U8, Some(TimeUnit::Days), 10),
        (ColumnType::I16, Some(TimeUnit::Days), 10),
        (ColumnType::U16, Some(TimeUnit::Days), 10),
        (ColumnType::I32, Some(TimeUnit::Seconds), micros / 1_000_000),
        (ColumnType::U32, Some(TimeUnit::Seconds), micros / 1_000_000),
        (ColumnType::I64, Some(TimeUnit::Milliseconds), micros / 1000),
        (ColumnType::U64, Some(TimeUnit::Microseconds), micros),
        (ColumnType::I128, Some(TimeUnit::Nanoseconds), micros * 1000),
        (ColumnType::U128, Some(TimeUnit::Nanoseconds), micros * 1000),
        (ColumnType::Timestamp, Some(TimeUnit::Microseconds), micros),
        (ColumnType::Timestamp, None, micros),
    ] {
        let options = clock.options_without_background("at");
        let options = unit.into_iter().fold(options, ExpiryOptions::unit);
        let now = (now, column_type == ColumnType::Timestamp);
        let with = |order: Order, is_nullable: bool, is_key: bool| {
            let builder = Schema::builder("t").column("id", ColumnType::U32);
            let builder = if is_nullable {
                builder.nullable("at", column_type)
            } else {
                builder.column("at", column_type)
            };
            let schema = match is_key {
                true => builder.key([("at", order), ("id", Order::Ascending)]),
                false => builder.key([("id", Order::Ascending)]).index("by_at", [("at", order)]),
            };
            let (removed, left) = removed_of(&db, schema.build().unwrap(), now, options.clone());
            let expected: &[u32] = if is_nullable { &[3, 4, 5] } else { &[3, 4] };
            assert_eq!((removed, &left[..]), (3, expected), "{column_type} {order:?} {is_key}");
        };
        for is_key in [false, true] {
            for order in [Order::Ascending, Order::Descending] {
                [false, true].iter().for_each(|is_nullable| with(order, *is_nullable, is_key));
            }
            for order in [Order::AscendingNullsLast, Order::DescendingNullsFirst] {
                with(order, true, is_key);
            }
        }
    }
}

#[test]
fn times_before_and_behind_those_that_a_column_has_are_those_of_none_and_of_all_rows() {
    let db = quick();
    let schema = Schema::builder("t").column("id", ColumnType::U32).column("day", ColumnType::U8);
    let schema = schema.key([("id", Order::Ascending)]).index("by_day", [("day", Order::Ascending)]);
    let table = db.create_dynamic_table(schema.build().unwrap()).unwrap();
    db.transact(|tx| (0..256u32).try_for_each(|id| table.insert(tx, &[id.into(), id.into()]).map(|_| ())))
        .unwrap();
    let clock = Clock::default();
    let options = clock.options_without_background("day").unit(TimeUnit::Days);
    let expiry = db.expire_rows("t", options).unwrap();
    clock.set(-1);
    assert_eq!(expiry.remove_now().unwrap(), 0);
    clock.set(86_400_000_000 - 1);
    assert_eq!(expiry.remove_now().unwrap(), 1, "the first day has begun");
    clock.set(i64::MAX);
    assert_eq!(expiry.remove_now().unwrap(), 255);
}

#[test]
fn an_index_with_unique_times_will_do() {
    let db = quick();
    let schema = Schema::builder("t").column("id", ColumnType::U32).nullable("at", ColumnType::Timestamp);
    let schema = schema.key([("id", Order::Ascending)]).unique_index("by_at", [("at", Order::Ascending)]);
    let table = db.create_dynamic_table(schema.build().unwrap()).unwrap();
    let time = |id: u32| at(id.into()).filter(|_| id < 300).map_or(Value::Null, Value::Timestamp);
    db.transact(|tx| (0..303).try_for_each(|id: u32| table.insert(tx, &[id.into(), time(id)]).map(|_| ())))
        .unwrap();
    let clock = Clock::default();
    let expiry = db.expire_rows("t", clock.options_without_background("at")).unwrap();
    for (now, removed) in [(0, 1), (199, 199), (i64::MAX, 100)] {
        clock.set(now);
        assert_eq!(expiry.remove_now().unwrap(), removed, "at {now}");
    }
    check_index(&db, "t", "by_at");
    assert_eq!(db.transact(|tx| table.scan().collect(tx)).unwrap().len(), 3);
}

#[test]
fn times_of_other_crates_are_nanoseconds_and_days() {
    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "offer", index(name = "by_end", columns(ends desc)), index(name = "by_day", columns(day)))]
    struct Offer {
        #[row(key)]
        id: u32,
        ends: jiff::Timestamp,
        day: Option<jiff::civil::Date>,
    }
    let db = quick();
    let offers = db.create_table::<Offer>().unwrap();
    let now = "2024-02-29T12:00:00Z".parse::<jiff::Timestamp>().unwrap();
    let second = jiff::SignedDuration::from_secs(1);
    let day = jiff::civil::date(2024, 3, 1);
    let rows = [
        Offer { id: 1, ends: now - second, day: None },
        Offer { id: 2, ends: now + second, day: Some(day) },
        Offer { id: 3, ends: now + second, day: Some(day.yesterday().unwrap()) },
    ];
    db.transact(|tx| offers.insert_many(tx, &rows)).unwrap();
    let clock = Clock::default();
    clock.set(now.as_microsecond());
    let by_end = clock.options_without_background("ends").unit(TimeUnit::Nanoseconds);
    assert_eq!(db.expire_rows("offer", by_end).unwrap().remove_now().unwrap(), 1);
    let by_day = clock.options_without_background("day").unit(TimeUnit::Days);
    assert_eq!(db.expire_rows("offer", by_day).unwrap().remove_now().unwrap(), 1);
    assert_eq!(db.transact(|tx| offers.scan().rows(tx)).unwrap(), rows[1..2]);
}

#[test]
fn what_does_not_say_when_rows_expire_is_refused() {
    let (db, _) = with_tokens(quick(), 3);
    let refusal = |table: &str, options: ExpiryOptions| match db.expire_rows(table, options) {
        Err(Error::InvalidOption(text)) => text.to_string(),
        other => panic!("{other:?}"),
    };
    let mut options = ExpiryOptions::new("owner");
    assert!(refusal("token", options).contains("column owner of table token"));
    options = ExpiryOptions::new("visits");
    assert!(refusal("token", options.clone()).contains("ExpiryOptions::unit"));
    assert!(refusal("token", options.unit(TimeUnit::Seconds)).contains("Database::create_index"));
    options = ExpiryOptions::new("expires");
    assert!(refusal("token", options.clone().unit(TimeUnit::Seconds)).contains("microseconds"));
    assert!(refusal("token", options.clone().check_interval(Duration::ZERO)).contains("check_interval"));
    assert!(refusal("token", options.clone().clock(|| panic!("on purpose"))).contains("clock"));
    assert!(matches!(db.expire_rows("nobody", options.clone()), Err(Error::UnknownTable(_))));
    assert!(matches!(db.expire_rows("ensilo.tables", options.clone()), Err(Error::UnknownTable(_))));
    let unknown = db.expire_rows("token", ExpiryOptions::new("nothing"));
    assert!(
        matches!(unknown, Err(Error::UnknownColumn(of)) if (of.table(), of.name()) == ("token", "nothing"))
    );
    assert!(db.statistics().unwrap().expiries.is_empty());
    let expiry = db.expire_rows("token", options.clone().clock(|| Timestamp::from_micros(-1))).unwrap();
    db.transact(|_| {
        assert!(matches!(expiry.remove_now(), Err(Error::NestedRequest(_))));
        Ok(())
    })
    .unwrap();
    assert_eq!(ids(&db), [0, 1, 2, 3]);
    db.close().unwrap();
    assert!(matches!(expiry.remove_now(), Err(Error::Closed)));
    assert!(matches!(db.expire_rows("token", options), Err(Error::Closed)));
}

/// A thread gives its rows new times, inserts those that have gone, and moves the clock. Returns which times its rows have in the end.
fn extend(
    db: &Database,
    tokens: &Table<Token>,
    clock: &Clock,
    (thread, removed): (u32, &dyn Fn() -> u64),
) -> BTreeMap<u32, i64> {
    let mut lives = BTreeMap::new();
    let mut random = u64::from(thread);
    for step in 0u32.. {
        if step >= 2000 && removed() >= 500 {
            break;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = (random >> 33) as u32 % 50 * 2 + thread;
        let expires = clock.now() + (random >> 20) as i64 % 30;
        let outcome = db.transact(|tx| match random >> 62 {
            0 => tokens.update(tx, id, |row: &mut Visits| row.visits += 1).map(|()| None),
            _ => tokens.update(tx, id, |row: &mut Expires| row.expires = at(expires)).map(|()| Some(expires)),
        });
        match outcome {
            Ok(Some(expires)) => _ = lives.insert(id, expires),
            Ok(None) => _ = clock.0.fetch_add(1, Ordering::SeqCst),
            Err(Error::MissingRow(_)) => {
                let (lived, now) = (lives.get(&id), clock.now());
                assert!(
                    lived.is_none_or(|lived| *lived <= now),
                    "{id} was removed at {now}, before {lived:?}"
                );
                db.transact(|tx| tokens.insert(tx, &token(id, at(expires)))).unwrap();
                lives.insert(id, expires);
            }
            Err(error) => panic!("{error}"),
        }
    }
    lives
}

#[test]
fn a_row_is_never_removed_while_it_lives() {
    let db = quick();
    let tokens = db.create_table::<Token>().unwrap();
    let clock = Clock::default();
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    let removed = || expiry.statistics().removed_rows;
    let lives: Vec<(u32, i64)> = thread::scope(|scope| {
        let (db, tokens, clock, removed) = (&db, &tokens, &clock, &removed);
        let threads: Vec<_> =
            (0..2).map(|thread| scope.spawn(move || extend(db, tokens, clock, (thread, removed)))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let now = clock.now();
    let lasting: BTreeMap<u32, i64> = lives.iter().copied().filter(|(_, expires)| *expires > now).collect();
    let there = || {
        let rows = db.transact(|tx| tokens.scan().rows(tx)).unwrap();
        rows.iter().map(|row| (row.id, row.expires.unwrap().micros())).collect::<BTreeMap<_, _>>()
    };
    until("those that have expired are gone, and no others", || there() == lasting);
    clock.set(i64::MAX);
    until("all are gone", || there().is_empty());
    assert!(expiry.failure().is_none(), "{expiry:?}");
    ["by_expiry", "by_owner"].iter().for_each(|index| check_index(&db, "token", index));
}

#[test]
fn a_row_that_another_transaction_uses_keeps_no_other_row() {
    let (db, tokens) = with_tokens(quick(), 400);
    let mut session = db.begin().unwrap();
    tokens.update(&mut session, 100, |row: &mut Visits| row.visits = 1).unwrap();
    let clock = Clock::default();
    clock.set(i64::MAX);
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    let is_gone = |id: u32| db.read(|tx| Ok(!tokens.contains(tx, id)?)).unwrap();
    until("the others are gone", || (0..400).filter(|id| *id != 100).all(is_gone));
    session.rollback().unwrap();
    until("it is gone", || ids(&db) == [400]);
    until("it is counted", || expiry.statistics().removed_rows == 400);
    assert!(expiry.failure().is_none());
}

#[test]
fn a_row_that_a_consumer_has_taken_stays_until_its_transaction_has_ended() {
    let (db, tokens) = with_tokens(quick(), 200);
    let mut session = db.begin().unwrap();
    let taken = tokens.scan().take_first(&mut session).unwrap();
    assert_eq!(taken.map(|(id, _)| id), Some(0));
    let clock = Clock::default();
    clock.set(i64::MAX);
    let expiry = db.expire_rows("token", clock.options_without_background("expires")).unwrap();
    assert_eq!(expiry.remove_now().unwrap(), 199);
    assert_eq!(expiry.remove_now().unwrap(), 0);
    session.rollback().unwrap();
    assert_eq!(ids(&db), [0, 200], "it is there again");
    assert_eq!(expiry.remove_now().unwrap(), 1);
}

#[test]
fn it_goes_on_in_a_table_that_is_truncated_changed_or_made_anew() {
    let (db, tokens) = with_tokens(quick(), 3);
    let clock = Clock::default();
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    let insert_and_expire = |tokens: &Table<Token>, now: i64| {
        db.transact(|tx| tokens.insert(tx, &token(50, at(now)))).unwrap();
        clock.set(now);
        until("it is removed", || !ids(&db).contains(&50));
    };
    insert_and_expire(&tokens, 10);
    db.truncate_table("token").unwrap();
    insert_and_expire(&db.open_table().unwrap(), 20);
    db.drop_index("token", "by_expiry").unwrap();
    until("the missing index is met", || matches!(expiry.failure(), Some(Error::InvalidOption(_))));
    db.create_index("token", "by_time", [("expires", Order::Descending)]).unwrap();
    db.create_index("token", "by_expiry", [("expires", Order::Ascending)]).unwrap();
    insert_and_expire(&db.open_table().unwrap(), 30);
    until("that is over", || expiry.failure().is_none());
    db.change_table("token", &SchemaChange::new().rename("expires", "ends")).unwrap();
    until("the missing column is met", || matches!(expiry.failure(), Some(Error::UnknownColumn(_))));
    db.change_table("token", &SchemaChange::new().rename("ends", "expires")).unwrap();
    insert_and_expire(&db.open_table().unwrap(), 40);
    db.drop_table("token").unwrap();
    until("the missing table is met", || matches!(expiry.failure(), Some(Error::UnknownTable(_))));
    assert!(matches!(expiry.remove_now(), Err(Error::UnknownTable(_))));
    insert_and_expire(&db.create_table().unwrap(), 50);
    until("that is over", || expiry.failure().is_none());
    let statistics = expiry.statistics();
    assert!(statistics.failures >= 3 && statistics.removed_rows >= 5, "{statistics:?}");
    assert_eq!(db.statistics().unwrap().expiry_failures, statistics.failures);
}

#[test]
fn a_failure_is_reported_when_it_begins() {
    let (sender, events) = mpsc::channel();
    let options = Options::default().on_event(move |event| sender.send(event.clone()).unwrap());
    let (db, _) = with_tokens(in_memory(options), 3);
    let clock = Clock::default();
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    for _ in 0..2 {
        db.drop_index("token", "by_expiry").unwrap();
        match events.recv().unwrap() {
            ensilo::Event::ExpiryFailed { table, error } => {
                assert!(table == "token" && error.contains("column expires of table token"), "{error}");
            }
            other => panic!("{other}"),
        }
        let failures = expiry.statistics().failures;
        until("it is tried again", || expiry.statistics().failures > failures + 2);
        db.create_index("token", "by_expiry", [("expires", Order::Ascending)]).unwrap();
        until("it is over", || expiry.failure().is_none());
    }
    db.close().unwrap();
    assert!(events.try_recv().is_err(), "each was reported once");
}

#[test]
fn it_ends_with_its_handle_unless_that_is_detached() {
    let (db, _) = with_tokens(quick(), 3);
    let clock = Clock::default();
    clock.set(-1);
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    drop(expiry);
    until("the clock is given back", || Arc::strong_count(&clock.0) == 1);
    clock.set(i64::MAX);
    assert_eq!((ids(&db), db.statistics().unwrap().expiries.len()), (vec![0, 1, 2, 3], 0));
    db.expire_rows("token", clock.options("expires")).unwrap().detach();
    until("they are removed", || ids(&db) == [3]);
    assert_eq!(db.statistics().unwrap().expiries.len(), 1);
    drop(db);
    until("the clock is given back", || Arc::strong_count(&clock.0) == 1);
}

#[test]
fn two_of_one_table_share_the_work() {
    let (db, _) = with_tokens(quick(), 2000);
    let clock = Clock::default();
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    let other = db.expire_rows("token", clock.options("expires").after(Duration::from_micros(100))).unwrap();
    clock.set(1500);
    thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| expiry.remove_now().unwrap()));
        other.remove_now().unwrap();
    });
    until("they are removed", || ids(&db).len() == 500);
    let of_both = || expiry.statistics().removed_rows + other.statistics().removed_rows;
    until("each is counted once", || of_both() == 1501);
    assert_eq!(db.statistics().unwrap().expired_rows, 1501);
}

#[test]
fn closing_the_database_ends_it_also_from_its_own_clock() {
    let (db, _) = with_tokens(quick(), 3000);
    let clock = Clock::default();
    clock.set(i64::MAX);
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    until("it has begun", || expiry.statistics().removed_rows > 0);
    db.close().unwrap();
    drop((expiry, db));
    assert_eq!(Arc::strong_count(&clock.0), 1, "its thread has ended");
    let (db, _) = with_tokens(quick(), 3);
    let (sender, closed) = mpsc::channel();
    let closing = db.clone();
    let options = ExpiryOptions::new("expires").clock(move || {
        if thread::current().name() == Some(BACKGROUND) {
            sender.send(closing.close()).unwrap();
        }
        Timestamp::from_micros(i64::MAX)
    });
    let expiry = db.expire_rows("token", options).unwrap();
    closed.recv().unwrap().unwrap();
    db.close().unwrap();
    assert!(matches!(expiry.remove_now(), Err(Error::Closed)));
}

#[test]
fn rows_expire_at_the_memory_limit() {
    let options = Options::default().epoch_interval(Duration::from_millis(1)).epochs_per_snapshot(2);
    let db = in_memory(options.memory_limit_bytes(8 << 20));
    let tokens = db.create_table::<Token>().unwrap();
    let insert = |id: u32| {
        let row = Token { owner: format!("{id:0500}"), ..token(id, at(id.into())) };
        db.transact(|tx| tokens.insert(tx, &row))
    };
    let mut count = 0;
    let refusal = loop {
        match insert(count) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refusal, Error::OutOfMemory(_)), "{refusal}");
    let clock = Clock::default();
    clock.set(i64::MAX);
    let expiry = db.expire_rows("token", clock.options("expires")).unwrap();
    until("all are removed", || db.read(|tx| tokens.scan().count(tx)).unwrap() == 0);
    until("they are counted", || expiry.statistics().removed_rows == u64::from(count));
    assert!(expiry.failure().is_none(), "{expiry:?}");
    until("there is room again", || insert(count).is_ok());
}

#[test]
fn what_has_expired_is_gone_after_remove_now_also_beside_the_background() {
    let (db, _) = with_tokens(quick(), 0);
    let tokens = db.table::<Token>().unwrap();
    for id in 1..500 {
        db.transact(|tx| tokens.insert(tx, &token(id, at(id.into())))).unwrap();
        let options = ExpiryOptions::new("expires").check_interval(Duration::from_millis(1));
        let expiry = db.expire_rows("token", options).unwrap();
        expiry.remove_now().unwrap();
        assert_eq!(ids(&db), [0], "token {id} had expired");
    }
}
