//! The conditions by number, with what each says.

use crate::driver::Check;

/// The sentences of clause 3.3.2, in our words and its names of columns.
const TEXTS: [(&str, &str); 12] = [
    ("3.3.2.1", "w_ytd is the sum of d_ytd over the warehouse's districts"),
    ("3.3.2.2", "d_next_o_id - 1 is the highest o_id, and the highest no_o_id if there are new orders"),
    ("3.3.2.3", "the no_o_id of a district's new orders have no gap"),
    ("3.3.2.4", "the sum of o_ol_cnt is the number of a district's order lines"),
    ("3.3.2.5", "an order has no carrier exactly if it is a new order"),
    ("3.3.2.6", "o_ol_cnt is the number of an order's lines"),
    ("3.3.2.7", "a line has no delivery date exactly if its order has no carrier"),
    ("3.3.2.8", "w_ytd is the sum of h_amount over the warehouse's history"),
    ("3.3.2.9", "d_ytd is the sum of h_amount over the district's history"),
    ("3.3.2.10", "c_balance is the sum of delivered ol_amount less the sum of h_amount"),
    ("3.3.2.11", "orders less new orders are the ones loaded as delivered and c_delivery_cnt since"),
    ("3.3.2.12", "c_balance + c_ytd_payment is the sum of delivered ol_amount"),
];

/// The condition that new orders have no gap.
pub(super) const GAPS: usize = 3;

/// The twelve checks.
#[derive(Debug)]
pub(super) struct Conditions(Vec<Check>);

impl Conditions {
    pub(super) fn new() -> Self {
        Self(TEXTS.iter().map(|&(name, condition)| Check::new(name, condition)).collect())
    }

    /// Condition 3.3.2.`number`.
    pub(super) fn of(&mut self, number: usize) -> &mut Check {
        &mut self.0[number - 1]
    }

    /// Adds what was found elsewhere.
    pub(super) fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| mine.add(theirs));
    }

    /// All of them; without the one on gaps where orders may leave some.
    pub(super) fn into_checks(mut self, may_have_gaps: bool) -> Vec<Check> {
        if may_have_gaps {
            self.0.remove(GAPS - 1);
        }
        self.0
    }
}
