//! `ensilo bench tpcb`.

use std::convert::Infallible;

use clap::{Args, value_parser};
use ensilo_bench::mix::Share;
use ensilo_bench::tpcb::TpcbOptions;

use super::common::Common;
use super::tpcc::share;

const EXAMPLES: &str = "\
Examples:
  ensilo bench tpcb
      All cores, a branch for each, ten seconds, on a durable database that is removed at the end.
  ensilo bench tpcb --memory --engine 2pl
      In memory, by two-phase locking.
  ensilo bench tpcb --memory --branches 1 --workers 8 --engine ermia
      Every transaction changes the row of the one branch.
  ensilo bench tpcb --crash
      Durable; killed at the end of the run, and recovered.
  ensilo bench tpcb-islands --islands core
      The same bank on several instances, each with a share of the branches; it has options of its own.

After each run, and after a recovery, the balances of branches, tellers and accounts are held against each other and
against the history. If one sum does not agree, or a crash loses a transaction that was acknowledged as stored, the
exit code is 1. After Ctrl-C the report is on what there was, and the exit code is 130; after SIGTERM 143.";

/// A bank whose customers change their accounts (TPC-B 2.0)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Branches, each with ten tellers [default: one for each worker]
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=100_000))]
    branches: Option<u64>,

    /// Accounts of each branch; the specification's number unless a small test is wanted
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = value_parser!(u64).range(1..=10_000_000))]
    accounts: u64,

    /// Percent of the transactions that change an account of another branch than the teller's
    #[arg(long, value_name = "P", default_value = "15", value_parser = share)]
    remote_account_percent: Share,

    /// What several instances need is another command.
    #[allow(dead_code, reason = "it has no value")]
    #[arg(long, hide = true, value_name = "N", value_parser = refuse_islands)]
    islands: Option<Infallible>,

    #[command(flatten)]
    pub(super) common: Common,
}

fn refuse_islands(_: &str) -> Result<Infallible, &'static str> {
    Err("this is one database; for several instances there is `ensilo bench tpcb-islands`")
}

impl Arguments {
    pub(super) fn options(&self) -> TpcbOptions {
        let defaults = TpcbOptions::new(self.common.workers());
        TpcbOptions {
            branches: self.branches.unwrap_or(defaults.branches),
            accounts: self.accounts,
            remote_accounts: self.remote_account_percent,
            seed: self.common.seed,
            ..defaults
        }
    }
}
