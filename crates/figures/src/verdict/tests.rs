use serde_json::Value;

use super::*;
use crate::command::BenchCommand;
use crate::experiment::{Axis, Paper, Point, Relation, Series};
use crate::measurement::tests::report;
use crate::plan::plan;
use crate::store::StoredOutcome;

/// Two series, `A` and `B`, over these numbers of workers.
fn experiment(workers: &[usize], runs: usize) -> Experiment {
    let series = |name| Series {
        name,
        paper: Paper::Unknown,
        points: workers
            .iter()
            .map(|&workers| Point { x: workers as f64, command: BenchCommand::tpcc(workers, 0.0, 1.0) })
            .collect(),
    };
    Experiment {
        name: "test",
        source: "nowhere",
        title: "a test",
        about: "a test",
        axis: Axis::Workers,
        series: vec![series("A"), series("B")],
        runs,
        plots: Vec::new(),
        claims: Vec::new(),
    }
}

/// Runs with a throughput by series, workers and repetition; those without are refused.
fn results(experiment: &Experiment, throughput: impl Fn(&str, f64, usize) -> Option<f64>) -> Results {
    let mut results = Results::default();
    for run in plan(std::slice::from_ref(experiment), 2) {
        let series = &experiment.series[run.series];
        let x = series.points[run.point].x;
        let outcome = match throughput(series.name, x, run.repetition) {
            Some(throughput) => StoredOutcome::Measured(report(x as usize, throughput)),
            None => StoredOutcome::Refused("unknown".to_owned()),
        };
        results.add(&run, outcome);
    }
    results
}

fn claim(quantity: Quantity, relation: Relation) -> Claim {
    Claim { text: "A and B", quantity, paper: 1.0, unit: "x", relation, cores_min: 1 }
}

const LARGEST: Quantity = Quantity::LargestRatio { metric: Metric::Throughput, of: "A", to: "B" };

#[test]
fn a_claim_holds_or_not_by_all_repetitions() {
    let experiment = experiment(&[1, 2], 3);
    let results = results(&experiment, |name, x, repetition| {
        let noise = [1.0, 0.5, 2.0][repetition];
        Some(if name == "A" { 100.0 + 10.0 * x } else { 100.0 } * noise)
    });
    let ruling = |bound| judge(&experiment, &claim(LARGEST, Relation::AtMost(bound)), &results, 2);
    let verdict = ruling(1.21);
    // What disturbs both sides of a repetition does not count.
    assert_eq!(verdict.here.map(|here| (here.median, here.min, here.max)), Some((1.2, 1.2, 1.2)));
    assert_eq!(verdict.ruling, Ruling::Holds);
    assert_eq!(ruling(1.19).ruling, Ruling::DoesNotHold);
    let told = line(&claim(LARGEST, Relation::AtMost(1.21)), &verdict);
    assert_eq!(told, "A and B: here 1.20x (1.20 to 1.20): holds");
}

#[test]
fn repetitions_that_disagree_tell_nothing() {
    let experiment = experiment(&[1], 3);
    let results = results(&experiment, |name, _, repetition| {
        Some(if name == "A" { [90.0, 100.0, 120.0][repetition] } else { 100.0 })
    });
    let verdict = judge(&experiment, &claim(LARGEST, Relation::AtLeast(1.1)), &results, 2);
    assert_eq!(verdict.ruling, Ruling::CannotBeTold("it holds in 1 of 3 runs".to_owned()));
}

#[test]
fn points_beyond_the_processors_do_not_count() {
    let experiment = experiment(&[1, 2, 4], 3);
    let results = results(&experiment, |name, x, _| Some(if name == "A" { 10.0 * x * x } else { 10.0 }));
    let here = |quantity, cores| {
        judge(&experiment, &claim(quantity, Relation::AtLeast(0.0)), &results, cores).here.unwrap().median
    };
    assert_eq!((here(LARGEST, 2), here(LARGEST, 4)), (4.0, 16.0));
    let last = Quantity::Value { metric: Metric::Throughput, of: "A", at: At::Last };
    assert_eq!((here(last, 2), here(last, 4)), (40.0, 160.0));
    let scaling = Quantity::LastToFirst { metric: Metric::ThroughputPerWorker, of: "A" };
    assert_eq!((here(scaling, 2), here(scaling, 4)), (2.0, 4.0));
}

#[test]
fn too_few_processors_or_runs_tell_nothing() {
    let told = |claim: &Claim, experiment: &Experiment, throughput: &dyn Fn(&str) -> Option<f64>| {
        let results = results(experiment, |name, _, _| throughput(name));
        judge(experiment, claim, &results, 2).ruling
    };
    let experiment_of = experiment;
    let (once, thrice) = (experiment_of(&[1], 1), experiment_of(&[1], 3));
    let mut claim = claim(LARGEST, Relation::AtLeast(1.0));
    let close = |name: &str| Some(if name == "A" { 105.0 } else { 100.0 });
    let clear = |name: &str| Some(if name == "A" { 150.0 } else { 100.0 });
    assert!(matches!(told(&claim, &once, &close), Ruling::CannotBeTold(why) if why.contains("too close")));
    assert_eq!(told(&claim, &once, &clear), Ruling::Holds);
    assert_eq!(told(&claim, &thrice, &close), Ruling::Holds);
    let missing = |name: &str| (name == "A").then_some(1.0);
    assert!(
        matches!(told(&claim, &thrice, &missing), Ruling::CannotBeTold(why) if why == "there are no runs of B")
    );
    claim.cores_min = 16;
    assert!(
        matches!(told(&claim, &thrice, &clear), Ruling::CannotBeTold(why) if why.contains("16 processors"))
    );
}

#[test]
fn nothing_is_divided_by_nothing() {
    let experiment = experiment(&[1], 3);
    let results = results(&experiment, |name, _, _| Some(if name == "A" { 1.0 } else { 0.0 }));
    let verdict = judge(&experiment, &claim(LARGEST, Relation::AtLeast(1.0)), &results, 2);
    assert_eq!((verdict.here, matches!(verdict.ruling, Ruling::CannotBeTold(_))), (None, true));
}

#[test]
fn a_report_without_what_is_needed_is_a_failed_run() {
    let experiment = experiment(&[1], 1);
    let mut results = Results::default();
    for run in plan(std::slice::from_ref(&experiment), 2) {
        results.add(&run, StoredOutcome::Measured(Value::Null));
    }
    assert_eq!((results.is_empty(), results.missing_count()), (true, 2));
}

#[test]
fn runs_that_had_to_share_the_processors_tell_nothing() {
    let experiment = experiment(&[1], 3);
    let ruling = |processor_seconds: f64| {
        let mut results = Results::default();
        for run in plan(std::slice::from_ref(&experiment), 2) {
            let mut report = report(1, 100.0);
            if (run.series, run.repetition) == (1, 2) {
                report["processor_seconds"] = processor_seconds.into();
            }
            results.add(&run, StoredOutcome::Measured(report));
        }
        judge(&experiment, &claim(LARGEST, Relation::AtMost(1.0)), &results, 2).ruling
    };
    assert_eq!(ruling(1.9), Ruling::Holds);
    assert!(matches!(ruling(0.5), Ruling::CannotBeTold(why) if why.contains("25 %")));
}
