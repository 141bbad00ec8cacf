//! What a run can be asked for.

use super::schema::TELLERS_PER_BRANCH;
use crate::mix::Share;

/// The name of the only transaction type.
pub const TRANSACTION_TYPES: [&str; 1] = ["account_update"];

/// Options of a bank and its workers.
#[derive(Debug, Clone)]
pub struct TpcbOptions {
    /// Branches, at least 1. Each has ten tellers.
    pub branches: u64,
    /// Accounts of each branch, at least 1; 100,000 by the specification.
    pub accounts: u64,
    /// How many transactions change an account of another branch than the teller's, where there is one.
    pub remote_accounts: Share,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Workers that there will be.
    pub workers: usize,
}

impl TpcbOptions {
    /// One branch for each worker, and what the specification says.
    pub fn new(workers: usize) -> Self {
        Self {
            branches: workers.max(1) as u64,
            accounts: 100_000,
            remote_accounts: Share::FIFTEEN_OF_100,
            seed: 1,
            workers,
        }
    }

    /// Bytes of the loaded rows, roughly.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        const ROW_BYTES: u64 = 160;
        self.branches.saturating_mul(1 + TELLERS_PER_BRANCH + self.accounts).saturating_mul(ROW_BYTES)
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        serde_json::json!({
            "branches": self.branches,
            "accounts": self.accounts,
            "remote_account_percent": self.remote_accounts.percent(),
            "seed": self.seed,
        })
    }
}
