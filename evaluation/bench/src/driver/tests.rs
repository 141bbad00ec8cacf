//! The driver with a workload that needs no database.

use std::sync::Mutex;
use std::time::Duration;

use ensilo::{Database, Silo};

use super::*;

/// Counts to itself; every tenth transaction aborts once before it commits, every hundredth is rolled back.
#[derive(Debug, Default)]
struct Counting {
    fail_after: Option<u64>,
    finished: Mutex<Vec<u64>>,
}

struct CountingSession<'a> {
    workload: &'a Counting,
    done: u64,
}

impl Workload for Counting {
    type Engine = Silo;
    type Session<'a> = CountingSession<'a>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &["even", "odd"]
    }

    fn session(&self, _worker: usize) -> CountingSession<'_> {
        CountingSession { workload: self, done: 0 }
    }

    fn database(&self) -> Option<&Database> {
        None
    }

    fn check(&self, _view: &mut View, _interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        Ok(Vec::new())
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(Vec::new())
    }
}

impl Session for CountingSession<'_> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        assert!(now_unix_us > 1_600_000_000_000_000);
        self.done += 1;
        if self.workload.fail_after == Some(self.done) {
            return Err(Failure::Broken("as planned".to_owned()));
        }
        if self.done.is_multiple_of(10) {
            aborts.count(AbortKind::ReadValidation);
        }
        let committed = !self.done.is_multiple_of(100);
        if !committed {
            aborts.count(AbortKind::Rollback);
        }
        Ok(Outcome { transaction: (self.done % 2) as usize, committed, epoch: 0, effects: 0 })
    }

    fn finish(self) {
        self.workload.finished.lock().unwrap().push(self.done);
    }
}

fn options(warmup_ms: u64, measured_ms: u64) -> RunOptions {
    RunOptions {
        workers: 2,
        warmup: Duration::from_millis(warmup_ms),
        measured: Duration::from_millis(measured_ms),
        pin: true,
    }
}

#[test]
fn a_run_counts_what_sessions_did_without_the_warm_up() {
    let workload = Counting::default();
    let result = run(&workload, &options(20, 50), "run", &mut View::silent(), &Interrupt::new()).unwrap();
    let finished = workload.finished.lock().unwrap();
    assert_eq!(finished.len(), 2);
    let done: u64 = finished.iter().sum();
    let counted: u64 = result.measurements.types().iter().map(|of_type| of_type.latencies.count()).sum();
    assert!(counted > 0 && counted < done, "{counted} of {done}");
    assert_eq!(
        counted,
        result.measurements.committed() + result.measurements.aborts().of(AbortKind::Rollback)
    );
    assert!(result.measurements.aborts().of(AbortKind::ReadValidation) > 0);
    assert!((0.05..10.0).contains(&result.seconds), "{}", result.seconds);
    assert!(!result.interrupted);
}

#[test]
fn seconds_add_up_to_the_whole() {
    let workload = Counting::default();
    let result = run(&workload, &options(0, 1_100), "run", &mut View::silent(), &Interrupt::new()).unwrap();
    // A machine that is busy with other things looks less often, and perhaps not in the last tenth of a second.
    let looked_late = result.timeline.iter().any(|interval| (1.0..1.1).contains(&interval.ended_at));
    assert_eq!(result.per_second.len(), 1 + usize::from(looked_late));
    assert!((1..=11).contains(&result.timeline.len()), "{}", result.timeline.len());
    let by_interval: u64 = result.timeline.iter().map(|interval| interval.committed).sum();
    let by_second: u64 = result.per_second.iter().map(|second| second.committed).sum();
    assert_eq!(by_interval, by_second);
    let whole = result.measurements.committed();
    assert!(by_second <= whole && by_second > whole / 2, "{by_second} of {whole}");
}

#[test]
fn an_interrupt_ends_a_run_with_what_there_is() {
    let (workload, interrupt) = (Counting::default(), Interrupt::new());
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            run(&workload, &options(0, 3_600_000), "run", &mut View::silent(), &interrupt).unwrap()
        });
        while !interrupt.wait_until(std::time::Instant::now() + Duration::from_millis(30)) {
            interrupt.raise();
        }
        run.join().unwrap()
    });
    assert!(result.interrupted);
    assert!(result.seconds < 3_600.0);
}

#[test]
fn a_failed_session_ends_the_run() {
    let workload = Counting { fail_after: Some(1_000), ..Counting::default() };
    let result = run(&workload, &options(0, 3_000), "run", &mut View::silent(), &Interrupt::new());
    assert!(matches!(result, Err(Failure::Broken(what)) if what == "as planned"));
}

/// A workload of which the second session cannot be made.
#[derive(Debug)]
struct Panicking(Counting);

impl Workload for Panicking {
    type Engine = Silo;
    type Session<'a> = CountingSession<'a>;

    fn transaction_types(&self) -> &'static [&'static str] {
        self.0.transaction_types()
    }

    fn session(&self, worker: usize) -> CountingSession<'_> {
        assert_eq!(worker, 0, "as planned");
        self.0.session(worker)
    }

    fn database(&self) -> Option<&Database> {
        None
    }

    fn check(&self, _view: &mut View, _interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        Ok(Vec::new())
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        Ok(Vec::new())
    }
}

#[test]
#[should_panic(expected = "as planned")]
fn a_panic_of_a_worker_ends_the_run() {
    let workload = Panicking(Counting::default());
    let _ = run(&workload, &options(0, 3_600_000), "run", &mut View::silent(), &Interrupt::new());
}
