//! The tables whose size does not depend on the number of customers.

use ensilo::Text;

use crate::random::Random;
use crate::tpce::fees::{self, EXCHANGES, QUANTITIES, TAXRATES, TIERS};
use crate::tpce::kind::{STATUSES, TradeKind};
use crate::tpce::names::{self, INDUSTRIES, SECTORS};
use crate::tpce::population::Population;
use crate::tpce::schema::{
    Address, Charge, CommissionRate, Exchange, Industry, Sector, StatusType, Taxrate, TradeType, ZipCode,
};
use crate::tpce::tables::Rows;

/// Clause 2.6: zip codes.
const ZIP_CODES: u64 = 14_741;

/// Addresses of the exchanges; those of companies and customers follow.
pub(super) const EXCHANGE_ADDRESSES: u32 = EXCHANGES.len() as u32;

/// Makes all of them.
pub(super) fn make(population: &Population, rows: &mut Rows) {
    for (id, name) in STATUSES {
        rows.status_types.push(StatusType { st_id: Text::truncated(id), st_name: Text::truncated(name) });
    }
    for kind in TradeKind::ALL {
        make_trade_type(kind, rows);
    }
    for (number, name) in (0..).zip(SECTORS) {
        rows.sectors.push(Sector { sc_id: names::two_letters(number), sc_name: Text::truncated(name) });
    }
    for number in 0..INDUSTRIES {
        rows.industries.push(Industry {
            in_id: names::two_letters(number),
            in_name: names::industry(number),
            in_sc_id: names::two_letters(names::sector_of(number)),
        });
    }
    for number in 0..TAXRATES {
        rows.taxrates.push(Taxrate {
            tx_id: fees::taxrate_id(number),
            tx_name: Text::truncated(&format!("Tax of region {number}")),
            tx_rate: fees::taxrate(number),
        });
    }
    make_zip_codes(rows);
    make_exchanges(population, rows);
}

fn make_trade_type(kind: TradeKind, rows: &mut Rows) {
    rows.trade_types.push(TradeType {
        tt_id: kind.id(),
        tt_name: Text::truncated(kind.name()),
        tt_is_sell: kind.is_sell(),
        tt_is_mrkt: kind.is_market(),
    });
    for tier in TIERS {
        rows.charges.push(Charge { ch_tt_id: kind.id(), ch_c_tier: tier, ch_chrg: fees::charge(kind, tier) });
        for (exchange, (exchange_id, _)) in EXCHANGES.into_iter().enumerate() {
            for (range, (from, to)) in QUANTITIES.into_iter().enumerate() {
                rows.commission_rates.push(CommissionRate {
                    cr_c_tier: tier,
                    cr_tt_id: kind.id(),
                    cr_ex_id: Text::truncated(exchange_id),
                    cr_from_qty: from,
                    cr_to_qty: to,
                    cr_rate: fees::commission_rate(tier, kind, exchange, range),
                });
            }
        }
    }
}

fn make_zip_codes(rows: &mut Rows) {
    for number in 0..ZIP_CODES {
        let mut random = Random::new(number);
        rows.zip_codes.push(ZipCode {
            zc_code: zip_code(number),
            zc_town: Text::truncated(&names::town(&mut random)),
            zc_div: Text::truncated(&names::town(&mut random)),
        });
    }
}

fn zip_code(number: u64) -> Text<12> {
    Text::truncated(&format!("{:05}", number * 6 + 1))
}

fn make_exchanges(population: &Population, rows: &mut Rows) {
    for (number, (id, name)) in EXCHANGES.into_iter().enumerate() {
        let traded =
            (0..population.securities).filter(|&security| Population::exchange_of(security) == number);
        let address = number as u32 + 1;
        rows.exchanges.push(Exchange {
            ex_id: Text::truncated(id),
            ex_name: Text::truncated(name),
            ex_num_symb: traded.count() as u32,
            ex_open: 900,
            ex_close: 1_700,
            ex_desc: Text::truncated(&format!("The {name} trades from 0900 to 1700")),
            ex_ad_id: address,
        });
        rows.addresses.push(self::address(address, &mut Random::new(u64::from(address))));
    }
}

/// An address somewhere.
pub(super) fn address(number: u32, random: &mut Random) -> Address {
    let line1 = format!("{} {} Street", random.between(1, 999), names::town(random));
    let line2 = random.percent(30).then(|| Text::truncated(&format!("Suite {}", random.between(1, 99))));
    Address {
        ad_id: number,
        ad_line1: Text::truncated(&line1),
        ad_line2: line2,
        ad_zc_code: zip_code(random.below(ZIP_CODES)),
        ad_ctry: Text::truncated("USA"),
    }
}
