//! Which size of islands suits a machine and a workload: a prediction of the throughput for each.
//!
//! # Model
//! A worker's time for a transaction is the sum of
//! - what a local one takes by itself, and more where others share the instance: a cache line was last used by one of the other `k - 1` of `k`
//!   workers with a probability of `(k - 1) / k`, and then comes from their core;
//! - what each further instance of a multisite one takes of processors, at both ends;
//! - the wait for votes, divided by how many transactions the worker has under way;
//! - where transactions are stored, what that adds to a local one, between what was measured with one instance and with one for each core, and what it
//!   adds to a multisite one beside.
//!
//! The costs of parts and the wait for votes grow with the distance between instances, and those of sharing with the distance within one, in
//! multiples of the distances at which they were measured ([`Distances`]). What storing takes is a matter of the disk, and of the width that it was
//! measured with. Where choices are skewed the workers of one instance carry out more parts than others, and all wait for them. Conflicts are what
//! the measured costs have of them: that they become more where more instances hold rows for longer is left out.
//!
//! # Source
//! Islands (VLDB Journal) §11, future work: "a tool which suggests the optimal deployment". The terms are those of its sections 6 and 7.

use crate::latencies::{Latencies, PairClass};
use crate::placement::{InstancePlace, Instances, Placement, Plan};
use crate::topology::{Core, Topology};

/// What the transactions of a workload cost on a machine, as measured: nanoseconds of one worker.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Costs {
    /// One without other instances, by a worker that has its instance for itself.
    pub local: f64,
    /// What is added if all that it uses was last used by another worker nearby.
    pub sharing: f64,
    /// Each further instance that takes part, at both ends together.
    pub part: f64,
    /// Until the votes of others are there, where nothing else is done meanwhile.
    pub wait: f64,
    /// What is added where transactions are stored.
    pub storing: Storing,
}

/// What storing adds to a transaction, with as many transactions under way as the workload has; all 0 in memory.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Storing {
    /// To a local one, with one instance for all cores.
    pub at_one: f64,
    /// To a local one, with an instance for each core.
    pub at_each: f64,
    /// To one with parts at several instances, beside what it adds to a local one.
    pub distributed: f64,
}

/// How the multisite transactions of a workload spread over instances.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Spread {
    /// The share of them that has parts at several instances, from 0 to 1.
    pub distributed: f64,
    /// How many instances beside the first one take part in the mean.
    pub others: f64,
    /// The share of those parts that is carried out at the instance with the most of them, from 0 to 1.
    pub hottest: f64,
}

/// A workload as the model sees it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Demand {
    /// The share of transactions that is multisite, from 0 to 1.
    pub multisite: f64,
    /// How many transactions each worker has under way, at least one.
    pub width: usize,
}

/// What is expected of a size of islands.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// How many instances there are.
    pub instances: usize,
    /// How many workers they have together.
    pub workers: usize,
    /// Transactions a second of all of them.
    pub throughput: f64,
}

/// How far the cores of a machine are from each other, in multiples of the distances at which costs were measured.
#[derive(Clone, Debug)]
pub struct Distances {
    /// What was measured; `None` for the distances of the machine's nodes of memory.
    latencies: Option<Latencies>,
    /// Between the two instances at which the costs of multisite transactions were measured.
    between: f64,
    /// Among the cores that shared an instance when the costs of that were measured.
    within: f64,
}

impl Distances {
    /// Returns the distances between nodes of memory that a machine's description has, for costs that were measured within one node.
    #[must_use]
    pub fn described() -> Self {
        Distances { latencies: None, between: 1.0, within: 1.0 }
    }

    /// Returns the distances that a machine's description has, for costs that were measured on another machine: those of all of its cores, and of two
    /// instances on it.
    #[must_use]
    pub fn described_from(measured_on: &Topology) -> Self {
        Distances::described().relative_to(measured_on)
    }

    /// Returns the distances on the machine on which costs and latencies were measured: between instances the latencies, and within an instance what
    /// the machine's description has.
    #[must_use]
    pub fn measured(on: &Topology, latencies: Latencies) -> Self {
        Distances { latencies: Some(latencies), ..Distances::described() }.relative_to(on)
    }

    fn relative_to(self, machine: &Topology) -> Self {
        let all: Vec<&Core> = machine.cores().iter().collect();
        let within = self.mean_within(machine, &all);
        let between = self.mean_between(machine, &divided(machine, Instances::Count(2)));
        Distances { between, within, ..self }
    }

    /// Returns the mean over the cores that a core of an instance shares it with.
    fn mean_within(&self, topology: &Topology, cores: &[&Core]) -> f64 {
        let pairs = pairs(cores).map(|(from, to)| described(topology, from, to) / self.within);
        mean(pairs)
    }

    /// Returns the mean over pairs of instances, each by its first core.
    fn mean_between(&self, topology: &Topology, instances: &[Vec<&Core>]) -> f64 {
        let firsts: Vec<&Core> = instances.iter().filter_map(|cores| cores.first().copied()).collect();
        let of_pair = |from, to| match &self.latencies {
            None => described(topology, from, to),
            // All pairs of the machine have a class that was measured.
            Some(latencies) => {
                let round_trip = latencies.round_trip(PairClass::of(topology, from, to));
                round_trip.map_or(self.between, |time| time.as_secs_f64())
            }
        };
        mean(pairs(&firsts).map(|(from, to)| of_pair(from, to) / self.between))
    }
}

/// Returns what is expected of an instance for each core, cache, socket, and one for the machine, in this order; sizes that are the same on this
/// machine come once. `spread` says how multisite transactions spread over a number of instances.
#[must_use]
pub fn predict_all(
    topology: &Topology,
    costs: &Costs,
    demand: Demand,
    distances: &Distances,
    mut spread: impl FnMut(u16) -> Spread,
) -> Vec<Prediction> {
    let sizes = [Instances::PerCore, Instances::PerLastLevelCache, Instances::PerSocket, Instances::One];
    let mut predictions: Vec<Prediction> = Vec::new();
    for size in sizes {
        let instances = divided(topology, size);
        if predictions.iter().all(|earlier| earlier.instances != instances.len()) {
            let spread = spread(instances.len() as u16);
            predictions.push(predict((topology, distances), &instances, costs, (demand, spread)));
        }
    }
    predictions
}

fn predict(
    (topology, distances): (&Topology, &Distances),
    instances: &[Vec<&Core>],
    costs: &Costs,
    (demand, spread): (Demand, Spread),
) -> Prediction {
    let workers: usize = instances.iter().map(Vec::len).sum();
    let away = distances.mean_between(topology, instances);
    let parts = demand.multisite * spread.others * costs.part * away;
    let waiting = costs.wait * away / demand.width as f64 + costs.storing.distributed;
    let wait = demand.multisite * spread.distributed * waiting;
    let stored = storing(costs.storing, instances.len(), workers);
    let mut throughput = 0.0;
    for own in instances {
        let others = (own.len() - 1) as f64;
        let shared = costs.sharing * others / (others + 1.0) * distances.mean_within(topology, own);
        let local = costs.local + shared;
        // The workers of the busiest instance carry out more than half of two ends.
        let busiest = local + parts / 2.0 * (1.0 + spread.hottest * instances.len() as f64);
        let nanos = (local + parts + wait + stored).max(busiest);
        throughput += own.len() as f64 * 1e9 / nanos;
    }
    Prediction { instances: instances.len(), workers, throughput }
}

/// Returns what storing adds to a local transaction, on the line between one instance and one for each core.
fn storing(Storing { at_one, at_each, .. }: Storing, instances: usize, cores: usize) -> f64 {
    let way = (instances - 1) as f64 / (cores - 1).max(1) as f64;
    at_one + (at_each - at_one) * way
}

/// Returns the cores of each instance, where the cores of a machine are divided so.
fn divided(topology: &Topology, instances: Instances) -> Vec<Vec<&Core>> {
    let plan = Plan::new(topology, instances, Placement::Group);
    plan.instances().iter().map(|place| cores_of(topology, place)).collect()
}

fn cores_of<'t>(topology: &'t Topology, place: &InstancePlace) -> Vec<&'t Core> {
    let is_used = |core: &&Core| core.cpus.iter().any(|cpu| place.cpus().contains(cpu));
    topology.cores().iter().filter(is_used).collect()
}

/// Returns all pairs of different cores, both ways.
fn pairs<'t>(cores: &[&'t Core]) -> impl Iterator<Item = (&'t Core, &'t Core)> {
    cores.iter().enumerate().flat_map(move |(at, from)| {
        let others = cores.iter().enumerate().filter(move |(other, _)| *other != at);
        others.map(move |(_, to)| (*from, *to))
    })
}

/// Returns how many times as far it is from the node of one core to that of another as within it, by the machine's description.
fn described(topology: &Topology, from: &Core, to: &Core) -> f64 {
    f64::from(topology.distance(from.node, to.node))
        / f64::from(topology.distance(from.node, from.node).max(1))
}

/// Returns the mean, or 1 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    values.for_each(|value| (sum, count) = (sum + value, count + 1));
    if count == 0 { 1.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::latencies::{ClassLatency, Closeness};
    use crate::topology::Regular;

    const IN_MEMORY: Storing = Storing { at_one: 0.0, at_each: 0.0, distributed: 0.0 };

    /// Costs in the proportions of the paper's figures 17, 18 and 27: sharing takes a good part of a local transaction, a participant more than a
    /// row.
    const READS: Costs =
        Costs { local: 10_000.0, sharing: 3_000.0, part: 8_000.0, wait: 10_000.0, storing: IN_MEMORY };
    const UPDATES: Costs =
        Costs { local: 15_000.0, sharing: 4_000.0, part: 20_000.0, wait: 40_000.0, storing: IN_MEMORY };

    /// One row of the own site, and the others from all rows.
    fn rows(rows: i32) -> impl Fn(u16) -> Spread {
        move |instances| {
            let elsewhere = 1.0 - 1.0 / f64::from(instances);
            Spread {
                distributed: 1.0 - (1.0 - elsewhere).powi(rows - 1),
                others: f64::from(instances - 1) * (1.0 - elsewhere.powi(rows - 1)),
                hottest: 1.0 / f64::from(instances),
            }
        }
    }

    fn by_size(machine: Regular, costs: &Costs, multisite: f64, spread: impl Fn(u16) -> Spread) -> Vec<f64> {
        let topology = Topology::try_from(machine).unwrap();
        let predictions =
            predict_all(&topology, costs, Demand { multisite, width: 1 }, &Distances::described(), spread);
        predictions.iter().map(|prediction| prediction.throughput).collect()
    }

    /// Figures 11, 16 and 25: on every machine.
    #[test]
    fn fine_grained_islands_win_where_all_is_local_and_lose_where_all_is_multisite() {
        for machine in [Regular::DUAL_SOCKET, Regular::QUAD_SOCKET, Regular::OCTO_SOCKET] {
            for costs in [READS, UPDATES] {
                let local = by_size(machine, &costs, 0.0, rows(10));
                assert!(local.is_sorted_by(|finer, coarser| finer > coarser), "{local:?}");
                let multisite = by_size(machine, &costs, 1.0, rows(10));
                assert!(multisite.is_sorted_by(|finer, coarser| finer < coarser), "{multisite:?}");
                // One instance for all does not care.
                assert_eq!(local.last(), multisite.last());
            }
        }
    }

    /// Figures 11 and 13 to 15.
    #[test]
    fn updates_lose_more_than_reads() {
        let left = |costs: &Costs| {
            let [local, multisite] =
                [0.0, 1.0].map(|share| by_size(Regular::QUAD_SOCKET, costs, share, rows(10)));
            multisite[0] / local[0]
        };
        assert!(left(&UPDATES) < left(&READS));
    }

    /// Figures 17, 18 and 27: costs rise with the rows of a transaction until all instances take part.
    #[test]
    fn what_a_transaction_costs_levels_off_when_all_instances_take_part() {
        let topology = Topology::try_from(Regular::QUAD_SOCKET).unwrap();
        let nanos = |count| {
            let demand = Demand { multisite: 1.0, width: 1 };
            let of_cores = &predict_all(&topology, &READS, demand, &Distances::described(), rows(count))[0];
            of_cores.workers as f64 * 1e9 / of_cores.throughput
        };
        assert!((nanos(10) - nanos(2)) / 8.0 > 4.0 * (nanos(100) - nanos(60)) / 40.0);
    }

    /// Figure 20.
    #[test]
    fn skew_hurts_fine_grained_islands_most() {
        let skewed = |instances: u16| Spread {
            hottest: 0.8_f64.max(1.0 / f64::from(instances)),
            ..rows(2)(instances)
        };
        let left = by_size(Regular::QUAD_SOCKET, &READS, 0.5, skewed);
        let even = by_size(Regular::QUAD_SOCKET, &READS, 0.5, rows(2));
        let kept: Vec<f64> = left.iter().zip(&even).map(|(left, even)| left / even).collect();
        assert!(kept.is_sorted() && kept[0] < 0.5, "{kept:?}");
    }

    /// Figure 16: more than one size on a machine with several sockets, from the cores to the machine.
    #[test]
    fn sizes_that_are_the_same_come_once() {
        let topology = Topology::try_from(Regular::QUAD_SOCKET).unwrap();
        let demand = Demand { multisite: 0.2, width: 4 };
        let sizes: Vec<usize> = predict_all(&topology, &UPDATES, demand, &Distances::described(), rows(10))
            .iter()
            .map(|size| size.instances)
            .collect();
        assert_eq!(sizes, [24, 4, 1]);
    }

    fn with_latencies(topology: &Topology, micros: &[(Closeness, u32, u64)]) -> Distances {
        let class = |(closeness, distance, micros): &(Closeness, u32, u64)| ClassLatency {
            class: PairClass { closeness: *closeness, distance: *distance },
            pairs: 1,
            measured: 1,
            round_trip: Duration::from_micros(*micros),
        };
        Distances::measured(topology, Latencies::new(micros.iter().map(class).collect()))
    }

    #[test]
    fn messages_that_take_longer_between_sockets_speak_for_larger_islands() {
        let topology = Topology::try_from(Regular::QUAD_SOCKET).unwrap();
        let throughputs = |micros| {
            let latencies = [(Closeness::Cache, 10, 1), (Closeness::Machine, 20, micros)];
            let distances = with_latencies(&topology, &latencies);
            let demand = Demand { multisite: 0.2, width: 1 };
            let all = predict_all(&topology, &UPDATES, demand, &distances, rows(10));
            all.iter().map(|prediction| prediction.throughput).collect::<Vec<f64>>()
        };
        // Two instances, with which costs are measured, are on two sockets: what counts is how much nearer the cores of one are.
        let (near, far) = (throughputs(1), throughputs(4));
        assert!(
            far[0] > near[0],
            "instances for cores are nearer to each other on a socket: {near:?} {far:?}"
        );
        assert_eq!(far[1..], near[1..], "those for sockets are as far as where costs were measured");
    }

    #[test]
    fn costs_count_at_the_distance_at_which_they_were_measured() {
        let [quad, octo] =
            [Regular::QUAD_SOCKET, Regular::OCTO_SOCKET].map(|machine| Topology::try_from(machine).unwrap());
        let demand = Demand { multisite: 0.5, width: 1 };
        let of_sockets =
            |distances: &Distances| predict_all(&octo, &UPDATES, demand, distances, rows(10))[1].throughput;
        // Measured on two sockets, the costs have the distance in them already.
        assert!(of_sockets(&Distances::described_from(&quad)) > 1.2 * of_sockets(&Distances::described()));
    }

    #[test]
    fn what_is_stored_by_one_instance_alone_speaks_for_one() {
        let stored =
            |at_each| Costs { storing: Storing { at_one: 20_000.0, at_each, distributed: 0.0 }, ..UPDATES };
        let best_is_one = |costs: &Costs| {
            let all = by_size(Regular::QUAD_SOCKET, costs, 0.0, rows(10));
            all.iter().all(|throughput| throughput <= &all[all.len() - 1])
        };
        assert!(best_is_one(&stored(60_000.0)));
        assert!(!best_is_one(&stored(20_000.0)));
    }

    #[test]
    fn storing_costs_multisite_transactions_what_was_measured() {
        let stored = Costs { storing: Storing { distributed: 50_000.0, ..IN_MEMORY }, ..READS };
        let [in_memory, stored] = [&READS, &stored].map(|costs| {
            let per_core = by_size(Regular::QUAD_SOCKET, costs, 1.0, rows(10))[0];
            24.0 * 1e9 / per_core
        });
        let distributed = rows(10)(24).distributed;
        assert!((stored - in_memory - 50_000.0 * distributed).abs() < 1.0, "{in_memory} {stored}");
    }
}
