//! What the claims come to over the runs that are kept in `docs/results/full`, beside what `docs/evaluation.md` says of them.

use std::path::{Path, PathBuf};

use super::*;
use crate::recorded::{RecordedExperiment, described, recorded_in};

/// Of the machine of all these runs, as the document says: the tables of some do not.
const CORES: usize = 2;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Where the runs of an experiment are kept, if there are any.
fn table(experiment: &Experiment) -> PathBuf {
    docs().join("results/full").join(format!("{}.csv", experiment.name))
}

/// The rows that the evaluation's tables ought to have.
fn rows() -> Vec<(String, Ruling)> {
    let mut rows = Vec::new();
    for RecordedExperiment { experiment, results, .. } in recorded_in(&docs().join("results/full")).unwrap() {
        for claim in &experiment.claims {
            let verdict = judge(&experiment, claim, &results, CORES);
            let here = verdict.number_here(claim.unit).unwrap_or_default();
            let ruling = verdict.ruling.in_document();
            rows.push((format!("| {} | {here} | {ruling} |", claim.text), verdict.ruling));
        }
    }
    rows
}

#[test]
fn the_evaluation_says_what_follows_from_its_runs() {
    let evaluation = std::fs::read_to_string(docs().join("evaluation.md")).unwrap();
    let rows = rows();
    let missing: Vec<&str> = rows
        .iter()
        .map(|(row, _)| row.as_str())
        .filter(|row| !evaluation.lines().any(|line| line == *row))
        .collect();
    assert!(missing.is_empty(), "docs/evaluation.md lacks these lines:\n{}", missing.join("\n"));
    let count = |is: fn(&Ruling) -> bool| rows.iter().filter(|(_, ruling)| is(ruling)).count();
    let sum = format!(
        "Of {} claims, {} hold, {} do not, and {} cannot be told",
        rows.len(),
        count(|ruling| *ruling == Ruling::Holds),
        count(|ruling| *ruling == Ruling::DoesNotHold),
        count(|ruling| matches!(ruling, Ruling::Undecided(_)))
    );
    assert!(evaluation.contains(&sum), "docs/evaluation.md lacks this: {sum}");
}

#[test]
fn the_evaluation_names_what_has_not_been_run() {
    let evaluation = std::fs::read_to_string(docs().join("evaluation.md")).unwrap();
    let missing: Vec<String> = described()
        .iter()
        .filter(|experiment| !table(experiment).exists())
        .map(|experiment| format!("`{}`", experiment.name))
        .collect();
    let sentence = format!("No runs are kept of {}.", missing.join(", "));
    assert!(
        missing.is_empty() || evaluation.contains(&sentence),
        "docs/evaluation.md lacks this: {sentence}"
    );
}
