//! The counts that the model starts from: lines by transaction, and the time of a transaction alone.

use std::path::Path;

use serde::Deserialize;

use super::demand::Demand;
use crate::error::FiguresError;

/// Counted and measured on the machine of `docs/scaling.md`.
const SHARING: &str = include_str!("../../../../docs/results/sharing.csv");
const COSTS: &str = include_str!("../../../../docs/results/costs.csv");

/// That machine.
const MACHINE: &str = "two cores of an AMD EPYC (1 MiB L2 each, 32 MiB L3, a virtual machine, Debian 12)";

/// What lies in every line.
const ALL: &str = "all";

/// Lines of a place under a workload on a system, for each transaction.
#[derive(Debug, Clone, Deserialize)]
pub struct Sharing {
    /// The workload.
    pub workload: String,
    /// The system.
    pub system: String,
    /// What the lines hold.
    pub place: String,
    /// Workers that took turns.
    pub workers: usize,
    /// Lines that came from other cores to be read.
    pub fetched_to_load: f64,
    /// The same to be written.
    pub fetched_to_write: f64,
    /// Lines that came from memory.
    pub from_memory: f64,
    /// Lines that several workers write again and again.
    pub hot_lines: f64,
    /// Times that a transaction writes one of them.
    pub hot_lines_written: f64,
    /// Times that one of them came from another core.
    pub hot_lines_fetched: f64,
}

/// What a transaction costs while no other worker is there.
#[derive(Debug, Clone, Deserialize)]
pub struct Cost {
    /// The workload.
    pub workload: String,
    /// The system.
    pub system: String,
    /// Instructions, with few records.
    pub instructions: f64,
    /// Nanoseconds.
    pub alone_ns: f64,
}

/// All counts.
#[derive(Debug, Clone)]
pub struct Counts {
    sharing: Vec<Sharing>,
    costs: Vec<Cost>,
    machine: String,
}

impl Counts {
    /// Those that this program was built with. From `sharing` come the lines instead if that is given: what `cargo xtask sharing --csv`
    /// writes; from `costs` the times: a table with the columns of [`Cost`].
    ///
    /// # Errors
    /// [`FiguresError::File`] if a file cannot be read.
    pub fn read(sharing: Option<&Path>, costs: Option<&Path>) -> Result<Self, FiguresError> {
        let named = |path: &Path| format!("the machine that {} was measured on", path.display());
        Ok(Self {
            sharing: sharing.map_or_else(|| Ok(rows(SHARING)), rows_in)?,
            costs: costs.map_or_else(|| Ok(rows(COSTS)), rows_in)?,
            machine: costs.map_or_else(|| MACHINE.to_owned(), named),
        })
    }

    /// Where the costs were measured, in words.
    pub fn machine(&self) -> &str {
        &self.machine
    }

    /// Workloads and systems that there are both counts and costs of, in the order of the counts.
    pub fn subjects(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.sharing.iter().filter(|row| row.place == ALL);
        all.map(|row| (row.workload.as_str(), row.system.as_str()))
            .filter(|&(workload, system)| self.cost(workload, system).is_some())
    }

    /// What a transaction costs.
    pub fn cost(&self, workload: &str, system: &str) -> Option<&Cost> {
        self.costs.iter().find(|row| row.workload == workload && row.system == system)
    }

    /// What a transaction needs.
    pub fn demand(&self, workload: &str, system: &str) -> Option<Demand> {
        let is_row = |row: &&Sharing| (&*row.workload, &*row.system, &*row.place) == (workload, system, ALL);
        let row = self.sharing.iter().find(is_row)?;
        // With this many workers, the last one to have a line was another in that share of all cases.
        let others = (row.workers - 1) as f64 / row.workers as f64;
        let fetched = row.fetched_to_load + row.fetched_to_write - row.hot_lines_fetched;
        Some(Demand {
            alone_ns: self.cost(workload, system)?.alone_ns,
            memory_lines: row.from_memory,
            fetched_lines: fetched.max(0.0) / others,
            hot_lines: row.hot_lines as usize,
            hot_fetches: row.hot_lines_written,
        })
    }
}

fn rows<T: for<'d> Deserialize<'d>>(text: &str) -> Vec<T> {
    let rows = csv::Reader::from_reader(text.as_bytes()).deserialize().collect::<Result<_, _>>();
    rows.unwrap_or_else(|error| unreachable!("the counts in this program can be read: {error}"))
}

fn rows_in<T: for<'d> Deserialize<'d>>(path: &Path) -> Result<Vec<T>, FiguresError> {
    let rows = csv::Reader::from_path(path).and_then(|mut reader| reader.deserialize().collect());
    rows.map_err(|error| FiguresError::file(path)(error.into()))
}
