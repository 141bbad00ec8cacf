use std::cell::RefCell;

use super::*;

/// The shortest runs that there are.
fn tiny(runs: usize) -> LatencyOptions {
    let time = Duration::from_millis(30);
    LatencyOptions { clients: vec![1, 3], accounts: 10, measured: time, warmup: time, runs, seed: 1 }
}

/// A database that answers at once.
struct Fake {
    asked: RefCell<Vec<LatencyRun>>,
}

impl OtherDatabases for Fake {
    fn names(&self) -> Vec<&'static str> {
        vec!["fake"]
    }

    fn missing(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn measure(
        &self,
        name: &str,
        run: LatencyRun,
        _phase: &str,
        _view: &mut View,
        _interrupt: &Interrupt,
    ) -> Result<PeerRun, Failure> {
        assert_eq!(name, "fake");
        self.asked.borrow_mut().push(run);
        let subject = subject(run, "transfer-uniform", "none", 10);
        Ok(PeerRun::of_latencies(subject, 1.0, &ensilo_bench::driver::Latencies::new(), String::new()))
    }
}

fn measured(
    options: &LatencyOptions,
    others: Option<&dyn OtherDatabases>,
    interrupt: &Interrupt,
) -> Vec<PeerRun> {
    let mut runs = Vec::new();
    let keep = |run| {
        runs.push(run);
        Ok(())
    };
    measure_latency(options, others, &mut View::silent(), interrupt, keep).unwrap();
    runs
}

#[test]
fn the_disk_and_databases_take_turns() {
    let fake = Fake { asked: RefCell::default() };
    let runs = measured(&tiny(2), Some(&fake), &Interrupt::new());
    let told: Vec<_> = runs.iter().map(|run| (run.peer.as_str(), run.workers, run.run)).collect();
    let of_number = |number| {
        [("disk", 1), ("ensilo", 1), ("fake", 1), ("ensilo", 3), ("fake", 3)]
            .map(|(peer, workers)| (peer, workers, number))
    };
    assert_eq!(told, [of_number(1), of_number(2)].concat());
    assert_eq!(fake.asked.borrow().len(), 4);
}

#[test]
fn ensilo_and_the_disk_are_measured_without_others() {
    let runs = measured(&tiny(1), None, &Interrupt::new());
    assert_eq!(runs.len(), 3);
    for run in &runs {
        assert!(run.committed > 0 && run.checks_failed == 0, "{run:?}");
        assert!(run.latency_us_p50 > 0.0 && run.latency_us_p50 <= run.latency_us_p99, "{run:?}");
        assert_eq!(run.checks > 0, run.peer == "ensilo");
    }
}

#[test]
fn nothing_is_kept_after_an_interrupt() {
    let interrupt = Interrupt::new();
    interrupt.raise();
    assert!(measured(&tiny(1), None, &interrupt).is_empty());
}

#[test]
fn clients_are_powers_of_two_by_default() {
    assert_eq!(LatencyOptions::default().clients, [1, 2, 4, 8, 16, 32, 64]);
}
