//! Adding to numbers of rows, whatever they are.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use ensilo::{ColumnType, Columns, Decimal, Error, Order, Result, Row, SchemaChange, Value};

use super::{Account, Balance, Database, DynamicTable, SetOnDrop, Table, Visits, quick, with_accounts};

/// Numbers of every width, which share words.
#[derive(Clone, Debug, Default, PartialEq, Row)]
#[row(table = "numbers")]
struct Numbers {
    #[row(key)]
    id: u32,
    text: String,
    large: u64,
    price: Decimal<2>,
    medium: i32,
    small: u16,
    tiny: i8,
    other: i8,
}

#[derive(Clone, Debug, Columns)]
#[columns(of = Numbers)]
struct Amounts {
    large: u64,
    price: Decimal<2>,
    medium: i32,
    small: u16,
    tiny: i8,
}

fn numbers() -> Numbers {
    Numbers {
        id: 1,
        text: "text".to_owned(),
        large: u64::MAX - 7,
        price: Decimal::from_scaled(-150),
        medium: -5,
        small: 300,
        tiny: -100,
        other: -1,
    }
}

fn with_numbers() -> (Database, Table<Numbers>) {
    let db = quick();
    let table = db.create_table::<Numbers>().unwrap();
    db.transact(|tx| table.insert(tx, &numbers())).unwrap();
    (db, table)
}

#[test]
fn amounts_are_added_and_taken_away_in_columns_of_every_type() {
    let (db, table) = with_numbers();
    let amounts =
        Amounts { large: 7, price: Decimal::from_scaled(175), medium: 10, small: 65_235, tiny: -28 };
    db.transact(|tx| table.add(tx, 1, &amounts)).unwrap();
    let sums = Numbers {
        large: u64::MAX,
        price: Decimal::from_scaled(25),
        medium: 5,
        small: u16::MAX,
        tiny: -128,
        ..numbers()
    };
    assert_eq!(db.transact(|tx| table.get(tx, 1)).unwrap(), Some(sums.clone()));
    db.transact(|tx| {
        table.subtract(tx, 1, &amounts)?;
        // Own writes are seen, and more can come.
        assert_eq!(table.get(tx, 1)?, Some(numbers()));
        table.add(tx, 1, &amounts)?;
        table.subtract(tx, 1, &amounts)
    })
    .unwrap();
    assert_eq!(db.transact(|tx| table.get(tx, 1)).unwrap(), Some(numbers()));
}

#[test]
fn a_sum_that_the_column_has_no_room_for_is_an_error_of_the_statement() {
    let (db, table) = with_numbers();
    let none = Amounts { large: 0, price: Decimal::from_scaled(0), medium: 0, small: 0, tiny: 0 };
    let too_much = [
        ("large", Amounts { large: 8, ..none.clone() }),
        ("small", Amounts { small: u16::MAX - 299, ..none.clone() }),
        ("tiny", Amounts { tiny: -29, ..none.clone() }),
    ];
    for retries in [0, 10] {
        for (column, amounts) in &too_much {
            let outcome = db.request().retries(retries).transact(|tx| {
                table.add(tx, 1, &Amounts { medium: 1, ..none.clone() })?;
                table.add(tx, 1, amounts)
            });
            let Err(Error::SumOutOfRange(sum)) = outcome else { panic!("{column}: {outcome:?}") };
            assert_eq!((sum.table(), sum.column()), ("numbers", *column));
            assert!(sum.to_string().contains("id = 1"), "{sum}");
        }
    }
    // A closure goes on without.
    let outcome = db.transact(|tx| match table.add(tx, 1, &too_much[0].1) {
        Err(Error::SumOutOfRange(_)) => {
            table.add(tx, 1, &Amounts { large: 7, ..none.clone() }).map(|()| "less")
        }
        outcome => outcome.map(|()| "all"),
    });
    assert_eq!(outcome.unwrap(), "less");
    let sums = Numbers { large: u64::MAX, ..numbers() };
    assert_eq!(db.transact(|tx| table.get(tx, 1)).unwrap(), Some(sums));
    let missing = db.transact(|tx| table.add(tx, 2, &none));
    assert!(matches!(missing, Err(Error::MissingRow(_))), "{missing:?}");
}

#[test]
fn an_error_of_the_closure_counts_where_the_sums_have_room() {
    let (db, accounts) = with_accounts(3);
    let dry_run = |count| {
        db.transact(|tx| {
            accounts.subtract(tx, 1, &Visits { visits: count })?;
            Err::<(), _>(Error::rollback("enough is there"))
        })
        .unwrap_err()
    };
    db.transact(|tx| accounts.add(tx, 1, &Visits { visits: 3 })).unwrap();
    assert!(matches!(dry_run(3), Error::User(_)));
    assert!(matches!(dry_run(5), Error::SumOutOfRange(_)));
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap().unwrap().visits, 3);
}

#[test]
fn a_stock_is_sold_once_whoever_sells_it() {
    const STOCK: u32 = 1000;
    let (db, accounts) = with_accounts(3);
    db.transact(|tx| accounts.update(tx, 1, |account: &mut Visits| account.visits = STOCK)).unwrap();
    let sold = AtomicU32::new(0);
    thread::scope(|scope| {
        for seller in 0..3u32 {
            let (db, accounts, sold) = (&db, &accounts, &sold);
            scope.spawn(move || {
                loop {
                    let outcome = db.transact(|tx| {
                        accounts.subtract(tx, 1, &Visits { visits: 1 })?;
                        accounts.add(tx, if seller == 0 { 0 } else { 2 }, &Visits { visits: 1 })
                    });
                    match outcome {
                        Ok(()) => _ = sold.fetch_add(1, Ordering::Relaxed),
                        Err(Error::SumOutOfRange(_)) => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(sold.into_inner(), STOCK);
    let visits = db.transact(|tx| accounts.scan().columns::<Visits>().rows(tx)).unwrap();
    assert_eq!(visits[1].visits, 0);
    assert_eq!(visits[0].visits + visits[2].visits, STOCK);
}

#[test]
fn a_session_adds_to_what_it_has_read() {
    let (db, accounts) = with_accounts(3);
    let mut session = db.session().unwrap();
    session.begin().unwrap();
    accounts.add(&mut session, 1, &Visits { visits: 5 }).unwrap();
    let too_much = accounts.subtract(&mut session, 1, &Visits { visits: 6 });
    assert!(matches!(too_much, Err(Error::SumOutOfRange(_))), "{too_much:?}");
    accounts.subtract(&mut session, 1, &Visits { visits: 2 }).unwrap();
    session.commit().unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap().unwrap().visits, 3);
    drop(session);
    db.transact(|tx| accounts.add(tx, 1, &Visits { visits: 1 })).unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap().unwrap().visits, 4);
}

#[test]
fn entries_of_an_index_move_with_the_sums() {
    let (db, accounts) = with_accounts(6);
    db.transact(|tx| {
        accounts.add(tx, 1, &Balance { balance: 1000 })?;
        accounts.add(tx, 1, &Balance { balance: -3000 })
    })
    .unwrap();
    let by_owner = accounts.index::<(ensilo::Text<16>, std::cmp::Reverse<i64>)>("by_owner").unwrap();
    let rows = db.transact(|tx| by_owner.scan().rows(tx)).unwrap();
    assert_eq!(rows.len(), 6);
    let of_bert: Vec<_> =
        rows.iter().filter(|row| row.id % 3 == 1).map(|row| (row.id, row.balance)).collect();
    assert_eq!(of_bert, [(4, 40), (1, -1990)]);
}

#[test]
fn rows_from_before_a_change_of_the_schema_are_added_to() {
    let (db, accounts) = with_accounts(4);
    db.change_table("account", &SchemaChange::new().add("level", ColumnType::U16, 3u16)).unwrap();
    let changed = accounts_with_level(&db);
    for round in 1..4u16 {
        db.transact(|tx| {
            changed.add(tx, &[Value::from(1u32)], &[("level", round.into()), ("visits", 7u32.into())])?;
            changed.subtract(tx, &[Value::from(1u32)], &[("visits", 2u32.into())])
        })
        .unwrap();
    }
    let columns = ["level", "visits", "owner"];
    let row = db.transact(|tx| changed.get_columns(tx, &[1u32.into()], &columns)).unwrap().unwrap();
    assert_eq!(row, [Value::from(9u16), 15u32.into(), "bert".into()]);
    assert!(matches!(
        db.transact(|tx| accounts.add(tx, 1, &Visits { visits: 1 })),
        Err(Error::TableChanged(_))
    ));
}

fn accounts_with_level(db: &Database) -> DynamicTable {
    db.open_dynamic_table("account").unwrap()
}

#[test]
fn a_dynamic_row_is_added_to_by_values_that_fit() {
    let (db, _table) = with_numbers();
    let table = db.open_dynamic_table("numbers").unwrap();
    let key = [Value::from(1u32)];
    let add = |amounts: &[(&str, Value)]| db.transact(|tx| table.add(tx, &key, amounts));
    add(&[("medium", 5i32.into()), ("tiny", 1i8.into())]).unwrap();
    for amounts in
        [("text", "a".into()), ("id", 1u32.into()), ("small", Value::from(-1i32)), ("medium", "a".into())]
    {
        let refused = add(&[amounts]);
        assert!(matches!(refused, Err(Error::WrongType(_))), "{refused:?}");
    }
    assert!(matches!(add(&[("none", 1u32.into())]), Err(Error::UnknownColumn(_))));
    assert!(matches!(add(&[("large", 8u64.into())]), Err(Error::SumOutOfRange(_))));
    let taken = db.transact(|tx| table.subtract(tx, &key, &[("large", 8u64.into())]));
    taken.unwrap();
    let columns = ["medium", "tiny", "large", "other"];
    let row = db.transact(|tx| table.get_columns(tx, &key, &columns)).unwrap().unwrap();
    assert_eq!(row, [Value::from(0i32), (-99i8).into(), (u64::MAX - 15).into(), (-1i8).into()]);
}

/// While some add and others write whole rows, indexes are made and dropped again.
#[test]
fn an_index_that_is_made_meanwhile_has_the_sums() -> Result<()> {
    let (db, accounts) = with_accounts(4);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let adders: Vec<_> = (0..2u32)
            .map(|adder| {
                let (db, accounts, is_done) = (&db, &accounts, &is_done);
                scope.spawn(move || {
                    let mut added = 0;
                    while !is_done.load(Ordering::Relaxed) {
                        let id = (added + adder) % 4;
                        let outcome = match added % 8 {
                            7 => db.transact(|tx| {
                                accounts.update(tx, id, |account: &mut Account| account.visits += 1)
                            }),
                            _ => db.transact(|tx| accounts.add(tx, id, &Visits { visits: 1 })),
                        };
                        outcome.unwrap();
                        added += 1;
                    }
                    added
                })
            })
            .collect();
        let at_end = SetOnDrop(&is_done);
        for _ in 0..10 {
            db.create_index("account", "by_visits", [("visits", Order::Ascending)])?;
            let by_visits = accounts.index::<u32>("by_visits")?;
            for _ in 0..5 {
                let (rows, entries) =
                    db.transact(|tx| Ok((accounts.scan().rows(tx)?, by_visits.scan().rows(tx)?)))?;
                let mut rows: Vec<_> = rows.iter().map(|row| (row.visits, row.id)).collect();
                rows.sort_unstable();
                let entries: Vec<_> = entries.iter().map(|row| (row.visits, row.id)).collect();
                assert_eq!(entries, rows);
            }
            db.drop_index("account", "by_visits")?;
        }
        drop(at_end);
        let added: u32 = adders.into_iter().map(|adder| adder.join().unwrap()).sum();
        let visits = db.transact(|tx| accounts.scan().columns::<Visits>().rows(tx))?;
        assert_eq!(visits.iter().map(|account| account.visits).sum::<u32>(), added);
        Ok(())
    })
}
