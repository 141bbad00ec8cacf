//! Machines of equal sockets.

use std::collections::BTreeMap;

use super::{Core, CpuId, DISTANCE_LOCAL, NodeId, Topology, TopologyError};

/// The distance that each hop from one socket to another one adds.
const HOP: u32 = 10;

/// A machine of equal sockets, each with one cache of the last level and one node of memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Regular {
    /// How many sockets the machine has.
    pub sockets: u32,
    /// How many cores each socket has.
    pub cores_per_socket: u32,
    /// How many logical processors each core has.
    pub cpus_per_core: u32,
    /// Pairs of sockets with a direct link; where there is none in the list, each pair has one.
    pub links: &'static [(u32, u32)],
}

/// The most sockets and processors of a machine.
const SOCKETS_MAX: u32 = 1 << 10;
const CPUS_MAX: u32 = 1 << 20;

/// The links of a twisted cube: the edges of a cube, two of which cross, so that no two sockets are more than two hops apart.
const TWISTED_CUBE: &[(u32, u32)] =
    &[(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 7), (3, 6)];

impl Regular {
    /// The machine of the paper with two sockets of eight cores.
    pub const DUAL_SOCKET: Regular =
        Regular { sockets: 2, cores_per_socket: 8, cpus_per_core: 1, links: &[] };

    /// The machine of the paper with four sockets of six cores, on which most of its experiments were made.
    pub const QUAD_SOCKET: Regular =
        Regular { sockets: 4, cores_per_socket: 6, cpus_per_core: 1, links: &[] };

    /// The machine of the paper with eight sockets of ten cores, which form a twisted cube.
    pub const OCTO_SOCKET: Regular =
        Regular { sockets: 8, cores_per_socket: 10, cpus_per_core: 1, links: TWISTED_CUBE };

    /// Returns how many links lie between this socket and each other one at least; `None` where no way leads there.
    fn hops_from(&self, from: u32) -> Vec<Option<u32>> {
        let is_linked = |a: u32, b: u32| {
            self.links.is_empty() || self.links.contains(&(a, b)) || self.links.contains(&(b, a))
        };
        let mut hops = vec![None; self.sockets as usize];
        hops[from as usize] = Some(0);
        let mut reached = vec![from];
        for distance in 1.. {
            let is_next =
                |to: &u32| hops[*to as usize].is_none() && reached.iter().any(|at| is_linked(*at, *to));
            reached = (0..self.sockets).filter(is_next).collect();
            if reached.is_empty() {
                break;
            }
            reached.iter().for_each(|to| hops[*to as usize] = Some(distance));
        }
        hops
    }
}

impl TryFrom<Regular> for Topology {
    type Error = TopologyError;

    /// Returns the machine's topology. Its logical processors are counted core by core.
    ///
    /// # Errors
    /// [`TopologyError::NoCpus`] where a number is 0; [`TopologyError::Malformed`] where no way leads from one socket to another, or there are more
    /// than 1024 sockets or 2^20 processors.
    fn try_from(machine: Regular) -> Result<Self, TopologyError> {
        if [machine.sockets, machine.cores_per_socket, machine.cpus_per_core].contains(&0) {
            return Err(TopologyError::NoCpus);
        }
        let cores = machine.sockets.checked_mul(machine.cores_per_socket);
        let cpus = cores.and_then(|cores| cores.checked_mul(machine.cpus_per_core));
        let (Some(cores), Some(0..=CPUS_MAX), 0..=SOCKETS_MAX) = (cores, cpus, machine.sockets) else {
            return Err(TopologyError::Malformed(format!(
                "a machine has {SOCKETS_MAX} sockets and {CPUS_MAX} processors at most"
            )));
        };
        let mut distances = BTreeMap::new();
        for from in 0..machine.sockets {
            for (to, hops) in (0..).zip(machine.hops_from(from)) {
                let unlinked =
                    || TopologyError::Malformed(format!("no link leads from socket {from} to {to}"));
                distances
                    .insert((NodeId(from), NodeId(to)), DISTANCE_LOCAL + HOP * hops.ok_or_else(unlinked)?);
            }
        }
        let cores = (0..cores).map(|core| {
            let socket = core / machine.cores_per_socket;
            let first = core * machine.cpus_per_core;
            let cpus = (first..first + machine.cpus_per_core).map(CpuId).collect();
            Core { cpus, socket, node: NodeId(socket), l2: core, l3: socket }
        });
        Topology::new(cores.collect(), distances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_machines_have_their_sockets_and_cores() {
        for (machine, sockets, cores) in
            [(Regular::DUAL_SOCKET, 2, 16), (Regular::QUAD_SOCKET, 4, 24), (Regular::OCTO_SOCKET, 8, 80)]
        {
            let topology = Topology::try_from(machine).unwrap();
            assert_eq!((topology.sockets().len(), topology.cores().len()), (sockets, cores));
        }
    }

    #[test]
    fn no_two_sockets_of_the_twisted_cube_are_more_than_two_hops_apart() {
        let topology = Topology::try_from(Regular::OCTO_SOCKET).unwrap();
        for from in topology.nodes() {
            let distances = topology.nodes().into_iter().map(|to| topology.distance(from, to));
            let mut distances: Vec<u32> = distances.collect();
            distances.sort_unstable();
            assert_eq!(distances, [10, 20, 20, 20, 30, 30, 30, 30], "of socket {from:?}");
        }
    }

    #[test]
    fn sockets_without_a_link_are_no_machine() {
        let apart = Regular { sockets: 3, cores_per_socket: 1, cpus_per_core: 1, links: &[(0, 1)] };
        assert!(matches!(Topology::try_from(apart), Err(TopologyError::Malformed(_))));
        for (sockets, cores_per_socket) in [(1 << 11, 1), (1, 1 << 21), (1 << 20, 1 << 20)] {
            let many = Regular { sockets, cores_per_socket, cpus_per_core: 1, links: &[] };
            assert!(matches!(Topology::try_from(many), Err(TopologyError::Malformed(_))));
        }
        let empty = Regular { sockets: 0, ..apart };
        assert_eq!(Topology::try_from(empty), Err(TopologyError::NoCpus));
    }
}
