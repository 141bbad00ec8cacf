//! What the transactions' inputs are drawn from (clause 6.4).

use ensilo::Timestamp;

use super::calendar::{TRADING_US, trading_time};
use super::options::TpceOptions;
use super::population::Population;
use super::schema::Symbol;
use crate::random::Random;

/// Trades that trade-lookup and trade-update ask for at a time.
pub(super) const TRADES_AT_ONCE: usize = 20;

/// What one worker draws from.
pub(super) struct Inputs<'a> {
    pub(super) population: &'a Population,
    pub(super) options: &'a TpceOptions,
    pub(super) random: &'a mut Random,
    pub(super) now: Timestamp,
}

impl Inputs<'_> {
    /// A customer, by tier.
    pub(super) fn customer(&mut self) -> u32 {
        self.population.draw_customer(self.random)
    }

    /// An account of a customer who is drawn by tier.
    pub(super) fn account(&mut self) -> u32 {
        self.population.draw_account(self.random)
    }

    /// The number of any security.
    pub(super) fn security(&mut self) -> u32 {
        self.random.below(u64::from(self.population.securities)) as u32
    }

    /// Any symbol.
    pub(super) fn symbol(&mut self) -> Symbol {
        let security = self.security();
        self.population.symbol(security)
    }

    /// A company.
    pub(super) fn company(&mut self) -> u32 {
        self.random.between(1, u64::from(self.population.companies)) as u32
    }

    /// One of the days that DAILY_MARKET has, with at least `after` days behind it if there are so many.
    pub(super) fn market_day(&mut self, after: u32) -> i32 {
        let days = u64::from(self.options.daily_market_days.saturating_sub(after).max(1));
        super::calendar::market_day(self.random.below(days) as u32)
    }

    /// A number of a trade that was loaded; the only number if none was.
    fn trade(&mut self) -> u64 {
        self.random.between(1, self.options.initial_trades().max(1))
    }

    /// Moments of which the first is before the second, within the days whose trades were loaded.
    fn period(&mut self) -> (Timestamp, Timestamp) {
        let length = u64::from(self.options.initial_trading_days) * TRADING_US;
        (trading_time(self.random.below(length.max(1))), trading_time(length))
    }
}

/// Which trades are asked for.
#[derive(Debug, Clone)]
pub(super) enum TradeChoice {
    Numbers([u64; TRADES_AT_ONCE]),
    OfAccount { account: u32, from: Timestamp, to: Timestamp },
    OfSecurity { symbol: Symbol, from: Timestamp, to: Timestamp },
}

impl TradeChoice {
    pub(super) fn draw_numbers(inputs: &mut Inputs<'_>) -> Self {
        Self::Numbers(std::array::from_fn(|_| inputs.trade()))
    }

    pub(super) fn draw_account(inputs: &mut Inputs<'_>) -> Self {
        let (from, to) = inputs.period();
        Self::OfAccount { account: inputs.account(), from, to }
    }

    pub(super) fn draw_security(inputs: &mut Inputs<'_>) -> Self {
        let (from, to) = inputs.period();
        Self::OfSecurity { symbol: inputs.symbol(), from, to }
    }
}
