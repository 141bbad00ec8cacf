//! Which size of islands suits a machine and a workload: a prediction of the throughput for each.
//!
//! # Model
//! A worker's time for a transaction is the sum of
//! - what a local one takes by itself, and more where others share the instance: a cache line was last used by one of the other `k - 1` of `k`
//!   workers with a probability of `(k - 1) / k`, and then comes from their core;
//! - what each further instance of a multisite one takes of processors, at both ends;
//! - the wait for votes, divided by how many transactions the worker has under way.
//!
//! Distances are those of the machine's nodes of memory. Where choices are skewed the workers of one instance carry out more parts than others, and
//! all wait for them. Conflicts are what the measured costs have of them: that they become more where more instances hold rows for longer is left
//! out.
//!
//! # Source
//! Islands (VLDB Journal) §11, future work: "a tool which suggests the optimal deployment". The terms are those of its sections 6 and 7.

use crate::placement::{InstancePlace, Instances, Placement, Plan};
use crate::topology::{NodeId, Topology};

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

/// Returns what is expected of an instance for each core, cache, socket, and one for the machine, in this order; sizes that are the same on this
/// machine come once. `spread` says how multisite transactions spread over a number of instances.
#[must_use]
pub fn predict_all(
    topology: &Topology,
    costs: &Costs,
    demand: Demand,
    spread: impl Fn(u16) -> Spread,
) -> Vec<Prediction> {
    let sizes = [Instances::PerCore, Instances::PerLastLevelCache, Instances::PerSocket, Instances::One];
    let mut predictions: Vec<Prediction> = Vec::new();
    for size in sizes {
        let plan = Plan::new(topology, size, Placement::Group);
        let count = plan.instances().len();
        if predictions.iter().all(|earlier| earlier.instances != count) {
            predictions.push(predict(topology, plan.instances(), costs, (demand, spread(count as u16))));
        }
    }
    predictions
}

fn predict(
    topology: &Topology,
    places: &[InstancePlace],
    costs: &Costs,
    (demand, spread): (Demand, Spread),
) -> Prediction {
    let nodes: Vec<Vec<NodeId>> = places.iter().map(|place| nodes_of_cores(topology, place)).collect();
    let workers: usize = nodes.iter().map(Vec::len).sum();
    let away = mean_distance_between(topology, &nodes);
    let parts = demand.multisite * spread.others * costs.part * away;
    let wait = demand.multisite * spread.distributed * costs.wait * away / demand.width as f64;
    let mut throughput = 0.0;
    for own in &nodes {
        let others = (own.len() - 1) as f64;
        let shared = costs.sharing * others / (others + 1.0) * mean_distance_within(topology, own);
        let local = costs.local + shared;
        // The workers of the busiest instance carry out more than half of two ends.
        let busiest = local + parts / 2.0 * (1.0 + spread.hottest * nodes.len() as f64);
        let nanos = (local + parts + wait).max(busiest);
        throughput += own.len() as f64 * 1e9 / nanos;
    }
    Prediction { instances: places.len(), workers, throughput }
}

/// Returns the node of each core of an instance, as far as they are known.
fn nodes_of_cores(topology: &Topology, place: &InstancePlace) -> Vec<NodeId> {
    let is_used = |cpus: &[crate::topology::CpuId]| cpus.iter().any(|cpu| place.cpus().contains(cpu));
    let cores = topology.cores().iter().filter(|core| is_used(&core.cpus));
    let nodes: Vec<NodeId> = cores.map(|core| core.node).collect();
    if nodes.is_empty() { place.nodes().iter().copied().take(1).collect() } else { nodes }
}

/// Returns how many times as far it is from one node to another as within it.
fn distance(topology: &Topology, from: NodeId, to: NodeId) -> f64 {
    f64::from(topology.distance(from, to)) / f64::from(topology.distance(from, from).max(1))
}

/// Returns the mean over the cores that a core of an instance shares it with.
fn mean_distance_within(topology: &Topology, nodes: &[NodeId]) -> f64 {
    mean(nodes.iter().enumerate().flat_map(|(at, from)| {
        let others = nodes.iter().enumerate().filter(move |(other, _)| *other != at);
        others.map(move |(_, to)| distance(topology, *from, *to))
    }))
}

/// Returns the mean over pairs of instances.
fn mean_distance_between(topology: &Topology, nodes: &[Vec<NodeId>]) -> f64 {
    mean(nodes.iter().enumerate().flat_map(|(at, from)| {
        let others = nodes.iter().enumerate().filter(move |(other, _)| *other != at);
        others.filter_map(move |(_, to)| Some(distance(topology, *from.first()?, *to.first()?)))
    }))
}

/// Returns the mean, or 1 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    values.for_each(|value| (sum, count) = (sum + value, count + 1));
    if count == 0 { 1.0 } else { sum / f64::from(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Regular;

    /// Costs in the proportions of the paper's figures 17, 18 and 27: sharing takes a good part of a local transaction, a participant more than a
    /// row.
    const READS: Costs = Costs { local: 10_000.0, sharing: 3_000.0, part: 8_000.0, wait: 10_000.0 };
    const UPDATES: Costs = Costs { local: 15_000.0, sharing: 4_000.0, part: 20_000.0, wait: 40_000.0 };

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
        let predictions = predict_all(&topology, costs, Demand { multisite, width: 1 }, spread);
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
            let of_cores = &predict_all(&topology, &READS, demand, rows(count))[0];
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
        let sizes: Vec<usize> =
            predict_all(&topology, &UPDATES, demand, rows(10)).iter().map(|size| size.instances).collect();
        assert_eq!(sizes, [24, 4, 1]);
    }
}
