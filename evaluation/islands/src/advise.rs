//! Measures what the transactions of a workload cost, for the advisor of `ensilo-islands`.

use std::path::PathBuf;
use std::time::Duration;

use ensilo_islands::advisor::Costs;
use ensilo_islands::{ChannelKind, CommitUnit, Instances, LoadTime, Placement, Plan, Topology};

use crate::run::{RunError, RunOptions, Workload, run};

/// So many transactions under way at each worker leave no time to wait for votes.
const WIDTH_WITHOUT_WAIT: usize = 16;

/// How something is measured.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// The machine.
    pub topology: Topology,
    /// What carries messages.
    pub channel: ChannelKind,
    /// The program that is the process of an instance, which gets `instance` and the name of the workload as arguments; `None` for threads of this
    /// process.
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
        let arguments = vec!["instance".to_owned(), workload.program_name().to_owned()];
        let options = RunOptions {
            plan: Plan::new(&self.topology, Instances::Count(instances), placement),
            placement,
            workers,
            channel: self.channel,
            command: self.program.clone().map(|program| (program, arguments)),
            directory: None,
            unit: CommitUnit::Transaction,
            width,
            time: LoadTime { warmup: self.time / 4, measured: self.time },
        };
        let name = workload.name();
        progress(&format!("{name}: {instances} instances, {workers} workers each, {width} at a time"));
        Ok(run(workload, options, |_| ())?.throughput)
    }

    /// Measures what the transactions of a workload cost: local ones, all of them at one instance, and multisite ones at two. The machine has two
    /// cores at least.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn costs<W: Workload>(
        &self,
        workload: &W,
        mut progress: impl FnMut(&str),
    ) -> Result<Costs, RunError> {
        let cores = self.topology.cores().len();
        let mut nanos = |workload: &W, instances: usize, workers: u16, width: usize| {
            let layout = Layout { instances, workers, width };
            let throughput = self.throughput(workload, layout, &mut progress)?;
            Ok::<f64, RunError>(instances as f64 * f64::from(workers) * 1e9 / throughput)
        };
        // All processors are busy in both, so that they differ in what is shared alone.
        let local = nanos(&workload.with_multisite(0), cores, 1, self.width)?;
        let shared = nanos(workload, 1, cores as u16, self.width)?;
        let (all_multisite, spread) = (workload.with_multisite(100), workload.spread(2));
        let busy = nanos(&all_multisite, 2, 1, WIDTH_WITHOUT_WAIT)?;
        let waiting = nanos(&all_multisite, 2, 1, 1)?;
        let share = f64::from(all_multisite.multisite_percent()) / 100.0;
        let others = (cores - 1) as f64;
        Ok(Costs {
            local,
            sharing: ((shared - local) * (others + 1.0) / others).max(0.0),
            part: ((busy - local) / (share * spread.others)).max(0.0),
            wait: ((waiting - busy) / (share * spread.distributed)).max(0.0),
        })
    }
}
