//! Cursors: scans that give one row at a time, while the transaction does other things.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ensilo::{Error, Result, Text, Value};

use super::{Account, Balance, Table, Transaction, Visits, account, interfere, quick, with_accounts};

/// More rows than are read at once.
const ROWS: u32 = 700;

#[test]
fn a_cursor_gives_what_a_scan_gives() {
    let (db, accounts) = with_accounts(ROWS);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
    db.transact(|tx| {
        for scan in [
            accounts.scan(),
            accounts.range(5..400).reverse(),
            accounts.range(5..400).limit(300),
            accounts.range(7..7),
            accounts.scan().limit(0),
        ] {
            let expected = scan.clone().collect(tx)?;
            let mut cursor = scan.cursor();
            for row in expected {
                assert_eq!(cursor.next(tx)?, Some(row));
            }
            assert_eq!((cursor.next(tx)?, cursor.next(tx)?), (None, None));
        }
        let in_order = by_owner.scan().collect(tx)?;
        assert_eq!(by_owner.scan().iter(tx).collect::<Result<Vec<_>>>()?, in_order);
        let last: Vec<_> = in_order.into_iter().rev().take(300).collect();
        assert_eq!(by_owner.scan().reverse().limit(300).iter(tx).collect::<Result<Vec<_>>>()?, last);
        let visits = accounts.range(3..5).columns::<Visits>().iter(tx).collect::<Result<Vec<_>>>()?;
        assert_eq!(visits, [(3, Visits { visits: 0 }), (4, Visits { visits: 0 })]);
        Ok(())
    })
    .unwrap();
    let count = db.read_stale(|tx| Ok(accounts.scan().iter(tx).count())).unwrap();
    assert!(count == ROWS as usize || count == 0, "it shows a moment of before or after");
    assert_eq!(db.read(|tx| Ok(accounts.scan().iter(tx).count())).unwrap(), ROWS as usize);
}

#[test]
fn a_cursor_of_a_dynamic_table_goes_on_behind_what_it_gave() {
    let (db, _) = with_accounts(40);
    let dynamic = db.open_dynamic_table("account").unwrap();
    db.transact(|tx| {
        for by_email in [false, true] {
            let scan = || match by_email {
                true => dynamic.scan().by_index("by_email"),
                false => Ok(dynamic.scan()),
            };
            let expected = scan()?.collect(tx)?;
            let mut cursor = scan()?.cursor();
            let mut found: Vec<Vec<Value>> = Vec::new();
            while let Some((key, row)) = cursor.next(tx)? {
                dynamic.update(tx, &key, &[("visits", 5u32.into())])?;
                found.push(row);
            }
            let keys = |rows: &[Vec<Value>]| rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>();
            assert_eq!(keys(&found), keys(&expected));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn rows_are_changed_and_deleted_while_a_cursor_goes_on() {
    let (db, accounts) = with_accounts(100);
    db.transact(|tx| {
        let mut cursor = accounts.scan().cursor();
        let mut seen = Vec::new();
        while let Some((id, row)) = cursor.next(tx)? {
            assert_eq!(row.visits, u32::from(id == 3), "the own write is seen");
            seen.push(id);
            match id {
                // The one that comes next; one far behind; the row itself; one before.
                2 => {
                    accounts.update(tx, 3, |columns: &mut Visits| columns.visits += 1)?;
                    accounts.delete(tx, 50)?;
                }
                10 => _ = accounts.delete(tx, 11)?,
                20 => _ = accounts.delete(tx, 20)?,
                30 => _ = accounts.delete(tx, 5)?,
                99 => _ = accounts.insert(tx, &account(1000))?,
                _ => {}
            }
        }
        let expected: Vec<u32> = (0..100).filter(|id| ![11, 50].contains(id)).chain([1000]).collect();
        assert_eq!(seen, expected);
        Ok(())
    })
    .unwrap();
}

#[test]
fn two_tables_are_joined_by_cursors() {
    let (db, accounts) = with_accounts(60);
    let others = db.create_table_named::<Account>("other").unwrap();
    db.transact(|tx| (0..120).step_by(3).try_for_each(|id| others.insert(tx, &account(id)).map(drop)))
        .unwrap();
    let both = db.transact(|tx| {
        let (mut left, mut right) = (accounts.scan().cursor(), others.scan().cursor());
        let (mut one, mut other) = (left.next(tx)?, right.next(tx)?);
        let mut both = Vec::new();
        while let (Some((id, _)), Some((other_id, _))) = (&one, &other) {
            match id.cmp(other_id) {
                std::cmp::Ordering::Less => one = left.next(tx)?,
                std::cmp::Ordering::Greater => other = right.next(tx)?,
                std::cmp::Ordering::Equal => {
                    both.push(*id);
                    one = left.next(tx)?;
                }
            }
        }
        Ok(both)
    });
    assert_eq!(both.unwrap(), (0..60).step_by(3).collect::<Vec<u32>>());
}

#[test]
fn a_cursor_that_another_transaction_uses_reads_anew() {
    let (db, accounts) = with_accounts(50);
    let mut cursor = accounts.scan().cursor();
    let mut session = db.begin().unwrap();
    assert_eq!(cursor.next(&mut session).unwrap(), Some((0, account(0))));
    assert_eq!(cursor.next(&mut session).unwrap(), Some((1, account(1))));
    session.commit().unwrap();
    db.transact(|tx| {
        accounts.delete(tx, 2)?;
        accounts.update(tx, 3, |columns: &mut Visits| columns.visits = 8)
    })
    .unwrap();
    session.begin().unwrap();
    assert_eq!(cursor.next(&mut session).unwrap(), Some((3, Account { visits: 8, ..account(3) })));
    // It is undone, and the row comes again.
    drop(session);
    assert_eq!(db.transact(|tx| cursor.next(tx)).unwrap(), Some((3, Account { visits: 8, ..account(3) })));
    assert_eq!(db.transact(|tx| cursor.next(tx)).unwrap(), Some((4, account(4))));
}

/// Steps of a cursor and writes beside it, beside the same on a map.
struct Beside<'a> {
    accounts: &'a Table<Account>,
    model: BTreeMap<u32, i64>,
    random: u64,
}

impl Beside<'_> {
    fn next(&mut self, below: u32) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 40) as u32 % below
    }

    fn write(&mut self, tx: &mut Transaction<'_>) -> Result<()> {
        let (id, balance) = (self.next(80), i64::from(self.next(5)));
        match self.next(4) {
            0 => {
                assert_eq!(self.accounts.delete(tx, id)?, self.model.remove(&id).is_some());
            }
            1 => {
                let low = id.min(70);
                let deleted = self.accounts.range(low..low + 3).delete(tx)?;
                let before = self.model.len();
                self.model.retain(|id, _| !(low..low + 3).contains(id));
                assert_eq!(deleted, before - self.model.len());
            }
            2 if self.model.contains_key(&id) => {
                self.accounts.update(tx, id, |columns: &mut Balance| columns.balance = balance)?;
                self.model.insert(id, balance);
            }
            _ => {
                self.accounts.upsert(tx, &Account { balance, ..account(id) })?;
                self.model.insert(id, balance);
            }
        }
        Ok(())
    }
}

#[test]
fn a_cursor_is_right_whatever_is_written_in_between() {
    for seed in 0..60 {
        let db = quick();
        let accounts = db.create_table::<Account>().unwrap();
        let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner").unwrap();
        db.transact(|tx| {
            let mut beside = Beside { accounts: &accounts, model: BTreeMap::new(), random: seed };
            (0..60).try_for_each(|_| beside.write(tx))?;
            let is_reverse = seed % 2 == 1;
            let scan = if is_reverse { accounts.scan().reverse() } else { accounts.scan() };
            let (mut cursor, mut last) = (scan.cursor(), None);
            loop {
                let mut left = beside.model.iter().filter(|(id, _)| {
                    last.is_none_or(|last| if is_reverse { **id < last } else { **id > last })
                });
                let expected = if is_reverse { left.next_back() } else { left.next() };
                let expected = expected.map(|(id, balance)| (*id, *balance));
                let found = cursor.next(tx)?.map(|(id, row)| (id, row.balance));
                assert_eq!(found, expected, "seed {seed}");
                let Some((id, _)) = found else { break };
                last = Some(id);
                if beside.next(3) == 0 {
                    beside.write(tx)?;
                }
            }
            // By the index: the order of owner, balance downwards, and key.
            let order = |id: u32, balance: i64| (account(id).owner, Reverse(balance), id);
            let (mut cursor, mut last) = (by_owner.scan().cursor(), None);
            for _ in 0..200 {
                let mut left: Vec<_> =
                    beside.model.iter().map(|(id, balance)| order(*id, *balance)).collect();
                left.sort_unstable();
                let expected = left.into_iter().find(|place| last.is_none_or(|last| *place > last));
                let found = cursor.next(tx)?.map(|(id, row)| order(id, row.balance));
                assert_eq!(found, expected, "seed {seed}");
                let Some(place) = found else { break };
                last = Some(place);
                if beside.next(3) == 0 {
                    beside.write(tx)?;
                }
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn a_cursor_gives_again_what_it_gave_in_a_transaction_that_was_undone() {
    let (db, accounts) = with_accounts(ROWS);
    let mut cursor = accounts.scan().cursor();
    let mut seen = Vec::new();
    let mut attempts = 0;
    loop {
        let batch = db.transact(|tx| {
            attempts += 1;
            if attempts % 4 == 1 {
                interfere(&db, &accounts, tx)?;
            }
            let mut batch = Vec::new();
            while batch.len() < 100
                && let Some((id, _)) = cursor.next(tx)?
            {
                batch.push(id);
                accounts.update(tx, id, |columns: &mut Visits| columns.visits += 1)?;
            }
            // Every other attempt meets a conflict, or is undone by an error of its own: then the next one is another request.
            if attempts % 4 == 3 { Err(Error::rollback("no")) } else { Ok(batch) }
        });
        match batch {
            Ok(batch) if batch.is_empty() => break,
            Ok(batch) => seen.extend(batch),
            Err(error) => assert!(error.to_string().contains("no"), "{error}"),
        }
    }
    assert_eq!(seen, (0..ROWS).collect::<Vec<_>>());
    assert!(attempts > ROWS / 100 + 1, "some were undone");
    let visits = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    assert!(visits[1..].iter().all(|row| row.visits == 1));
}

#[test]
fn a_cursor_goes_on_from_one_read_to_the_next() {
    let (db, accounts) = with_accounts(ROWS);
    for by_snapshot in [false, true] {
        let mut cursor = accounts.scan().cursor();
        let mut count = 0;
        loop {
            let batch = |found: &mut u32, row: Option<_>| {
                *found += u32::from(row.is_some());
                row.is_some()
            };
            let mut found = 0;
            let is_more = if by_snapshot {
                db.read_stale(|tx| Ok((0..100).all(|_| batch(&mut found, cursor.next(tx).unwrap()))))
            } else {
                db.read(|tx| {
                    found = 0;
                    Ok((0..100).all(|_| batch(&mut found, cursor.next(tx).unwrap())))
                })
            };
            count += found;
            if !is_more.unwrap() {
                break;
            }
        }
        assert!(count == ROWS || by_snapshot && count == 0, "{count}");
    }
}
