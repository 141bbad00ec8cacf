use serde_json::Value;

use super::*;
use crate::command::BenchCommand;
use crate::experiment::{Axis, Paper, Point, Relation, Series};
use crate::measurement::tests::report;
use crate::outcome::StoredOutcome;
use crate::plan::{SingleRun, plan};

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
        about: "a test".to_owned(),
        axis: Axis::Workers,
        series: vec![series("A"), series("B")],
        runs,
        plots: Vec::new(),
        claims: Vec::new(),
    }
}

fn add(results: &mut Results, run: &SingleRun, outcome: StoredOutcome) {
    let place = (run.series, run.point, run.repetition);
    results.add(place, run.arguments.clone(), String::new(), outcome);
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
        add(&mut results, &run, outcome);
    }
    results
}

fn claim(quantity: Quantity, relation: Relation) -> Claim {
    Claim { text: "A and B", quantity, paper: Some(1.0), unit: "x", relation, cores_min: 1 }
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
    assert_eq!(told, "A and B: here 1.20x (1.20 to 1.20) at 2 workers: holds");
}

/// At each point one run of three lies above the bound by noise, at another point in each repetition: the largest of each repetition
/// would refute the claim.
#[test]
fn noise_at_different_points_refutes_nothing() {
    let experiment = experiment(&[1, 2, 4], 3);
    let results = results(&experiment, |name, x, repetition| {
        let is_high = name == "A" && x as usize == 1 << repetition;
        Some(if is_high { 120.0 } else { 100.0 })
    });
    let ruling = |relation| judge(&experiment, &claim(LARGEST, relation), &results, 4).ruling;
    let undecided = Ruling::Undecided("it holds in 2 of 3 runs".to_owned());
    assert_eq!(ruling(Relation::AtMost(1.1)), undecided);
    assert_eq!(ruling(Relation::AtLeast(1.1)), Ruling::Undecided("it holds in 1 of 3 runs".to_owned()));
    assert_eq!(ruling(Relation::AtMost(1.3)), Ruling::Holds);
    assert_eq!(ruling(Relation::AtLeast(1.3)), Ruling::DoesNotHold);
}

#[test]
fn one_point_decides_where_all_its_runs_agree() {
    let experiment = experiment(&[1, 2, 4], 3);
    // Beside the point in the middle there is one that says nothing, and one that holds.
    let results = results(&experiment, |name, x, repetition| {
        let factor = match (name, x as usize) {
            ("A", 2) => 1.2,
            ("A", 4) => [0.9, 1.2, 1.6][repetition],
            _ => 1.0,
        };
        Some(100.0 * factor)
    });
    let verdict = |relation| judge(&experiment, &claim(LARGEST, relation), &results, 4);
    let (most, least) = (verdict(Relation::AtMost(1.1)), verdict(Relation::AtLeast(1.1)));
    assert_eq!((most.ruling, most.at.as_deref()), (Ruling::DoesNotHold, Some("2 workers")));
    assert_eq!((least.ruling, least.at.as_deref()), (Ruling::Holds, Some("2 workers")));
}

#[test]
fn a_crossing_lies_between_points() {
    let at = |ratios: &[f64]| {
        let ratios: Vec<_> = (0..).map(|at| 10.0 * f64::from(at)).zip(ratios.iter().copied()).collect();
        crossing(&ratios)
    };
    assert_eq!(at(&[1.5, 1.25, 0.75, 0.5]), Some(15.0));
    assert_eq!((at(&[0.9, 0.8]), at(&[1.2, 1.1, 1.0]), at(&[])), (Some(0.0), Some(20.0), None));
}

#[test]
fn points_are_compared_only_with_others() {
    let experiment = experiment(&[1, 2, 6, 9], 3);
    let results = results(&experiment, |_, x, _| Some(x * x));
    let here = |from, to, cores| {
        let quantity = Quantity::Change { metric: Metric::Throughput, of: "A", from, to };
        let verdict = judge(&experiment, &claim(quantity, Relation::AtLeast(0.0)), &results, cores);
        verdict.here.map(|here| here.median)
    };
    assert_eq!(here(At::BeforeLast, At::Last, 16), Some(2.25));
    assert_eq!(here(At::Nearest(5), At::Last, 16), Some(2.25));
    assert_eq!((here(At::Nearest(8), At::Last, 16), here(At::Nearest(8), At::Last, 6)), (None, None));
    assert_eq!(here(At::BeforeLast, At::Last, 1), None);
}

#[test]
fn repetitions_that_disagree_tell_nothing() {
    let experiment = experiment(&[1], 3);
    let results = results(&experiment, |name, _, repetition| {
        Some(if name == "A" { [90.0, 100.0, 120.0][repetition] } else { 100.0 })
    });
    let verdict = judge(&experiment, &claim(LARGEST, Relation::AtLeast(1.1)), &results, 2);
    assert_eq!(verdict.ruling, Ruling::Undecided("it holds in 1 of 3 runs".to_owned()));
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
fn workers_beyond_the_processors_are_told_apart_without_an_axis_of_workers() {
    let mut experiment = experiment(&[4], 3);
    experiment.axis = Axis::Series;
    let results = results(&experiment, |name, _, _| Some(if name == "A" { 2.0 } else { 1.0 }));
    let quantity = Quantity::Ratio { metric: Metric::Throughput, of: "A", to: "B", at: At::First };
    let ruling = |cores| judge(&experiment, &claim(quantity, Relation::AtLeast(1.0)), &results, cores).ruling;
    assert_eq!(ruling(4), Ruling::Holds);
    assert!(matches!(ruling(2), Ruling::Undecided(why) if why.contains("more workers than the 2")));
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
    assert!(matches!(told(&claim, &once, &close), Ruling::Undecided(why) if why.contains("too close")));
    assert_eq!(told(&claim, &once, &clear), Ruling::Holds);
    assert_eq!(told(&claim, &thrice, &close), Ruling::Holds);
    let missing = |name: &str| (name == "A").then_some(1.0);
    assert!(
        matches!(told(&claim, &thrice, &missing), Ruling::Undecided(why) if why == "there are no runs of B")
    );
    claim.cores_min = 16;
    assert!(matches!(told(&claim, &thrice, &clear), Ruling::Undecided(why) if why.contains("16 processors")));
}

#[test]
fn nothing_is_divided_by_nothing() {
    let experiment = experiment(&[1], 3);
    let results = results(&experiment, |name, _, _| Some(if name == "A" { 1.0 } else { 0.0 }));
    let verdict = judge(&experiment, &claim(LARGEST, Relation::AtLeast(1.0)), &results, 2);
    assert_eq!((verdict.here, matches!(verdict.ruling, Ruling::Undecided(_))), (None, true));
}

#[test]
fn a_report_without_what_is_needed_is_a_failed_run() {
    let experiment = experiment(&[1], 1);
    let mut results = Results::default();
    for run in plan(std::slice::from_ref(&experiment), 2) {
        add(&mut results, &run, StoredOutcome::Measured(Value::Null));
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
            add(&mut results, &run, StoredOutcome::Measured(report));
        }
        judge(&experiment, &claim(LARGEST, Relation::AtMost(1.0)), &results, 2).ruling
    };
    assert_eq!(ruling(1.9), Ruling::Holds);
    assert!(matches!(ruling(0.5), Ruling::Undecided(why) if why.contains("25 %")));
}
