//! What the paper says of its figure 11, and whether it holds here.

use std::collections::BTreeMap;

use ensilo_bench::report::RegionRun;

use super::{STORAGE, SYSTEM};
use crate::experiment::Relation;
use crate::page::ClaimRow;
use crate::results::Spread;
use crate::verdict::{Ruling, Verdict, rule};

/// A statement, and the number that it is about.
struct RegionClaim {
    text: &'static str,
    paper: Option<f64>,
    unit: &'static str,
    relation: Relation,
    /// The number of one repetition, from its runs with all numbers of workers that the machine has processors for: that of the run that
    /// speaks most against the statement.
    number: fn(&[&RegionRun]) -> Option<f64>,
}

const CLAIMS: [RegionClaim; 4] = [
    RegionClaim {
        text: "The index takes the largest share, 41 % (taken here as: relative to the largest other part, at every number of workers)",
        paper: None,
        unit: "x",
        relation: Relation::AtLeast(1.0),
        number: |runs| least(runs.iter().map(|run| run.index / largest_but_index(run))),
    },
    RegionClaim {
        text: "Indirection costs 16 %",
        paper: Some(16.0),
        unit: " %",
        relation: Relation::AtMost(16.0),
        number: |runs| largest(runs.iter().map(|run| 100.0 * run.indirection)),
    },
    RegionClaim {
        text: "The log takes a steady share, 8 to 9 % at all numbers of threads (taken here as: the largest is 1.25x of the least at most)",
        paper: Some(9.0 / 8.0),
        unit: "x",
        relation: Relation::AtMost(1.25),
        number: log_steadiness,
    },
    RegionClaim {
        text: "Epoch-based resource managers take less than 1 % (here: with freeing garbage)",
        paper: Some(1.0),
        unit: " %",
        relation: Relation::AtMost(1.0),
        number: |runs| largest(runs.iter().map(|run| 100.0 * run.epochs)),
    },
];

/// Returns every claim with its ruling.
pub(super) fn rows_of(runs: &[RegionRun]) -> Vec<ClaimRow> {
    let repetitions = repetitions_of(runs);
    CLAIMS.iter().map(|claim| claim.row(&repetitions)).collect()
}

/// Returns the runs that claims are about, by repetition.
fn repetitions_of(runs: &[RegionRun]) -> Vec<Vec<&RegionRun>> {
    let mut repetitions = BTreeMap::<usize, Vec<&RegionRun>>::new();
    let counts =
        |run: &&RegionRun| run.system == SYSTEM && run.storage == STORAGE && run.workers <= run.cores;
    for run in runs.iter().filter(counts) {
        repetitions.entry(run.run).or_default().push(run);
    }
    repetitions.into_values().collect()
}

impl RegionClaim {
    fn row(&self, repetitions: &[Vec<&RegionRun>]) -> ClaimRow {
        let verdict = self.judge(repetitions);
        ClaimRow {
            text: self.text.to_owned(),
            paper: self.paper.map(|paper| format!("{paper:.2}{}", self.unit)).unwrap_or_default(),
            holds_if: self.relation.in_words(self.unit),
            here: verdict.number_here(self.unit).unwrap_or_default(),
            ruling: verdict.ruling,
        }
    }

    fn judge(&self, repetitions: &[Vec<&RegionRun>]) -> Verdict {
        let numbers: Vec<f64> = repetitions.iter().filter_map(|runs| (self.number)(runs)).collect();
        let ruling = if numbers.is_empty() {
            Ruling::Undecided("its runs, with no more workers than processors, are missing".to_owned())
        } else {
            rule(self.relation, &numbers)
        };
        Verdict { here: Spread::of(numbers), at: None, ruling }
    }
}

fn largest_but_index(run: &RegionRun) -> f64 {
    let [_, others @ ..] = run.shares();
    others.into_iter().fold(0.0, f64::max)
}

/// The largest share of the log relative to the least. Of a single number of workers there is nothing to tell.
fn log_steadiness(runs: &[&RegionRun]) -> Option<f64> {
    let logs = || runs.iter().map(|run| run.log);
    if runs.len() < 2 { None } else { Some(largest(logs())? / least(logs())?) }
}

fn largest(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    numbers.max_by(f64::total_cmp)
}

fn least(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    numbers.min_by(f64::total_cmp)
}
