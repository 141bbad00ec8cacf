//! TPC-B: a bank whose customers change their accounts.
//!
//! A transaction changes an account and its branch, of the site of its worker, and a teller: one of the branch, or, as often as is said, one of any
//! other branch, which the paper calls remote.
//!
//! # Source
//! TPC Benchmark B, revision 2.0; Islands (VLDB Journal) §3.3, where it is the teller that may be of another branch.

use std::collections::BTreeMap;
use std::ops::Range;

use ensilo::{Columns, Database, Result, Row, RowId, Table, Transaction};
use ensilo_bench::driver::RunOptions;
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{InstanceNumber, Program, RequestSource};
use serde::{Deserialize, Serialize};

use crate::parts::{from_bytes, local, open_or_create, request, site_share, to_bytes};
use crate::run::{Ask, Workload};
use crate::shares::{holder, share, spread_of_one};

/// The tellers of a branch.
const TELLERS: u64 = 10;

/// How much a transaction changes at most.
const AMOUNT_MAX: i64 = 999_999;

/// How many accounts a transaction inserts while an instance is loaded.
const ROWS_AT_ONCE: u64 = 1000;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TpcbOptions {
    /// How many branches there are at all instances together.
    pub branches: u64,
    /// How many accounts each has: 100,000 by the specification.
    pub accounts: u64,
    /// How many of a hundred transactions change a teller of another branch: 15 by the specification.
    pub multisite_percent: u8,
}

#[derive(Row)]
#[row(table = "branch")]
struct Branch {
    #[row(key)]
    id: u64,
    balance: i64,
    filler: [u8; 84],
}

#[derive(Row)]
#[row(table = "teller")]
struct Teller {
    #[row(key)]
    id: u64,
    balance: i64,
    filler: [u8; 84],
}

#[derive(Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u64,
    balance: i64,
    filler: [u8; 84],
}

#[derive(Row)]
#[row(table = "history")]
struct History {
    account: u64,
    teller: u64,
    branch: u64,
    amount: i64,
    filler: [u8; 22],
}

#[derive(Columns)]
#[columns(of = Branch)]
struct BranchBalance {
    balance: i64,
}

#[derive(Columns)]
#[columns(of = Teller)]
struct TellerBalance {
    balance: i64,
}

#[derive(Columns)]
#[columns(of = Account)]
struct AccountBalance {
    balance: i64,
}

#[derive(Columns)]
#[columns(of = History)]
struct HistoryAmount {
    amount: i64,
}

/// What a part does.
#[derive(Default, Serialize, Deserialize)]
struct Part {
    load: Option<Load>,
    /// Account, branch, teller and amount: all but the teller's balance.
    update: Option<(u64, u64, u64, i64)>,
    /// A teller and an amount.
    teller: Option<(u64, i64)>,
    sums: bool,
}

/// Rows that an instance is loaded with.
#[derive(Serialize, Deserialize)]
struct Load {
    branches: Range<u64>,
    accounts: Range<u64>,
}

/// What the rows of an instance add up to.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    branches: i64,
    tellers: i64,
    accounts: i64,
    history: i64,
    history_rows: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Tpcb {
    branches: Table<Branch>,
    tellers: Table<Teller>,
    accounts: Table<Account>,
    history: Table<History>,
    number: InstanceNumber,
}

impl Tpcb {
    fn load(&self, tx: &mut Transaction<'_>, Load { branches, accounts }: Load) -> Result<()> {
        let filler = [0x20; 84];
        for id in branches {
            self.branches.insert(tx, &Branch { id, balance: 0, filler })?;
            for teller in id * TELLERS..(id + 1) * TELLERS {
                self.tellers.insert(tx, &Teller { id: teller, balance: 0, filler })?;
            }
        }
        for id in accounts {
            self.accounts.insert(tx, &Account { id, balance: 0, filler })?;
        }
        Ok(())
    }

    fn update(
        &self,
        tx: &mut Transaction<'_>,
        (account, branch, teller, amount): (u64, u64, u64, i64),
    ) -> Result<i64> {
        let mut balance = 0;
        self.accounts.update(tx, account, |row: &mut AccountBalance| {
            row.balance += amount;
            balance = row.balance;
        })?;
        self.branches.update(tx, branch, |row: &mut BranchBalance| row.balance += amount)?;
        self.history.insert(tx, &History { account, teller, branch, amount, filler: [0x20; 22] })?;
        Ok(balance)
    }

    fn sums(&self, tx: &mut Transaction<'_>) -> Result<Sums> {
        let mut sums = Sums::default();
        self.branches
            .scan()
            .columns::<BranchBalance>()
            .for_each(tx, |_, row| sums.branches += row.balance)?;
        self.tellers.scan().columns::<TellerBalance>().for_each(tx, |_, row| sums.tellers += row.balance)?;
        self.accounts
            .scan()
            .columns::<AccountBalance>()
            .for_each(tx, |_, row| sums.accounts += row.balance)?;
        self.history.scan().columns::<HistoryAmount>().for_each(tx, |_: RowId, row| {
            sums.history += row.amount;
            sums.history_rows += 1;
        })?;
        Ok(sums)
    }
}

impl Program for Tpcb {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        Ok(Tpcb {
            branches: open_or_create(db)?,
            tellers: open_or_create(db)?,
            accounts: open_or_create(db)?,
            history: open_or_create(db)?,
            number,
        })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        let part: Part = from_bytes(part)?;
        if let Some(load) = part.load {
            self.load(tx, load)?;
        }
        let balance = part.update.map(|update| self.update(tx, update)).transpose()?;
        if let Some((teller, amount)) = part.teller {
            self.tellers.update(tx, teller, |row: &mut TellerBalance| row.balance += amount)?;
        }
        Ok(if part.sums { to_bytes(&self.sums(tx)?) } else { to_bytes(&balance) })
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let (options, workers): (TpcbOptions, u16) = from_bytes(description)?;
        let TpcbOptions { branches, accounts, multisite_percent } = options;
        let instances = u64::from(self.number.instances);
        let own = site_share(branches, (self.number, workers), of);
        let mut random = fastrand::Rng::with_seed(u64::from(of.instance) << 16 | u64::from(of.worker));
        Ok(Box::new(move || {
            let branch = random.u64(own.clone());
            let is_remote = branches > 1 && random.u8(..100) < multisite_percent;
            let of_teller = if is_remote { (branch + random.u64(1..branches)) % branches } else { branch };
            let teller = of_teller * TELLERS + random.u64(..TELLERS);
            let account = branch * accounts + random.u64(..accounts);
            let amount = random.i64(-AMOUNT_MAX..=AMOUNT_MAX);
            let mut parts: BTreeMap<u64, Part> = BTreeMap::new();
            parts.entry(holder(branches, branch, instances)).or_default().update =
                Some((account, branch, teller, amount));
            parts.entry(holder(branches, of_teller, instances)).or_default().teller = Some((teller, amount));
            request(of, parts)
        }))
    }
}

impl Workload for TpcbOptions {
    type Program = Tpcb;

    fn name(&self) -> &'static str {
        "tpcb-islands"
    }

    fn multisite_percent(&self) -> u8 {
        self.multisite_percent
    }

    fn with_multisite(&self, percent: u8) -> Self {
        TpcbOptions { multisite_percent: percent, ..self.clone() }
    }

    fn spread(&self, instances: u16) -> Spread {
        spread_of_one(self.branches, instances)
    }

    fn sites_max(&self, _instances: u16) -> u64 {
        self.branches
    }

    fn description(&self, workers: u16) -> Vec<u8> {
        to_bytes(&(self, workers))
    }

    fn memory_bytes(&self, run: &RunOptions) -> u64 {
        /// Of an account, and of versions of it that snapshots may see.
        const ACCOUNT_BYTES: u64 = 3 * 160;
        run.memory_bytes(self.branches.saturating_mul(self.accounts).saturating_mul(ACCOUNT_BYTES), 1.0)
    }

    fn loads(&self, number: InstanceNumber) -> Vec<Request> {
        let branches = share(self.branches, number.instance.into(), number.instances.into());
        let accounts = branches.start * self.accounts..branches.end * self.accounts;
        let mut loads = vec![Load { branches, accounts: 0..0 }];
        loads.extend(
            (accounts.start..accounts.end)
                .step_by(ROWS_AT_ONCE as usize)
                .map(|from| Load { branches: 0..0, accounts: from..accounts.end.min(from + ROWS_AT_ONCE) }),
        );
        loads.into_iter().map(|load| local(&Part { load: Some(load), ..Part::default() })).collect()
    }

    fn check(&self, instances: u16, committed: u64, ask: &mut Ask<'_>) -> std::result::Result<(), String> {
        let mut all = Sums::default();
        for instance in 0..instances {
            let sums = ask(instance, to_bytes(&Part { sums: true, ..Part::default() }))?;
            let sums: Sums = from_bytes(&sums).map_err(|error| error.to_string())?;
            all.branches += sums.branches;
            all.tellers += sums.tellers;
            all.accounts += sums.accounts;
            all.history += sums.history;
            all.history_rows += sums.history_rows;
        }
        let balance = all.branches;
        let expected = Sums {
            branches: balance,
            tellers: balance,
            accounts: balance,
            history: balance,
            history_rows: committed,
        };
        if all == expected {
            Ok(())
        } else {
            Err(format!("{committed} have committed, and the rows say {all:?}"))
        }
    }
}
