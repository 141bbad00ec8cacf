//! A program that is none, and what it measures.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ensilo_bench::driver::Interrupt;
use ensilo_bench::report::Machine;
use ensilo_figures::{Bench, Evaluation, Origin, Outcome, Overrides, Scale, Sizes};
use serde_json::{Value, json};

/// Answers each run by a function of its arguments, and notes them.
pub(crate) struct Fake<F> {
    asked: RefCell<Vec<String>>,
    answer: F,
}

impl<F: Fn(&str) -> Outcome> Fake<F> {
    pub(crate) fn new(answer: F) -> Self {
        Self { asked: RefCell::default(), answer }
    }

    pub(crate) fn count(&self) -> usize {
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
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ensilo-figures-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The transaction types of all workloads that an experiment looks at.
fn transactions() -> Value {
    let types = [
        "new_order",
        "payment",
        "order_status",
        "delivery",
        "stock_level",
        "ch_q2",
        "read_update",
        "asset_eval",
    ];
    let of_type = json!({ "count": 9, "aborted": 1, "latency_us": { "p50": 1.0, "p99": 2.0 } });
    types.into_iter().map(|name| (name.to_owned(), of_type.clone())).collect::<serde_json::Map<_, _>>().into()
}

/// What a run of these arguments would report: as many transactions as there are workers.
pub(crate) fn report(line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    let value =
        |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1].parse::<f64>().unwrap();
    let seconds = value("--seconds");
    if let workload @ ("channels" | "counters") = words[1] {
        return json!({ "workload": workload, "workers": 2, "seconds": seconds, "throughput": 2000.0 });
    }
    let workers = value("--workers");
    if words.contains(&"--islands") {
        let islands = value("--islands");
        return json!({
            "workload": words[1], "islands": islands as u64, "workers_per_island": workers as u64, "seconds": seconds,
            "throughput": 1000.0 * islands * workers, "retried": 3, "latency_us_p50": 1.0, "latency_us_p99": 2.0,
            "in_parts_us": words.contains(&"--times").then_some(400.0),
        });
    }
    let is_durable = !words.contains(&"--memory");
    let throughput = 1000.0 * workers + value("--seed");
    let timeline: Vec<Value> = (1..=20)
        .map(|at| json!({ "ended_at": f64::from(at) * 0.1, "committed": 10 + at, "aborted": 0, "checkpoint": is_durable && (7..9).contains(&at),
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
        "transactions": transactions(),
        "half_seconds": { "worst": { "of_median": 0.9 } },
        "runs": [{ "timeline": timeline }],
    })
}

pub(crate) fn measured(line: &str) -> Outcome {
    Outcome::Measured(report(line))
}

pub(crate) fn machine() -> Machine {
    Machine { cpu: "a processor".to_owned(), cores: 2, memory_bytes: 24 << 30, os: "a system".to_owned() }
}

pub(crate) fn evaluation(out: &Path, overrides: &Overrides, program: &str) -> Evaluation {
    let sizes = Sizes::new(Scale::Quick, &machine(), overrides);
    let origin = Origin { program: program.to_owned(), machine: "a machine".to_owned() };
    Evaluation::new(sizes, machine(), origin, out.to_owned())
}

pub(crate) fn all(evaluation: &Evaluation) -> Vec<usize> {
    evaluation.select(&["all".to_owned()]).unwrap()
}
