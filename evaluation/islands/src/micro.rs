//! The microbenchmark: transactions that read, or update, some rows.
//!
//! A site is the share of the rows that belongs to one worker. A local transaction takes its rows from the site of its worker; a multisite one takes
//! one row from there, and the others from all rows. All rows may be taken alike, or by Zipf's law: then the first ones of all, and of each site, are
//! the most frequent.
//!
//! # Source
//! Islands (VLDB Journal) §3.2.

use std::collections::BTreeMap;

use ensilo::{Columns, Database, Result, Row, Table, Transaction};
use ensilo_bench::driver::RunOptions;
use ensilo_bench::random::{Random, Zipfian};
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{InstanceNumber, Program, RequestSource};
use serde::{Deserialize, Serialize};

use crate::parts::{from_bytes, local, open_or_create, request, site_share, to_bytes};
use crate::run::{Ask, Workload};
use crate::shares::{holder, share};

/// Bytes of a row beside its key and its counter: a row has 250, as in the paper.
const FILLER_BYTES: usize = 234;

/// How many rows a transaction inserts while the instance is loaded.
const ROWS_AT_ONCE: u64 = 1000;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MicroOptions {
    /// How many rows there are at all instances together.
    pub rows: u64,
    /// How many rows a transaction takes.
    pub rows_per_transaction: u64,
    /// Whether it updates them.
    pub updates: bool,
    /// How many of a hundred transactions are multisite.
    pub multisite_percent: u8,
    /// How skewed the choice of rows is, from 0 (all alike) to less than 1.
    pub skew: f64,
}

#[derive(Row)]
#[row(table = "item")]
struct Item {
    #[row(key)]
    id: u64,
    count: u64,
    filler: [u8; FILLER_BYTES],
}

#[derive(Columns)]
#[columns(of = Item)]
struct Count {
    count: u64,
}

/// What a part does.
#[derive(Serialize, Deserialize)]
enum Part {
    /// Inserts the rows from one to another.
    Load(u64, u64),
    Read(Vec<u64>),
    Update(Vec<u64>),
    Sum,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Micro {
    items: Table<Item>,
    number: InstanceNumber,
}

impl Program for Micro {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        Ok(Micro { items: open_or_create(db)?, number })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        match from_bytes(part)? {
            Part::Load(from, to) => {
                for id in from..to {
                    self.items.insert(tx, &Item { id, count: 0, filler: [0x20; FILLER_BYTES] })?;
                }
                Ok(Vec::new())
            }
            Part::Read(ids) => {
                let mut sum = 0;
                for id in ids {
                    sum += self.items.get_columns::<Count>(tx, id)?.map_or(0, |item| item.count);
                }
                Ok(to_bytes(&sum))
            }
            Part::Update(ids) => {
                for id in ids {
                    self.items.update(tx, id, |item: &mut Count| item.count += 1)?;
                }
                Ok(Vec::new())
            }
            Part::Sum => {
                let mut sum = 0;
                self.items.scan().columns::<Count>().for_each(tx, |_, item| sum += item.count)?;
                Ok(to_bytes(&sum))
            }
        }
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let (options, workers): (MicroOptions, u16) = from_bytes(description)?;
        let instances = u64::from(self.number.instances);
        let own = site_share(options.rows, (self.number, workers), of);
        let mut random = Random::new(u64::from(of.instance) << 16 | u64::from(of.worker));
        let [all_ranks, own_ranks] =
            [options.rows, own.end - own.start].map(|rows| Zipfian::new(rows, options.skew));
        Ok(Box::new(move || {
            let is_multisite = random.percent(options.multisite_percent.into());
            let mut parts: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for at in 0..options.rows_per_transaction {
                let id = if at > 0 && is_multisite {
                    all_ranks.sample(&mut random)
                } else {
                    own.start + own_ranks.sample(&mut random)
                };
                parts.entry(holder(options.rows, id, instances)).or_default().push(id);
            }
            let part = |ids| if options.updates { Part::Update(ids) } else { Part::Read(ids) };
            request(of, parts.into_iter().map(|(instance, ids)| (instance, part(ids))).collect())
        }))
    }
}

impl Workload for MicroOptions {
    type Program = Micro;

    fn name(&self) -> &'static str {
        "micro"
    }

    fn multisite_percent(&self) -> u8 {
        self.multisite_percent
    }

    fn with_multisite(&self, percent: u8) -> Self {
        MicroOptions { multisite_percent: percent, ..self.clone() }
    }

    fn spread(&self, instances: u16) -> Spread {
        // The first n of N ranks are taken with a probability of about (n/N)^(1-skew).
        let up_to = |instance: u16| (f64::from(instance) / f64::from(instances)).powf(1.0 - self.skew);
        let taken: Vec<f64> = (0..instances).map(|instance| up_to(instance + 1) - up_to(instance)).collect();
        let others = self.rows_per_transaction.saturating_sub(1) as f64;
        let mean_beside_own = |of_one: &dyn Fn(f64) -> f64| {
            taken.iter().map(|own| of_one(*own)).sum::<f64>() / f64::from(instances)
        };
        let is_part = |share: f64| 1.0 - (1.0 - share).powf(others);
        let parts: f64 = taken.iter().map(|share| is_part(*share)).sum();
        let others_of = |own: f64| parts - is_part(own);
        Spread {
            distributed: mean_beside_own(&|own| 1.0 - own.powf(others)),
            others: mean_beside_own(&others_of),
            hottest: if parts > 0.0 { is_part(taken[0]) / parts } else { 1.0 / f64::from(instances) },
        }
    }

    fn sites_max(&self, _instances: u16) -> u64 {
        self.rows
    }

    fn description(&self, workers: u16) -> Vec<u8> {
        to_bytes(&(self, workers))
    }

    fn memory_bytes(&self, run: &RunOptions) -> u64 {
        /// Of a row, and of versions of it that snapshots may see.
        const ROW_BYTES: u64 = 3 * 320;
        run.memory_bytes(self.rows.saturating_mul(ROW_BYTES), 0.0)
    }

    fn loads(&self, number: InstanceNumber) -> Vec<Request> {
        let own = share(self.rows, number.instance.into(), number.instances.into());
        let starts = (own.start..own.end).step_by(ROWS_AT_ONCE as usize);
        starts.map(|from| local(&Part::Load(from, own.end.min(from + ROWS_AT_ONCE)))).collect()
    }

    fn check(&self, instances: u16, committed: u64, ask: &mut Ask<'_>) -> std::result::Result<(), String> {
        let mut sum = 0;
        for instance in 0..instances {
            let of_instance = ask(instance, to_bytes(&Part::Sum))?;
            sum += from_bytes::<u64>(&of_instance).map_err(|error| error.to_string())?;
        }
        let expected = if self.updates { committed * self.rows_per_transaction } else { 0 };
        if sum == expected { Ok(()) } else { Err(format!("{sum} updates are in the rows, not {expected}")) }
    }
}
