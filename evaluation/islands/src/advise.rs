//! Measures what the transactions of a workload cost, for the advisor of `ensilo-islands`, and how good its advice is.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use ensilo_bench::{TemporaryDirectory, temporary_root};
use ensilo_islands::advisor::{Costs, Demand, Distances, Prediction, Storing, predict_all};
use ensilo_islands::{ChannelKind, CommitUnit, Instances, LoadTime, Placement, Plan, Topology};

use crate::run::{RunError, RunOptions, Workload, run};

/// Where none commits in the time that is measured, it is measured once more for so many times as long.
const LONGER: u32 = 10;

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
    /// What is stored at all instances at once, in temporary directories; `None` in memory.
    pub stored: Option<CommitUnit>,
    /// How long each run is measured. What is stored runs as long before that, and what is in memory for a quarter.
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

/// A machine that is to be advised about.
#[derive(Debug)]
pub struct Target<'a, W> {
    /// Its cores.
    pub topology: &'a Topology,
    /// How far these are from each other.
    pub distances: &'a Distances,
    /// The workload as it is there: with as much of everything as that machine's workers need.
    pub workload: &'a W,
}

/// What the advisor says of a workload, and what it is worth.
#[derive(Clone, Debug)]
pub struct Assessment {
    /// What its transactions cost.
    pub costs: Costs,
    /// What is expected of each size, the smallest islands first.
    pub predictions: Vec<Prediction>,
    /// Transactions a second that each size was measured with, if it was.
    pub measured: Option<Vec<f64>>,
    /// In the runs that costs come from, how many conflicts and waits there were for each transaction that has committed, at most: what they cost
    /// differs from size to size, which the prediction does not know.
    pub conflicts: f64,
    /// How many cores the machine has more than this one, where costs were measured.
    pub unmeasured_cores: usize,
}

impl Assessment {
    /// Returns which of the predictions is the best one.
    #[must_use]
    pub fn recommended(&self) -> usize {
        best_of(self.predictions.iter().map(|size| size.throughput))
    }

    /// Returns which of the sizes was measured to be the best one, and which share of its throughput the recommended one has; `None` where nothing
    /// was measured.
    #[must_use]
    pub fn verified(&self) -> Option<(usize, f64)> {
        let measured = self.measured.as_ref()?;
        let best = best_of(measured.iter().copied());
        Some((best, measured[self.recommended()] / measured[best]))
    }
}

fn best_of(throughputs: impl Iterator<Item = f64>) -> usize {
    throughputs.enumerate().max_by(|(_, first), (_, second)| first.total_cmp(second)).map_or(0, |(at, _)| at)
}

impl MeasureOptions {
    /// Measures what the transactions of a workload cost here, and predicts the throughput of each size of islands on a machine. With `verify`, which
    /// is for this machine, each size is run as well.
    ///
    /// # Errors
    /// [`RunError`]; [`RunError::TooFewSites`] where the workload cannot be divided among the machine's cores; [`RunError::NoMultisite`] where the machine would have multisite transactions, and two instances here have none.
    pub fn assess<W: Workload>(
        &self,
        workload: &W,
        target: Target<'_, W>,
        verify: bool,
        mut progress: impl FnMut(&str),
    ) -> Result<Assessment, RunError> {
        let cores = target.topology.cores().len();
        let sites = target.workload.sites_max(cores as u16);
        if cores as u64 > sites {
            return Err(RunError::TooFewSites { sites, cores });
        }
        let (costs, conflicts) =
            self.costs_and_conflicts(workload, |what| progress(&format!("measuring {what}")))?;
        let predictions = self.predict(workload, &costs, target)?;
        let measured = if verify {
            let verifying = |what: &str| progress(&format!("verifying {what}"));
            Some(self.measure_all(workload, &predictions, verifying)?)
        } else {
            None
        };
        let unmeasured_cores = cores.saturating_sub(self.topology.cores().len());
        Ok(Assessment { costs, predictions, measured, conflicts, unmeasured_cores })
    }

    /// Predicts the throughput of each size, from what the transactions of a workload cost here.
    fn predict<W: Workload>(
        &self,
        measured: &W,
        costs: &Costs,
        Target { topology, distances, workload }: Target<'_, W>,
    ) -> Result<Vec<Prediction>, RunError> {
        let multisite = f64::from(workload.multisite_percent()) / 100.0;
        let demand = Demand { multisite, width: self.width };
        let mut has_parts = false;
        let spread = |instances| {
            let spread = workload.spread(instances);
            has_parts |= spread.others > 0.0;
            spread
        };
        let predictions = predict_all(topology, costs, demand, distances, spread);
        if multisite > 0.0 && has_parts && measured.with_multisite(100).spread(2).others == 0.0 {
            return Err(RunError::NoMultisite);
        }
        Ok(predictions)
    }

    /// Returns the throughput of each size. Where instances cannot have as many workers each, they are run with those that all have, and what is measured
    /// counts for all workers alike.
    fn measure_all<W: Workload>(
        &self,
        workload: &W,
        sizes: &[Prediction],
        mut progress: impl FnMut(&str),
    ) -> Result<Vec<f64>, RunError> {
        let of_size = |size: &Prediction| {
            let (workers, scale) = even_workers(size);
            let layout = Layout { instances: size.instances, workers, width: self.width };
            Ok(self.throughput(workload, layout, &mut progress)? * scale)
        };
        sizes.iter().map(of_size).collect()
    }

    /// Runs a workload, and returns how many transactions commit in a second.
    ///
    /// # Errors
    /// [`RunError`]; [`RunError::NoneCommitted`] where none does, nor in ten times the time.
    pub fn throughput<W: Workload>(
        &self,
        workload: &W,
        layout: Layout,
        progress: impl FnMut(&str),
    ) -> Result<f64, RunError> {
        Ok(self.measure(workload, layout, progress)?.throughput)
    }

    fn measure<W: Workload>(
        &self,
        workload: &W,
        layout: Layout,
        mut progress: impl FnMut(&str),
    ) -> Result<Measured, RunError> {
        for time in [self.time, self.time * LONGER] {
            let measured = self.measure_in(time, workload, layout, &mut progress)?;
            if measured.throughput > 0.0 {
                return Ok(measured);
            }
        }
        Err(RunError::NoneCommitted(self.time * LONGER))
    }

    /// The same, in so much time; a throughput of 0 if none commits.
    fn measure_in<W: Workload>(
        &self,
        time: Duration,
        workload: &W,
        Layout { instances, workers, width }: Layout,
        mut progress: impl FnMut(&str),
    ) -> Result<Measured, RunError> {
        let placement = Placement::Group;
        let arguments = vec!["instance".to_owned(), workload.program_name().to_owned()];
        let directory = self.stored.map(|_| temporary_directory()).transpose()?;
        let warmup = if self.stored.is_some() { time } else { time / 4 };
        let options = RunOptions {
            plan: Plan::new(&self.topology, Instances::Count(instances), placement),
            placement,
            workers,
            channel: self.channel,
            command: self.program.clone().map(|program| (program, arguments)),
            prefault_bytes: None,
            directory: directory.as_ref().map(|directory| directory.path().to_owned()),
            unit: self.stored.unwrap_or_default(),
            width,
            time: LoadTime { warmup, measured: time },
        };
        let stored = self.stored.map_or("in memory".to_owned(), |unit| format!("stored by the {unit}"));
        let name = workload.name();
        progress(&format!(
            "{name}: {instances} instances, {workers} workers each, {width} at a time, {stored}"
        ));
        let report = run(workload, options, |_| ())?;
        let conflicts = (report.retried + report.waited) as f64 / (report.throughput * report.seconds);
        Ok(Measured { throughput: report.throughput, conflicts })
    }

    /// Measures what the transactions of a workload cost: local ones, all of them at one instance, and multisite ones at two. The machine has two
    /// cores at least.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn costs<W: Workload>(&self, workload: &W, progress: impl FnMut(&str)) -> Result<Costs, RunError> {
        Ok(self.costs_and_conflicts(workload, progress)?.0)
    }

    /// Returns how many conflicts and waits there were for each transaction as well, at most.
    fn costs_and_conflicts<W: Workload>(
        &self,
        workload: &W,
        mut progress: impl FnMut(&str),
    ) -> Result<(Costs, f64), RunError> {
        let (in_memory, mut conflicts) = (MeasureOptions { stored: None, ..self.clone() }, 0.0);
        let times = in_memory.times(workload, [WIDTH_WITHOUT_WAIT, 1], &mut conflicts, &mut progress)?;
        let stored =
            self.stored.map(|_| self.times(workload, [self.width], &mut conflicts, progress)).transpose()?;
        let all_multisite = workload.with_multisite(100);
        let (share, spread) = (f64::from(all_multisite.multisite_percent()) / 100.0, all_multisite.spread(2));
        let parts = Parts { others: share * spread.others, distributed: share * spread.distributed };
        let costs = costs_of(&times, stored.as_ref(), parts, (self.topology.cores().len(), self.width));
        Ok((costs, conflicts))
    }

    /// Measures how many nanoseconds of a worker a transaction takes; multisite ones with several widths.
    fn times<W: Workload, const WIDTHS: usize>(
        &self,
        workload: &W,
        widths: [usize; WIDTHS],
        conflicts: &mut f64,
        mut progress: impl FnMut(&str),
    ) -> Result<Times<WIDTHS>, RunError> {
        let cores = self.topology.cores().len();
        let mut nanos = |workload: &W, instances: usize, workers: u16, width: usize| {
            let layout = Layout { instances, workers, width };
            let measured = self.measure(workload, layout, &mut progress)?;
            *conflicts = conflicts.max(measured.conflicts);
            Ok::<f64, RunError>(instances as f64 * f64::from(workers) * 1e9 / measured.throughput)
        };
        let (local, all_multisite) = (workload.with_multisite(0), workload.with_multisite(100));
        let made_local = workload.multisite_made_local();
        // All processors are busy in both, so that they differ in what is shared alone.
        let (local, shared) =
            (nanos(&local, cores, 1, self.width)?, nanos(&local, 1, cores as u16, self.width)?);
        let multisite = if all_multisite.spread(2).others > 0.0 {
            let mut by_width = [0.0; WIDTHS];
            for (time, width) in by_width.iter_mut().zip(widths) {
                *time = nanos(&all_multisite, 2, 1, width)?;
            }
            Some(MultisiteTimes { by_width, made_local: nanos(&made_local, 2, 1, widths[0])? })
        } else {
            None
        };
        Ok(Times { local, shared, multisite })
    }
}

/// What a run was measured with.
struct Measured {
    /// Transactions a second.
    throughput: f64,
    /// Conflicts and waits for each transaction that has committed.
    conflicts: f64,
}

/// Nanoseconds of a worker for a transaction.
struct Times<const WIDTHS: usize> {
    /// A local one, with an instance for each core.
    local: f64,
    /// A local one, with one instance for all.
    shared: f64,
    /// `None` where none is multisite over two instances.
    multisite: Option<MultisiteTimes<WIDTHS>>,
}

/// Nanoseconds of a worker for a multisite transaction, over two instances with one worker each.
#[derive(Clone, Copy)]
struct MultisiteTimes<const WIDTHS: usize> {
    by_width: [f64; WIDTHS],
    /// If all of its rows were where it begins, with the first of the widths.
    made_local: f64,
}

/// What a multisite transaction has over two instances, on average.
struct Parts {
    /// Parts at the instance where it does not begin.
    others: f64,
    /// How often it has one there.
    distributed: f64,
}

/// Returns what transactions cost, by how long they take in memory, with and without a wait, and stored, on a machine with so many cores, with so many
/// of them under way at a worker.
fn costs_of(
    times: &Times<2>,
    stored: Option<&Times<1>>,
    parts: Parts,
    (cores, width): (usize, usize),
) -> Costs {
    let without = MultisiteTimes { by_width: [times.local; 2], made_local: times.local };
    let MultisiteTimes { by_width: [busy, waiting], made_local } = times.multisite.unwrap_or(without);
    let for_each = |nanos: f64, count: f64| if count > 0.0 { (nanos / count).max(0.0) } else { 0.0 };
    let others = (cores - 1) as f64;
    let mut costs = Costs {
        local: times.local,
        sharing: ((times.shared - times.local) * (others + 1.0) / others).max(0.0),
        part: for_each(busy - made_local, parts.others),
        wait: for_each(waiting - busy, parts.distributed),
        storing: Storing::default(),
    };
    let Some(stored) = stored else { return costs };
    costs.storing.at_one = (stored.shared - times.shared).max(0.0);
    costs.storing.at_each = (stored.local - times.local).max(0.0);
    if let Some(multisite) = stored.multisite {
        let in_memory = busy + (waiting - busy).max(0.0) / width as f64;
        let alone = (multisite.made_local - made_local).max(0.0);
        costs.storing.distributed = for_each(multisite.by_width[0] - in_memory - alone, parts.distributed);
    }
    costs
}

/// Returns how many workers all instances of a size have, and how many times as many there are in all.
fn even_workers(size: &Prediction) -> (u16, f64) {
    let each = size.workers / size.instances;
    (each as u16, size.workers as f64 / (each * size.instances) as f64)
}

fn temporary_directory() -> Result<TemporaryDirectory, RunError> {
    let made = temporary_root().and_then(|root| TemporaryDirectory::new(&root));
    made.map_err(|failure| RunError::Directory(failure.to_string()))
}
