//! What statements return, and that a transaction sees its own writes.

use std::cmp::Reverse;
use std::ops::{Bound, ControlFlow};

use ensilo::{Error, KeyedRow as _, Result, Row, RowId, Text};

use super::{
    Account, Balance, Event, IdAndVisits, Visits, account, owner, queues::check_index, quick, with_accounts,
};

#[test]
fn rows_come_back_as_they_were_put() {
    let (db, accounts) = with_accounts(10);
    db.transact(|tx| {
        assert_eq!(accounts.get(tx, 3)?, Some(account(3)));
        assert_eq!(accounts.get(tx, 3)?, Some(account(3)));
        assert_eq!(accounts.get(tx, 10)?, None);
        assert!(accounts.contains(tx, 9)? && !accounts.contains(tx, 10)?);
        assert_eq!(accounts.get_columns(tx, 3)?, Some(IdAndVisits { id: 3, visits: 0 }));
        assert_eq!(accounts.get_many(tx, &[9, 10, 0])?, [Some(account(9)), None, Some(account(0))]);
        let mut seen = Vec::new();
        accounts.get_columns_many(tx, &[4, 11], |at, columns: Option<Visits>| seen.push((at, columns)))?;
        assert_eq!(seen, [(0, Some(Visits { visits: 0 })), (1, None)]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_transaction_sees_its_own_writes_in_gets_and_scans() {
    let (db, accounts) = with_accounts(4);
    db.transact(|tx| {
        accounts.insert(tx, &account(7))?;
        accounts.update(tx, 1, |visits: &mut Visits| visits.visits += 5)?;
        accounts.update(tx, 1, |visits: &mut Visits| visits.visits += 5)?;
        assert!(accounts.delete(tx, 2)?);
        assert!(!accounts.delete(tx, 2)?);
        assert_eq!(accounts.get_columns::<Visits>(tx, 1)?, Some(Visits { visits: 10 }));
        assert_eq!(accounts.get(tx, 2)?, None);
        let keys: Vec<u32> = accounts.scan().collect(tx)?.into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [0, 1, 3, 7]);
        let by_owner = accounts.index::<(ensilo::Text<16>, std::cmp::Reverse<i64>)>("by_owner")?;
        assert_eq!(by_owner.prefix((owner(1),)).primary_keys(tx)?, [7, 1]);
        accounts.insert(tx, &account(2))?;
        assert_eq!(accounts.scan().count(tx)?, 5);
        Ok(())
    })
    .unwrap();
    let all = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    assert_eq!(all.iter().map(|account| account.id).collect::<Vec<_>>(), [0, 1, 2, 3, 7]);
    assert_eq!(all[1].visits, 10);
}

#[test]
fn scans_take_bounds_prefixes_directions_and_limits() {
    let (db, accounts) = with_accounts(10);
    db.transact(|tx| {
        let keys = |rows: Vec<(u32, Account)>| rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(accounts.range(3..6).collect(tx)?), [3, 4, 5]);
        assert_eq!(keys(accounts.range(3..=6).reverse().limit(2).collect(tx)?), [6, 5]);
        assert_eq!(keys(accounts.range(..2).collect(tx)?), [0, 1]);
        assert_eq!(keys(accounts.range(8..).collect(tx)?), [8, 9]);
        #[allow(clippy::reversed_empty_ranges, reason = "that is the point")]
        let upside_down = accounts.range(6..3).collect(tx)?;
        assert!(upside_down.is_empty());
        assert_eq!(accounts.range(3..).first(tx)?.map(|(key, _)| key), Some(3));
        assert_eq!(accounts.range(3..).limit(0).count(tx)?, 0);
        assert_eq!(accounts.range(3..).limit(4).count(tx)?, 4);
        let mut seen = Vec::new();
        accounts.scan().columns::<IdAndVisits>().for_each(tx, |key, columns| {
            seen.push(columns.id);
            if key == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        assert_eq!(seen, [0, 1, 2]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn found_rows_are_read_and_changed_without_another_look_up() {
    let (db, accounts) = with_accounts(6);
    db.transact(|tx| {
        let found = accounts.find(tx, 1)?.expect("exists");
        assert_eq!(found.key(), &1);
        found.update(tx, |visits: &mut Visits| visits.visits = 1)?;
        found.set(tx, Visits { visits: 2 })?;
        assert_eq!(found.columns::<Visits>(tx)?.visits, 2);
        found.replace(tx, &Account { visits: 3, ..account(1) })?;
        assert_eq!(found.row(tx)?.visits, 3);
        let mut many = Vec::new();
        accounts.find_many(tx, &[2, 3, 99], |_, found| many.push(found))?;
        assert!(many.pop().flatten().is_none());
        for found in many.into_iter().flatten() {
            found.delete(tx)?;
        }
        let (first, columns) = accounts.range(4..).columns::<Visits>().first_found(tx)?.expect("exists");
        first.set(tx, Visits { visits: columns.visits + 9 })?;
        Ok(())
    })
    .unwrap();
    let rows = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    let seen: Vec<_> = rows.iter().map(|row| (row.id, row.visits)).collect();
    assert_eq!(seen, [(0, 0), (1, 3), (4, 9), (5, 0)]);
}

#[test]
fn a_found_row_is_missing_once_deleted_and_found_if_inserted_again() {
    let (db, accounts) = with_accounts(3);
    db.transact(|tx| {
        let one = accounts.find(tx, 1)?.expect("exists");
        let other = accounts.find(tx, 1)?.expect("exists");
        one.delete(tx)?;
        assert!(matches!(other.columns::<Visits>(tx), Err(Error::MissingRow(_))));
        assert!(matches!(other.set(tx, Visits { visits: 1 }), Err(Error::MissingRow(_))));
        accounts.insert(tx, &account(1))?;
        other.set(tx, Visits { visits: 8 })?;
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap().unwrap().visits, 8);
}

#[test]
fn upsert_inserts_or_replaces() {
    let (db, accounts) = with_accounts(2);
    db.transact(|tx| {
        accounts.upsert(tx, &Account { visits: 4, ..account(1) })?;
        accounts.upsert(tx, &account(5))?;
        accounts.replace(tx, &Account { visits: 6, ..account(5) })
    })
    .unwrap();
    let rows = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    assert_eq!(rows.iter().map(|row| (row.id, row.visits)).collect::<Vec<_>>(), [(0, 0), (1, 4), (5, 6)]);
}

#[test]
fn insert_many_is_all_or_nothing() {
    let (db, accounts) = with_accounts(1);
    db.transact(|tx| {
        assert_eq!(accounts.insert_many(tx, &[account(1), account(2)])?, [1, 2]);
        let refused = accounts.insert_many(tx, &[account(5), account(6), account(2), account(7)]);
        assert!(matches!(refused, Err(Error::DuplicateKey(_))));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().count(tx)).unwrap(), 3);
}

#[test]
fn a_table_without_a_key_invents_row_ids() {
    let db = quick();
    let events = db.create_table::<Event>().unwrap();
    let event = Event { kind: 1, text: "began".into() };
    let ids: Vec<RowId> =
        db.transact(|tx| (0..3).map(|_| events.insert(tx, &event)).collect::<Result<_>>()).unwrap();
    assert!(ids[0] < ids[1] && ids[1] < ids[2]);
    db.transact(|tx| {
        events.update(tx, ids[1], |event: &mut Event| event.text.push_str(" and ended"))?;
        assert_eq!(events.get(tx, ids[1])?.map(|event| event.text), Some("began and ended".to_owned()));
        assert!(events.delete(tx, ids[0])?);
        assert_eq!(events.scan().collect(tx)?.len(), 2);
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_of_variable_length_grow_and_shrink() {
    let db = quick();
    let events = db.create_table::<Event>().unwrap();
    let id = db.transact(|tx| events.insert(tx, &Event { kind: 1, text: String::new() })).unwrap();
    for len in [1, 7, 500, 3, 100_000, 2] {
        let text = "x".repeat(len);
        db.transact(|tx| events.update(tx, id, |event: &mut Event| event.text.clone_from(&text))).unwrap();
        assert_eq!(db.transact(|tx| events.get(tx, id)).unwrap().unwrap().text, text);
    }
}

#[test]
fn writes_return_what_was_there_and_what_they_have_made() {
    let (db, accounts) = with_accounts(3);
    db.transact(|tx| {
        let visit = |columns: &mut Visits| {
            columns.visits += 1;
            columns.visits
        };
        assert_eq!((accounts.update(tx, 1, visit)?, accounts.update(tx, 1, visit)?), (1, 2));
        // Of a column in an index, and by a row that was found.
        let earn = |columns: &mut Balance| std::mem::replace(&mut columns.balance, 77);
        assert_eq!(accounts.update(tx, 1, earn)?, account(1).balance);
        assert_eq!(accounts.find(tx, 1)?.unwrap().update(tx, |row: &mut Account| row.balance)?, 77);
        assert_eq!(accounts.insert_or_get(tx, &Account { visits: 9, ..account(2) })?, Some(account(2)));
        assert_eq!(accounts.insert_or_get(tx, &account(5))?, None);
        assert_eq!(accounts.update_or_insert(tx, &account(5), visit)?, Some(1));
        assert_eq!(accounts.update_or_insert(tx, &account(6), visit)?, None);
        assert_eq!(accounts.get_columns(tx, 6)?, Some(Visits { visits: 0 }));
        let taken = accounts.insert_or_get(tx, &Account { email: account(2).email, ..account(8) });
        assert!(matches!(taken, Err(Error::DuplicateKey(key)) if key.index() == Some("by_email")));
        assert_eq!(accounts.take(tx, 5)?, Some(Account { visits: 1, ..account(5) }));
        assert_eq!((accounts.take(tx, 5)?, accounts.take(tx, 99)?), (None, None));
        Ok(())
    })
    .unwrap();
    let ids = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    assert_eq!(ids.iter().map(|row| row.id).collect::<Vec<_>>(), [0, 1, 2, 6]);
    check_index(&db, "account", "by_owner");
    check_index(&db, "account", "by_email");
}

#[test]
fn what_a_scan_finds_is_deleted_and_its_ends_are_read() {
    let (db, accounts) = with_accounts(20);
    let by_owner = accounts.index::<(ensilo::Text<16>, std::cmp::Reverse<i64>)>("by_owner").unwrap();
    db.transact(|tx| {
        let keys = |found: Option<(u32, Account)>| found.map(|(key, _)| key);
        assert_eq!(keys(accounts.scan().last(tx)?), Some(19));
        assert_eq!(keys(accounts.range(3..7).reverse().last(tx)?), Some(3));
        let of_owner = by_owner.prefix((owner(1),)).primary_keys(tx)?;
        assert_eq!(keys(by_owner.prefix((owner(1),)).last(tx)?), of_owner.last().copied());
        assert_eq!(accounts.range(3..7).limit(2).delete(tx)?, 2);
        assert_eq!(accounts.range(3..7).reverse().limit(1).delete(tx)?, 1);
        accounts.insert(tx, &account(30))?;
        assert_eq!(accounts.range(18..).delete(tx)?, 3, "its own are among them");
        assert_eq!(accounts.range(18..).delete(tx)?, 0);
        let left = by_owner.prefix((owner(1),)).count(tx)?;
        assert_eq!(by_owner.prefix((owner(1),)).delete(tx)?, left);
        assert_eq!(by_owner.prefix((owner(1),)).count(tx)?, 0);
        Ok(())
    })
    .unwrap();
    let rows = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.owner != owner(1) && row.id < 18));
    check_index(&db, "account", "by_owner");
    check_index(&db, "account", "by_email");
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "place", index(name = "by_kind", columns(kind, name)))]
struct Place {
    #[row(key)]
    country: Text<2>,
    #[row(key)]
    name: String,
    kind: Text<8>,
}

#[test]
fn rows_are_looked_up_by_borrowed_texts() {
    let db = quick();
    let places = db.table::<Place>().unwrap();
    let place = |country: &str, name: &str| Place {
        country: Text::truncated(country),
        name: name.to_owned(),
        kind: Text::truncated("city"),
    };
    let by_kind = places.index::<(Text<8>, String)>("by_kind").unwrap();
    db.transact(|tx| {
        for name in ["Bern", "Basel"] {
            places.insert(tx, &place("CH", name))?;
        }
        assert_eq!(places.get(tx, ("CH", "Bern"))?, Some(place("CH", "Bern")));
        assert!(!places.contains(tx, ("CH", "Rome"))?);
        assert_eq!(places.get(tx, ("CHE", "Bern"))?, None, "no country is so long");
        assert_eq!(
            places.find(tx, ("CH", "Basel"))?.unwrap().key(),
            &(Text::truncated("CH"), "Basel".to_owned())
        );
        assert_eq!(by_kind.get(tx, ("city", "Basel"))?, Some(place("CH", "Basel")));
        assert_eq!(by_kind.equal(("city", "Bern")).count(tx)?, 1);
        assert_eq!((by_kind.prefix(("city",)).count(tx)?, places.prefix(("CH",)).count(tx)?), (2, 2));
        places.update(tx, ("CH", "Basel"), |place: &mut Place| place.kind = Text::truncated("port"))?;
        assert!(places.delete(tx, ("CH", "Bern"))?);
        assert_eq!(places.take(tx, ("CH", "Basel"))?.map(|place| place.kind), Some(Text::truncated("port")));
        assert_eq!(places.scan().count(tx)?, 0);
        Ok(())
    })
    .unwrap();
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "part", index(name = "by_place", columns(place desc, digest)))]
struct Part {
    #[row(key)]
    maker: String,
    #[row(key)]
    digest: Vec<u8>,
    #[row(key)]
    number: u32,
    #[row(key)]
    grade: Text<4>,
    #[row(key)]
    version: u8,
    place: String,
}

type PartKey = (String, Vec<u8>, u32, Text<4>, u8);

fn part(maker: &str, digest: &[u8], number: u32) -> Part {
    let (maker, digest, grade) = (maker.to_owned(), digest.to_vec(), Text::truncated("good"));
    Part { place: format!("{maker}-{number}"), maker, digest, number, grade, version: 1 }
}

#[test]
fn borrowed_columns_stand_in_bounds_prefixes_and_look_ups_of_many() {
    let db = quick();
    let parts = db.table::<Part>().unwrap();
    let by_place = parts.index::<(Reverse<String>, Vec<u8>)>("by_place").unwrap();
    let all = [part("a", b"\0", 1), part("a", b"\0", 2), part("a\0", b"", 3), part("b", b"\x01", 4)];
    db.transact(|tx| parts.insert_many(tx, &all)).unwrap();
    let numbers = |rows: Vec<Part>| rows.iter().map(|part| part.number).collect::<Vec<_>>();
    let mut keys = vec![("b", &b"\x01"[..], 4, "good", 1), ("a", &b"\x01"[..], 4, "good", 1)];
    db.transact(|tx| {
        assert_eq!(parts.get(tx, ("a", b"\0", 2, "good", 1))?, Some(all[1].clone()));
        let second = all[1].key();
        assert_eq!(parts.get(tx, &second)?, Some(all[1].clone()));
        assert_eq!(parts.get(tx, second)?, Some(all[1].clone()));
        assert_eq!(parts.get_many(tx, &keys)?, [Some(all[3].clone()), None]);
        assert_eq!(
            parts.get_many(tx, &[all[0].key(), all[2].key()])?,
            [0, 2].map(|at: usize| Some(all[at].clone()))
        );
        let mut found = Vec::new();
        parts.find_many(tx, &keys, |at, part| found.push((at, part.map(|part| part.key().2))))?;
        assert_eq!(found, [(0, Some(4)), (1, None)]);
        let mut places = Vec::new();
        parts.get_columns_many::<PlaceOfPart>(tx, &keys, |at, place| {
            places.push((at, place.map(|place| place.place)))
        })?;
        assert_eq!(places, [(0, Some("b-4".to_owned())), (1, None)]);
        let first = ("a", b"\0", 2, "good", 0);
        assert_eq!(numbers(parts.range(first..).rows(tx)?), [2, 3, 4]);
        assert_eq!(numbers(parts.range(..=("a", b"\0", 2, "good", 1)).rows(tx)?), [1, 2]);
        let behind =
            (Bound::Excluded(("a", &b"\0"[..], 1, "good", 1)), Bound::Excluded(("b", &b""[..], 0, "", 0)));
        assert_eq!(numbers(parts.range(behind).rows(tx)?), [2, 3]);
        assert_eq!(numbers(parts.range(all[1].key()..=all[2].key()).rows(tx)?), [2, 3]);
        assert_eq!(numbers(parts.range(&all[1].key()..&all[2].key()).rows(tx)?), [2]);
        assert_eq!(numbers(parts.prefix(("a",)).rows(tx)?), [1, 2]);
        assert_eq!(numbers(parts.prefix(("a", b"\0", 2, "good")).rows(tx)?), [2]);
        assert_eq!(numbers(by_place.range((Reverse("b"), b"")..).rows(tx)?), [2, 1, 3]);
        assert_eq!(numbers(by_place.range(..(Reverse("a-1"), b"\0")).rows(tx)?), [4, 2]);
        assert_eq!(numbers(by_place.prefix((Reverse("b-4"),)).rows(tx)?), [4]);
        assert_eq!(by_place.get(tx, (Reverse("a-1"), b"\0"))?, Some(all[0].clone()));
        Ok(())
    })
    .unwrap();
    keys.clear();
    db.transact(|tx| {
        assert_eq!(parts.get_many(tx, &keys)?, []);
        assert_eq!(parts.get_many::<PartKey>(tx, &[])?, []);
        assert_eq!(parts.range(("a", &b"\0"[..], 2, "good", 0)..("b", &b""[..], 0, "", 0)).delete(tx)?, 2);
        Ok(())
    })
    .unwrap();
    assert_eq!(numbers(db.transact(|tx| parts.scan().rows(tx)).unwrap()), [1, 4]);
}

/// The column of a part that is in no key.
#[derive(Debug, ensilo::Columns)]
#[columns(of = Part)]
struct PlaceOfPart {
    place: String,
}

#[test]
fn keys_without_texts_need_no_type_where_many_are_looked_up() {
    let (db, accounts) = with_accounts(3);
    db.transact(|tx| {
        assert_eq!(accounts.get_many(tx, &[])?, []);
        accounts.find_many(tx, &[], |_, _| panic!("no key was given"))?;
        assert_eq!(accounts.get_many(tx, &[2u8.into(), 7u16.into()])?, [Some(account(2)), None]);
        Ok(())
    })
    .unwrap();
}
