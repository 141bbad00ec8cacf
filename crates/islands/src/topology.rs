//! The topology of a machine: its cores, what they share, and how far their memory is from each other.
//!
//! It comes from the running system, from a file, or from numbers: what is planned for a machine can be planned, and tested, on another one.
//!
//! # Source
//! Islands (VLDB Journal) §3, table 1 and figure 1, for the machines that were measured there.

mod description;
mod regular;
mod system;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use regular::Regular;

/// A logical processor, as the operating system counts them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CpuId(pub u32);

/// A node of memory, as the operating system counts them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// A core, with all of its logical processors that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Core {
    /// The core's logical processors, at least one, in ascending order.
    pub cpus: Vec<CpuId>,
    /// The socket that the core is on.
    pub socket: u32,
    /// The node of memory that is nearest.
    pub node: NodeId,
    /// Which of the machine's caches of the second level the core uses.
    pub l2: u32,
    /// Which of the machine's caches of the last level the core uses.
    pub l3: u32,
}

impl Core {
    /// Names the core's cache of the last level: its number, on its socket.
    pub(crate) fn last_level_cache(&self) -> (u32, u32) {
        (self.socket, self.l3)
    }
}

/// A machine as far as it matters where a thread runs and where its memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// In the order of their first logical processors.
    cores: Vec<Core>,
    /// By pairs of nodes that have cores, as the firmware gives them: 10 for a node's own memory.
    distances: BTreeMap<(NodeId, NodeId), u32>,
}

/// The distance of a node's own memory.
const DISTANCE_LOCAL: u32 = 10;

/// The distance of the memory of another node of which nothing is said.
const DISTANCE_REMOTE: u32 = 20;

/// Why a machine's topology is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// A file could not be read. It holds the file's name and the reason.
    Unreadable(String),
    /// What was read describes no machine. It holds where that is, and the reason.
    Malformed(String),
    /// None of the machine's processors may be used.
    NoCpus,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::Unreadable(what) => write!(f, "the topology cannot be read: {what}"),
            TopologyError::Malformed(what) => write!(f, "this describes no machine: {what}"),
            TopologyError::NoCpus => f.write_str("there is no processor to run on"),
        }
    }
}

impl std::error::Error for TopologyError {}

impl Topology {
    /// Returns the topology of this machine, with the processors that the calling thread may run on.
    ///
    /// # Errors
    /// [`TopologyError::Unreadable`], [`TopologyError::Malformed`] where the system says nothing that can be understood. A
    /// [description](Topology::from_file) serves instead.
    pub fn of_this_machine() -> Result<Self, TopologyError> {
        system::read(Path::new("/sys"), system::allowed_cpus()?)
    }

    /// Returns the topology that a file describes, in the form that `lscpu -p` prints on the machine; see
    /// [`Topology::from_description`].
    ///
    /// # Errors
    /// [`TopologyError::Unreadable`], and those of [`Topology::from_description`].
    pub fn from_file(file: &Path) -> Result<Self, TopologyError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| TopologyError::Unreadable(format!("{}: {error}", file.display())))?;
        Topology::from_description(&text)
    }

    /// Returns the topology that a text describes, in the form that `lscpu -p` prints: a line `CPU,Core,Socket,Node,,L1d,L1i,L2,L3` for each
    /// logical processor, with the columns that a comment before them names. Of these `CPU`, `Core` and `Socket` have to be there; without
    /// `Node` a socket is a node, without `L3` it has one cache of the last level, and without `L2` each core has its own.
    ///
    /// Comments of the form `# distances of node 0: 10 20 20` tell how far each node's memory is from that one, in the unit of
    /// `numactl --hardware`: 10 is the node's own. Without them every other node is at 20.
    ///
    /// ```
    /// let machine = "# CPU,Core,Socket\n0,0,0\n1,1,0\n2,2,1\n3,3,1\n";
    /// let topology = ensilo_islands::Topology::from_description(machine)?;
    /// assert_eq!((topology.cores().len(), topology.sockets().len()), (4, 2));
    /// # Ok::<(), ensilo_islands::TopologyError>(())
    /// ```
    ///
    /// # Errors
    /// [`TopologyError::Malformed`] with the line; [`TopologyError::NoCpus`].
    pub fn from_description(text: &str) -> Result<Self, TopologyError> {
        description::parse(text)
    }

    /// Puts a topology together, of distances between some pairs of nodes.
    fn new(
        mut cores: Vec<Core>,
        mut distances: BTreeMap<(NodeId, NodeId), u32>,
    ) -> Result<Self, TopologyError> {
        cores.iter_mut().for_each(|core| core.cpus.sort_unstable());
        cores.retain(|core| !core.cpus.is_empty());
        cores.sort_by_key(|core| core.cpus[0]);
        if cores.is_empty() {
            return Err(TopologyError::NoCpus);
        }
        let nodes: BTreeSet<NodeId> = cores.iter().map(|core| core.node).collect();
        distances.retain(|(from, to), _| nodes.contains(from) && nodes.contains(to));
        for (from, to) in nodes.iter().flat_map(|from| nodes.iter().map(|to| (*from, *to))) {
            let default = if from == to { DISTANCE_LOCAL } else { DISTANCE_REMOTE };
            distances.entry((from, to)).or_insert(default);
        }
        Ok(Topology { cores, distances })
    }

    /// Returns the cores, in the order of their first logical processors.
    #[must_use]
    pub fn cores(&self) -> &[Core] {
        &self.cores
    }

    /// Returns the sockets that have cores, in ascending order.
    #[must_use]
    pub fn sockets(&self) -> BTreeSet<u32> {
        self.cores.iter().map(|core| core.socket).collect()
    }

    /// Returns the nodes of memory that have cores, in ascending order.
    #[must_use]
    pub fn nodes(&self) -> BTreeSet<NodeId> {
        self.cores.iter().map(|core| core.node).collect()
    }

    /// Returns how many caches of the last level there are.
    #[must_use]
    pub fn last_level_cache_count(&self) -> usize {
        self.cores.iter().map(Core::last_level_cache).collect::<BTreeSet<_>>().len()
    }

    /// Returns the number of logical processors.
    #[must_use]
    pub fn cpu_count(&self) -> usize {
        self.cores.iter().map(|core| core.cpus.len()).sum()
    }

    /// Returns how far a node's memory is from another node, where 10 is a node's own.
    ///
    /// # Panics
    /// When one of the nodes has no cores.
    #[must_use]
    pub fn distance(&self, from: NodeId, to: NodeId) -> u32 {
        self.distances[&(from, to)]
    }
}

/// Shows the topology as [`Topology::from_description`] reads it.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        description::print(self, f)
    }
}
