//! The consistency of the bank after a run: what the branches, the tellers, the accounts and the history say of it is the same.
//!
//! # Source
//! TPC-B revision 2.0: a branch's balance is that of its tellers together, and what the history of the branch adds up to. That no amount is lost on the
//! way to a teller or an account, and no row of history, is checked beyond that.

use ensilo::generic::ReadTransaction;
use ensilo::{Engine, Result};

use super::bank::{Tables, Tpcb, tellers_of};
use super::schema::{AccountBalance, BranchBalance, HistoryEntry, TELLERS_PER_BRANCH, TellerBalance};
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// What the history adds up to, by branch.
#[derive(Debug)]
struct HistorySums {
    rows: u64,
    /// What was changed at a branch, by one of its tellers.
    by_branch: Vec<i64>,
    by_branch_of_teller: Vec<i64>,
    by_branch_of_account: Vec<i64>,
}

/// What the rows of a branch add up to.
#[derive(Debug, Default)]
struct BranchSums {
    balance: i64,
    rows: u64,
    tellers: i64,
    teller_rows: u64,
    accounts: i64,
    account_rows: u64,
}

/// Checks every branch, several at a time, once a snapshot shows all that was committed. Nobody changes anything meanwhile.
pub(super) fn check<E: Engine>(
    bank: &Tpcb<E>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, Failure> {
    let history = sum_history(bank)?;
    let division = Division {
        workers: bank.options.workers,
        tasks: bank.options.branches,
        stage: "checking consistency",
        total: bank.options.branches,
        unit: "branches",
    };
    let branches = parallel(division, view, interrupt, |branch, reporter| {
        let sums = bank.database.read_stale(|tx| BranchSums::collect(bank, tx, branch))?;
        reporter.advance(1)?;
        Ok(sums)
    })?;
    let mut checks = check_branches(bank, &branches, &history);
    // How many there should be is not known after a crash: then the effects show it.
    if let Some(committed) = bank.committed() {
        let mut check =
            Check::new("history_count", "there is a row of history for each committed transaction");
        check.expect(history.rows == committed, || format!("{} rows, {committed} committed", history.rows));
        checks.push(check);
    }
    Ok(checks)
}

/// How many transactions the history tells of.
pub(super) fn count_history<E: Engine>(bank: &Tpcb<E>) -> Result<u64> {
    Ok(sum_history(bank)?.rows)
}

/// Reads all of the history from a snapshot that shows all that was committed.
fn sum_history<E: Engine>(bank: &Tpcb<E>) -> Result<HistorySums> {
    database::make_fresh_snapshot(&bank.database)?;
    bank.database.read_stale(|tx| HistorySums::collect(bank, tx))
}

impl HistorySums {
    fn collect<'t, E: Engine>(bank: &Tpcb<E>, tx: &mut impl ReadTransaction<'t, E>) -> Result<Self> {
        let none = vec![0; bank.options.branches as usize];
        let mut sums = Self {
            rows: 0,
            by_branch: none.clone(),
            by_branch_of_teller: none.clone(),
            by_branch_of_account: none,
        };
        bank.tables.history.scan().columns::<HistoryEntry>().for_each(tx, |_, entry| {
            sums.rows += 1;
            add(&mut sums.by_branch, entry.branch, entry.amount);
            add(&mut sums.by_branch_of_teller, entry.teller / TELLERS_PER_BRANCH, entry.amount);
            add(&mut sums.by_branch_of_account, entry.account / bank.options.accounts, entry.amount);
        })?;
        Ok(sums)
    }
}

/// Adds to the sum of a branch. One that there is not has none, and shows as an amount that is missing.
fn add(sums: &mut [i64], branch: u64, amount: i64) {
    if let Some(sum) = sums.get_mut(branch as usize) {
        *sum += amount;
    }
}

impl BranchSums {
    fn collect<'t, E: Engine>(
        bank: &Tpcb<E>,
        tx: &mut impl ReadTransaction<'t, E>,
        branch: u64,
    ) -> Result<Self> {
        let Tables { branches, tellers, accounts, .. } = &bank.tables;
        let mut sums = Self::default();
        if let Some(row) = branches.get_columns::<BranchBalance>(tx, branch)? {
            sums.balance = row.balance;
            sums.rows = 1;
        }
        tellers.range(tellers_of(branch)).columns::<TellerBalance>().for_each(tx, |_, row| {
            sums.tellers += row.balance;
            sums.teller_rows += 1;
        })?;
        accounts.range(bank.accounts_of(branch)).columns::<AccountBalance>().for_each(tx, |_, row| {
            sums.accounts += row.balance;
            sums.account_rows += 1;
        })?;
        Ok(sums)
    }
}

fn check_branches<E: Engine>(bank: &Tpcb<E>, branches: &[BranchSums], history: &HistorySums) -> Vec<Check> {
    let mut rows = Check::new("row_count", "a branch has its tellers and accounts");
    let mut tellers = Check::new("teller_sum", "a branch's balance is that of its tellers together");
    let mut of_branch = Check::new("history_sum", "a branch's balance is what its history adds up to");
    let mut of_tellers = Check::new("teller_history", "tellers' balances are what their history adds up to");
    let mut of_accounts = Check::new("account_sum", "accounts' balances are what their history adds up to");
    let accounts = bank.options.accounts;
    for (at, sums) in branches.iter().enumerate() {
        let BranchSums { balance, rows: branch_rows, teller_rows, account_rows, .. } = *sums;
        let is_whole = (branch_rows, teller_rows, account_rows) == (1, TELLERS_PER_BRANCH, accounts);
        rows.expect(is_whole, || format!("branch {at}: {sums:?}, {accounts} accounts were loaded"));
        let compare = |check: &mut Check, found: i64, expected: i64| {
            check.expect(found == expected, || format!("branch {at}: {found} and {expected}"));
        };
        compare(&mut tellers, sums.tellers, balance);
        compare(&mut of_branch, history.by_branch[at], balance);
        compare(&mut of_tellers, history.by_branch_of_teller[at], sums.tellers);
        compare(&mut of_accounts, history.by_branch_of_account[at], sums.accounts);
    }
    vec![rows, tellers, of_branch, of_tellers, of_accounts]
}
