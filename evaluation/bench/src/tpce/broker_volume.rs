//! Broker-volume: what brokers have waiting in a sector (clause 3.3.1).

use std::collections::BTreeMap;

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Engine, Result, Text};

use super::fees::value;
use super::input::Inputs;
use super::names::{self, SECTORS};
use super::rows::required;
use super::schema::{Broker, Company, Industry, Money, Sector, Security, Symbol, TradeRequest};
use super::tables::Tables;

/// The brokers and the sector that are asked for.
#[derive(Debug)]
pub(super) struct BrokerVolumeInput {
    pub(super) brokers: Vec<Text<49>>,
    pub(super) sector: Text<30>,
}

#[derive(Columns)]
#[columns(of = Sector)]
struct SectorId {
    sc_id: Text<2>,
}

#[derive(Columns)]
#[columns(of = Broker)]
struct BrokerId {
    b_id: u32,
}

#[derive(Columns)]
#[columns(of = TradeRequest)]
struct Waiting {
    tr_s_symb: Symbol,
    tr_qty: i32,
    tr_bid_price: Money,
}

#[derive(Columns)]
#[columns(of = Security)]
struct SecurityCompany {
    s_co_id: u32,
}

#[derive(Columns)]
#[columns(of = Company)]
struct CompanyIndustry {
    co_in_id: Text<2>,
}

#[derive(Columns)]
#[columns(of = Industry)]
struct IndustrySector {
    in_sc_id: Text<2>,
}

impl BrokerVolumeInput {
    /// Draws 20 to 40 brokers, all of them where there are fewer.
    pub(super) fn draw(inputs: &mut Inputs<'_>) -> Self {
        let all = inputs.population.brokers;
        let count = (inputs.random.between(20, 40) as u32).min(all);
        let first = inputs.random.below(u64::from(all)) as u32;
        let step = inputs.random.between(1, u64::from(all / count)) as u32;
        let sector = SECTORS[inputs.random.below(SECTORS.len() as u64) as usize];
        Self {
            brokers: (0..count).map(|at| names::broker((first + at * step) % all + 1)).collect(),
            sector: Text::truncated(sector),
        }
    }

    /// Runs the transaction and returns the brokers that have something, with the highest volume first.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Vec<(Text<49>, Money)>> {
        let sector = tables.sectors_by_name.prefix((self.sector,)).columns::<SectorId>().first(tx)?;
        let sector = required(sector)?.1.sc_id;
        let mut sectors = BTreeMap::new();
        let mut volumes = Vec::with_capacity(self.brokers.len());
        for name in &self.brokers {
            let broker = tables.brokers_by_name.prefix((*name,)).columns::<BrokerId>().first(tx)?;
            let requests = tables.trade_requests_by_broker.prefix((required(broker)?.1.b_id,));
            let requests = requests.columns::<Waiting>().rows(tx)?;
            let mut volume = Money::default();
            for request in &requests {
                let of = match sectors.get(&request.tr_s_symb) {
                    Some(&sector) => sector,
                    None => sector_of(request.tr_s_symb, tables, tx)?,
                };
                sectors.insert(request.tr_s_symb, of);
                if of == sector {
                    volume += value(request.tr_qty, request.tr_bid_price);
                }
            }
            if volume > Money::default() {
                volumes.push((*name, volume));
            }
        }
        volumes.sort_by_key(|&(_, volume)| std::cmp::Reverse(volume));
        Ok(volumes)
    }
}

/// The sector of a security.
fn sector_of<'t, E: Engine>(
    symbol: Symbol,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<Text<2>> {
    let security = required(tables.securities.get_columns::<SecurityCompany>(tx, symbol)?)?;
    let company = required(tables.companies.get_columns::<CompanyIndustry>(tx, security.s_co_id)?)?;
    let industry = required(tables.industries.get_columns::<IndustrySector>(tx, company.co_in_id)?)?;
    Ok(industry.in_sc_id)
}
