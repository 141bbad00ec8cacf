//! Random transactions over a small key space, by many threads, with everything that they saw checked afterwards.
//!
//! What is checked, beside the recorded history: every row read was whole; its stamp (every attempt at a transaction
//! stamps the rows that it writes) is that of the transaction which, by the recorded version, wrote it; a transaction sees
//! its own writes; scans keep order and bounds.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Barrier};

use ensilo_check::{Anomaly, History, Options, Tid, Verdict, check};
use ensilo_test_disk::SimulatedDisk;
use ensilo_txn::{Advance, ColdPlace, Engine, EngineOptions, EngineStatistics, EpochOptions, TableId};

use super::driver::{Claim, Driver, Log};
use super::plan::Plan;

/// What a run left behind.
pub(crate) struct Outcome {
    plan: Plan,
    pub(crate) verdict: Verdict,
    /// What contradicted the history or the transaction itself.
    pub(crate) mismatches: Vec<String>,
    /// Threads that panicked: assertions of the engine.
    pub(crate) panics: Vec<String>,
    pub(crate) statistics: EngineStatistics,
    /// How many transactions were prepared.
    pub(crate) prepared: u64,
}

impl Outcome {
    /// Whether nothing at all is wrong, as far as the run can tell.
    pub(crate) fn is_clean(&self) -> bool {
        (self.verdict.is_serializable() || self.verdict.is_snapshot_isolated())
            && self.mismatches.is_empty()
            && self.panics.is_empty()
    }

    /// The kinds of anomalies that the checker found.
    pub(crate) fn anomalies(&self) -> Vec<Anomaly> {
        match &self.verdict {
            Verdict::Violated(report) => report.anomalies(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, threads, stores, keys, .. } = &self.plan;
        writeln!(f, "seed {seed}: {threads} threads, {stores} stores, {} keys", keys.len())?;
        writeln!(f, "{}", self.verdict)?;
        for mismatch in self.mismatches.iter().chain(&self.panics).take(10) {
            writeln!(f, "  {mismatch}")?;
        }
        write!(f, "{:?}", self.statistics.transactions)
    }
}

/// Runs a plan on a fresh engine and checks what it left.
pub(crate) fn run<E: Engine>(plan: &Plan) -> Outcome {
    let mut options = EngineOptions::default();
    options.epochs = EpochOptions {
        epoch_interval: plan.epoch_interval,
        epochs_per_snapshot: plan.epochs_per_snapshot,
        advance: Advance::Thread,
        ..EpochOptions::default()
    };
    options.memory_limit_bytes = plan.memory_limit_bytes;
    options.cold_place =
        plan.leaves_memory.then(|| ColdPlace::new(Arc::new(SimulatedDisk::new()), PathBuf::from("/cold")));
    let engine = E::start(options).unwrap();
    let stores: Vec<Arc<E::Store>> =
        (1..=plan.stores).map(|id| engine.new_store(TableId(id as u32)).unwrap()).collect();
    let start = Barrier::new(plan.threads);
    let mut log = Log::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let (engine, stores, start) = (&engine, &stores[..], &start);
                scope.spawn(move || {
                    start.wait();
                    let mut driver = Driver::new(plan, thread, stores);
                    driver.drive_to_the_end(engine);
                    driver.log
                })
            })
            .collect();
        for thread in threads {
            log.append(thread.join().unwrap());
        }
    });
    let mut mismatches = log.mismatches;
    compare_claims(&log.claims, &log.stamps, &mut mismatches);
    let isolation = plan.isolation;
    let options = Options { isolation, transactions_min: 100, dependencies_min: 100, ..Options::default() };
    let verdict = check(&History::of(log.transactions), &options);
    let Log { panics, prepared, .. } = log;
    Outcome { plan: plan.clone(), verdict, mismatches, panics, statistics: engine.statistics(), prepared }
}

/// Each row read carries the stamp of the transaction that wrote the version read.
fn compare_claims(claims: &[Claim], stamps: &[(u64, Tid)], mismatches: &mut Vec<String>) {
    let tids: HashMap<u64, Tid> = stamps.iter().copied().collect();
    for Claim { stamp, version } in claims {
        match tids.get(stamp) {
            None => mismatches
                .push(format!("a row of the uncommitted attempt {stamp:#x} was read as {version:?}")),
            Some(tid) if tid != version => {
                mismatches.push(format!("a row of {tid:?} was recorded as {version:?}"));
            }
            Some(_) => {}
        }
    }
}
