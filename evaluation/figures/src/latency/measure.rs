//! The runs.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use ensilo_bench::driver::{Failure, Interrupt, RunOptions, View, Workload, run};
use ensilo_bench::peer::{Ensilo, Setting};
use ensilo_bench::transfer::{Skew, Transfers};
use ensilo_bench::{SyncedWrites, TemporaryDirectory, temporary_root, warn_if_in_memory};

use crate::compare::{PeerRun, RunSubject};
use crate::progress::Course;
use crate::table::command_line;

/// What to measure, and for how long.
#[derive(Debug, Clone)]
pub struct LatencyOptions {
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Accounts between which money is transferred, at least 2.
    pub accounts: u64,
    /// How long each run measures.
    pub measured: Duration,
    /// Time before anything is counted.
    pub warmup: Duration,
    /// Runs of each.
    pub runs: usize,
    /// Where all random numbers come from.
    pub seed: u64,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// One client's writes of 4 KiB with a sync of each.
    Disk,
    /// Ensilo.
    Ensilo,
    /// Another database, by its name.
    Other(&'static str),
}

/// A single run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyRun {
    /// What is measured.
    pub measured: Measured,
    /// Client threads, each with one request at a time.
    pub clients: usize,
    /// The number of the run, from 1.
    pub number: usize,
}

/// Databases other than Ensilo, which this crate does not know.
pub trait OtherDatabases {
    /// Their names in results.
    fn names(&self) -> Vec<&'static str>;

    /// The names of those that could be measured and are not at hand.
    fn missing(&self) -> Vec<&'static str>;

    /// Makes a run of the database `name` with the same accounts and transfers. `phase` is what the view calls it.
    ///
    /// # Errors
    /// A failure of the database.
    fn measure(
        &self,
        name: &str,
        run: LatencyRun,
        phase: &str,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<PeerRun, Failure>;
}

/// The name of the disk in results.
pub(super) const DISK: &str = "disk";
/// The name of Ensilo in results.
const OWN: &str = "ensilo";
/// About how long a run takes beside what it measures: the load and the check.
const LOAD: Duration = Duration::from_millis(700);

impl Default for LatencyOptions {
    /// From 1 to 64 clients in powers of two, three runs of a second.
    fn default() -> Self {
        Self {
            clients: (0..=6).map(|power| 1 << power).collect(),
            accounts: 100_000,
            measured: Duration::from_secs(1),
            warmup: Duration::from_millis(250),
            runs: 3,
            seed: 1,
        }
    }
}

impl LatencyOptions {
    /// Every run with these databases beside Ensilo, in order. What is compared takes turns.
    pub fn plan(&self, others: &[&'static str]) -> Vec<LatencyRun> {
        let databases = || [Measured::Ensilo].into_iter().chain(others.iter().copied().map(Measured::Other));
        let of_number = |number| {
            let disk = LatencyRun { measured: Measured::Disk, clients: 1, number };
            let of_clients = move |&clients: &usize| {
                databases().map(move |measured| LatencyRun { measured, clients, number })
            };
            [disk].into_iter().chain(self.clients.iter().flat_map(of_clients)).collect::<Vec<_>>()
        };
        (1..=self.runs).flat_map(of_number).collect()
    }

    /// About how long so many runs take.
    pub fn estimate(&self, runs: usize) -> Duration {
        (self.warmup + self.measured + LOAD) * u32::try_from(runs).unwrap_or(u32::MAX)
    }
}

impl Measured {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => DISK,
            Self::Ensilo => OWN,
            Self::Other(name) => name,
        }
    }
}

impl fmt::Display for LatencyRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { measured, clients, number } = self;
        let plural = if *clients == 1 { "client" } else { "clients" };
        write!(f, "{}, {clients} {plural}, run {number}", measured.name())
    }
}

/// Makes all runs, each against a database loaded anew, and gives each finished one to `keep`. Ends early, without an error, when
/// `interrupt` is raised.
///
/// # Errors
/// The first failure of a database, of the disk, or of `keep`.
pub fn measure_latency(
    options: &LatencyOptions,
    others: Option<&dyn OtherDatabases>,
    view: &mut View,
    interrupt: &Interrupt,
    mut keep: impl FnMut(PeerRun) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let root = temporary_root()?;
    warn_if_in_memory(&root, view);
    let plan = options.plan(&others.map_or_else(Vec::new, |others| others.names()));
    let mut course = Course::new(plan.len());
    for run in plan {
        let phase = course.phase(&run.to_string(), options.warmup + options.measured);
        view.stage(&phase);
        let measured = match (run.measured, others) {
            (Measured::Disk, _) => options.measure_disk(&root, run, interrupt),
            (Measured::Other(name), Some(others)) => others.measure(name, run, &phase, view, interrupt),
            _ => options.measure_ensilo(&root, run, &phase, view, interrupt),
        };
        match measured {
            Ok(measured) if !interrupt.is_raised() => keep(measured)?,
            Ok(_) | Err(Failure::Interrupted) => return Ok(()),
            Err(failure) => return Err(failure),
        }
        course.end_one();
    }
    Ok(())
}

impl LatencyOptions {
    fn measure_disk(&self, root: &Path, run: LatencyRun, interrupt: &Interrupt) -> Result<PeerRun, Failure> {
        let place = TemporaryDirectory::new(root)?;
        let writes = SyncedWrites::measure(place.path(), self.warmup, self.measured, interrupt)?;
        let subject = subject(run, "write-4-kib", "none", 0);
        Ok(PeerRun::of_latencies(subject, writes.seconds, &writes.latencies, own_command()))
    }

    fn measure_ensilo(
        &self,
        root: &Path,
        of: LatencyRun,
        phase: &str,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<PeerRun, Failure> {
        let place = TemporaryDirectory::new(root)?;
        let database = Ensilo::open(place.path(), Setting::Synced)?;
        let transfers = Transfers::load(database, self.accounts, Skew::Uniform, self.seed)?;
        let options =
            RunOptions { workers: of.clients, warmup: self.warmup, measured: self.measured, pin: true };
        let result = run(&transfers, &options, phase, view, interrupt)?;
        let checks = transfers.check(view, interrupt)?;
        let subject = subject(of, "transfer-uniform", "serializable", self.accounts);
        Ok(PeerRun::new(subject, &result, &checks, own_command()))
    }
}

fn subject(
    run: LatencyRun,
    workload: &'static str,
    isolation: &'static str,
    rows: u64,
) -> RunSubject<'static> {
    RunSubject {
        workload,
        setting: Setting::Synced.name(),
        workers: run.clients,
        peer: run.measured.name(),
        isolation,
        rows,
        run: run.number,
    }
}

/// The user's command.
fn own_command() -> String {
    command_line(&std::env::args().skip(1).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
