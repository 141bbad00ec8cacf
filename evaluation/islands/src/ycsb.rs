//! YCSB: records are divided among the instances by a hash of their keys.
//!
//! A local transaction takes the records of its operations from its own instance; a multisite one takes them
//! from anywhere, and each operation is carried out where its record is. A scan stays at its instance in a
//! local transaction, and reads at every instance in a multisite one, since a hash keeps no neighbours
//! together.
//!
//! # What is checked
//! All records that were loaded are where their hash says, and every value is one that was written for its
//! key, whole. A read-modify-write counts its record up: counters and inserted records add up to no more than
//! there were operations. Which operations have committed is not known, only how many: where all of a mix are
//! read-modify-writes and inserts, they add up to exactly that, and otherwise to what the shares of the mix
//! make of it, but for chance. Updates that overwrite without looking leave no counts.
//!
//! # Source
//! Cooper et al., "Benchmarking Cloud Serving Systems with YCSB" (SoCC 2010); Silo (SOSP 2013) §5.2.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use ensilo::{Columns, Database, Result, Row, Table, Transaction};
use ensilo_bench::driver::RunOptions;
use ensilo_bench::mix::Mix;
use ensilo_bench::random::{Random, Scatter, Zipfian};
use ensilo_bench::ycsb::Distribution;
use ensilo_bench::ycsb::value::{self, BLIND};
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{InstanceNumber, Program, RequestSource};
use serde::{Deserialize, Serialize};

use crate::parts::{from_bytes, local, open_or_create, request, to_bytes};
use crate::run::{Ask, Workload};
use crate::shares::share;

/// Bytes of a value, as in Silo's variant.
const VALUE_BYTES: usize = 100;

/// How many keys a transaction looks at while an instance is loaded.
const KEYS_AT_ONCE: u64 = 2000;

/// The places of the operations in the mix.
const READ: usize = 0;
const UPDATE: usize = 1;
const RMW: usize = 2;
const INSERT: usize = 3;
const SCAN: usize = 4;

/// So many standard deviations are no chance.
const SIGMAS: f64 = 6.0;

/// What is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct YcsbIslandsOptions {
    /// How many records are loaded at all instances together.
    pub records: u64,
    /// The shares of [the operations](ensilo_bench::ycsb::OPERATIONS).
    pub mix: Mix,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// How skewed a choice that is not uniform is, from 0 to less than 1.
    pub theta: f64,
    /// How many operations a transaction has, at least one.
    pub operations: u16,
    /// The most records of a scan, at each instance.
    pub scan_len_max: u16,
    /// How many of a hundred transactions take their records from anywhere.
    pub multisite_percent: u8,
}

#[derive(Row)]
#[row(table = "usertable")]
struct Record {
    #[row(key)]
    key: u64,
    value: [u8; VALUE_BYTES],
}

#[derive(Columns)]
#[columns(of = Record)]
struct Value {
    value: [u8; VALUE_BYTES],
}

#[derive(Serialize, Deserialize)]
enum Operation {
    Read(u64),
    /// Overwrites a record, with this in its counter.
    Update(u64, u64),
    ReadModifyWrite(u64),
    Insert(u64),
    /// From a key on, so many at most.
    Scan(u64, u16),
}

/// What a part does.
#[derive(Serialize, Deserialize)]
enum Part {
    /// Inserts those of the records from one to another that belong here.
    Load(u64, u64),
    Operations(Vec<Operation>),
    /// Looks at all records, of which so many were loaded everywhere.
    Check(u64),
}

/// What was found at instances.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Found {
    loaded: u64,
    inserted: u64,
    counted: u64,
    has_blind: bool,
    /// How many values are not whole, or at the wrong instance.
    wrong: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct YcsbIslands {
    records: Table<Record>,
    number: InstanceNumber,
}

/// Returns which one of so many instances has a key.
fn holder(key: u64, instances: u16) -> u64 {
    // The last step of SplitMix64: every bit of the key counts in each bit.
    let mixed = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ mixed >> 31) % u64::from(instances)
}

/// Returns whether each of so many instances has a record of the first ones.
fn each_has_one(records: u64, instances: u16) -> bool {
    let mut lacking: BTreeSet<u64> = (0..instances.into()).collect();
    (0..records).any(|key| lacking.remove(&holder(key, instances)) && lacking.is_empty())
}

impl YcsbIslands {
    fn is_here(&self, key: u64) -> bool {
        holder(key, self.number.instances) == u64::from(self.number.instance)
    }

    fn insert(&self, tx: &mut Transaction<'_>, key: u64) -> Result<()> {
        let mut value = [0; VALUE_BYTES];
        value::fill(&mut value, key, 0);
        self.records.insert(tx, &Record { key, value }).map(|_| ())
    }

    /// Changes a record. One that is not there yet stays so.
    fn change(
        &self,
        tx: &mut Transaction<'_>,
        key: u64,
        change: impl Fn(&mut [u8; VALUE_BYTES]),
    ) -> Result<()> {
        let Some(found) = self.records.find(tx, key)? else { return Ok(()) };
        found.update(tx, |columns: &mut Value| change(&mut columns.value))
    }

    fn run(&self, tx: &mut Transaction<'_>, operation: &Operation) -> Result<()> {
        match *operation {
            Operation::Read(key) => {
                black_box(self.records.get_columns::<Value>(tx, key)?);
                Ok(())
            }
            Operation::Update(key, mark) => self.change(tx, key, |value| value::fill(value, key, mark)),
            Operation::ReadModifyWrite(key) => self.change(tx, key, |value| {
                let counter = value::counter(value).wrapping_add(1);
                value::fill(value, key, counter);
            }),
            Operation::Insert(key) => self.insert(tx, key),
            Operation::Scan(key, limit) => {
                let scan = self.records.range(key..).limit(limit.into()).columns::<Value>();
                scan.for_each(tx, |_, value| {
                    black_box(value);
                })
            }
        }
    }

    fn find(&self, tx: &mut Transaction<'_>, loaded: u64) -> Result<Found> {
        let mut found = Found::default();
        self.records.scan().columns::<Value>().for_each(tx, |key, Value { value }| {
            let counter = value::counter(&value);
            found.loaded += u64::from(key < loaded);
            found.inserted += u64::from(key >= loaded);
            found.has_blind |= counter & BLIND != 0;
            found.counted = found.counted.wrapping_add(counter);
            found.wrong += u64::from(!value::is_whole(&value, key) || !self.is_here(key));
        })?;
        Ok(found)
    }
}

impl Program for YcsbIslands {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        Ok(YcsbIslands { records: open_or_create(db)?, number })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        match from_bytes(part)? {
            Part::Load(from, to) => {
                (from..to).filter(|key| self.is_here(*key)).try_for_each(|key| self.insert(tx, key))?;
                Ok(Vec::new())
            }
            Part::Operations(operations) => {
                operations.iter().try_for_each(|operation| self.run(tx, operation))?;
                Ok(Vec::new())
            }
            Part::Check(loaded) => Ok(to_bytes(&self.find(tx, loaded)?)),
        }
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let (options, workers): (YcsbIslandsOptions, u16) = from_bytes(description)?;
        let mut source = Source::new(options, (self.number, workers), of);
        Ok(Box::new(move || source.next()))
    }
}

/// The transactions of one worker.
struct Source {
    options: YcsbIslandsOptions,
    of: SiteId,
    instances: u16,
    random: Random,
    ranks: Zipfian,
    scatter: Scatter,
    keys_to_insert: KeysToInsert,
}

/// The keys that a worker inserts: those of its number in turn.
struct KeysToInsert {
    next: u64,
    step: u64,
    /// Those that it has taken, if anybody asks for the latest.
    taken: Option<Vec<u64>>,
}

impl Source {
    fn new(options: YcsbIslandsOptions, (number, workers): (InstanceNumber, u16), of: SiteId) -> Self {
        let worker = u64::from(of.instance) * u64::from(workers) + u64::from(of.worker);
        let theta = if options.distribution == Distribution::Uniform { 0.0 } else { options.theta };
        let keys_to_insert = KeysToInsert {
            next: options.records + worker,
            step: u64::from(number.instances) * u64::from(workers),
            taken: (options.distribution == Distribution::Latest).then(Vec::new),
        };
        Source {
            of,
            instances: number.instances,
            random: Random::for_stream(1, worker),
            ranks: Zipfian::new(options.records, theta),
            scatter: Scatter::new(options.records),
            keys_to_insert,
            options,
        }
    }

    fn next(&mut self) -> Request {
        let is_multisite = self.random.percent(self.options.multisite_percent.into());
        let mut parts: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
        for _ in 0..self.options.operations {
            self.add_operation(is_multisite, &mut parts);
        }
        let parts = parts.into_iter().map(|(instance, part)| (instance, Part::Operations(part)));
        request(self.of, parts.collect())
    }

    fn add_operation(&mut self, is_multisite: bool, parts: &mut BTreeMap<u64, Vec<Operation>>) {
        let kind = self.options.mix.draw(&mut self.random);
        let key = self.key(kind, is_multisite);
        let at = holder(key, self.instances);
        let operation = match kind {
            READ => Operation::Read(key),
            UPDATE => Operation::Update(key, self.random.next_u64() | BLIND),
            RMW => Operation::ReadModifyWrite(key),
            INSERT => Operation::Insert(key),
            _ => {
                let limit = self.random.between(1, self.options.scan_len_max.into()) as u16;
                if is_multisite {
                    let all = 0..u64::from(self.instances);
                    all.for_each(|at| parts.entry(at).or_default().push(Operation::Scan(key, limit)));
                    return;
                }
                Operation::Scan(key, limit)
            }
        };
        parts.entry(at).or_default().push(operation);
    }

    /// Returns a key for an operation: of a record of this instance, or of any.
    fn key(&mut self, kind: usize, is_multisite: bool) -> u64 {
        loop {
            let key = if kind == INSERT { self.keys_to_insert.next() } else { self.existing() };
            if is_multisite || holder(key, self.instances) == u64::from(self.of.instance) {
                if kind == INSERT {
                    self.keys_to_insert.take(key);
                }
                return key;
            }
        }
    }

    /// Returns a key that was loaded or, by latest, that this worker inserts.
    fn existing(&mut self) -> u64 {
        let rank = self.ranks.sample(&mut self.random);
        match self.options.distribution {
            Distribution::Uniform => rank,
            Distribution::Zipfian => self.scatter.apply(rank),
            Distribution::Latest => self.keys_to_insert.latest(rank).unwrap_or_else(|loaded| {
                // Those that were loaded are older than all others.
                self.options.records - 1 - loaded
            }),
        }
    }
}

impl KeysToInsert {
    fn next(&mut self) -> u64 {
        let key = self.next;
        self.next += self.step;
        key
    }

    fn take(&mut self, key: u64) {
        if let Some(taken) = &mut self.taken {
            taken.push(key);
        }
    }

    /// Returns the key that was taken last, or so many before it; if there were none so far back, how many
    /// more to go back.
    fn latest(&self, back: u64) -> std::result::Result<u64, u64> {
        let taken = self.taken.as_deref().unwrap_or_default();
        let at = (taken.len() as u64).checked_sub(1 + back);
        at.map(|at| taken[at as usize]).ok_or_else(|| back - taken.len() as u64)
    }
}

impl YcsbIslandsOptions {
    /// Checks what was found after so many operations.
    fn check_found(&self, found: &Found, operations: u64) -> std::result::Result<(), String> {
        if found.wrong > 0 || found.loaded != self.records {
            let Found { loaded, wrong, .. } = found;
            let of = self.records;
            return Err(format!("{loaded} of {of} loaded records are there, {wrong} are torn or misplaced"));
        }
        if found.has_blind {
            return Ok(());
        }
        let effects = found.counted.wrapping_add(found.inserted);
        let share = (self.mix.percent(RMW) + self.mix.percent(INSERT)) / 100.0;
        let expected = operations as f64 * share;
        let chance = SIGMAS * (expected * (1.0 - share)).sqrt();
        // By latest some may find no record, that of an insert under way.
        let least = if self.distribution == Distribution::Latest { 0.0 } else { expected - chance };
        if effects <= operations && (least..=expected + chance).contains(&(effects as f64)) {
            Ok(())
        } else {
            Err(format!(
                "{effects} read-modify-writes and inserts are in the records, of {operations} operations"
            ))
        }
    }
}

impl Workload for YcsbIslandsOptions {
    type Program = YcsbIslands;

    fn name(&self) -> &'static str {
        "ycsb-islands"
    }

    fn multisite_percent(&self) -> u8 {
        self.multisite_percent
    }

    fn with_multisite(&self, percent: u8) -> Self {
        YcsbIslandsOptions { multisite_percent: percent, ..self.clone() }
    }

    fn spread(&self, instances: u16) -> Spread {
        // A hash leaves nothing of the skew but the most frequent records. A scan is everywhere.
        let own = 1.0 / f64::from(instances);
        let of_one = if instances > 1 { 1.0 - self.mix.percent(SCAN) / 100.0 } else { 1.0 };
        let is_part = 1.0 - ((1.0 - own) * of_one).powi(self.operations.into());
        Spread {
            distributed: 1.0 - (own * of_one).powi(self.operations.into()),
            others: is_part * f64::from(instances - 1),
            hottest: own,
        }
    }

    fn sites_max(&self, instances: u16) -> u64 {
        if each_has_one(self.records, instances) {
            return self.records;
        }
        (1..instances).rev().find(|fewer| each_has_one(self.records, *fewer)).map_or(0, u64::from)
    }

    fn description(&self, workers: u16) -> Vec<u8> {
        to_bytes(&(self, workers))
    }

    fn memory_bytes(&self, run: &RunOptions) -> u64 {
        /// Of a record, and of versions of it that snapshots may see.
        const RECORD_BYTES: u64 = 3 * 140;
        run.memory_bytes(self.records.saturating_mul(RECORD_BYTES), self.mix.percent(INSERT) / 100.0)
    }

    fn loads(&self, _: InstanceNumber) -> Vec<Request> {
        let tasks = self.records.div_ceil(KEYS_AT_ONCE);
        let keys = |task| share(self.records, task, tasks);
        (0..tasks).map(|task| local(&Part::Load(keys(task).start, keys(task).end))).collect()
    }

    fn check(&self, instances: u16, committed: u64, ask: &mut Ask<'_>) -> std::result::Result<(), String> {
        let mut all = Found::default();
        for instance in 0..instances {
            let found = ask(instance, to_bytes(&Part::Check(self.records)))?;
            let found: Found = from_bytes(&found).map_err(|error| error.to_string())?;
            all.loaded += found.loaded;
            all.inserted += found.inserted;
            all.counted = all.counted.wrapping_add(found.counted);
            all.has_blind |= found.has_blind;
            all.wrong += found.wrong;
        }
        self.check_found(&all, committed * u64::from(self.operations))
    }
}

#[cfg(test)]
mod tests;
