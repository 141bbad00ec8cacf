//! Every database under every workload, at both settings, taking turns.

use std::path::PathBuf;
use std::time::Duration;

use ensilo_bench::driver::{Check, Failure, Interrupt, RunOptions, RunResult, View, Workload, run};
use ensilo_bench::ycsb::YcsbOptions;
use ensilo_bench::{TemporaryDirectory, temporary_root};
use ensilo_figures::compare::PeerRun;

use crate::engine::{Ensilo, Fjall, KeyValue, Lmdb, Redb, Sqlite};
use crate::names::{PeerName, WorkloadName};
use crate::peer::{Peer, Setting};
use crate::workload::{Records, Skew, Transfers};

/// What to compare, and for how long.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// The databases.
    pub peers: Vec<PeerName>,
    /// The workloads.
    pub workloads: Vec<WorkloadName>,
    /// The settings.
    pub settings: Vec<Setting>,
    /// Numbers of client threads when answers do not wait for the disk.
    pub workers: Vec<usize>,
    /// Numbers of client threads when they do.
    pub synced_workers: Vec<usize>,
    /// Records of YCSB, at least 1.
    pub records: u64,
    /// Accounts, at least 2.
    pub accounts: u64,
    /// How long each run measures.
    pub measured: Duration,
    /// Time before anything is counted.
    pub warmup: Duration,
    /// Runs of each, at least 1.
    pub runs: usize,
    /// Where databases are made, each to be removed after its run; the system's directory of temporary files if `None`.
    pub directory: Option<PathBuf>,
    /// Where all random numbers come from.
    pub seed: u64,
}

/// The exponent of Zipf's law for transfers.
const ZIPF_EXPONENT: f64 = 1.5;

/// One of the things that are compared, which all databases do in turn.
#[derive(Debug, Clone, Copy)]
struct Subject {
    workload: WorkloadName,
    setting: Setting,
    workers: usize,
}

/// Makes all runs, each against a database loaded anew, and gives each finished one to `keep`. Ends early, without an error, when
/// `interrupt` is raised.
///
/// # Errors
/// The first failure of a database, or of `keep`.
pub fn compare(
    options: &CompareOptions,
    view: &mut View,
    interrupt: &Interrupt,
    mut keep: impl FnMut(PeerRun) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for subject in options.subjects() {
        for number in 1..=options.runs {
            for &peer in &options.peers {
                match options.run_one(subject, peer, number, view, interrupt) {
                    Ok(run) if !interrupt.is_raised() => keep(run)?,
                    Ok(_) | Err(Failure::Interrupted) => return Ok(()),
                    Err(failure) => return Err(failure),
                }
            }
        }
    }
    Ok(())
}

impl CompareOptions {
    /// How many runs there are.
    pub fn run_count(&self) -> usize {
        self.subjects().len() * self.runs * self.peers.len()
    }

    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = Vec::new();
        for &workload in &self.workloads {
            for &setting in &self.settings {
                let workers = match setting {
                    Setting::NotSynced => &self.workers,
                    Setting::Synced => &self.synced_workers,
                };
                subjects.extend(workers.iter().map(|&workers| Subject { workload, setting, workers }));
            }
        }
        subjects
    }

    fn run_one(
        &self,
        subject: Subject,
        peer: PeerName,
        number: usize,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<PeerRun, Failure> {
        let Subject { workload, setting, workers } = subject;
        let name = format!("{peer} {workload}, {setting}, {workers} clients, run {number}");
        let mut turn = Turn { options: self, subject, name, view, interrupt };
        let measured = match peer {
            PeerName::Ensilo => turn.run_on::<Ensilo>(),
            PeerName::Sqlite => turn.run_on::<Sqlite>(),
            PeerName::Lmdb => turn.run_on::<KeyValue<Lmdb>>(),
            PeerName::Redb => turn.run_on::<KeyValue<Redb>>(),
            PeerName::Fjall => turn.run_on::<KeyValue<Fjall>>(),
        };
        let (result, checks) = measured?;
        Ok(self.told(subject, peer, number, &result, &checks))
    }

    fn told(
        &self,
        subject: Subject,
        peer: PeerName,
        number: usize,
        result: &RunResult,
        checks: &[Check],
    ) -> PeerRun {
        let mut latencies = ensilo_bench::driver::Latencies::new();
        result.measurements.types().iter().for_each(|of_type| latencies.add(&of_type.latencies));
        let (committed, aborted) = (result.measurements.committed(), result.measurements.aborts().total());
        let rows = match subject.workload {
            WorkloadName::TransferUniform | WorkloadName::TransferZipf => self.accounts,
            WorkloadName::YcsbB | WorkloadName::YcsbF | WorkloadName::YcsbSilo => self.records,
        };
        PeerRun {
            workload: subject.workload.name().to_owned(),
            setting: subject.setting.name().to_owned(),
            workers: subject.workers,
            peer: peer.name().to_owned(),
            isolation: peer.isolation().to_owned(),
            rows,
            run: number,
            seconds: result.seconds,
            committed,
            aborted,
            transactions_per_second: committed as f64 / result.seconds,
            latency_us_p50: latencies.quantile_ns(0.5) as f64 / 1e3,
            latency_us_p99: latencies.quantile_ns(0.99) as f64 / 1e3,
            checks: checks.len(),
            checks_failed: checks.iter().filter(|check| !check.passed()).count(),
        }
    }
}

/// One database's turn.
struct Turn<'a> {
    options: &'a CompareOptions,
    subject: Subject,
    name: String,
    view: &'a mut View,
    interrupt: &'a Interrupt,
}

impl Turn<'_> {
    /// Loads a database in a directory that goes afterwards, runs and checks.
    fn run_on<P: Peer>(&mut self) -> Result<(RunResult, Vec<Check>), Failure> {
        let options = self.options;
        let root = options.directory.clone().map_or_else(temporary_root, Ok)?;
        let place = TemporaryDirectory::new(&root)?;
        self.view.stage(&self.name);
        let peer = P::open(place.path(), self.subject.setting)?;
        match self.subject.workload {
            WorkloadName::YcsbB => self.ycsb(peer, "b"),
            WorkloadName::YcsbF => self.ycsb(peer, "f"),
            WorkloadName::YcsbSilo => self.ycsb(peer, "silo"),
            WorkloadName::TransferUniform => self.transfers(peer, Skew::Uniform),
            WorkloadName::TransferZipf => self.transfers(peer, Skew::Zipf(ZIPF_EXPONENT)),
        }
    }

    fn ycsb<P: Peer>(&mut self, peer: P, mix: &str) -> Result<(RunResult, Vec<Check>), Failure> {
        let defaults = YcsbOptions::new(self.subject.workers);
        let mix = mix.parse().unwrap_or(defaults.mix);
        let options = YcsbOptions {
            records: self.options.records,
            distribution: mix.distribution,
            mix,
            seed: self.options.seed,
            ..defaults
        };
        self.measure(&Records::load(peer, options)?)
    }

    fn transfers<P: Peer>(&mut self, peer: P, skew: Skew) -> Result<(RunResult, Vec<Check>), Failure> {
        self.measure(&Transfers::load(peer, self.options.accounts, skew, self.options.seed)?)
    }

    fn measure<W: Workload>(&mut self, workload: &W) -> Result<(RunResult, Vec<Check>), Failure> {
        let options = RunOptions {
            workers: self.subject.workers,
            warmup: self.options.warmup,
            measured: self.options.measured,
            pin: true,
        };
        let result = run(workload, &options, &self.name, self.view, self.interrupt)?;
        let checks = workload.check(self.view, self.interrupt)?;
        for check in checks.iter().filter(|check| !check.passed()) {
            let (name, condition) = (&self.name, check.condition);
            self.view
                .note(&format!("{name}: it does not hold that {condition}: {}", check.examples.join("; ")));
        }
        Ok((result, checks))
    }
}
