//! What a YCSB run can be asked for.

use std::error;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::record::FIELDS;
use crate::mix::{Mix, MixError};

/// The names of the operations, in the order of the mix.
pub const OPERATIONS: [&str; 5] = ["read", "update", "rmw", "insert", "scan"];
/// The type of a transaction of several operations: whether one of them writes.
pub const BATCH_TYPES: [&str; 2] = ["read_only", "read_write"];

/// The place of each operation in [`OPERATIONS`].
pub(super) const READ: usize = 0;
pub(super) const UPDATE: usize = 1;
pub(super) const RMW: usize = 2;
pub(super) const INSERT: usize = 3;
pub(crate) const SCAN: usize = 4;
/// The place in [`BATCH_TYPES`] of transactions that write.
pub(super) const READ_WRITE: usize = 1;

/// The most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 16 << 10;
/// The fewest bytes of a value: its counter.
pub const VALUE_BYTES_MIN: usize = 8;
/// The most secondary indexes of a table: one over each of its fields.
pub const INDEXES_MAX: usize = FIELDS;

/// Options of a YCSB database and its workers.
#[derive(Debug, Clone)]
pub struct YcsbOptions {
    /// Records loaded, at least 1.
    pub records: u64,
    /// Bytes of a record's value, from [`VALUE_BYTES_MIN`] to [`VALUE_BYTES_MAX`].
    pub value_bytes: usize,
    /// The shares of the operations.
    pub mix: NamedMix,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// How skewed a Zipfian choice is, in `0.0..1.0`.
    pub theta: f64,
    /// Operations of a transaction, at least 1.
    pub operations: usize,
    /// Tables that the records are spread over by their keys, at least 1.
    pub tables: usize,
    /// Secondary indexes of each table, up to [`INDEXES_MAX`]; `None` for records that have nothing to index.
    pub indexes: Option<usize>,
    /// Sessions whose transactions the workers run, at least as many as there are workers; `None` for the workers' own threads alone.
    pub sessions: Option<usize>,
    /// Transactions of a batch that a worker runs by [`transact_many`](ensilo::Database::transact_many); `None` for one at a time.
    pub batch: Option<usize>,
    /// The most records of a scan; each draws its length up to this.
    pub scan_len_max: usize,
    /// Where all random numbers come from.
    pub seed: u64,
    /// Workers that there will be.
    pub workers: usize,
}

impl YcsbOptions {
    /// Silo's variant: a million records of 100 bytes, 80 reads and 20 read-modify-writes of 100, keys chosen uniformly.
    pub fn new(workers: usize) -> Self {
        Self {
            records: 1_000_000,
            value_bytes: 100,
            mix: NamedMix::silo(),
            distribution: Distribution::Uniform,
            theta: 0.99,
            operations: 1,
            tables: 1,
            indexes: None,
            sessions: None,
            batch: None,
            scan_len_max: 100,
            seed: 1,
            workers,
        }
    }

    /// Bytes of the loaded records, roughly.
    pub(crate) fn loaded_bytes(&self) -> u64 {
        /// An entry of an index, and the fields of a record that has any.
        const ENTRY_BYTES: u64 = 60;
        const FIELD_BYTES: u64 = 8 * FIELDS as u64;
        let indexed = self.indexes.map_or(0, |indexes| FIELD_BYTES + ENTRY_BYTES * indexes as u64);
        self.records.saturating_mul(self.value_bytes as u64 + 40 + indexed)
    }

    /// Which share of the operations inserts records.
    pub(crate) fn inserting_share(&self) -> f64 {
        self.share_of(&["insert"])
    }

    /// Which share of the operations writes.
    pub(crate) fn writing_share(&self) -> f64 {
        self.share_of(&["update", "rmw", "insert"])
    }

    fn share_of(&self, operations: &[&str]) -> f64 {
        let is_among = |at: &usize| operations.contains(&OPERATIONS[*at]);
        let percents = (0..OPERATIONS.len()).filter(is_among).map(|at| self.mix.shares.percent(at));
        percents.sum::<f64>() / 100.0
    }

    /// The options as the report shows them.
    pub fn parameters(&self) -> serde_json::Value {
        let mix: serde_json::Map<_, _> = OPERATIONS
            .iter()
            .enumerate()
            .map(|(at, &name)| (name.to_owned(), self.mix.shares.percent(at).into()))
            .collect();
        serde_json::json!({
            "records": self.records,
            "value_bytes": self.value_bytes,
            "mix_name": self.mix.name,
            "mix": mix,
            "distribution": self.distribution,
            "theta": (self.distribution != Distribution::Uniform).then_some(self.theta),
            "operations_per_transaction": self.operations,
            "tables": self.tables,
            "indexes": self.indexes,
            "sessions": self.sessions,
            "batch": self.batch,
            "scan_len_max": self.scan_len_max,
            "seed": self.seed,
        })
    }
}

/// How the key of an operation is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every loaded record with equal chances.
    Uniform,
    /// Some records much more often than others; the hot ones lie scattered over the key space.
    Zipfian,
    /// The records inserted last more often than older ones.
    Latest,
}

/// Shares of operations, with the name that they are known by.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedMix {
    /// The name, or `custom`.
    pub name: &'static str,
    /// In the order of [`OPERATIONS`].
    pub shares: Mix,
    /// How keys are chosen with this mix by default.
    pub distribution: Distribution,
}

/// The mixes known by name: the core workloads of YCSB (Cooper et al., SoCC 2010, table 2) and those of the papers of
/// Silo (§5.2) and SiloR (§6.2), with reads, updates, read-modify-writes, inserts and scans in percent.
const KNOWN: [(&str, [f64; 5], Distribution); 8] = [
    ("a", [50.0, 50.0, 0.0, 0.0, 0.0], Distribution::Zipfian),
    ("b", [95.0, 5.0, 0.0, 0.0, 0.0], Distribution::Zipfian),
    ("c", [100.0, 0.0, 0.0, 0.0, 0.0], Distribution::Zipfian),
    ("d", [95.0, 0.0, 0.0, 5.0, 0.0], Distribution::Latest),
    ("e", [0.0, 0.0, 0.0, 5.0, 95.0], Distribution::Zipfian),
    ("f", [50.0, 0.0, 50.0, 0.0, 0.0], Distribution::Zipfian),
    ("silo", [80.0, 0.0, 20.0, 0.0, 0.0], Distribution::Uniform),
    ("silor", [70.0, 0.0, 30.0, 0.0, 0.0], Distribution::Uniform),
];

impl NamedMix {
    fn silo() -> Self {
        Self::known("silo").unwrap_or_else(|| unreachable!("the list has it"))
    }

    fn known(name: &str) -> Option<Self> {
        let &(name, percents, distribution) = KNOWN.iter().find(|(known, ..)| *known == name)?;
        let shares = Mix::new(&percents).unwrap_or_else(|error| unreachable!("mix {name} is a mix: {error}"));
        Some(Self { name, shares, distribution })
    }
}

/// Why a text is no mix of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedMixError(MixError);

impl fmt::Display for NamedMixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = KNOWN.iter().map(|(name, ..)| *name).collect();
        let operations = OPERATIONS.join(", ");
        write!(
            f,
            "{}; a mix is one of {} or shares like read=80,rmw=20 of {operations}",
            self.0,
            names.join(", ")
        )
    }
}

impl error::Error for NamedMixError {}

impl FromStr for NamedMix {
    type Err = NamedMixError;

    /// Reads a known name or shares like `read=80,rmw=20`.
    fn from_str(text: &str) -> Result<Self, NamedMixError> {
        if let Some(known) = Self::known(&text.to_ascii_lowercase()) {
            return Ok(known);
        }
        let shares = Mix::parse(text, &OPERATIONS).map_err(NamedMixError)?;
        Ok(Self { name: "custom", shares, distribution: Distribution::Uniform })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_mix_is_read_by_its_name() {
        for (name, percents, distribution) in KNOWN {
            let mix: NamedMix = name.to_uppercase().parse().unwrap();
            assert_eq!((mix.name, mix.distribution), (name, distribution));
            assert!((0..5).all(|at| mix.shares.percent(at) == percents[at]), "{name}");
        }
    }

    #[test]
    fn shares_are_read_by_operation() {
        let mix: NamedMix = "rmw=100".parse().unwrap();
        assert_eq!((mix.name, mix.shares.percent(2)), ("custom", 100.0));
        let error = "g".parse::<NamedMix>().unwrap_err().to_string();
        assert!(error.contains("silor") && error.contains("rmw"), "{error}");
        assert!("read=80".parse::<NamedMix>().is_err());
        assert!("".parse::<NamedMix>().is_err());
    }
}
