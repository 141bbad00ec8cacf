//! Whole evaluations with a program that is none: it answers at once.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ensilo_bench::driver::Interrupt;
use ensilo_bench::report::Machine;
use ensilo_figures::{Bench, Evaluation, Origin, Outcome, Overrides, Scale, Sizes};
use serde_json::{Value, json};

/// Answers each run by a function of its arguments, and notes them.
struct Fake<F> {
    asked: RefCell<Vec<String>>,
    answer: F,
}

impl<F: Fn(&str) -> Outcome> Fake<F> {
    fn new(answer: F) -> Self {
        Self { asked: RefCell::default(), answer }
    }

    fn count(&self) -> usize {
        self.asked.borrow().len()
    }
}

impl<F: Fn(&str) -> Outcome> Bench for Fake<F> {
    fn run(&self, arguments: &[String], _limit: Duration, _interrupt: &Interrupt) -> Outcome {
        let line = arguments.join(" ");
        let outcome = (self.answer)(&line);
        self.asked.borrow_mut().push(line);
        outcome
    }
}

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ensilo-figures-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a run of these arguments would report: as many transactions as there are workers.
fn report(line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    let value =
        |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1].parse::<f64>().unwrap();
    let (workers, seconds) = (value("--workers"), value("--seconds"));
    let is_durable = !words.contains(&"--memory");
    let throughput = 1000.0 * workers + value("--seed");
    let timeline: Vec<Value> = (1..=20)
        .map(|at| json!({ "ended_at": f64::from(at) * 0.1, "committed": 10 + at, "checkpoint": is_durable && (7..9).contains(&at),
            "durable_latency_ms_max": is_durable.then_some(5.0) }))
        .collect();
    json!({
        "workers": workers as u64, "seconds": seconds, "committed": (throughput * seconds) as u64, "aborted": 3,
        "throughput_per_second": throughput, "processor_seconds": seconds * workers.min(2.0),
        "durable_latency_ms": is_durable.then(|| json!({ "p50": 4.0, "p95": 5.0, "p99": 6.0, "max": 7.0, "count": 9 })),
        "log_bytes": is_durable.then_some(1_000_000), "checkpoint_bytes": is_durable.then_some(2_000_000),
        "memory": { "live_bytes": 103, "live_bytes_before": 100 }, "consistency_checks": 12, "interrupted": false,
        "recovery": words.contains(&"--crash").then(|| json!({
            "seconds": seconds, "bytes": 4_000_000_000_u64, "checkpoint_bytes": 1_000_000_000, "log_bytes": 3_000_000_000_u64 })),
        "transactions": { "new_order": { "count": 9, "latency_us": { "p50": 1.0, "p99": 2.0 } } },
        "half_seconds": { "worst": { "of_median": 0.9 } },
        "runs": [{ "timeline": timeline }],
    })
}

fn measured(line: &str) -> Outcome {
    Outcome::Measured(report(line))
}

fn machine() -> Machine {
    Machine { cpu: "a processor".to_owned(), cores: 2, memory_bytes: 24 << 30, os: "a system".to_owned() }
}

fn evaluation(out: &Path, overrides: &Overrides, program: &str) -> Evaluation {
    let sizes = Sizes::new(Scale::Quick, &machine(), overrides);
    let origin = Origin { program: program.to_owned(), machine: "a machine".to_owned() };
    Evaluation::new(sizes, machine(), origin, out.to_owned())
}

fn all(evaluation: &Evaluation) -> Vec<usize> {
    evaluation.select(&["all".to_owned()]).unwrap()
}

#[test]
fn everything_is_measured_drawn_and_judged() {
    let out = Directory::new("all");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = all(&evaluation);
    let fake = Fake::new(measured);
    let ending = evaluation.run(&selected, &fake, &Interrupt::new(), true).unwrap();
    assert_eq!((ending.missing, ending.interrupted), (0, false));
    assert_eq!(fake.count(), evaluation.workload(&selected).done);
    let page = out.read("index.html");
    for experiment in evaluation.experiments() {
        let name = experiment.name;
        assert!(page.contains(&format!("id=\"{name}\"")), "{name}");
        let runs: usize = experiment.series.iter().map(|series| series.points.len() * experiment.runs).sum();
        let mut table = csv::Reader::from_reader(std::io::Cursor::new(out.read(&format!("{name}.csv"))));
        assert_eq!(table.records().map(Result::unwrap).count(), runs, "{name}");
        for number in 1..=experiment.plots.len() {
            let svg = out.read(&format!("{name}-{number}.svg"));
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name} {number}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name} {number}");
            assert!(page.contains(svg.trim_end()), "{name} {number}");
        }
        assert!(ending.lines.iter().any(|line| line.contains(experiment.claims[0].text)), "{name}");
    }
}

#[test]
fn what_is_there_is_not_made_again() {
    let out = Directory::new("resume");
    let first = evaluation(&out.0, &Overrides::default(), "1");
    let selected = first.select(&["silo-10".to_owned()]).unwrap();
    let interrupt = Interrupt::new();
    // The third run is interrupted: what it has measured so far does not count.
    let stopped = Fake::new(|line| match line {
        line if line.contains("--seed 2") && !line.contains("--system") => {
            interrupt.raise();
            let mut report = report(line);
            report["interrupted"] = true.into();
            Outcome::Measured(report)
        }
        line => measured(line),
    });
    let ending = first.run(&selected, &stopped, &interrupt, true).unwrap();
    assert_eq!((stopped.count(), ending.interrupted), (3, true));
    assert_eq!((first.workload(&selected).runs, first.workload(&selected).done), (6, 2));
    assert!(out.read("index.html").contains("silo-10"));
    let rest = Fake::new(measured);
    first.run(&selected, &rest, &Interrupt::new(), true).unwrap();
    assert_eq!(rest.count(), 4);
    assert_eq!(first.to_do(&selected).count(), 0);
}

#[test]
fn another_program_or_other_parameters_make_runs_anew() {
    let out = Directory::new("outdated");
    let first = evaluation(&out.0, &Overrides::default(), "1");
    let selected = first.select(&["silo-10".to_owned()]).unwrap();
    first.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    let longer = Overrides { seconds: Some(3.0), ..Overrides::default() };
    for other in [evaluation(&out.0, &Overrides::default(), "2"), evaluation(&out.0, &longer, "1")] {
        let workload = other.workload(&selected);
        assert_eq!((workload.runs, workload.done, workload.outdated), (6, 0, 6));
        assert!(workload.to_string().contains("made anew"), "{workload}");
    }
    let fewer = evaluation(&out.0, &Overrides { runs: Some(1), ..Overrides::default() }, "1");
    assert_eq!((fewer.workload(&selected).runs, fewer.workload(&selected).done), (2, 2));
}

#[test]
fn a_file_that_is_cut_short_counts_as_missing() {
    let out = Directory::new("torn");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = evaluation.select(&["silo-10".to_owned()]).unwrap();
    evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    let file = out.0.join("runs/silo-10").read_dir().unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert_eq!(evaluation.to_do(&selected).count(), 1);
}

#[test]
fn a_system_that_the_program_does_not_know_does_not_stop_the_others() {
    let out = Directory::new("refused");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    let selected = evaluation.select(&["silo-4".to_owned()]).unwrap();
    let fake = Fake::new(|line| {
        if line.contains("key-value") {
            Outcome::Refused("error: no such system".to_owned())
        } else if line.contains("global-tid") {
            Outcome::Failed("check 1 failed".to_owned())
        } else {
            measured(line)
        }
    });
    let ending = evaluation.run(&selected, &fake, &Interrupt::new(), true).unwrap();
    assert_eq!((fake.count(), ending.missing), (27, 18));
    let lines = ending.lines.join("\n");
    assert!(lines.contains("Key-Value: this program refuses 9 run(s): error: no such system"), "{lines}");
    assert!(lines.contains("MemSilo+GlobalTID: 9 run(s) failed: check 1 failed"), "{lines}");
    assert!(lines.contains("cannot be told"), "{lines}");
    let page = out.read("index.html");
    assert!(page.contains("error: no such system") && page.contains("<svg"));
    // A failure may pass, a refusal may be gone with the next try: both are tried again.
    assert_eq!(evaluation.to_do(&selected).count(), 18);
}

#[test]
fn a_page_holds_what_earlier_commands_have_measured() {
    let out = Directory::new("page");
    let evaluation = evaluation(&out.0, &Overrides::default(), "1");
    for name in ["silo-10", "silor-recovery"] {
        let selected = evaluation.select(&[name.to_owned()]).unwrap();
        evaluation.run(&selected, &Fake::new(measured), &Interrupt::new(), true).unwrap();
    }
    let page = out.read("index.html");
    assert!(page.contains("id=\"silo-10\"") && page.contains("id=\"silor-recovery\""));
}

#[test]
fn unknown_experiments_are_refused() {
    let evaluation = evaluation(Path::new("unused"), &Overrides::default(), "1");
    let error = evaluation.select(&["silo-10".to_owned(), "silo-99".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("silo-99"), "{error}");
}
