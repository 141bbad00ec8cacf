//! Runs a workload on instances, and checks what it leaves.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ensilo::Database;
use ensilo_bench::free_memory_bytes;
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Outcome, Request};
use ensilo_islands::{
    ChannelKind, CommitUnit, InstanceError, InstanceNumber, Islands, IslandsOptions, LoadTime, Placement,
    Plan, Program,
};

use crate::parts::{from_bytes, local_bytes};
use crate::report::IslandsReport;

/// A workload on instances.
pub trait Workload: Sync + Sized {
    /// What runs at each instance.
    type Program: Program;

    /// Returns the name of the workload.
    fn name(&self) -> &'static str;

    /// Returns what the process of an instance is told to run.
    fn program_name(&self) -> &'static str {
        self.name()
    }

    /// Returns whether the program [says](Program::administer) how many nanoseconds parts have taken at its
    /// instance.
    fn is_timed(&self) -> bool {
        false
    }

    /// Returns how many of a hundred transactions are multisite.
    fn multisite_percent(&self) -> u8;

    /// Returns the same workload with so many of a hundred transactions multisite; of those that may be so.
    #[must_use]
    fn with_multisite(&self, percent: u8) -> Self;

    /// Returns what the transactions of [`with_multisite`](Self::with_multisite) with a hundred would be if all of their rows were at the instance
    /// where they begin: what is multisite about those is what they take more than these. Unless they are others than the local ones, that is the
    /// workload without multisite transactions.
    #[must_use]
    fn multisite_made_local(&self) -> Self {
        self.with_multisite(0)
    }

    /// Returns how multisite transactions spread over so many instances.
    fn spread(&self, instances: u16) -> Spread;

    /// Returns how many sites there may be, where so many instances are asked for: no more than what is divided
    /// among them, so that each has something.
    fn sites_max(&self, instances: u16) -> u64;

    /// Returns what the program's [`requests`](Program::requests) is told, where each instance has this number of workers.
    fn description(&self, workers: u16) -> Vec<u8>;

    /// Returns how many bytes of memory the rows of all instances may take, roughly, with what a run adds.
    fn memory_bytes(&self, run: &ensilo_bench::driver::RunOptions) -> u64;

    /// Returns the transactions that load an instance.
    fn loads(&self, number: InstanceNumber) -> Vec<Request>;

    /// Returns how many transactions may be rolled back by themselves where so many have committed: none as a rule.
    fn rejected_max(&self, committed: u64) -> u64 {
        let _ = committed;
        0
    }

    /// Checks the rows of all instances after `committed` transactions, by asking them.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&self, instances: u16, committed: u64, ask: &mut Ask<'_>) -> Result<(), String>;
}

/// Has an instance carry out a part, and returns what that returns, or why it has failed.
pub type Ask<'a> = dyn FnMut(u16, Vec<u8>) -> Result<Vec<u8>, String> + 'a;

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Where the instances are.
    pub plan: Plan,
    /// How the plan was made.
    pub placement: Placement,
    /// How many workers each instance has, at least one.
    pub workers: u16,
    /// What carries messages.
    pub channel: ChannelKind,
    /// The program that is the process of an instance, and its arguments, to which `--prefault-bytes N` is added; `None` for threads of this process.
    pub command: Option<(PathBuf, Vec<String>)>,
    /// How many bytes all instances together take from the system before they are loaded, so that a run does not wait for it; `None` for what the run
    /// may need, at most a third of the memory that is free.
    pub prefault_bytes: Option<u64>,
    /// Where instances are stored; `None` in memory.
    pub directory: Option<PathBuf>,
    /// What is stored at all instances at once, where they are stored.
    pub unit: CommitUnit,
    /// How many transactions each worker has under way, at least one.
    pub width: usize,
    /// How long what is made does not count, and how long it counts.
    pub time: LoadTime,
}

impl RunOptions {
    /// Checks that there is something for every worker.
    ///
    /// # Errors
    /// [`RunError::TooManyWorkers`].
    pub fn check(&self, workload: &impl Workload) -> Result<(), RunError> {
        let instances = self.plan.instances().len() as u16;
        let workers = u64::from(instances) * u64::from(self.workers);
        let sites = workload.sites_max(instances);
        if workers > sites { Err(RunError::TooManyWorkers { sites }) } else { Ok(()) }
    }

    /// Returns how many bytes each instance takes from the system before it is loaded.
    fn prefault_bytes(&self, workload: &impl Workload) -> u64 {
        let instances = self.plan.instances().len();
        let of_all = self.prefault_bytes.unwrap_or_else(|| {
            let run = ensilo_bench::driver::RunOptions {
                workers: usize::from(self.workers) * instances,
                warmup: self.time.warmup,
                measured: self.time.measured,
                pin: true,
            };
            workload.memory_bytes(&run).min(free_memory_bytes() / 3)
        });
        of_all / instances.max(1) as u64
    }
}

/// Why a run has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The instances could not be opened.
    Open(InstanceError),
    /// There are more workers than there is to be divided among them: `sites` is how many there may be.
    TooManyWorkers {
        /// How many there may be.
        sites: u64,
    },
    /// The workload cannot be divided among all cores of the machine that is to be advised about.
    TooFewSites {
        /// How many rows, or what else is divided, there are.
        sites: u64,
        /// How many cores there are.
        cores: usize,
    },
    /// A transaction that loads or sums up has failed.
    Refused(String),
    /// No transaction is multisite over two instances, so what others would cost cannot be measured.
    NoMultisite,
    /// There is no directory for files: why not.
    Directory(String),
    /// The workers could not make their transactions.
    Load(ensilo::Error),
    /// Some were refused that should not have been.
    Rejected(u64),
    /// No transaction has committed in this time.
    NoneCommitted(Duration),
    /// The rows are not what they should be.
    Inconsistent(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Open(error) => error.fmt(f),
            RunError::TooManyWorkers { sites } => {
                write!(
                    f,
                    "there is not enough for so many workers: {sites} of them would each have one; take fewer islands or more rows"
                )
            }
            RunError::TooFewSites { sites, cores } => write!(
                f,
                "the machine has {cores} cores, and there are only {sites} rows or keys to divide among them: ask about more rows, or record more transactions"
            ),
            RunError::Refused(message) => write!(f, "an instance cannot be loaded or read: {message}"),
            RunError::NoMultisite => f.write_str(
                "no transaction has rows at both of two instances, so what those with rows at several of the described machine cost cannot be measured here",
            ),
            RunError::Directory(message) => f.write_str(message),
            RunError::Load(error) => write!(f, "the workers make no transactions: {error}"),
            RunError::Rejected(count) => write!(f, "{count} transactions were refused"),
            RunError::NoneCommitted(time) => {
                write!(f, "no transaction has committed in {time:?}: measure for longer")
            }
            RunError::Inconsistent(what) => write!(f, "the rows are not consistent: {what}"),
        }
    }
}

impl std::error::Error for RunError {}

/// Loads the instances, runs a workload on them, and checks what it leaves. It tells `progress` what it does next.
///
/// # Errors
/// [`RunError`].
pub fn run<W: Workload>(
    workload: &W,
    options: RunOptions,
    mut progress: impl FnMut(&str),
) -> Result<IslandsReport, RunError> {
    options.check(workload)?;
    let prefault_bytes = options.prefault_bytes(workload);
    let RunOptions { plan, placement, workers, channel, command, directory, unit, width, time, .. } = options;
    let count = plan.instances().len();
    let (is_oversubscribed, processes, durable) =
        (plan.is_oversubscribed(), command.is_some(), directory.is_some());
    let mut islands = IslandsOptions::new(plan).workers(workers).channel(channel);
    islands = islands.database(move || Database::options().prefault_bytes(prefault_bytes));
    if let Some(directory) = directory {
        islands = islands.directory(directory).commit_unit(unit);
    }
    if let Some((program, arguments)) = command {
        islands = islands.processes(move || {
            let mut command = Command::new(&program);
            command.args(&arguments).args(["--prefault-bytes", &prefault_bytes.to_string()]);
            command
        });
    }
    if prefault_bytes > 0 {
        progress(&format!("taking {} MiB of memory for each island", prefault_bytes >> 20));
    }
    let islands = islands.open::<W::Program>().map_err(RunError::Open)?;
    progress(&format!("loading {count} islands"));
    load(workload, &islands)?;
    progress(&format!("running for {:.1} s", (time.warmup + time.measured).as_secs_f64()));
    let before = nanos_in_parts(workload, &islands)?;
    let made = islands.run_load(width, time, &workload.description(workers)).map_err(RunError::Load)?;
    let in_parts = nanos_in_parts(workload, &islands)?;
    if made.rejected > workload.rejected_max(made.committed_in_all) {
        return Err(RunError::Rejected(made.rejected));
    }
    progress("checking the rows");
    let mut ask =
        |instance, part| transact(&islands, instance, &local_bytes(part)).map_err(|error| error.to_string());
    workload.check(count as u16, made.committed_in_all, &mut ask).map_err(RunError::Inconsistent)?;
    let in_parts_us = before.zip(in_parts).map(|(before, after)| {
        Duration::from_nanos(after - before).as_secs_f64() * 1e6 / made.committed_in_all.max(1) as f64
    });
    let micros = |share| Duration::from_nanos(made.nanos.value_at_quantile(share)).as_secs_f64() * 1e6;
    Ok(IslandsReport {
        workload: workload.name(),
        islands: count,
        workers_per_island: workers,
        placement: placement.name().to_owned(),
        is_oversubscribed,
        channel: channel.name().to_owned(),
        processes,
        durable,
        commit_unit: durable.then(|| unit.name()),
        width,
        multisite_percent: workload.multisite_percent(),
        seconds: time.measured.as_secs_f64(),
        prefault_bytes: prefault_bytes * count as u64,
        throughput: made.committed as f64 / time.measured.as_secs_f64(),
        retried: made.retried,
        waited: made.waited,
        latency_us_p50: micros(0.5),
        latency_us_p99: micros(0.99),
        in_parts_us,
    })
}

/// Returns how many nanoseconds parts have taken at all instances; `None` where they are not timed.
fn nanos_in_parts<W: Workload>(workload: &W, islands: &Islands<W::Program>) -> Result<Option<u64>, RunError> {
    let of_instance = |instance| {
        let nanos = islands.administer(instance, &[]).map_err(|refusal| refusal.to_string())?;
        from_bytes::<u64>(&nanos).map_err(|error| error.to_string())
    };
    let sum = || (0..islands.instances() as u16).map(of_instance).sum::<Result<u64, String>>();
    workload.is_timed().then(|| sum().map_err(RunError::Refused)).transpose()
}

fn load<W: Workload>(workload: &W, islands: &Islands<W::Program>) -> Result<(), RunError> {
    let instances = islands.instances() as u16;
    std::thread::scope(|scope| {
        let load_one = |instance| {
            let loads = workload.loads(InstanceNumber { instance, instances });
            loads.iter().try_for_each(|request| transact(islands, instance, request).map(drop))
        };
        let loading: Vec<_> =
            (0..instances).map(|instance| scope.spawn(move || load_one(instance))).collect();
        loading
            .into_iter()
            .try_for_each(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn transact<P: Program>(islands: &Islands<P>, instance: u16, request: &Request) -> Result<Vec<u8>, RunError> {
    match islands.transact(instance, request) {
        Outcome::Committed { local, .. } => Ok(local.unwrap_or_default()),
        Outcome::Aborted(refusal) => Err(RunError::Refused(refusal.to_string())),
        Outcome::Unknown(message) => Err(RunError::Refused(message)),
    }
}
