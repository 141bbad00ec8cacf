//! TPC-C: warehouses are dealt out to the instances in turn, and items are in each.
//!
//! The transactions are those of `ensilo bench tpcc`, of which the parts that concern another instance's warehouses are carried out there. Those that
//! only read are validated like the others.
//!
//! # Source
//! Islands (VLDB Journal) §3.3 and §6.

use std::collections::BTreeMap;

use ensilo::{Database, Result, Timestamp, Transaction};
use ensilo_bench::Benchmark;
use ensilo_bench::driver::RunOptions;
use ensilo_bench::mix::{Mix, Share};
use ensilo_bench::tpcc::{
    ElsewhereAnswer, ElsewherePart, Entered, PaymentSums, Scale, Terminal, TpccOptions, TpccShare,
};
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{InstanceNumber, Program, RequestSource};
use serde::{Deserialize, Serialize};

use crate::parts::{from_bytes, local, request, to_bytes};
use crate::run::{Ask, Workload};
use crate::shares::spread_of_one;

/// How many lines an order has on average.
const LINES: f64 = 10.0;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TpccIslandsOptions {
    /// How many warehouses there are at all instances together.
    pub warehouses: u16,
    /// How much there is of everything else.
    pub scale: Scale,
    /// The shares of the transaction types.
    pub mix: Mix,
    /// How many of a hundred orders and payments have to do with another warehouse; `None` for what the specification says: one item of a hundred,
    /// and 15 payments of a hundred.
    pub multisite_percent: Option<u8>,
}

impl TpccIslandsOptions {
    /// Returns the same as it is said to TPC-C, where there are so many workers in all.
    fn to_options(&self, workers: usize) -> TpccOptions {
        let mut options = TpccOptions::new(workers);
        (options.warehouses, options.scale, options.mix) = (self.warehouses, self.scale, self.mix.clone());
        if let Some(percent) = self.multisite_percent {
            let share = (f64::from(percent) / 100.0).min(1.0);
            // So that of all orders with this number of lines the share has one at least.
            let of_items = 1.0 - (1.0 - share).powf(1.0 / LINES);
            [options.remote_items, options.remote_customers] = [of_items, share].map(to_share);
        }
        options
    }

    fn warehouses_of(&self, number: InstanceNumber) -> impl Iterator<Item = u16> {
        (1..=self.warehouses)
            .filter(move |warehouse| holder(*warehouse, number.instances) == u64::from(number.instance))
    }
}

fn to_share(share: f64) -> Share {
    let Some(share) = Share::of_percent(100.0 * share) else {
        unreachable!("shares lie between nothing and all");
    };
    share
}

/// Returns the instance that has a warehouse.
fn holder(warehouse: u16, instances: u16) -> u64 {
    u64::from((warehouse - 1) % instances)
}

/// What a part does.
#[derive(Serialize, Deserialize)]
enum Part {
    /// Carries out a task of those that fill an instance.
    Load { options: TpccIslandsOptions, task: u64 },
    /// What a transaction does at its own warehouse.
    Home { entered: Entered, scale: Scale },
    /// What a transaction of another instance does.
    Elsewhere(ElsewherePart),
    /// Sums up what was paid.
    Payments(TpccIslandsOptions),
    /// Checks a warehouse, where all of this was paid.
    Check { warehouse: u16, scale: Scale, payments: PaymentSums },
}

/// See the module's documentation.
#[derive(Debug)]
pub struct TpccIslands {
    share: TpccShare,
    number: InstanceNumber,
}

impl Program for TpccIslands {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        Ok(TpccIslands { share: TpccShare::open_or_create(db)?, number })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        self.conclude(tx, part, &[])
    }

    fn conclude(
        &self,
        tx: &mut Transaction<'_>,
        part: &[u8],
        replies: &[(SiteId, Vec<u8>)],
    ) -> Result<Vec<u8>> {
        match from_bytes(part)? {
            Part::Load { options, task } => {
                self.share.load(tx, &options.to_options(1), task)?;
                Ok(Vec::new())
            }
            Part::Home { entered, scale } => {
                let answers: Vec<ElsewhereAnswer> =
                    replies.iter().map(|(_, reply)| from_bytes(reply)).collect::<Result<_>>()?;
                self.share.run(tx, &entered, scale, answers.into_iter())?;
                Ok(Vec::new())
            }
            Part::Elsewhere(part) => Ok(to_bytes(&self.share.run_elsewhere(tx, &part)?)),
            Part::Payments(options) => Ok(to_bytes(&self.share.payments(tx, &options.to_options(1))?)),
            Part::Check { warehouse, scale, payments } => {
                Ok(to_bytes(&self.share.check(tx, (warehouse, scale), &payments)?))
            }
        }
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let (options, workers): (TpccIslandsOptions, u16) = from_bytes(description)?;
        let instances = self.number.instances;
        let all_workers = usize::from(workers) * usize::from(instances);
        // The warehouses of a terminal are those that its number leads to in turn: all of this instance.
        let worker = usize::from(of.worker) * usize::from(instances) + usize::from(of.instance);
        let mut terminal = Terminal::new(&options.to_options(all_workers), worker);
        Ok(Box::new(move || {
            let entered = terminal.enter(Timestamp::now());
            let elsewhere = entered.elsewhere(|warehouse| holder(warehouse, instances));
            let mut parts: BTreeMap<u64, Part> =
                elsewhere.into_iter().map(|(instance, part)| (instance, Part::Elsewhere(part))).collect();
            parts.insert(of.instance.into(), Part::Home { entered, scale: options.scale });
            request(of, parts)
        }))
    }
}

impl Workload for TpccIslandsOptions {
    type Program = TpccIslands;

    fn name(&self) -> &'static str {
        "tpcc-islands"
    }

    fn multisite_percent(&self) -> u8 {
        let options = self.to_options(1);
        let of_orders = 1.0 - (1.0 - options.remote_items.percent() / 100.0).powf(LINES);
        let of_payments = options.remote_customers.percent() / 100.0;
        let [orders, payments] = [0, 1].map(|of_type| self.mix.percent(of_type));
        (orders * of_orders + payments * of_payments).round() as u8
    }

    fn with_multisite(&self, percent: u8) -> Self {
        TpccIslandsOptions { multisite_percent: Some(percent), ..self.clone() }
    }

    fn spread(&self, instances: u16) -> Spread {
        spread_of_one(self.warehouses.into(), instances)
    }

    fn sites_max(&self, _instances: u16) -> u64 {
        self.warehouses.into()
    }

    fn description(&self, workers: u16) -> Vec<u8> {
        to_bytes(&(self, workers))
    }

    fn memory_bytes(&self, run: &RunOptions) -> u64 {
        Benchmark::Tpcc(self.to_options(run.workers)).memory_bytes(run)
    }

    fn loads(&self, number: InstanceNumber) -> Vec<Request> {
        let has = |warehouse| holder(warehouse, number.instances) == u64::from(number.instance);
        let tasks = TpccShare::load_tasks(&self.to_options(1), has);
        tasks.into_iter().map(|task| local(&Part::Load { options: self.clone(), task })).collect()
    }

    /// One order of a hundred is rolled back by the specification.
    fn rejected_max(&self, committed: u64) -> u64 {
        committed / 50 + 10
    }

    fn check(&self, instances: u16, _: u64, ask: &mut Ask<'_>) -> std::result::Result<(), String> {
        let readable = |error: ensilo::Error| error.to_string();
        let mut all: Option<PaymentSums> = None;
        for instance in 0..instances {
            let payments = ask(instance, to_bytes(&Part::Payments(self.clone())))?;
            let payments: PaymentSums = from_bytes(&payments).map_err(readable)?;
            match &mut all {
                Some(all) => all.add(&payments),
                None => all = Some(payments),
            }
        }
        let Some(payments) = all else { return Ok(()) };
        let mut wrong: Vec<String> = Vec::new();
        for instance in 0..instances {
            for warehouse in self.warehouses_of(InstanceNumber { instance, instances }) {
                let part = Part::Check { warehouse, scale: self.scale, payments: payments.clone() };
                let violations = ask(instance, to_bytes(&part))?;
                wrong.extend(from_bytes::<Vec<String>>(&violations).map_err(readable)?);
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}
