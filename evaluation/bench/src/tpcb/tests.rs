//! Runs on small banks.

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};
use ensilo::{Engine, Silo};

use super::schema::{Account, AccountBalance, BranchBalance, FILLER, ROW_FILLER_BYTES, TellerBalance};
use super::{Tpcb, TpcbOptions};
use crate::driver::{Aborts, Interrupt, Session, View, Workload};
use crate::tests::{assert_hold, check, database_with_retries, failed, run_for};

fn small(branches: u64) -> TpcbOptions {
    TpcbOptions { branches, accounts: 700, ..TpcbOptions::new(3) }
}

fn loaded<E: Engine>(options: TpcbOptions, retries: Option<u32>) -> Tpcb<E> {
    Tpcb::load(options, database_with_retries(retries), &mut View::silent(), &Interrupt::new()).unwrap()
}

const CHECKS: [&str; 6] =
    ["row_count", "teller_sum", "history_sum", "teller_history", "account_history", "history_count"];

fn assert_all_sums_agree<E: Engine>() {
    for (branches, retries) in [(1, None), (1, Some(0)), (3, None)] {
        let bank = loaded::<E>(small(branches), retries);
        assert!(run_for(&bank, bank.options.workers, 100).measurements.committed() > 0);
        let checks = check(&bank);
        assert_eq!(checks.iter().map(|check| check.name).collect::<Vec<_>>(), CHECKS);
        assert_hold(&checks);
    }
}

#[test]
fn branches_tellers_accounts_and_history_agree_on_any_engine() {
    assert_all_sums_agree::<Silo>();
    assert_all_sums_agree::<Ermia>();
    assert_all_sums_agree::<Ermia<SnapshotIsolation>>();
    assert_all_sums_agree::<TwoPhaseLocking>();
    assert_all_sums_agree::<TwoPhaseLocking<NoWait>>();
}

#[test]
fn the_history_shows_what_was_committed() {
    let bank = loaded::<Silo>(small(2), None);
    let mut session = bank.session(0);
    let effects: u64 =
        (0..40).map(|_| u64::from(session.run_one(0, &mut Aborts::default()).unwrap().effects)).sum();
    assert_eq!((effects, bank.count_effects().unwrap()), (40, vec![40]));
    // The session has not handed on what it has counted.
    assert_eq!(failed(&bank), ["history_count"]);
    session.finish();
    assert_eq!(failed(&bank), [""; 0]);
}

#[test]
fn an_amount_or_a_row_that_is_lost_is_noticed() {
    let bank = loaded::<Silo>(small(2), None);
    let tables = &bank.tables;
    let db = &bank.database;
    db.transact(|tx| tables.accounts.update(tx, 701, |row: &mut AccountBalance| row.balance += 1)).unwrap();
    assert_eq!(failed(&bank), ["account_history"]);
    db.transact(|tx| tables.accounts.update(tx, 701, |row: &mut AccountBalance| row.balance -= 1)).unwrap();
    db.transact(|tx| tables.tellers.update(tx, 11, |row: &mut TellerBalance| row.balance += 1)).unwrap();
    assert_eq!(failed(&bank), ["teller_sum", "teller_history"]);
    db.transact(|tx| tables.branches.update(tx, 1, |row: &mut BranchBalance| row.balance += 1)).unwrap();
    assert_eq!(failed(&bank), ["history_sum", "teller_history"]);
    db.transact(|tx| tables.accounts.delete(tx, 3)).unwrap();
    assert_eq!(failed(&bank), ["row_count", "history_sum", "teller_history"]);
}

#[test]
fn an_amount_that_went_to_another_row_of_the_branch_and_a_row_of_no_branch_are_noticed() {
    let bank = loaded::<Silo>(small(2), None);
    let tables = &bank.tables;
    let db = &bank.database;
    let move_between = |from: u64, to: u64| {
        db.transact(|tx| {
            tables.accounts.update(tx, from, |row: &mut AccountBalance| row.balance -= 1)?;
            tables.accounts.update(tx, to, |row: &mut AccountBalance| row.balance += 1)
        })
        .unwrap();
    };
    move_between(700, 701);
    assert_eq!(failed(&bank), ["account_history"]);
    move_between(701, 700);
    assert_eq!(failed(&bank), [""; 0]);
    db.transact(|tx| {
        tables.tellers.update(tx, 12, |row: &mut TellerBalance| row.balance -= 1)?;
        tables.tellers.update(tx, 13, |row: &mut TellerBalance| row.balance += 1)
    })
    .unwrap();
    assert_eq!(failed(&bank), ["teller_history"]);
    let filler = [FILLER; ROW_FILLER_BYTES];
    db.transact(|tx| tables.accounts.insert(tx, &Account { id: 1_400, balance: 0, filler }).map(drop))
        .unwrap();
    assert_eq!(failed(&bank), ["row_count", "teller_history"]);
}
