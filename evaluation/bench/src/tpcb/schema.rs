//! The four tables. Ids count from 0, those of tellers and accounts through all branches: the first ones are of the first branch.

use ensilo::{Columns, Row, Timestamp};

/// The tellers of a branch.
pub(super) const TELLERS_PER_BRANCH: u64 = 10;

/// What fills a row up to a hundred bytes, or to fifty in the history.
pub(super) const FILLER: u8 = b' ';
pub(super) const ROW_FILLER_BYTES: usize = 84;
pub(super) const HISTORY_FILLER_BYTES: usize = 10;

#[derive(Debug, Row)]
#[row(table = "branch")]
pub(super) struct Branch {
    #[row(key)]
    pub(super) id: u64,
    pub(super) balance: i64,
    pub(super) filler: [u8; ROW_FILLER_BYTES],
}

#[derive(Debug, Row)]
#[row(table = "teller")]
pub(super) struct Teller {
    #[row(key)]
    pub(super) id: u64,
    pub(super) balance: i64,
    pub(super) filler: [u8; ROW_FILLER_BYTES],
}

#[derive(Debug, Row)]
#[row(table = "account")]
pub(super) struct Account {
    #[row(key)]
    pub(super) id: u64,
    pub(super) balance: i64,
    pub(super) filler: [u8; ROW_FILLER_BYTES],
}

/// What a transaction has done.
#[derive(Debug, Row)]
#[row(table = "history")]
pub(super) struct History {
    pub(super) account: u64,
    pub(super) teller: u64,
    pub(super) branch: u64,
    pub(super) amount: i64,
    pub(super) time: Timestamp,
    pub(super) filler: [u8; HISTORY_FILLER_BYTES],
}

#[derive(Columns)]
#[columns(of = Branch)]
pub(super) struct BranchBalance {
    pub(super) balance: i64,
}

#[derive(Columns)]
#[columns(of = Teller)]
pub(super) struct TellerBalance {
    pub(super) balance: i64,
}

#[derive(Columns)]
#[columns(of = Account)]
pub(super) struct AccountBalance {
    pub(super) balance: i64,
}

/// What a check needs of a row of history.
#[derive(Columns)]
#[columns(of = History)]
pub(super) struct HistoryEntry {
    pub(super) account: u64,
    pub(super) teller: u64,
    pub(super) branch: u64,
    pub(super) amount: i64,
}
