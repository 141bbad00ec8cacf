//! Transfers: two accounts of many are read and changed. Money neither comes nor goes, and every change is counted in its row.

mod accounts;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ensilo::Silo;

use accounts::Accounts;
pub use accounts::Skew;

use crate::driver::{Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use crate::peer::{Account, Client, Connected, Peer, Transfer};
use crate::random::Random;

/// The most that a transfer moves.
const AMOUNT_MAX: u64 = 100;

/// Loaded accounts.
#[derive(Debug)]
pub struct Transfers<P> {
    peer: P,
    accounts: u64,
    choice: Accounts,
    seed: u64,
    /// Transfers that committed since the load.
    committed: AtomicU64,
}

/// A worker's stream of transfers.
#[derive(Debug)]
pub struct TransferSession<'a, P: Peer + 'a> {
    shared: &'a Transfers<P>,
    connected: Connected<P::Client<'a>>,
    random: Random,
    committed: u64,
}

impl<P: Peer> Transfers<P> {
    /// Loads `accounts` accounts, at least 2, into an empty database.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn load(peer: P, accounts: u64, skew: Skew, seed: u64) -> Result<Self, Failure> {
        peer.load_accounts(accounts)?;
        Ok(Self { peer, accounts, choice: Accounts::new(accounts, skew), seed, committed: AtomicU64::new(0) })
    }

    /// The database.
    pub fn peer(&self) -> &P {
        &self.peer
    }
}

impl<P: Peer> Workload for Transfers<P> {
    type Engine = Silo;
    type Session<'a>
        = TransferSession<'a, P>
    where
        P: 'a;

    fn transaction_types(&self) -> &'static [&'static str] {
        &["transfer"]
    }

    fn session(&self, worker: usize) -> TransferSession<'_, P> {
        TransferSession {
            shared: self,
            connected: Connected::new(self.peer.client()),
            random: Random::for_stream(self.seed, worker as u64),
            committed: 0,
        }
    }

    fn check(&self, _view: &mut View, _interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        let (mut accounts, mut balances, mut updates) = (0, 0i128, 0);
        self.peer.for_each_account(|account| {
            accounts += 1;
            balances += i128::from(account.balance);
            updates += account.updates;
        })?;
        let mut count = Check::new("account_count", "there are as many accounts as were loaded");
        count.expect(accounts == self.accounts, || format!("{accounts} accounts, {} loaded", self.accounts));
        let mut sum = Check::new("balance_sum", "the balances add up to what was loaded");
        let loaded = i128::from(self.accounts) * i128::from(Account::BALANCE_AT_FIRST);
        sum.expect(balances == loaded, || format!("the balances add up to {balances}, {loaded} loaded"));
        let mut changes =
            Check::new("update_sum", "the accounts were changed twice for each committed transfer");
        // Relaxed: the workers' threads have been joined.
        let expected = 2 * self.committed.load(Relaxed);
        changes.expect(updates == expected, || format!("{updates} changes, {expected} committed"));
        Ok(vec![count, sum, changes])
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        let mut updates = 0;
        self.peer.for_each_account(|account| updates += account.updates)?;
        Ok(vec![updates / 2])
    }
}

impl<P: Peer> Session for TransferSession<'_, P> {
    fn run_one(&mut self, _now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let (from, to) = self.shared.choice.draw_two(&mut self.random);
        let amount = self.random.between(1, AMOUNT_MAX) as i64;
        self.connected.client()?.transfer(Transfer { from, to, amount }, aborts)?;
        self.committed += 1;
        Ok(Outcome { transaction: 0, committed: true, epoch: 0, effects: 1 })
    }

    fn finish(self) {
        // Relaxed: read after the thread has been joined.
        self.shared.committed.fetch_add(self.committed, Relaxed);
    }
}
