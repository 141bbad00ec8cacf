//! The price of a security at any time: a triangle wave, the same for every worker without a word between them.
//!
//! # Source
//! TPC-E revision 1.14, clause 6.5 (the market exchange emulator): a security's price rises from 20 to 30 and falls back. There a
//! wave takes 15 minutes; here it takes 15 seconds, because a run takes seconds and a limit order is to meet its price within it.

use ensilo::Timestamp;

use super::schema::Money;

const LOW_CENTS: i64 = 2_000;
const HIGH_CENTS: i64 = 3_000;
const PERIOD_US: i64 = 15_000_000;

/// The price of the security with this number.
pub(super) fn price(security: u32, at: Timestamp) -> Money {
    // The golden section's multiples spread the phases evenly.
    let phase = (i64::from(security.wrapping_mul(0x9e37_79b9)) * (PERIOD_US >> 16)) >> 16;
    let within = (at.micros() + phase).rem_euclid(PERIOD_US);
    let rising = within.min(PERIOD_US - within) * 2;
    Money::from_scaled(LOW_CENTS + rising * (HIGH_CENTS - LOW_CENTS) / PERIOD_US)
}

/// Any price that a security can have, as cents.
pub(super) fn any_price(random: &mut crate::random::Random) -> Money {
    Money::from_scaled(random.between(LOW_CENTS as u64, HIGH_CENTS as u64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_move_between_20_and_30() {
        let at = |second: i64| price(7, Timestamp::from_micros(1_700_000_000_000_000 + second * 100_000));
        let prices: Vec<Money> = (0..300).map(at).collect();
        assert!(prices.iter().all(|price| (2_000..=3_000).contains(&price.scaled())));
        let (low, high) = (prices.iter().min().unwrap(), prices.iter().max().unwrap());
        assert!(low.scaled() < 2_050 && high.scaled() > 2_950, "{low} {high}");
    }
}
