//! The conditions, by name.

use crate::driver::Check;

/// A condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tpce) enum Condition {
    BrokerTrades,
    BrokerCommissions,
    HoldingSums,
    Positions,
    Balances,
    Settlements,
    Cash,
    HoldingChains,
    HoldingChanges,
    States,
    Requests,
    References,
    Evaluations,
}

/// Names and texts, in the order of [`Condition`].
const TEXTS: [(&str, &str); 13] = [
    ("broker trades", "b_num_trades is the number of completed trades of the broker's accounts"),
    ("broker commissions", "b_comm_total is the sum of t_comm over these trades"),
    ("holding sums", "hs_qty is the sum of h_qty, and there is no summary where that is 0"),
    ("positions", "hs_qty is what completed trades have bought less what they have sold"),
    ("balances", "ca_bal is the opening balance and the sum of ct_amt over the account's trades"),
    ("settlements", "a trade is settled exactly if it is completed, for its value less fees and taxes"),
    (
        "cash",
        "there is a cash transaction, of the settlement's amount, exactly if a completed trade is in cash",
    ),
    (
        "holding chains",
        "each change of a holding goes on where the one before ended, the last with what is held",
    ),
    ("holding changes", "what a completed trade changes in holdings is its quantity, others change nothing"),
    ("states", "a trade went through states in a legal order, the last of which it is in"),
    ("requests", "there is a trade request exactly for each trade that is pending, and it says the same"),
    ("references", "what a row of a trade refers to is there"),
    ("evaluations", "an evaluation is of accounts that there are, all at one time"),
];

/// The checks of all conditions.
#[derive(Debug)]
pub(super) struct Conditions(Vec<Check>);

impl Conditions {
    pub(super) fn new() -> Self {
        Self(TEXTS.iter().map(|&(name, condition)| Check::new(name, condition)).collect())
    }

    /// Holds a condition against something. `describe` says of what, and what is wrong if it does not hold.
    pub(super) fn expect(&mut self, condition: Condition, holds: bool, describe: impl FnOnce() -> String) {
        self.0[condition as usize].expect(holds, describe);
    }

    /// Adds what was found elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// All of them, without the one on evaluations where there are none.
    pub(super) fn into_checks(mut self, has_evaluations: bool) -> Vec<Check> {
        if !has_evaluations {
            self.0.truncate(Condition::Evaluations as usize);
        }
        self.0
    }
}
