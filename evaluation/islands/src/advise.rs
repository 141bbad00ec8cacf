//! Measures what the transactions of a workload cost, for the advisor of `ensilo-islands`.

use std::path::PathBuf;
use std::time::Duration;

use ensilo_islands::advisor::Costs;
use ensilo_islands::{ChannelKind, Instances, LoadTime, Placement, Plan, Topology};

use crate::micro::MicroOptions;
use crate::run::{RunError, RunOptions, Workload, run};

/// The rows of the transactions that two-phase commit is measured with: few, so that it is most of what they take.
const ROWS_PER_TRANSACTION: u64 = 2;

/// Rows enough that they are seldom in each other's way.
const ROWS: u64 = 20_000;

/// So many transactions under way at each worker leave no time to wait for votes.
const WIDTH_WITHOUT_WAIT: usize = 16;

/// How something is measured.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// The machine.
    pub topology: Topology,
    /// What carries messages.
    pub channel: ChannelKind,
    /// The program that is the process of an instance, which gets `instance` and the name of the workload as arguments; `None` for threads of this process.
    pub program: Option<PathBuf>,
    /// How many transactions each worker has under way.
    pub width: usize,
    /// How long each run is measured.
    pub time: Duration,
}

/// How instances are laid out in a run.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// How many there are.
    pub instances: usize,
    /// How many workers each has.
    pub workers: u16,
    /// How many transactions each worker has under way.
    pub width: usize,
}

impl MeasureOptions {
    /// Runs a workload, and returns how many transactions commit in a second.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn throughput<W: Workload>(
        &self,
        workload: &W,
        Layout { instances, workers, width }: Layout,
        mut progress: impl FnMut(&str),
    ) -> Result<f64, RunError> {
        let placement = Placement::Group;
        let arguments = vec!["instance".to_owned(), workload.name().to_owned()];
        let options = RunOptions {
            plan: Plan::new(&self.topology, Instances::Count(instances), placement),
            placement,
            workers,
            channel: self.channel,
            command: self.program.clone().map(|program| (program, arguments)),
            directory: None,
            width,
            time: LoadTime { warmup: self.time / 4, measured: self.time },
        };
        let name = workload.name();
        progress(&format!("{name}: {instances} instances, {workers} workers each, {width} at a time"));
        Ok(run(workload, options, |_| ())?.throughput)
    }

    /// Measures what the transactions of a workload cost. The machine has two cores at least.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn costs<W: Workload>(
        &self,
        workload: &W,
        mut progress: impl FnMut(&str),
    ) -> Result<Costs, RunError> {
        let workers = self.topology.cores().len() as u16;
        // All processors are busy in both runs, so that they differ in what is shared alone.
        let mut nanos = |workload: &W, instances: u16| -> Result<f64, RunError> {
            let layout =
                Layout { instances: instances.into(), workers: workers / instances, width: self.width };
            let throughput = self.throughput(workload, layout, &mut progress)?;
            Ok(f64::from(workers) * 1e9 / throughput)
        };
        let (local, shared) = (nanos(&workload.all_local(), workers)?, nanos(workload, 1)?);
        let (part, wait) = self.costs_of_parts(workload.writes(), &mut progress)?;
        let others = f64::from(workers - 1);
        let sharing = ((shared - local) * (others + 1.0) / others).max(0.0);
        Ok(Costs { local, sharing, part, wait })
    }

    /// Returns what a participant costs, and how long votes are waited for.
    fn costs_of_parts(&self, updates: bool, progress: &mut impl FnMut(&str)) -> Result<(f64, f64), RunError> {
        let micro = |multisite_percent| MicroOptions {
            rows: ROWS,
            rows_per_transaction: ROWS_PER_TRANSACTION,
            updates,
            multisite_percent,
            skew: 0.0,
        };
        let mut nanos = |multisite: u8, width| -> Result<f64, RunError> {
            let layout = Layout { instances: 2, workers: 1, width };
            Ok(2.0 * 1e9 / self.throughput(&micro(multisite), layout, &mut *progress)?)
        };
        let (local, busy, waiting) = (nanos(0, 1)?, nanos(100, WIDTH_WITHOUT_WAIT)?, nanos(100, 1)?);
        let distributed = micro(100).spread(2).distributed;
        Ok((((busy - local) / distributed).max(0.0), ((waiting - busy) / distributed).max(0.0)))
    }
}
