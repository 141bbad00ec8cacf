//! Every database under every workload, at both settings, taking turns.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};
use ensilo::{Engine, Silo};
use ensilo_bench::driver::{Check, Failure, Interrupt, RunOptions, RunResult, View, Workload, run};
use ensilo_bench::peer::{EnsiloOn, Peer, Setting, open_ensilo};
use ensilo_bench::tpcc::{ReadOnly, Scale, TpccOf, TpccOptions, Whole};
use ensilo_bench::transfer::{Skew, Transfers};
use ensilo_bench::ycsb::YcsbOptions;
use ensilo_bench::{TemporaryDirectory, temporary_root};
use ensilo_figures::compare::{PeerRun, RunSubject};
use ensilo_figures::latency::LatencyRun;
use ensilo_figures::{Course, command_line};

#[cfg(feature = "rocksdb")]
use crate::engine::RocksDb;
use crate::engine::{Fjall, KeyValue, Lmdb, OrderedStore, OrderedTable, Postgres, Redb, Sqlite};
use crate::names::{PeerName, WorkloadName};
use crate::workload::{LoadedRows, OrderedTpcc, OwnTpcc, PeerTpcc, Records, RelationalTpcc, TpccPeer};

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
    /// Warehouses of TPC-C, at least 1.
    pub warehouses: u16,
    /// How much there is of everything else in TPC-C.
    pub tpcc_scale: Scale,
    /// How long each run measures.
    pub measured: Duration,
    /// Time before anything is counted.
    pub warmup: Duration,
    /// Runs of each, at least 1.
    pub runs: usize,
    /// Where databases are made, each to be removed after its run; the system's directory of temporary files if `None`.
    pub directory: Option<PathBuf>,
    /// How PostgreSQL is reached, where it is compared; see [`Postgres::open`].
    pub postgres: Option<String>,
    /// Where all random numbers come from.
    pub seed: u64,
}

/// Threads that load TPC-C into Ensilo.
const LOADERS: usize = 32;

/// The exponent of Zipf's law for transfers.
const ZIPF_EXPONENT: f64 = 1.5;

/// One of the things that are compared, which all databases do in turn.
#[derive(Debug, Clone, Copy)]
struct Subject {
    workload: WorkloadName,
    setting: Setting,
    workers: usize,
}

/// What a run measured, what its check says, and how many rows had been loaded.
#[derive(Debug)]
struct Measured {
    result: RunResult,
    checks: Vec<Check>,
    rows: u64,
}

/// Makes all runs, each against a database loaded anew, and gives each finished one to `keep`. Ends early, without an error, when
/// `interrupt` is raised.
///
/// # Errors
/// The first failure of a database, or of `keep`; [`Failure::Refused`], before any run, if a database cannot be compared here.
pub fn compare(
    options: &CompareOptions,
    view: &mut View,
    interrupt: &Interrupt,
    mut keep: impl FnMut(PeerRun) -> Result<(), Failure>,
) -> Result<(), Failure> {
    options.refuse_what_is_not_there()?;
    let mut course = Course::new(options.run_count());
    let mut tpcc_rows = None;
    for subject in options.subjects() {
        if subject.workload != WorkloadName::Tpcc {
            tpcc_rows = None;
        }
        for number in 1..=options.runs {
            for &peer in &options.peers {
                let name = options.name_of(subject, peer, number);
                let phase = course.phase(&name, options.measured + options.warmup);
                let turn = Turn { options, subject, name, phase, view, interrupt, tpcc_rows: &mut tpcc_rows };
                match turn.take(peer) {
                    Ok(measured) if !interrupt.is_raised() => {
                        keep(peer_run(subject, peer, number, &measured))?;
                        course.end_one();
                    }
                    Ok(_) | Err(Failure::Interrupted) => return Ok(()),
                    Err(failure) => return Err(failure),
                }
            }
        }
    }
    Ok(())
}

/// Makes a run of synced transfers between accounts that are chosen uniformly, which the view calls `phase`.
pub(crate) fn measure_transfers(
    options: &CompareOptions,
    peer: PeerName,
    run: LatencyRun,
    phase: &str,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<PeerRun, Failure> {
    let subject =
        Subject { workload: WorkloadName::TransferUniform, setting: Setting::Synced, workers: run.clients };
    let (name, phase) = (options.name_of(subject, peer, run.number), phase.to_owned());
    let turn = Turn { options, subject, name, phase, view, interrupt, tpcc_rows: &mut None };
    Ok(peer_run(subject, peer, run.number, &turn.take(peer)?))
}

impl CompareOptions {
    /// How many runs there are.
    pub fn run_count(&self) -> usize {
        self.subjects().len() * self.peers.len() * self.runs
    }

    /// A database that cannot be compared is a reason to compare none.
    fn refuse_what_is_not_there(&self) -> Result<(), Failure> {
        if self.peers.contains(&PeerName::Postgresql) {
            // A server that does not answer, or a schema that exists, is reported before the first run.
            drop(Postgres::open(self.postgres()?, Setting::NotSynced)?);
        }
        if self.peers.contains(&PeerName::Rocksdb) && !PeerName::HAS_ROCKSDB {
            return Err(refused(NO_ROCKSDB));
        }
        Ok(())
    }

    /// How PostgreSQL is reached.
    fn postgres(&self) -> Result<&str, Failure> {
        let address = self.postgres.as_deref();
        address.ok_or_else(|| refused("PostgreSQL is compared where its address is given"))
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

    fn name_of(&self, subject: Subject, peer: PeerName, number: usize) -> String {
        let Subject { workload, setting, workers } = subject;
        format!("{peer} {workload}, {setting}, {workers} clients, run {number}")
    }

    /// TPC-C for so many clients. Questions are answered of now, as the others answer them, not of a second ago.
    fn tpcc(&self, workers: usize) -> TpccOptions {
        TpccOptions {
            warehouses: self.warehouses,
            scale: self.tpcc_scale,
            read_only: ReadOnly::Ordinary,
            seed: self.seed,
            ..TpccOptions::new(workers)
        }
    }
}

const NO_ROCKSDB: &str = "RocksDB is compared by a program that was built with the feature `rocksdb`";

fn refused(why: &str) -> Failure {
    Failure::Refused(why.to_owned())
}

/// The user's command, without what may hold a password.
fn own_command(arguments: impl Iterator<Item = String>) -> String {
    const SECRET: &str = "--postgres";
    let mut is_secret = false;
    let hidden = arguments.map(|argument| {
        let hides = std::mem::replace(&mut is_secret, argument == SECRET);
        match argument.split_once('=') {
            _ if hides => "...".to_owned(),
            Some((SECRET, _)) => format!("{SECRET}=..."),
            _ => argument,
        }
    });
    command_line(&hidden.collect::<Vec<_>>())
}

fn peer_run(subject: Subject, peer: PeerName, number: usize, measured: &Measured) -> PeerRun {
    let subject = RunSubject {
        workload: subject.workload.name(),
        setting: subject.setting.name(),
        workers: subject.workers,
        peer: peer.name(),
        isolation: peer.isolation(subject.workload),
        rows: measured.rows,
        run: number,
    };
    PeerRun::new(subject, &measured.result, &measured.checks, own_command(std::env::args().skip(1)))
}

/// One database's turn.
struct Turn<'a> {
    options: &'a CompareOptions,
    subject: Subject,
    name: String,
    /// What the view calls it.
    phase: String,
    view: &'a mut View,
    interrupt: &'a Interrupt,
    /// The rows of TPC-C, once they are made.
    tpcc_rows: &'a mut Option<LoadedRows>,
}

impl Turn<'_> {
    /// Loads a database in a directory that goes afterwards, runs and checks.
    fn take(mut self, peer: PeerName) -> Result<Measured, Failure> {
        let root = self.options.directory.clone().map_or_else(temporary_root, Ok)?;
        let place = TemporaryDirectory::new(&root)?;
        self.view.stage(&self.phase);
        let (place, setting) = (place.path(), self.subject.setting);
        let is_tpcc = self.subject.workload == WorkloadName::Tpcc;
        match peer {
            PeerName::Ensilo => self.run_on_ensilo::<Silo>(place),
            PeerName::EnsiloErmia => self.run_on_ensilo::<Ermia>(place),
            PeerName::EnsiloErmiaSnapshot => self.run_on_ensilo::<Ermia<SnapshotIsolation>>(place),
            PeerName::EnsiloTwoPhaseLocking => self.run_on_ensilo::<TwoPhaseLocking>(place),
            PeerName::EnsiloTwoPhaseLockingNoWait => self.run_on_ensilo::<TwoPhaseLocking<NoWait>>(place),
            PeerName::Sqlite => self.run_on_store::<Sqlite>(place),
            PeerName::Lmdb => self.run_on_store::<Lmdb>(place),
            PeerName::Redb => self.run_on_store::<Redb>(place),
            PeerName::Fjall => self.run_on_store::<Fjall>(place),
            #[cfg(feature = "rocksdb")]
            PeerName::Rocksdb => self.run_on_store::<RocksDb>(place),
            #[cfg(not(feature = "rocksdb"))]
            PeerName::Rocksdb => Err(refused(NO_ROCKSDB)),
            PeerName::Postgresql => {
                let address = self.options.postgres()?;
                if is_tpcc {
                    self.tpcc(|rows| RelationalTpcc::load(address, setting, rows))
                } else {
                    self.run_on(Postgres::open(address, setting)?)
                }
            }
        }
    }

    fn run_on_ensilo<E: Engine>(&mut self, place: &Path) -> Result<Measured, Failure> {
        if self.subject.workload == WorkloadName::Tpcc {
            self.tpcc_on_ensilo::<E>(place)
        } else {
            self.run_on(EnsiloOn::<E>::open(place, self.subject.setting)?)
        }
    }

    fn run_on_store<S: OrderedStore>(&mut self, place: &Path) -> Result<Measured, Failure> {
        let setting = self.subject.setting;
        if self.subject.workload == WorkloadName::Tpcc {
            let store = S::open(place, setting, &OrderedTable::TPCC)?;
            self.tpcc(|rows| OrderedTpcc::load(store, rows))
        } else {
            self.run_on(KeyValue::<S>::open(place, setting)?)
        }
    }

    fn run_on<P: Peer>(&mut self, peer: P) -> Result<Measured, Failure> {
        match self.subject.workload {
            WorkloadName::YcsbB => self.ycsb(peer, "b"),
            WorkloadName::YcsbF => self.ycsb(peer, "f"),
            WorkloadName::YcsbSilo => self.ycsb(peer, "silo"),
            WorkloadName::TransferUniform => self.transfers(peer, Skew::Uniform),
            WorkloadName::TransferZipf => self.transfers(peer, Skew::Zipf(ZIPF_EXPONENT)),
            WorkloadName::Tpcc => unreachable!("TPC-C has tables of its own"),
        }
    }

    fn ycsb<P: Peer>(&mut self, peer: P, mix: &str) -> Result<Measured, Failure> {
        let defaults = YcsbOptions::new(self.subject.workers);
        let mix = mix.parse().unwrap_or(defaults.mix);
        let options = YcsbOptions {
            records: self.options.records,
            distribution: mix.distribution,
            mix,
            seed: self.options.seed,
            ..defaults
        };
        self.measure(&Records::load(peer, options)?, self.options.records)
    }

    fn transfers<P: Peer>(&mut self, peer: P, skew: Skew) -> Result<Measured, Failure> {
        let CompareOptions { accounts, seed, .. } = *self.options;
        self.measure(&Transfers::load(peer, accounts, skew, seed)?, accounts)
    }

    /// TPC-C on what `load` makes of the rows.
    fn tpcc<P: TpccPeer>(
        &mut self,
        load: impl FnOnce(&LoadedRows) -> Result<P, Failure>,
    ) -> Result<Measured, Failure> {
        let options = self.options.tpcc(self.subject.workers);
        let loaded = self.loaded_rows(&options)?;
        let (rows, peer) = (loaded.len(), load(loaded)?);
        self.measure(&PeerTpcc::new(peer, options), rows)
    }

    /// The rows of TPC-C, which are made once.
    fn loaded_rows(&mut self, options: &TpccOptions) -> Result<&LoadedRows, Failure> {
        let loaded = match self.tpcc_rows.take() {
            Some(loaded) => loaded,
            None => LoadedRows::new(options, self.view, self.interrupt)?,
        };
        Ok(self.tpcc_rows.insert(loaded))
    }

    /// Ensilo's own workload, with its own statements; each client waits for its answer as elsewhere.
    fn tpcc_on_ensilo<E: Engine>(&mut self, place: &Path) -> Result<Measured, Failure> {
        let database = open_ensilo::<E>(place, self.subject.setting)?;
        let options = self.options.tpcc(self.subject.workers);
        // Many threads, because each waits for the disk.
        let loading = TpccOptions { workers: LOADERS, ..options.clone() };
        TpccOf::<Whole<E>>::load(loading, database.clone(), self.view, self.interrupt)?;
        let rows = database.statistics()?.tables.iter().map(|table| table.records).sum();
        self.measure(&OwnTpcc::open(options, database)?, rows)
    }

    fn measure<W: Workload>(&mut self, workload: &W, rows: u64) -> Result<Measured, Failure> {
        let options = RunOptions {
            workers: self.subject.workers,
            warmup: self.options.warmup,
            measured: self.options.measured,
            pin: true,
        };
        let result = run(workload, &options, &self.phase, self.view, self.interrupt)?;
        let checks = workload.check(self.view, self.interrupt)?;
        for check in checks.iter().filter(|check| !check.passed()) {
            let (name, condition) = (&self.name, check.condition);
            self.view
                .note(&format!("{name}: it does not hold that {condition}: {}", check.examples.join("; ")));
        }
        Ok(Measured { result, checks, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_noted_without_passwords() {
        let noted = |words: &[&str]| own_command(words.iter().map(|&word| word.to_owned()));
        let secret = "host=here password=secret";
        assert_eq!(
            noted(&["compare", "--postgres", secret, "--runs", "1"]),
            "ensilo compare --postgres ... --runs 1"
        );
        assert_eq!(noted(&["compare", &format!("--postgres={secret}")]), "ensilo compare --postgres=...");
    }
}
