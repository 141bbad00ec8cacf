//! The consistency of the bank after a run: what the branches, the tellers, the accounts and the history say of it is the same.
//!
//! # Source
//! TPC-B revision 2.0: a branch's balance is that of its tellers together, and what the history of the branch adds up to. That the same holds of each
//! teller and each account by itself, and that there is a row of history for each transaction, is checked beyond that.

use ensilo::generic::ReadTransaction;
use ensilo::{Engine, Result};

use super::bank::{Tables, Tpcb, tellers_of};
use super::schema::{AccountBalance, BranchBalance, HistoryEntry, TELLERS_PER_BRANCH, TellerBalance};
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// What the history adds up to.
#[derive(Debug)]
struct HistorySums {
    rows: u64,
    by_branch: Vec<i64>,
    by_teller: Vec<i64>,
    by_account: Vec<i64>,
}

/// What is checked of the rows of a branch.
#[derive(Debug)]
struct BranchChecks {
    rows: Check,
    tellers: Check,
    of_branch: Check,
    of_tellers: Check,
    of_accounts: Check,
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
        let mut checks = BranchChecks::new();
        bank.database.read_stale(|tx| checks.hold_against(bank, tx, branch, &history))?;
        reporter.advance(1)?;
        Ok(checks.into_all())
    })?;
    let mut checks = BranchChecks::new();
    bank.database.read_stale(|tx| checks.find_beyond(bank, tx))?;
    let mut checks = checks.into_all().to_vec();
    for of_branch in branches {
        checks.iter_mut().zip(of_branch).for_each(|(check, more)| check.add(more));
    }
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
        let none = |rows_per_branch: u64| vec![0; (bank.options.branches * rows_per_branch) as usize];
        let mut sums = Self {
            rows: 0,
            by_branch: none(1),
            by_teller: none(TELLERS_PER_BRANCH),
            by_account: none(bank.options.accounts),
        };
        bank.tables.history.scan().columns::<HistoryEntry>().for_each(tx, |_, entry| {
            sums.rows += 1;
            add(&mut sums.by_branch, entry.branch, entry.amount);
            add(&mut sums.by_teller, entry.teller, entry.amount);
            add(&mut sums.by_account, entry.account, entry.amount);
        })?;
        Ok(sums)
    }
}

/// Adds to the sum of a row. One that there is not has none, and shows as an amount that is missing.
fn add(sums: &mut [i64], row: u64, amount: i64) {
    if let Some(sum) = sums.get_mut(row as usize) {
        *sum += amount;
    }
}

impl BranchChecks {
    fn new() -> Self {
        Self {
            rows: Check::new("row_count", "a branch has its tellers and accounts, and there are no others"),
            tellers: Check::new("teller_sum", "a branch's balance is that of its tellers together"),
            of_branch: Check::new("history_sum", "a branch's balance is what its history adds up to"),
            of_tellers: Check::new("teller_history", "a teller's balance is what its history adds up to"),
            of_accounts: Check::new("account_history", "an account's balance is what its history adds up to"),
        }
    }

    fn into_all(self) -> [Check; 5] {
        [self.rows, self.tellers, self.of_branch, self.of_tellers, self.of_accounts]
    }

    fn hold_against<'t, E: Engine>(
        &mut self,
        bank: &Tpcb<E>,
        tx: &mut impl ReadTransaction<'t, E>,
        branch: u64,
        history: &HistorySums,
    ) -> Result<()> {
        let Tables { branches, tellers, accounts, .. } = &bank.tables;
        let row = branches.get_columns::<BranchBalance>(tx, branch)?;
        let (mut sum, mut teller_rows, mut account_rows) = (0, 0, 0);
        tellers.range(tellers_of(branch)).columns::<TellerBalance>().for_each(tx, |teller, row| {
            compare(
                &mut self.of_tellers,
                ("teller", teller),
                row.balance,
                history.by_teller[teller as usize],
            );
            sum += row.balance;
            teller_rows += 1;
        })?;
        accounts.range(bank.accounts_of(branch)).columns::<AccountBalance>().for_each(
            tx,
            |account, row| {
                let of_history = history.by_account[account as usize];
                compare(&mut self.of_accounts, ("account", account), row.balance, of_history);
                account_rows += 1;
            },
        )?;
        let is_whole =
            row.is_some() && (teller_rows, account_rows) == (TELLERS_PER_BRANCH, bank.options.accounts);
        self.rows.expect(is_whole, || {
            let branches = u64::from(row.is_some());
            format!("branch {branch}: {branches} branches, {teller_rows} tellers, {account_rows} accounts")
        });
        let balance = row.map_or(0, |row| row.balance);
        compare(&mut self.tellers, ("branch", branch), balance, sum);
        compare(&mut self.of_branch, ("branch", branch), balance, history.by_branch[branch as usize]);
        Ok(())
    }

    /// Looks for rows behind those of the last branch.
    fn find_beyond<'t, E: Engine>(
        &mut self,
        bank: &Tpcb<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<()> {
        let Tables { branches, tellers, accounts, .. } = &bank.tables;
        let end = bank.options.branches;
        let beyond = branches.range(end..).count(tx)?
            + tellers.range(tellers_of(end).start..).count(tx)?
            + accounts.range(bank.accounts_of(end).start..).count(tx)?;
        self.rows.expect(beyond == 0, || format!("{beyond} rows are of no branch"));
        Ok(())
    }
}

fn compare(check: &mut Check, (what, id): (&str, u64), balance: i64, expected: i64) {
    check.expect(balance == expected, || format!("{what} {id}: {balance} and {expected}"));
}
