//! Where instances and their workers go: which cores each one has, and whose memory.
//!
//! # Source
//! Islands (VLDB Journal) §4.1 and figures 5 and 6 for *spread*, *group*, *mix* and what the operating system does; §5 and figure 9 for
//! islands, which are instances that are grouped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::topology::{Core, CpuId, NodeId, Topology};

/// How many instances share a machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Instances {
    /// One for each core.
    PerCore,
    /// One for each cache of the last level.
    PerLastLevelCache,
    /// One for each socket.
    PerSocket,
    /// One for the machine.
    One,
    /// So many, from 1 to [`Instances::COUNT_MAX`].
    Count(usize),
}

impl Instances {
    /// The most instances.
    pub const COUNT_MAX: usize = u16::MAX as usize;

    /// Returns how many these are on a machine, at least one.
    ///
    /// # Panics
    /// When a count is not in its range.
    #[must_use]
    pub fn count_on(self, topology: &Topology) -> usize {
        match self {
            Instances::PerCore => topology.cores().len(),
            Instances::PerLastLevelCache => topology.last_level_cache_count(),
            Instances::PerSocket => topology.sockets().len(),
            Instances::One => 1,
            Instances::Count(count) => {
                assert!((1..=Instances::COUNT_MAX).contains(&count), "a number of instances in its range");
                count
            }
        }
    }
}

/// Reads `core`, `cache`, `socket`, `one`, or a number.
impl FromStr for Instances {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "core" => Ok(Instances::PerCore),
            "cache" => Ok(Instances::PerLastLevelCache),
            "socket" => Ok(Instances::PerSocket),
            "one" => Ok(Instances::One),
            _ => match text.parse() {
                Ok(count) if (1..=Instances::COUNT_MAX).contains(&count) => Ok(Instances::Count(count)),
                _ => Err(format!(
                    "{text:?} is none of core, cache, socket, one, or a number from 1 to {}",
                    Instances::COUNT_MAX
                )),
            },
        }
    }
}

/// How the cores of a machine are divided among instances.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Each instance has cores that are close to each other: its own socket or a part of one, or sockets next to each other.
    Group,
    /// Each instance has cores of as many sockets as it can.
    Spread,
    /// Each instance has two cores that share a cache of the last level, two of another socket, and so on, as far as there are two.
    Mix,
    /// The operating system decides, from one moment to the next. Nothing is bound.
    System,
}

impl Placement {
    /// Returns all placements.
    #[must_use]
    pub const fn all() -> [Placement; 4] {
        [Placement::Group, Placement::Spread, Placement::Mix, Placement::System]
    }

    /// Returns the placement's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Placement::Group => "group",
            Placement::Spread => "spread",
            Placement::Mix => "mix",
            Placement::System => "system",
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a [name](Placement::name).
impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Placement::all().into_iter().find(|placement| placement.name() == text);
        named.ok_or_else(|| format!("{text:?} is none of group, spread, mix, system"))
    }
}

/// Where an instance is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstancePlace {
    /// The processor of each worker, the workers of a core's other processors last; empty where the operating system decides.
    cpus: Vec<CpuId>,
    /// The nodes that its cores are near to.
    nodes: BTreeSet<NodeId>,
}

impl InstancePlace {
    fn new(cores: &[&Core]) -> Self {
        let most = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0);
        let cpus = (0..most).flat_map(|at| cores.iter().filter_map(move |core| core.cpus.get(at)));
        InstancePlace { cpus: cpus.copied().collect(), nodes: cores.iter().map(|core| core.node).collect() }
    }

    /// Returns the place that is one processor of a machine; `None` if it may not be used.
    #[must_use]
    pub fn of_cpu(topology: &Topology, cpu: CpuId) -> Option<Self> {
        let core = topology.cores().iter().find(|core| core.cpus.contains(&cpu))?;
        Some(InstancePlace { cpus: vec![cpu], nodes: BTreeSet::from([core.node]) })
    }

    fn unbound() -> Self {
        InstancePlace { cpus: Vec::new(), nodes: BTreeSet::new() }
    }

    /// Returns the processors of the instance: first one of each of its cores, then the cores' others. Empty where the operating system
    /// decides.
    #[must_use]
    pub fn cpus(&self) -> &[CpuId] {
        &self.cpus
    }

    /// Returns the nodes whose memory the instance is to use: those of its cores. Empty where the operating system decides.
    #[must_use]
    pub fn nodes(&self) -> &BTreeSet<NodeId> {
        &self.nodes
    }

    /// Returns the processor of a worker; `None` where the operating system decides. Workers beyond the processors share them.
    #[must_use]
    pub fn cpu_of_worker(&self, worker: usize) -> Option<CpuId> {
        (!self.cpus.is_empty()).then(|| self.cpus[worker % self.cpus.len()])
    }
}

/// Where the instances of a database go on a machine.
///
/// ```
/// use ensilo_islands::{CpuId, Instances, Placement, Plan, Regular, Topology};
///
/// let machine = Topology::try_from(Regular::QUAD_SOCKET)?;
/// let plan = Plan::new(&machine, Instances::PerSocket, Placement::Group);
/// assert_eq!(plan.instances().len(), 4);
/// assert_eq!(plan.instances()[1].cpus()[0], CpuId(6));
/// # Ok::<(), ensilo_islands::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    instances: Vec<InstancePlace>,
    is_oversubscribed: bool,
}

impl Plan {
    /// Divides the cores of a machine among instances. With one for each socket, or cache, and grouped, each has the cores there. Otherwise each has
    /// as many as the others, or one more; where there are more instances than cores, several share one, whatever the placement is.
    ///
    /// # Panics
    /// When a count is not in its range.
    #[must_use]
    pub fn new(topology: &Topology, instances: Instances, placement: Placement) -> Self {
        let count = instances.count_on(topology);
        let is_oversubscribed = count > topology.cores().len();
        let instances = match (placement, instances) {
            (Placement::System, _) => vec![InstancePlace::unbound(); count],
            (Placement::Group, Instances::PerSocket) => grouped_by(topology, |core| core.socket),
            (Placement::Group, Instances::PerLastLevelCache) => grouped_by(topology, Core::last_level_cache),
            _ if is_oversubscribed => shared(topology, count),
            _ => Division::new(topology).divide(count, placement),
        };
        Plan { instances, is_oversubscribed }
    }

    /// Returns where each instance is.
    #[must_use]
    pub fn instances(&self) -> &[InstancePlace] {
        &self.instances
    }

    /// Returns whether there are more instances than cores: what is measured then says nothing about instances with cores of their own.
    #[must_use]
    pub fn is_oversubscribed(&self) -> bool {
        self.is_oversubscribed
    }
}

/// Returns an instance for each group of cores.
fn grouped_by<G: Ord>(topology: &Topology, group: impl Fn(&Core) -> G) -> Vec<InstancePlace> {
    let mut groups: BTreeMap<G, Vec<&Core>> = BTreeMap::new();
    topology.cores().iter().for_each(|core| groups.entry(group(core)).or_default().push(core));
    groups.values().map(|cores| InstancePlace::new(cores)).collect()
}

/// Returns more instances than there are cores. Those that share a core begin with another one of its processors each.
fn shared(topology: &Topology, count: usize) -> Vec<InstancePlace> {
    let places = (0..count).map(|instance| {
        let core = &topology.cores()[instance % topology.cores().len()];
        let mut place = InstancePlace::new(&[core]);
        place.cpus.rotate_left(instance / topology.cores().len() % core.cpus.len());
        place
    });
    places.collect()
}

/// Cores that share a cache of the last level, on one socket.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Domain {
    socket: u32,
    node: NodeId,
    l3: u32,
}

/// Cores that are not given away yet.
struct Division<'t> {
    topology: &'t Topology,
    /// Those that share a cache of the second level stand together.
    free: BTreeMap<Domain, Vec<&'t Core>>,
}

impl<'t> Division<'t> {
    fn new(topology: &'t Topology) -> Self {
        let mut free: BTreeMap<Domain, Vec<&Core>> = BTreeMap::new();
        for core in topology.cores() {
            let domain = Domain { socket: core.socket, node: core.node, l3: core.l3 };
            free.entry(domain).or_default().push(core);
        }
        for cores in free.values_mut() {
            // The first ones are taken from the end.
            cores.sort_by_key(|core| std::cmp::Reverse((core.l2, core.cpus[0])));
        }
        Division { topology, free }
    }

    fn divide(mut self, count: usize, placement: Placement) -> Vec<InstancePlace> {
        let all = self.topology.cores().len();
        let share = |instance: usize| all / count + usize::from(instance < all % count);
        (0..count).map(|instance| self.take(share(instance), placement)).collect()
    }

    /// Takes the cores of an instance.
    fn take(&mut self, share: usize, placement: Placement) -> InstancePlace {
        let mut taken: Vec<&Core> = Vec::new();
        let mut left = share;
        while left > 0 {
            let domain = match placement {
                Placement::Group => self.nearest(&taken, left),
                _ => self.least_used(&taken),
            };
            let at_once = match placement {
                Placement::Group => left,
                Placement::Mix => left.min(2),
                _ => 1,
            };
            let free = self.free.get_mut(&domain).into_iter();
            let cores = free.flat_map(|free| free.drain(free.len().saturating_sub(at_once)..).rev());
            let before = taken.len();
            taken.extend(cores);
            left -= taken.len() - before;
            self.free.retain(|_, free| !free.is_empty());
        }
        InstancePlace::new(&taken)
    }

    /// Returns the domain that is nearest to the cores that an instance has, and among those the one whose free cores fit best: it has enough, and
    /// as few others as possible, or else the most.
    fn nearest(&self, taken: &[&Core], wanted: usize) -> Domain {
        self.best(|domain, free| {
            let way = |core: &&Core| u64::from(self.topology.distance(core.node, domain.node));
            let of_others = taken.iter().filter(|core| core.socket != domain.socket).count();
            let fit = if free >= wanted { free } else { usize::MAX - free };
            (taken.iter().map(way).sum::<u64>(), of_others, fit)
        })
    }

    /// Returns the domain of which an instance has the fewest cores, and among those the one with the most free ones.
    fn least_used(&self, taken: &[&Core]) -> Domain {
        self.best(|domain, free| {
            let of_socket = taken.iter().filter(|core| core.socket == domain.socket).count();
            let of_domain =
                taken.iter().filter(|core| core.last_level_cache() == (domain.socket, domain.l3)).count();
            (of_socket, of_domain, usize::MAX - free)
        })
    }

    /// Returns the domain with free cores that has the least rank.
    fn best<R: Ord>(&self, rank: impl Fn(Domain, usize) -> R) -> Domain {
        let ranked = self.free.iter().min_by_key(|(domain, free)| (rank(**domain, free.len()), **domain));
        match ranked {
            Some((domain, _)) => *domain,
            None => unreachable!("the shares of all instances are the cores"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::topology::Regular;

    const QUAD: Regular = Regular::QUAD_SOCKET;

    fn plan(machine: Regular, instances: Instances, placement: Placement) -> Plan {
        Plan::new(&Topology::try_from(machine).unwrap(), instances, placement)
    }

    fn cpus(plan: &Plan, instance: usize) -> Vec<u32> {
        plan.instances()[instance].cpus().iter().map(|cpu| cpu.0).collect()
    }

    /// The sockets of an instance on a machine whose cores have one processor each.
    fn sockets(machine: Regular, place: &InstancePlace) -> BTreeSet<u32> {
        place.cpus().iter().map(|cpu| cpu.0 / machine.cores_per_socket).collect()
    }

    #[test]
    fn an_island_is_a_socket() {
        let plan = plan(QUAD, Instances::PerSocket, Placement::Group);
        assert_eq!(cpus(&plan, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(cpus(&plan, 3), [18, 19, 20, 21, 22, 23]);
        assert!(plan.instances().iter().all(|place| place.nodes().len() == 1));
    }

    #[test]
    fn two_instances_share_a_socket_where_there_are_two_for_each() {
        let plan = plan(QUAD, Instances::Count(8), Placement::Group);
        assert_eq!((cpus(&plan, 0), cpus(&plan, 1)), (vec![0, 1, 2], vec![3, 4, 5]));
        assert!(plan.instances().iter().all(|place| sockets(QUAD, place).len() == 1));
    }

    #[test]
    fn spread_instances_have_cores_of_all_sockets() {
        let plan = plan(QUAD, Instances::Count(4), Placement::Spread);
        for place in plan.instances() {
            assert_eq!((place.cpus().len(), sockets(QUAD, place).len(), place.nodes().len()), (6, 4, 4));
        }
    }

    #[test]
    fn mixed_instances_have_cores_in_pairs() {
        let plan = plan(QUAD, Instances::Count(6), Placement::Mix);
        assert_eq!(cpus(&plan, 0), [0, 1, 6, 7]);
        assert!(plan.instances().iter().all(|place| sockets(QUAD, place).len() == 2));
    }

    /// Figure 6 of the paper: four workers of one instance.
    #[test]
    fn the_first_workers_of_one_instance_are_where_the_placement_says() {
        let first = |placement| {
            let plan = plan(QUAD, Instances::One, placement);
            let cpus: Vec<_> = (0..4).map(|worker| plan.instances()[0].cpu_of_worker(worker)).collect();
            cpus.into_iter().map(|cpu| cpu.map(|cpu| cpu.0)).collect::<Vec<_>>()
        };
        assert_eq!(first(Placement::Group), [0, 1, 2, 3].map(Some));
        assert_eq!(first(Placement::Spread), [0, 6, 12, 18].map(Some));
        assert_eq!(first(Placement::Mix), [0, 1, 6, 7].map(Some));
        assert_eq!(first(Placement::System), [None; 4]);
    }

    #[test]
    fn an_instance_of_two_sockets_has_neighbours() {
        let machine = Regular::OCTO_SOCKET;
        let topology = Topology::try_from(machine).unwrap();
        let plan = Plan::new(&topology, Instances::Count(4), Placement::Group);
        for place in plan.instances() {
            let nodes: Vec<_> = place.nodes().iter().copied().collect();
            assert_eq!(nodes.len(), 2);
            assert_eq!(topology.distance(nodes[0], nodes[1]), 20, "{nodes:?}");
        }
    }

    #[test]
    fn workers_take_a_processor_of_each_core_first() {
        let machine = Regular { sockets: 1, cores_per_socket: 2, cpus_per_core: 2, links: &[] };
        assert_eq!(cpus(&plan(machine, Instances::One, Placement::Group), 0), [0, 2, 1, 3]);
    }

    #[test]
    fn more_instances_than_cores_share_them_and_are_marked() {
        let machine = Regular { sockets: 1, cores_per_socket: 2, cpus_per_core: 1, links: &[] };
        let shared = plan(machine, Instances::Count(5), Placement::Group);
        assert_eq!((0..5).map(|at| cpus(&shared, at)).collect::<Vec<_>>(), [[0], [1], [0], [1], [0]]);
        assert!(shared.is_oversubscribed());
        assert!(plan(machine, Instances::Count(5), Placement::System).is_oversubscribed());
        assert!(!plan(machine, Instances::PerCore, Placement::Group).is_oversubscribed());
    }

    #[test]
    fn those_that_share_a_core_take_its_processors_in_turn() {
        let machine = Regular { sockets: 1, cores_per_socket: 2, cpus_per_core: 2, links: &[] };
        let shared = plan(machine, Instances::Count(4), Placement::Group);
        let first: Vec<_> =
            shared.instances().iter().map(|place| place.cpu_of_worker(0).unwrap().0).collect();
        assert_eq!(first, [0, 2, 1, 3]);
    }

    #[test]
    fn an_island_is_a_socket_also_where_sockets_differ() {
        let uneven = "# CPU,Core,Socket\n0,0,0\n1,1,0\n2,2,1\n3,3,1\n4,4,1\n5,5,1\n6,6,1\n7,7,1\n";
        let topology = Topology::from_description(uneven).unwrap();
        for instances in [Instances::PerSocket, Instances::PerLastLevelCache] {
            let plan = Plan::new(&topology, instances, Placement::Group);
            assert_eq!((cpus(&plan, 0), cpus(&plan, 1)), (vec![0, 1], vec![2, 3, 4, 5, 6, 7]));
        }
    }

    #[test]
    fn an_instance_stays_on_its_socket_where_all_share_a_node() {
        let one_node = "# CPU,Core,Socket,Node,L2,L3\n0,0,0,0,0,0\n1,1,0,0,1,0\n2,2,0,0,2,1\n3,3,0,0,3,1\n4,4,1,0,4,2\n5,5,1,0,5,2\n";
        let topology = Topology::from_description(one_node).unwrap();
        let plan = Plan::new(&topology, Instances::Count(2), Placement::Group);
        assert_eq!(cpus(&plan, 0), [0, 1, 2]);
    }

    #[test]
    #[should_panic(expected = "a number of instances in its range")]
    fn a_count_that_is_none_panics() {
        plan(QUAD, Instances::Count(0), Placement::Group);
    }

    #[test]
    fn names_are_read_as_they_are_shown() {
        for placement in Placement::all() {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert_eq!("socket".parse(), Ok(Instances::PerSocket));
        assert_eq!("12".parse(), Ok(Instances::Count(12)));
        assert!(["0", "65537", "many"].iter().all(|text| text.parse::<Instances>().is_err()));
        assert!("near".parse::<Placement>().is_err());
    }

    proptest! {
        #[test]
        fn each_core_belongs_to_one_instance(
            (sockets, cores_per_socket, cpus_per_core) in (1u32..6, 1u32..9, 1u32..3),
            count in 1usize..20,
            placement in prop::sample::select(&[Placement::Group, Placement::Spread, Placement::Mix]),
        ) {
            let machine = Regular { sockets, cores_per_socket, cpus_per_core, links: &[] };
            let topology = Topology::try_from(machine).unwrap();
            let plan = Plan::new(&topology, Instances::Count(count), placement);
            prop_assert_eq!(plan.instances().len(), count);
            if !plan.is_oversubscribed() {
                let mut all: Vec<_> = plan.instances().iter().flat_map(|place| place.cpus()).collect();
                all.sort_unstable();
                all.dedup();
                prop_assert_eq!(all.len(), topology.cpu_count());
                let sizes = plan.instances().iter().map(|place| place.cpus().len());
                let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
                prop_assert!(most - least <= cpus_per_core as usize);
            }
        }
    }
}
