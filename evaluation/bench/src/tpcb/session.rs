//! One worker's stream of transactions.

use std::hint::black_box;

use ensilo::generic::Transaction;
use ensilo::{Engine, Error, Result, Timestamp};

use super::bank::{Tables, Tpcb};
use super::options::{TRANSACTION_TYPES, TpcbOptions};
use super::schema::{
    AccountBalance, BranchBalance, FILLER, HISTORY_FILLER_BYTES, History, TELLERS_PER_BRANCH, TellerBalance,
};
use crate::driver::{Aborts, Failure, Outcome, Session};
use crate::random::Random;

/// How much a transaction changes at most.
const AMOUNT_MAX: i64 = 999_999;
/// The place of the only type.
const ACCOUNT_UPDATE: usize = 0;
const _: () = assert!(TRANSACTION_TYPES.len() == ACCOUNT_UPDATE + 1);

/// A worker, and its random numbers.
#[derive(Debug)]
pub struct TpcbSession<'a, E: Engine> {
    bank: &'a Tpcb<E>,
    random: Random,
    committed: u64,
}

/// What a customer asks a teller for.
#[derive(Debug, Clone, Copy)]
struct AccountUpdate {
    account: u64,
    teller: u64,
    branch: u64,
    amount: i64,
    time: Timestamp,
}

impl AccountUpdate {
    /// Any teller, and an account of the teller's branch, or by chance of any other one.
    fn draw(options: &TpcbOptions, random: &mut Random, time: Timestamp) -> Self {
        let TpcbOptions { branches, accounts, remote_accounts, .. } = *options;
        let teller = random.below(branches * TELLERS_PER_BRANCH);
        let branch = teller / TELLERS_PER_BRANCH;
        let is_remote = branches > 1 && remote_accounts.draw(random);
        let account_branch =
            if is_remote { (branch + random.between(1, branches - 1)) % branches } else { branch };
        let account = account_branch * accounts + random.below(accounts);
        let amount = random.below(2 * AMOUNT_MAX as u64 + 1) as i64 - AMOUNT_MAX;
        Self { account, teller, branch, amount, time }
    }

    /// Returns the account's balance. The row that most others want too comes last but one: it is held for the shortest time.
    fn run<E: Engine>(self, tables: &Tables<E>, tx: &mut Transaction<'_, E>) -> Result<i64> {
        let Self { account, teller, branch, amount, time } = self;
        let mut balance = 0;
        tables.accounts.update(tx, account, |row: &mut AccountBalance| {
            row.balance += amount;
            balance = row.balance;
        })?;
        tables.tellers.update(tx, teller, |row: &mut TellerBalance| row.balance += amount)?;
        tables.branches.update(tx, branch, |row: &mut BranchBalance| row.balance += amount)?;
        let filler = [FILLER; HISTORY_FILLER_BYTES];
        tables.history.insert(tx, &History { account, teller, branch, amount, time, filler })?;
        Ok(balance)
    }
}

impl<'a, E: Engine> TpcbSession<'a, E> {
    pub(super) fn new(bank: &'a Tpcb<E>, worker: usize) -> Self {
        Self { bank, random: Random::for_stream(bank.options.seed, worker as u64), committed: 0 }
    }
}

impl<E: Engine> Session for TpcbSession<'_, E> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let Self { bank, random, committed } = self;
        let update = AccountUpdate::draw(&bank.options, random, Timestamp::from_micros(now_unix_us));
        let request = bank.database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        match request.transact_with_epoch(|tx| update.run(&bank.tables, tx)) {
            Ok((balance, epoch)) => {
                black_box(balance);
                *committed += 1;
                Ok(Outcome { transaction: ACCOUNT_UPDATE, committed: true, epoch, effects: 1 })
            }
            // Too many conflicts, each counted when it happened.
            Err(Error::Aborted(_)) => Ok(Outcome::not_committed(ACCOUNT_UPDATE)),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(self) {
        self.bank.add_committed(self.committed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::Share;

    /// How many of 10,000 transactions change an account of another branch than the teller's.
    fn remote_of(options: &TpcbOptions) -> usize {
        let mut random = Random::new(3);
        let draw = |_| AccountUpdate::draw(options, &mut random, Timestamp::from_micros(0));
        let is_remote = |update: &AccountUpdate| update.account / options.accounts != update.branch;
        (0..10_000).map(draw).filter(is_remote).count()
    }

    #[test]
    fn fifteen_of_a_hundred_accounts_are_of_another_branch() {
        let options = TpcbOptions { accounts: 100, ..TpcbOptions::new(4) };
        assert!((1_400..1_600).contains(&remote_of(&options)), "{}", remote_of(&options));
        assert_eq!(remote_of(&TpcbOptions { branches: 1, ..options.clone() }), 0);
        let all = Share::of_percent(100.0).unwrap();
        assert_eq!(remote_of(&TpcbOptions { remote_accounts: all, ..options }), 10_000);
    }

    #[test]
    fn tellers_are_of_their_branches_and_amounts_within_their_bounds() {
        let options = TpcbOptions { branches: 3, accounts: 7, ..TpcbOptions::new(1) };
        let mut random = Random::new(5);
        for _ in 0..10_000 {
            let update = AccountUpdate::draw(&options, &mut random, Timestamp::from_micros(0));
            assert_eq!(update.branch, update.teller / TELLERS_PER_BRANCH);
            assert!(update.branch < 3 && update.account < 21, "{update:?}");
            assert!((-AMOUNT_MAX..=AMOUNT_MAX).contains(&update.amount), "{update:?}");
        }
    }
}
