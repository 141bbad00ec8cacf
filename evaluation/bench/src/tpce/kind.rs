//! The kinds of trades and the states that they pass through (clause 2.2.5.10 and TRADE_TYPE, STATUS_TYPE).

use ensilo::Text;

use super::schema::{Money, StatusId, TradeTypeId};
use crate::random::Random;

/// A kind of trade.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TradeKind {
    MarketBuy,
    MarketSell,
    LimitBuy,
    LimitSell,
    StopLoss,
}

impl TradeKind {
    pub(super) const ALL: [Self; 5] =
        [Self::MarketBuy, Self::MarketSell, Self::LimitBuy, Self::LimitSell, Self::StopLoss];

    /// Draws a kind with the shares of clause 5.3: 60 of 100 at the market, half of all buy.
    pub(super) fn draw(random: &mut Random) -> Self {
        match random.below(10) {
            0..3 => Self::MarketBuy,
            3..6 => Self::MarketSell,
            6..8 => Self::LimitBuy,
            8 => Self::LimitSell,
            _ => Self::StopLoss,
        }
    }

    /// The kind of an id, if it is one.
    pub(super) fn of_id(id: &TradeTypeId) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *id == kind.text())
    }

    pub(super) fn id(self) -> TradeTypeId {
        Text::truncated(self.text())
    }

    fn text(self) -> &'static str {
        match self {
            Self::MarketBuy => "TMB",
            Self::MarketSell => "TMS",
            Self::LimitBuy => "TLB",
            Self::LimitSell => "TLS",
            Self::StopLoss => "TSL",
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MarketBuy => "Market-Buy",
            Self::MarketSell => "Market-Sell",
            Self::LimitBuy => "Limit-Buy",
            Self::LimitSell => "Limit-Sell",
            Self::StopLoss => "Stop-Loss",
        }
    }

    pub(super) fn is_sell(self) -> bool {
        matches!(self, Self::MarketSell | Self::LimitSell | Self::StopLoss)
    }

    pub(super) fn is_market(self) -> bool {
        matches!(self, Self::MarketBuy | Self::MarketSell)
    }

    /// Whether an order that waits for the price `bid` is to be executed at `price` (clause 3.3.3.3).
    pub(super) fn is_triggered(self, bid: Money, price: Money) -> bool {
        match self {
            Self::MarketBuy | Self::MarketSell => true,
            Self::LimitBuy | Self::StopLoss => bid >= price,
            Self::LimitSell => bid <= price,
        }
    }

    /// What the trade adds to a position.
    pub(super) fn signed(self, quantity: i32) -> i32 {
        if self.is_sell() { -quantity } else { quantity }
    }
}

/// The states of STATUS_TYPE, with their names.
pub(super) const STATUSES: [(&str, &str); 5] = [
    ("ACTV", "Active"),
    ("CMPT", "Completed"),
    ("CNCL", "Canceled"),
    ("PNDG", "Pending"),
    ("SBMT", "Submitted"),
];

/// The state of a customer, a company or a broker.
pub(super) fn active() -> StatusId {
    Text::truncated("ACTV")
}

/// A trade that is done.
pub(super) fn completed() -> StatusId {
    Text::truncated("CMPT")
}

/// A trade that was given up.
pub(super) fn canceled() -> StatusId {
    Text::truncated("CNCL")
}

/// A trade that waits for its price.
pub(super) fn pending() -> StatusId {
    Text::truncated("PNDG")
}

/// A trade that is at the market.
pub(super) fn submitted() -> StatusId {
    Text::truncated("SBMT")
}
