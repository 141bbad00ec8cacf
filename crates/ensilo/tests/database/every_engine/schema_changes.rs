//! Changes of a table's columns: rows of before are read, written and indexed as rows of the changed table.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use ensilo::{ColumnType, Columns, Error, Order, Result, Row, SchemaChange, Text, Value};

use super::{Account, Database, Index, SetOnDrop, Table, Visits, account, quick, with_accounts};

/// The account of a later version: one column has another name and one another type, two are new, and there is one more index.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(
    table = "account",
    index(name = "by_owner", columns(name, balance desc)),
    index(name = "by_email", columns(email), unique),
    index(name = "by_level", columns(level, id desc))
)]
struct Member {
    #[row(key)]
    id: u32,
    level: u16,
    name: Text<16>,
    balance: i64,
    email: Option<String>,
    visits: u64,
    note: Option<String>,
}

/// Columns that are patched.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Member)]
struct MemberVisits {
    visits: u64,
}

/// Columns in an index, of fixed width.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Member)]
struct Standing {
    level: u16,
    balance: i64,
}

/// A column of variable width.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Member)]
struct Note {
    note: Option<String>,
}

/// The version after that.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account")]
struct Last {
    #[row(key)]
    id: u32,
    name: Text<16>,
    balance: Option<i64>,
    visits: u64,
}

/// The changes to versions 2, 3 and 4.
fn changes() -> [SchemaChange; 3] {
    let change = SchemaChange::new;
    [
        change().rename("owner", "name").add("level", ColumnType::U16, 3u16),
        change().widen("visits", ColumnType::U64).add_nullable("note", ColumnType::Text, "old"),
        change().drop_column("note").drop_column("level").drop_column("email").allow_null("balance"),
    ]
}

/// What the account is once the table is of members.
fn as_member(account: &Account) -> Member {
    let Account { id, owner, balance, email, visits } = account.clone();
    let visits = u64::from(visits);
    Member { id, level: 3, name: owner, balance, email, visits, note: Some("old".to_owned()) }
}

fn member(id: u32) -> Member {
    Member { level: id as u16 % 5, note: None, ..as_member(&account(id)) }
}

type Model = BTreeMap<u32, Member>;

/// The table, and the model of it.
struct Both {
    db: Database,
    members: Table<Member>,
    model: Model,
}

impl Both {
    /// Of accounts that became members.
    fn changed(count: u32) -> Self {
        let (db, accounts) = with_accounts(count);
        db.transact(|tx| accounts.update(tx, 1, |columns: &mut Visits| columns.visits = u32::MAX)).unwrap();
        let mut model: Model = (0..count).map(|id| (id, as_member(&account(id)))).collect();
        model.get_mut(&1).unwrap().visits = u32::MAX.into();
        let members = db.table_with_changes(&changes()[..2]).unwrap();
        Both { db, members, model }
    }

    /// Every way to read says what the model does.
    fn check(&self) {
        let Both { db, members, model } = self;
        let expected: Vec<Member> = model.values().cloned().collect();
        let keys: Vec<u32> = (0..80).collect();
        let by_owner: Index<Member, (Text<16>, Reverse<i64>)> = members.index("by_owner").unwrap();
        let by_level: Index<Member, (u16, Reverse<u32>)> = members.index("by_level").unwrap();
        let dynamic = db.open_dynamic_table("account").unwrap();
        db.transact(|tx| {
            assert_eq!(members.scan().rows(tx)?, expected);
            assert_eq!(members.scan().reverse().limit(5).rows(tx)?.last(), expected.iter().nth_back(4));
            let many = members.get_many(tx, &keys)?;
            assert!(keys.iter().zip(&many).all(|(key, row)| row.as_ref() == model.get(key)));
            for key in &keys {
                assert_eq!(members.get(tx, *key)?.as_ref(), model.get(key));
                let standing = members.get_columns::<Standing>(tx, *key)?;
                let row = model.get(key).map(|row| Standing { level: row.level, balance: row.balance });
                assert_eq!(standing, row);
                let note = dynamic.get_columns(tx, &[(*key).into()], &["note", "level"])?;
                let row = model
                    .get(key)
                    .map(|row| vec![row.note.clone().map_or(Value::Null, Value::from), row.level.into()]);
                assert_eq!(note, row);
            }
            let mut by_name = expected.clone();
            by_name.sort_by_key(|row| (row.name, Reverse(row.balance), row.id));
            assert_eq!(by_owner.scan().rows(tx)?, by_name);
            let mut of_level = expected.clone();
            of_level.sort_by_key(|row| (row.level, Reverse(row.id)));
            let mut cursor = by_level.scan().cursor();
            for row in of_level {
                assert_eq!(cursor.next(tx)?.map(|(_, row)| row), Some(row));
            }
            for index in ["by_owner", "by_level", "by_email"] {
                assert!(dynamic.check_index(tx, index)?.is_whole(), "{index}");
            }
            Ok(())
        })
        .unwrap();
    }

    /// Makes one change, of a kind that `random` says.
    fn step(&mut self, random: u64) {
        let Both { db, members, model } = self;
        let (id, number) = ((random >> 8) as u32 % 80, random >> 40);
        let old = model.get(&id).cloned();
        let fresh = Member { balance: number as i64, level: number as u16 % 7, ..member(id) };
        let is_there = old.is_some();
        let row = old.unwrap_or_else(|| fresh.clone());
        let change_visits = |columns: &mut MemberVisits| columns.visits += number;
        let change_standing =
            |columns: &mut Standing| (columns.level, columns.balance) = (fresh.level, fresh.balance);
        let note = Some(format!("note {number}"));
        let outcome: Result<Option<Member>> = db.transact(|tx| {
            let row = row.clone();
            Ok(match random % 8 {
                0 => {
                    members.upsert(tx, &fresh)?;
                    Some(fresh.clone())
                }
                1 if is_there => {
                    assert_eq!(members.take(tx, id)?, Some(row));
                    None
                }
                2 if is_there => {
                    members.delete(tx, id)?;
                    None
                }
                3 if is_there => {
                    members.update(tx, id, change_visits)?;
                    // A second time, over its own write.
                    members.update(tx, id, change_visits)?;
                    Some(Member { visits: row.visits + 2 * number, ..row })
                }
                4 if is_there => {
                    members.update(tx, id, change_standing)?;
                    Some(Member { level: fresh.level, balance: fresh.balance, ..row })
                }
                5 if is_there => {
                    members.find(tx, id)?.unwrap().set(tx, Note { note: note.clone() })?;
                    Some(Member { note: note.clone(), ..row })
                }
                6 if is_there => {
                    members.find(tx, id)?.unwrap().set(tx, MemberVisits { visits: number })?;
                    Some(Member { visits: number, ..row })
                }
                7 => {
                    let returned = members.update_or_insert(tx, &fresh, change_visits)?;
                    assert_eq!(returned.is_some(), is_there);
                    Some(if is_there { Member { visits: row.visits + number, ..row } } else { fresh.clone() })
                }
                _ => is_there.then_some(row),
            })
        });
        match outcome.unwrap() {
            Some(row) => _ = model.insert(id, row),
            None => _ = model.remove(&id),
        }
    }
}

/// Commits again and again beside a change of the table, which refuses its handles at times.
pub(super) fn visit_beside_a_change(db: &Database, accounts: &Table<Account>) {
    let mut committed = 0;
    while committed < 200 {
        match db.transact(|tx| accounts.update(tx, 2, |columns: &mut Visits| columns.visits += 1)) {
            Ok(()) => committed += 1,
            Err(Error::TableChanged(_)) => thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn rows_of_before_a_change_are_rows_of_the_changed_table() {
    let mut both = Both::changed(60);
    both.check();
    let mut random = 7u64;
    for step in 0..600 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        both.step(random >> 3);
        if step % 60 == 0 {
            both.check();
        }
    }
    both.check();
}

#[test]
fn a_unique_index_over_rows_of_before_refuses_the_same_again() {
    let Both { db, members, .. } = Both::changed(10);
    let taken = Member { email: account(3).email, ..member(50) };
    let refused = db.transact(|tx| members.insert(tx, &taken));
    assert!(
        matches!(&refused, Err(Error::DuplicateKey(of)) if of.index() == Some("by_email")),
        "{refused:?}"
    );
    // Levels are the same in all rows of before.
    let refused = db.create_unique_index("account", "one_level", [("level", Order::Ascending)]);
    assert!(matches!(refused, Err(Error::DuplicateKey(_))), "{refused:?}");
    db.create_unique_index(
        "account",
        "by_name_and_id",
        [("note", Order::Descending), ("id", Order::Ascending)],
    )
    .unwrap();
    let table = db.open_dynamic_table("account").unwrap();
    assert!(db.transact(|tx| table.check_index(tx, "by_name_and_id")).unwrap().is_whole());
}

#[test]
fn a_queue_gives_rows_of_before_out() {
    let Both { db, members, .. } = Both::changed(4);
    let by_level: Index<Member, (u16, Reverse<u32>)> = members.index("by_level").unwrap();
    let taken = db.transact(|tx| by_level.scan().take_first(tx)).unwrap();
    assert_eq!(taken, Some((3, as_member(&account(3)))));
    let taken = db.transact(|tx| members.scan().take_first(tx)).unwrap();
    assert_eq!(taken, Some((0, as_member(&account(0)))));
}

#[test]
fn a_program_of_any_version_opens_tables_of_all_before() {
    for first in 0..3 {
        // A table that was made by the version `first`, and has rows of all versions up to there.
        let (db, accounts) = with_accounts(3);
        assert_eq!(db.transact(|tx| accounts.get(tx, 2)).unwrap(), Some(account(2)));
        for change in &changes()[..first] {
            db.change_table("account", change).unwrap();
        }
        let mut by_member = None;
        for _ in 0..2 {
            let members: Table<Member> = db.table_with_changes(&changes()[..2]).unwrap();
            by_member = Some(db.transact(|tx| members.get(tx, 2)).unwrap().unwrap());
        }
        assert_eq!(by_member, Some(as_member(&account(2))), "from {first}");
        // The columns of indexes stay, and that is what the error says.
        let refused = db.table_with_changes::<Last>(&changes());
        assert!(
            matches!(&refused, Err(Error::InvalidSchema(why)) if why.contains("drop the index")),
            "{refused:?}"
        );
        for index in ["by_email", "by_owner", "by_level"] {
            db.drop_index("account", index).unwrap();
        }
        let last: Table<Last> = db.table_with_changes(&changes()).unwrap();
        let expected = Last { id: 2, name: account(2).owner, balance: Some(20), visits: 0 };
        assert_eq!(db.transact(|tx| last.get(tx, 2)).unwrap(), Some(expected));
        let refused = db.table_with_changes::<Member>(&changes()[..2]);
        assert!(matches!(refused, Err(Error::SchemaMismatch(_))), "{refused:?}");
    }
    let db = quick();
    let made: Table<Last> = db.table_with_changes(&changes()).unwrap();
    assert_eq!(db.transact(|tx| made.scan().count(tx)).unwrap(), 0);
}

#[test]
fn handles_of_before_are_refused() {
    let (db, accounts) = with_accounts(10);
    let by_owner: Index<Account, (Text<16>, Reverse<i64>)> = accounts.index("by_owner").unwrap();
    let dynamic = db.open_dynamic_table("account").unwrap();
    db.change_table("account", &SchemaChange::new().add("level", ColumnType::U16, 3u16)).unwrap();
    let is_refused = |error: Error| matches!(&error, Error::TableChanged(name) if &**name == "account");
    assert!(is_refused(db.transact(|tx| accounts.get(tx, 1)).unwrap_err()));
    assert!(is_refused(db.transact(|tx| accounts.insert(tx, &account(11))).unwrap_err()));
    assert!(is_refused(db.transact(|tx| by_owner.scan().count(tx)).unwrap_err()));
    assert!(is_refused(db.transact(|tx| dynamic.insert(tx, &[])).unwrap_err()));
    assert!(is_refused(db.read_stale(|tx| accounts.get(tx, 1)).unwrap_err()));
    let changed = db.open_dynamic_table("account").unwrap();
    let row = db.transact(|tx| changed.get(tx, &[1u32.into()])).unwrap().unwrap();
    assert_eq!(row[5], Value::from(3u16));
    assert_eq!(db.list_tables().unwrap(), ["account"]);
}

#[test]
fn a_column_that_is_dropped_and_added_again_has_the_value_that_was_given() {
    let (db, _) = with_accounts(3);
    let before = db.schema("account").unwrap();
    let names = before.columns().iter().map(|column| column.name.clone());
    let anew = SchemaChange::new().drop_column("visits").add("visits", ColumnType::U32, 7u32);
    db.change_table("account", &anew.order(names)).unwrap();
    assert_eq!(db.schema("account").unwrap(), before);
    let accounts: Table<Account> = db.open_table().unwrap();
    let changed = Account { visits: 7, ..account(2) };
    assert_eq!(db.transact(|tx| accounts.get(tx, 2)).unwrap(), Some(changed));
}

#[test]
fn a_change_that_cannot_be_changes_nothing() {
    let (db, accounts) = with_accounts(3);
    let before = db.schema("account").unwrap();
    for change in [
        SchemaChange::new().add("level", ColumnType::U16, -1),
        SchemaChange::new().add("level", ColumnType::U16, 3u16).drop_column("balance"),
    ] {
        let refused = db.change_table("account", &change);
        assert!(matches!(refused, Err(Error::InvalidSchema(_))), "{refused:?}");
    }
    let refused = db.change_table("account", &SchemaChange::new().drop_column("no such"));
    assert!(matches!(refused, Err(Error::UnknownColumn(_))), "{refused:?}");
    assert!(matches!(db.change_table("none", &SchemaChange::new()), Err(Error::UnknownTable(_))));
    let nested = db.transact(|_| db.change_table("account", &SchemaChange::new()));
    assert!(matches!(nested, Err(Error::NestedRequest(_))), "{nested:?}");
    assert_eq!(db.schema("account").unwrap(), before);
    assert_eq!(db.transact(|tx| accounts.get(tx, 2)).unwrap(), Some(account(2)));
}

#[test]
fn snapshots_show_rows_of_before_as_those_of_now() {
    let Both { db, members, .. } = Both::changed(5);
    let expected: Vec<_> = (0..5).map(|id| as_member(&account(id))).collect();
    db.transact(|tx| members.update(tx, 2, |columns: &mut MemberVisits| columns.visits = 9)).unwrap();
    // Whatever moment it shows, it is one of before or of after the update.
    for _ in 0..50 {
        let mut rows = db.read_stale(|tx| members.scan().rows(tx)).unwrap();
        if rows.is_empty() {
            continue;
        }
        assert!([0, 9].contains(&rows[2].visits));
        rows[2].visits = 0;
        rows[1].visits = 0;
        assert_eq!(rows, expected);
    }
    assert_eq!(db.read(|tx| members.get(tx, 2)).unwrap().unwrap().visits, 9);
}

#[test]
fn transactions_that_run_while_a_table_changes_lose_nothing() {
    const ROWS: u32 = 20;
    const CHANGES: u16 = 12;
    let (db, _) = with_accounts(ROWS);
    let (stop, commits) = (AtomicBool::new(false), AtomicU64::new(0));
    let add_visits = |seed: u32| {
        let mut id = seed;
        while !stop.load(Ordering::Relaxed) {
            id = (id + 7) % ROWS;
            let table = db.open_dynamic_table("account").unwrap();
            let outcome = db.transact(|tx| {
                let key = [id.into()];
                let Some(Value::Unsigned(visits)) =
                    table.get_columns(tx, &key, &["visits"])?.map(|row| row[0].clone())
                else {
                    panic!("the row and its column are always there");
                };
                table.update(tx, &key, &[("visits", (visits + 1).into())])
            });
            match outcome {
                Ok(()) => _ = commits.fetch_add(1, Ordering::Relaxed),
                Err(Error::TableChanged(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    thread::scope(|scope| {
        let _at_end = SetOnDrop(&stop);
        for seed in 0..2 {
            let add_visits = &add_visits;
            scope.spawn(move || add_visits(seed));
        }
        for number in 0..CHANGES {
            let before = commits.load(Ordering::Relaxed);
            while commits.load(Ordering::Relaxed) < before + 20 {
                thread::yield_now();
            }
            let (added, dropped) = (format!("c{number}"), format!("c{}", number.wrapping_sub(2)));
            let mut change = SchemaChange::new().add(added, ColumnType::U16, number);
            if number >= 2 {
                change = change.drop_column(dropped);
            }
            if number == 5 {
                change = change.widen("visits", ColumnType::U64);
            }
            db.change_table("account", &change).unwrap();
        }
    });
    let commits = commits.into_inner();
    let table = db.open_dynamic_table("account").unwrap();
    let rows = db.transact(|tx| table.scan().columns(&["visits", "c10", "c11"])?.collect(tx)).unwrap();
    let number =
        |value: &Value| if let Value::Unsigned(number) = value { *number } else { panic!("{value:?}") };
    assert_eq!(rows.iter().map(|row| number(&row[0])).sum::<u64>(), commits);
    assert!(rows.iter().all(|row| row[1..] == [10u16.into(), 11u16.into()]), "{rows:?}");
}

#[test]
fn threads_that_change_a_table_at_once_change_it_once() {
    // A column that is dropped and made anew: a second time it would lose what was written in between.
    let change = SchemaChange::new().drop_column("visits").add("visits", ColumnType::U64, 0u64);
    let changes = [change.rename("owner", "name").add("level", ColumnType::U16, 3u16).add_nullable(
        "note",
        ColumnType::Text,
        "old",
    )];
    for _ in 0..20 {
        let (db, _) = with_accounts(3);
        thread::scope(|scope| {
            for id in 0..3 {
                let (db, changes) = (&db, &changes);
                scope.spawn(move || {
                    let members: Table<Member> = db.table_with_changes(changes).unwrap();
                    db.transact(|tx| members.update(tx, id, |columns: &mut MemberVisits| columns.visits = 7))
                        .unwrap();
                });
            }
        });
        let members: Table<Member> = db.open_table().unwrap();
        let rows = db.transact(|tx| members.scan().rows(tx)).unwrap();
        assert!(rows.iter().all(|row| row.visits == 7 && row.level == 3), "{rows:?}");
        assert!(
            db.statistics().unwrap().table("account").unwrap().indexes.iter().all(|index| index.records == 3)
        );
    }
}

#[test]
fn a_table_is_used_while_its_change_waits_for_a_long_transaction() {
    let (db, accounts) = with_accounts(3);
    let mut session = db.begin().unwrap();
    accounts.update(&mut session, 1, |columns: &mut Visits| columns.visits = 5).unwrap();
    thread::scope(|scope| {
        let change = scope
            .spawn(|| db.change_table("account", &SchemaChange::new().add("level", ColumnType::U16, 3u16)));
        // Most of the time it is open to others: however long the transaction takes, they get on.
        visit_beside_a_change(&db, &accounts);
        assert!(!change.is_finished());
        session.commit().unwrap();
        change.join().unwrap().unwrap();
    });
    let changed = db.open_dynamic_table("account").unwrap();
    let row = |id: u32| {
        db.transact(|tx| changed.get_columns(tx, &[id.into()], &["visits", "level"])).unwrap().unwrap()
    };
    assert_eq!((row(1), row(2)), (vec![5u32.into(), 3u16.into()], vec![200u32.into(), 3u16.into()]));
}

#[test]
fn an_index_that_is_another_one_changes_nothing() {
    let (db, accounts) = with_accounts(3);
    db.create_index("account", "by_level", [("balance", Order::Ascending)]).unwrap();
    let refused = db.table_with_changes::<Member>(&changes()[..2]);
    assert!(
        matches!(&refused, Err(Error::SchemaMismatch(why)) if why.to_string().contains("by_level")),
        "{refused:?}"
    );
    assert_eq!(db.transact(|tx| accounts.get(tx, 2)).unwrap(), Some(account(2)));
}
