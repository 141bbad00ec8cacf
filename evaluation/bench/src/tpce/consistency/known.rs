//! What all pieces of the check need of rows that are not keyed by trades: accounts, and the keys that may be referred to.

use std::collections::{BTreeMap, BTreeSet};

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result};

use crate::tpce::loaded::Tpce;
use crate::tpce::schema::{CustomerAccount, Security, Symbol};

/// What is known of an account.
#[derive(Debug, Clone, Columns)]
#[columns(of = CustomerAccount)]
pub(super) struct KnownAccount {
    pub(super) ca_b_id: u32,
    pub(super) ca_tax_st: u8,
}

#[derive(Columns)]
#[columns(of = Security)]
struct SecurityKey {}

/// Accounts and symbols.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) accounts: BTreeMap<u32, KnownAccount>,
    pub(super) symbols: BTreeSet<Symbol>,
}

impl Known {
    pub(super) fn collect<'t, E: Engine>(
        tpce: &Tpce<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Self> {
        let mut symbols = BTreeSet::new();
        tpce.tables.securities.scan().columns::<SecurityKey>().for_each(tx, |symbol, _| {
            symbols.insert(symbol);
        })?;
        let accounts = tpce.tables.accounts.scan().columns::<KnownAccount>().collect(tx)?;
        Ok(Self { accounts: accounts.into_iter().collect(), symbols })
    }
}
