//! The conditions on a holding's changes: they are a chain from nothing to what is held.

use super::condition::{Condition, Conditions};
use super::piece::OfTrade;

/// Checks the changes of the holding that the trade with this number has made.
pub(super) fn check(number: u64, rows: &OfTrade, conditions: &mut Conditions) {
    if rows.chain.is_empty() && rows.holding.is_none() {
        return;
    }
    let held = rows.holding.as_ref().map_or(0, |holding| holding.h_qty);
    let holds = is_chain(number, &rows.chain, held) && rows.holding.as_ref().is_none_or(|_| held != 0);
    conditions.expect(Condition::HoldingChains, holds, || {
        format!("holding {number}: held {held}, changes (by trade, from, to) {:?}", rows.chain)
    });
}

/// Whether the changes (by trade, from, to) begin with the trade's own, each takes from what the one before has left, and the last
/// leaves `held`.
fn is_chain(number: u64, changes: &[(u64, i32, i32)], held: i32) -> bool {
    let mut changes = changes.to_vec();
    // What is held only shrinks after the first change, which comes from nothing.
    changes.sort_by_key(|&(_, before, _)| (before != 0, -i64::from(before).abs()));
    let Some(&(trade, 0, mut left)) = changes.first() else { return false };
    let shrinks = |before: i32, after: i32| {
        after.abs() < before.abs() && (after == 0 || after.signum() == before.signum())
    };
    let goes_on = changes[1..].iter().all(|&(_, before, after)| {
        let follows = before == left && shrinks(before, after);
        left = after;
        follows
    });
    trade == number && goes_on && left == held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_go_on_from_each_other() {
        assert!(is_chain(5, &[(9, 50, 0), (5, 0, 100), (7, 100, 50)], 0));
        assert!(is_chain(5, &[(5, 0, -100), (7, -100, -50)], -50));
        assert!(!is_chain(5, &[(5, 0, 100), (7, 100, 50)], 100));
        assert!(!is_chain(5, &[(5, 0, 100), (7, 90, 50)], 50));
        assert!(!is_chain(5, &[(6, 0, 100)], 100));
        assert!(!is_chain(5, &[(5, 0, 100), (7, 100, -50)], -50));
        assert!(!is_chain(5, &[], 0));
    }
}
