//! From descriptions to a page, with runs that are made up.

use ensilo_bench::driver::Interrupt;
use ensilo_bench::report::Machine;
use serde_json::json;

use super::*;
use crate::bench::Bench;
use crate::measurement::tests::report;
use crate::outcome::Outcome;
use std::time::Duration;

/// Reports of a database whose cost follows from the numbers in its arguments.
struct MadeUp;

impl Bench for MadeUp {
    fn run(&self, arguments: &[String], _limit: Duration, _interrupt: &Interrupt) -> Outcome {
        let number = |option: &str| {
            let at = arguments.iter().position(|argument| argument == option)?;
            arguments[at + 1].parse::<f64>().ok()
        };
        if number("--sessions") == Some(20.0) {
            return Outcome::Failed("no such luck".to_owned());
        }
        let records = number("--records").unwrap();
        let mut report = report(1, 1e6 / records);
        let live_bytes = (100.0 * records) as u64;
        report["memory"] = json!({ "live_bytes": live_bytes, "live_bytes_before": 0, "versions": 7 });
        report["recovery"] =
            json!({ "seconds": 1e-6 * records, "bytes": 1, "checkpoint_bytes": 0, "log_bytes": 1 });
        report["timed_checkpoint"] = json!({ "seconds": 1e-9 * records * records });
        Outcome::Measured(report)
    }
}

fn machine(gibibytes: u64) -> Machine {
    Machine {
        cpu: "a processor".to_owned(),
        cores: 2,
        memory_bytes: gibibytes << 30,
        os: "a system".to_owned(),
    }
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ensilo-growth-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn make(names: &[&str], scale: GrowthScale, gibibytes: u64, directory: &Path) -> GrowthEnding {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let runs = GrowthRuns::new(&names, scale, machine(gibibytes)).unwrap();
    let options = MakeOptions { replaces: false, is_quiet: true };
    runs.make(&MadeUp, directory, options, &Interrupt::new()).unwrap()
}

/// The user gives up at the first run.
struct GivenUp;

impl Bench for GivenUp {
    fn run(&self, _: &[String], _: Duration, _: &Interrupt) -> Outcome {
        Outcome::Interrupted
    }
}

#[test]
fn what_was_given_up_at_its_first_run_can_be_begun_again() {
    let directory = directory("given-up");
    let runs = GrowthRuns::new(&["records".to_owned()], GrowthScale::Tiny, machine(24)).unwrap();
    for replaces in [false, true] {
        let options = MakeOptions { replaces, is_quiet: true };
        let ending = runs.make(&GivenUp, &directory, options, &Interrupt::new()).unwrap();
        assert!(ending.interrupted);
        assert!(rows::read(&directory.join(FILE_NAME)).unwrap().is_empty());
    }
    let _ = std::fs::remove_dir_all(&directory);
}

#[test]
fn descriptions_have_growing_axes_that_can_be_drawn() {
    for curve in Curve::all() {
        for scale in [GrowthScale::Tiny, GrowthScale::Quick, GrowthScale::Full] {
            let xs = curve.xs(scale);
            assert!(xs.len() > 1 && xs.is_sorted_by(|a, b| a < b), "{} {scale}", curve.name);
            assert!(xs[0] + curve.counted_from > 0.0 && curve.runs(scale) > 0, "{} {scale}", curve.name);
            let arguments = curve.arguments(xs[1], scale, 2, 1).join(" ");
            assert!(!arguments.contains('{') && arguments.contains(&xs[1].to_string()), "{arguments}");
        }
        let mut keys: Vec<String> = curve.measured().map(description::Measured::key).collect();
        keys.sort();
        keys.dedup();
        assert!(keys.len() == curve.measures.len() && !keys.is_empty(), "{}", curve.name);
    }
}

#[test]
fn scales_take_the_time_that_they_say() {
    let minutes = |scale| GrowthRuns::new(&[], scale, machine(24)).unwrap().size().1.as_secs_f64() / 60.0;
    assert!(minutes(GrowthScale::Tiny) < 0.5, "{}", minutes(GrowthScale::Tiny));
    assert!((1.0..3.0).contains(&minutes(GrowthScale::Quick)), "{}", minutes(GrowthScale::Quick));
    assert!((15.0..45.0).contains(&minutes(GrowthScale::Full)), "{}", minutes(GrowthScale::Full));
}

#[test]
fn a_page_has_verdicts_plots_and_what_is_missing() {
    let out = directory("page");
    let ending = make(&["stored-records", "sessions"], GrowthScale::Tiny, 24, &out);
    assert_eq!(ending, GrowthEnding { failed: 1, interrupted: false });
    let page = out.join("page.md");
    let (lines, is_explained) = write_growth(&out, &page).unwrap();
    assert!(!is_explained, "the checkpoint takes the square of the records: {lines:?}");
    assert!(lines.iter().any(|line| line.contains("recovery") && line.contains("n^1.00")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("checkpoint") && line.contains("n^2.00")), "{lines:?}");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("nothing says why") && text.contains("no such luck"), "{text}");
    assert!(text.contains("(growth-stored-records-2.svg)"), "{text}");
    let svg = std::fs::read_to_string(out.join("growth-stored-records-1.svg")).unwrap();
    assert!(svg.contains("down is better") && svg.contains("n log n"), "{svg}");
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn what_does_not_fit_the_machine_is_named() {
    let out = directory("fits");
    assert_eq!(make(&["records"], GrowthScale::Full, 8, &out).failed, 0);
    write_growth(&out, &out.join("page.md")).unwrap();
    let text = std::fs::read_to_string(out.join("page.md")).unwrap();
    assert!(text.contains("**Missing**: 60M records: does not fit the machine"), "{text}");
    assert!(text.contains("| 16M |"), "{text}");
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn runs_are_replaced_only_on_request_and_others_stay() {
    let out = directory("replace");
    make(&["indexes"], GrowthScale::Tiny, 24, &out);
    make(&["row-bytes"], GrowthScale::Tiny, 24, &out);
    let curves = || {
        let rows = rows::read(&out.join(FILE_NAME)).unwrap();
        let mut curves: Vec<String> = rows.into_iter().map(|row| row.curve).collect();
        curves.dedup();
        curves
    };
    assert_eq!(curves(), ["indexes", "row-bytes"]);
    let runs = GrowthRuns::new(&["indexes".to_owned()], GrowthScale::Tiny, machine(24)).unwrap();
    let again =
        |replaces| runs.make(&MadeUp, &out, MakeOptions { replaces, is_quiet: true }, &Interrupt::new());
    assert!(matches!(again(false), Err(FiguresError::WouldReplace(..))));
    again(true).unwrap();
    assert_eq!(curves(), ["row-bytes", "indexes"]);
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn an_unknown_curve_is_an_error() {
    let unknown = GrowthRuns::new(&["bananas".to_owned()], GrowthScale::Tiny, machine(8));
    assert!(matches!(unknown, Err(FiguresError::UnknownExperiment(name)) if name == "bananas"));
}
