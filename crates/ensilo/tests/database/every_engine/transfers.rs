//! Concurrent transfers never change the sum, whoever looks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use ensilo::{Error, Result};

use super::{Account, Balance, Database, SetOnDrop, Table, with_accounts};

const ACCOUNTS: u32 = 20;
const TRANSFERS: u64 = 4000;

fn transfer(db: &Database, accounts: &Table<Account>, seed: u64) -> Result<()> {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let (from, to) = ((mixed % u64::from(ACCOUNTS)) as u32, (mixed / 64 % u64::from(ACCOUNTS)) as u32);
    let amount = (mixed / 4096 % 10) as i64;
    db.transact(|tx| {
        let source = accounts.get_columns::<Balance>(tx, from)?.expect("exists");
        if source.balance < amount {
            return Err(Error::rollback("not enough"));
        }
        accounts.update(tx, from, |balance: &mut Balance| balance.balance -= amount)?;
        accounts.update(tx, to, |balance: &mut Balance| balance.balance += amount)
    })
}

#[test]
fn the_sum_of_balances_stays_the_same() {
    let (db, accounts) = with_accounts(ACCOUNTS);
    let expected: i64 = (0..i64::from(ACCOUNTS)).map(|id| id * 10).sum();
    super::snapshots::wait_for_snapshot(&db);
    let (is_done, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3u64)
            .map(|worker| {
                let (db, accounts) = (&db, &accounts);
                scope.spawn(move || {
                    for number in 0..TRANSFERS {
                        match transfer(db, accounts, worker * TRANSFERS + number) {
                            Ok(()) | Err(Error::User(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                })
            })
            .collect();
        let looker = scope.spawn(|| {
            // Once at least: it may come to run when the others are done.
            loop {
                let by_owner =
                    accounts.index::<(ensilo::Text<16>, std::cmp::Reverse<i64>)>("by_owner").unwrap();
                // What was read counts once the transaction has committed, and is not looked at before.
                for balances in [
                    db.transact(|tx| accounts.scan().columns::<Balance>().rows(tx)),
                    db.read_stale(|tx| accounts.scan().columns::<Balance>().rows(tx)),
                    db.transact(|tx| by_owner.scan().columns::<Balance>().rows(tx)),
                    db.read_stale(|tx| by_owner.scan().columns::<Balance>().rows(tx)),
                ] {
                    let balances = balances.unwrap();
                    assert_eq!(balances.len(), ACCOUNTS as usize);
                    assert_eq!(balances.iter().map(|balance| balance.balance).sum::<i64>(), expected);
                }
                looks.fetch_add(1, Ordering::Relaxed);
                if is_done.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let at_end = SetOnDrop(&is_done);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        drop(at_end);
        looker.join().unwrap();
    });
    assert!(looks.load(Ordering::Relaxed) > 0);
}
