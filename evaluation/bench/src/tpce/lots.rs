//! How a trade changes the holdings of an account in a security: the same rule for the load and for trade-result (clause 3.3.8.3).
//!
//! Quantities are signed: a holding of a short sale is negative. A trade first takes from holdings of the other sign, in the order in which
//! they are given, then what remains becomes a holding of its own.

use super::fees::value;
use super::schema::Money;

/// A holding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lot {
    pub(super) quantity: i32,
    pub(super) price: Money,
}

/// What a trade takes from one holding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Taken {
    /// The holding's place among those given.
    pub(super) at: usize,
    pub(super) before: i32,
    /// 0 if the holding is gone.
    pub(super) after: i32,
}

/// What a trade does to holdings.
#[derive(Debug, Default)]
pub(super) struct Matching {
    pub(super) taken: Vec<Taken>,
    /// The quantity of the new holding, 0 if there is none.
    pub(super) remainder: i32,
    /// What was paid for what was sold.
    pub(super) buy_value: Money,
    pub(super) sell_value: Money,
}

impl Matching {
    /// Matches a trade of this signed quantity at `price`.
    pub(super) fn run(&mut self, lots: impl Iterator<Item = Lot>, quantity: i32, price: Money) {
        *self = Self { taken: std::mem::take(&mut self.taken), remainder: quantity, ..Self::default() };
        self.taken.clear();
        for (at, lot) in lots.enumerate() {
            if self.remainder == 0 || lot.quantity.signum() == quantity.signum() {
                break;
            }
            let count = lot.quantity.abs().min(self.remainder.abs());
            let (bought, sold) = if quantity < 0 { (lot.price, price) } else { (price, lot.price) };
            self.buy_value += value(count, bought);
            self.sell_value += value(count, sold);
            let after = lot.quantity + quantity.signum() * count;
            self.taken.push(Taken { at, before: lot.quantity, after });
            self.remainder -= quantity.signum() * count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lots(quantities: &[i32]) -> Vec<Lot> {
        quantities.iter().map(|&quantity| Lot { quantity, price: Money::from_int(20) }).collect()
    }

    fn run(quantities: &[i32], quantity: i32) -> Matching {
        let mut matching = Matching::default();
        matching.run(lots(quantities).into_iter(), quantity, Money::from_int(25));
        matching
    }

    #[test]
    fn a_sale_takes_holdings_in_order_and_leaves_the_rest() {
        let sale = run(&[100, 200], -150);
        assert_eq!(
            sale.taken,
            [Taken { at: 0, before: 100, after: 0 }, Taken { at: 1, before: 200, after: 150 }]
        );
        assert_eq!((sale.remainder, sale.buy_value), (0, Money::from_int(3_000)));
        assert_eq!(sale.sell_value, Money::from_int(3_750));
    }

    #[test]
    fn what_is_not_held_is_sold_short_and_bought_back() {
        assert_eq!(run(&[100], -150).remainder, -50);
        let cover = run(&[-50], 80);
        assert_eq!(cover.remainder, 30);
        assert_eq!((cover.buy_value, cover.sell_value), (Money::from_int(1_250), Money::from_int(1_000)));
        assert_eq!(run(&[-50, -20], -10).taken, []);
    }
}
