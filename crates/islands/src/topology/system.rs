//! What Linux says of the machine, under `/sys`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Core, CpuId, NodeId, Topology, TopologyError};

/// Returns the processors that this thread may run on.
pub(super) fn allowed_cpus() -> Result<BTreeSet<CpuId>, TopologyError> {
    let allowed = crate::affinity::allowed();
    let allowed =
        allowed.map_err(|error| TopologyError::Unreadable(format!("the allowed processors: {error}")))?;
    Ok(allowed.into_iter().collect())
}

/// What is known of a core before all others are: whether there is a cache that it shares with other cores.
struct FoundCore {
    core: Core,
    shared_cache: Option<CpuId>,
}

/// Reads the topology of these processors below `sys`. What the system does not say, as some virtual machines do not, is taken for what a machine of
/// one socket and one node would say, with a cache for the whole socket.
pub(super) fn read(sys: &Path, allowed: BTreeSet<CpuId>) -> Result<Topology, TopologyError> {
    let nodes = nodes_of_cpus(sys)?;
    // By the processors that each core has in all.
    let mut cores: BTreeMap<Vec<CpuId>, FoundCore> = BTreeMap::new();
    for cpu in allowed {
        let directory = sys.join(format!("devices/system/cpu/cpu{}", cpu.0));
        let siblings =
            list_at(&directory.join("topology/thread_siblings_list"))?.unwrap_or_else(|| vec![cpu]);
        let socket = number_at(&directory.join("topology/physical_package_id"))?.unwrap_or(0);
        let caches = caches_of(&directory)?;
        let last = caches.last_key_value().filter(|(_, cpus)| cpus.len() > siblings.len());
        let added = FoundCore {
            core: Core {
                cpus: Vec::new(),
                socket,
                node: nodes.get(&cpu).copied().unwrap_or(NodeId(0)),
                // A cache is known by the first processor that uses it.
                l2: caches.get(&2).unwrap_or(&siblings)[0].0,
                l3: siblings[0].0,
            },
            shared_cache: last.map(|(_, cpus)| cpus[0]),
        };
        cores.entry(siblings).or_insert(added).core.cpus.push(cpu);
    }
    Topology::new(with_last_level_caches(cores.into_values().collect()), distances(sys, &nodes)?)
}

/// Names the caches of the last level: those that cores share, or one for a socket of which nothing is said. A core that shares none where others do
/// has one of its own.
fn with_last_level_caches(found: Vec<FoundCore>) -> Vec<Core> {
    // By sockets where cores share caches, and the first processor of each socket.
    let sharing: BTreeSet<u32> =
        found.iter().filter(|found| found.shared_cache.is_some()).map(|found| found.core.socket).collect();
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    let cores = found.into_iter().map(|FoundCore { mut core, shared_cache }| {
        let first = *first.entry(core.socket).or_insert(core.l3);
        match shared_cache {
            Some(cpu) => core.l3 = cpu.0,
            None if !sharing.contains(&core.socket) => core.l3 = first,
            None => {}
        }
        core
    });
    cores.collect()
}

/// Returns, by level, the processors that use the same cache.
fn caches_of(cpu: &Path) -> Result<BTreeMap<u32, Vec<CpuId>>, TopologyError> {
    let mut caches = BTreeMap::new();
    for index in 0.. {
        let cache = cpu.join(format!("cache/index{index}"));
        let Some(level) = number_at(&cache.join("level"))? else { break };
        if let Some(shared) = list_at(&cache.join("shared_cpu_list"))? {
            caches.insert(level, shared);
        }
    }
    Ok(caches)
}

fn nodes_of_cpus(sys: &Path) -> Result<BTreeMap<CpuId, NodeId>, TopologyError> {
    let mut nodes = BTreeMap::new();
    for node in list_at(&sys.join("devices/system/node/online"))?.unwrap_or_default() {
        let cpus = list_at(&node_directory(sys, NodeId(node.0)).join("cpulist"))?.unwrap_or_default();
        nodes.extend(cpus.into_iter().map(|cpu| (cpu, NodeId(node.0))));
    }
    Ok(nodes)
}

fn node_directory(sys: &Path, node: NodeId) -> PathBuf {
    sys.join(format!("devices/system/node/node{}", node.0))
}

fn distances(
    sys: &Path,
    nodes: &BTreeMap<CpuId, NodeId>,
) -> Result<BTreeMap<(NodeId, NodeId), u32>, TopologyError> {
    // A line has a number for each node that is online, in ascending order.
    let online = list_at(&sys.join("devices/system/node/online"))?.unwrap_or_default();
    let mut distances = BTreeMap::new();
    for from in nodes.values().copied().collect::<BTreeSet<_>>() {
        let file = node_directory(sys, from).join("distance");
        let line = text_at(&file)?.unwrap_or_default();
        for (to, distance) in online.iter().zip(line.split_whitespace()) {
            let distance = distance.parse().map_err(|_| no_number(&file, distance))?;
            distances.insert((from, NodeId(to.0)), distance);
        }
    }
    Ok(distances)
}

/// Returns what is in a file, without white space around it; `None` where there is no such file, or nothing in it.
fn text_at(file: &Path) -> Result<Option<String>, TopologyError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TopologyError::Unreadable(format!("{}: {error}", file.display()))),
    }
}

fn number_at(file: &Path) -> Result<Option<u32>, TopologyError> {
    let Some(text) = text_at(file)? else { return Ok(None) };
    // Some systems have -1 for a socket that they do not know.
    if text == "-1" {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| no_number(file, &text))
}

/// Returns the numbers of a list such as `0-3,8`, of which there is at least one.
fn list_at(file: &Path) -> Result<Option<Vec<CpuId>>, TopologyError> {
    let Some(text) = text_at(file)? else { return Ok(None) };
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<u32>(), last.parse::<u32>()) {
            (Ok(first), Ok(last)) if first <= last => numbers.extend((first..=last).map(CpuId)),
            _ => return Err(no_number(file, range)),
        }
    }
    Ok(Some(numbers))
}

fn no_number(file: &Path, text: &str) -> TopologyError {
    TopologyError::Malformed(format!("{}: {text:?} is no number", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files as a machine of two sockets with two cores of two processors each has them.
    fn machine() -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let put = |file: String, text: String| {
            let file = sys.path().join("devices/system").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text + "\n").unwrap();
        };
        for cpu in 0..8u32 {
            // Processors 0 to 3 are the first ones of the cores, 4 to 7 the second ones.
            let (core, socket) = (cpu % 4, cpu % 4 / 2);
            let shared = format!("{},{}", core, core + 4);
            put(format!("cpu/cpu{cpu}/topology/thread_siblings_list"), shared.clone());
            put(format!("cpu/cpu{cpu}/topology/physical_package_id"), socket.to_string());
            let caches = [(1, shared.clone()), (1, shared.clone()), (2, shared)];
            let l3 = (3, format!("{}-{},{}-{}", socket * 2, socket * 2 + 1, socket * 2 + 4, socket * 2 + 5));
            for (index, (level, shared)) in caches.into_iter().chain([l3]).enumerate() {
                put(format!("cpu/cpu{cpu}/cache/index{index}/level"), level.to_string());
                put(format!("cpu/cpu{cpu}/cache/index{index}/shared_cpu_list"), shared);
            }
        }
        put("node/online".into(), "0-1".into());
        for (node, cpus, distance) in [(0, "0-1,4-5", "10 21"), (1, "2-3,6-7", "21 10")] {
            put(format!("node/node{node}/cpulist"), cpus.into());
            put(format!("node/node{node}/distance"), distance.into());
        }
        sys
    }

    fn cpus(numbers: impl IntoIterator<Item = u32>) -> BTreeSet<CpuId> {
        numbers.into_iter().map(CpuId).collect()
    }

    #[test]
    fn sockets_nodes_cores_and_caches_are_found() {
        let topology = read(machine().path(), cpus(0..8)).unwrap();
        assert_eq!((topology.cores().len(), topology.cpu_count()), (4, 8));
        assert_eq!((topology.sockets().len(), topology.last_level_cache_count()), (2, 2));
        assert_eq!(topology.distance(NodeId(0), NodeId(1)), 21);
        let third = Core { cpus: vec![CpuId(2), CpuId(6)], socket: 1, node: NodeId(1), l2: 2, l3: 2 };
        assert_eq!(topology.cores()[2], third);
    }

    #[test]
    fn processors_that_are_not_allowed_are_left_out() {
        let topology = read(machine().path(), cpus([1, 6])).unwrap();
        let left: Vec<_> = topology.cores().iter().flat_map(|core| core.cpus.clone()).collect();
        assert_eq!(left, [CpuId(1), CpuId(6)]);
        assert_eq!(read(machine().path(), cpus([])), Err(TopologyError::NoCpus));
    }

    #[test]
    fn a_system_that_says_nothing_has_one_socket_and_one_node() {
        let nothing = tempfile::tempdir().unwrap();
        let topology = read(nothing.path(), cpus(0..3)).unwrap();
        assert_eq!((topology.cores().len(), topology.sockets().len(), topology.nodes().len()), (3, 1, 1));
        assert_eq!(topology.last_level_cache_count(), 1);
    }

    #[test]
    fn the_last_cache_that_cores_share_counts() {
        // Two clusters of two cores with a cache of the second level each, and a core that shares none.
        let sys = tempfile::tempdir().unwrap();
        for (cpu, shared) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3"), (4, "4")] {
            let cache = sys.path().join(format!("devices/system/cpu/cpu{cpu}/cache/index0"));
            std::fs::create_dir_all(&cache).unwrap();
            std::fs::write(cache.join("level"), "2\n").unwrap();
            std::fs::write(cache.join("shared_cpu_list"), shared).unwrap();
        }
        let topology = read(sys.path(), cpus(0..5)).unwrap();
        let caches: Vec<_> = topology.cores().iter().map(|core| core.l3).collect();
        assert_eq!(caches, [0, 0, 2, 2, 4]);
    }

    #[test]
    fn what_is_no_number_is_named_with_its_file() {
        let sys = machine();
        std::fs::write(sys.path().join("devices/system/node/node1/distance"), "21 far\n").unwrap();
        let error = read(sys.path(), cpus(0..8)).unwrap_err().to_string();
        assert!(error.contains("node1/distance") && error.contains("far"), "{error}");
    }

    #[test]
    fn this_machine_has_the_processors_that_it_may_use() {
        let topology = Topology::of_this_machine().unwrap();
        let cpus: BTreeSet<_> = topology.cores().iter().flat_map(|core| core.cpus.clone()).collect();
        assert_eq!(cpus, allowed_cpus().unwrap());
    }
}
