//! How long messages take between the cores of this machine, by how close these are to each other.
//!
//! Pairs of cores fall into classes: two that share a cache, a socket, or nothing but the machine, and how far the memory of one is from that of the
//! other. Of each class a few pairs are measured, so that the time it takes does not grow with the square of the cores.
//!
//! # Source
//! Islands (VLDB Journal) §3 and figure 2.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

use crate::binding::{BindError, bind_this_thread};
use crate::channel::{ChannelError, ChannelKind, connect};
use crate::placement::InstancePlace;
use crate::round_trips::{answer_all, measure_round_trips};
use crate::topology::{Core, CpuId, Topology};

/// How many pairs of a class are measured.
const PAIRS_MAX: usize = 4;

/// The length of the messages: that of a part of a transaction.
const MESSAGE_BYTES: usize = 256;

/// The nearest thing that two processors share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Closeness {
    /// They are of one core.
    Core,
    /// A cache of the last level.
    Cache,
    /// A socket.
    Socket,
    /// The machine.
    Machine,
}

/// How close the processors of a pair are to each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairClass {
    /// What they share.
    pub closeness: Closeness,
    /// How far the memory of one is from the other, where 10 is its own.
    pub distance: u32,
}

impl PairClass {
    /// Returns the class of two cores; of one core, that of two of its processors.
    #[must_use]
    pub fn of(topology: &Topology, first: &Core, second: &Core) -> Self {
        let closeness = if first.cpus[0] == second.cpus[0] {
            Closeness::Core
        } else if first.last_level_cache() == second.last_level_cache() {
            Closeness::Cache
        } else if first.socket == second.socket {
            Closeness::Socket
        } else {
            Closeness::Machine
        };
        PairClass { closeness, distance: topology.distance(first.node, second.node) }
    }
}

impl fmt::Display for PairClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.closeness {
            Closeness::Core => "two processors of a core",
            Closeness::Cache => "cores with the same cache",
            Closeness::Socket => "cores of the same socket",
            Closeness::Machine => "cores of two sockets",
        })?;
        if self.distance == 10 { Ok(()) } else { write!(f, " at a distance of {}", self.distance) }
    }
}

/// How long messages take between the pairs of a class.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ClassLatency {
    /// Which pairs.
    pub class: PairClass,
    /// How many pairs there are.
    pub pairs: usize,
    /// How many of them were measured.
    pub measured: usize,
    /// A message and its answer: the median of the measured pairs' medians.
    pub round_trip: Duration,
}

/// How long messages take between the cores of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies(Vec<ClassLatency>);

/// Why latencies could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum LatencyError {
    /// A thread could not be kept on a core.
    Bind(BindError),
    /// A channel has failed.
    Channel(ChannelError),
    /// The ends of a channel could not meet.
    Io(io::Error),
}

impl fmt::Display for LatencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("latencies between cores cannot be measured: ")?;
        match self {
            LatencyError::Bind(error) => error.fmt(f),
            LatencyError::Channel(error) => error.fmt(f),
            LatencyError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LatencyError {}

impl Latencies {
    /// Measures round trips through a kind of channel between pairs of the cores of this machine, of each class up to four pairs, and each pair for a
    /// time. The two ends are threads that are kept on their cores.
    ///
    /// # Errors
    /// [`LatencyError`]; among others, where the topology is that of another machine.
    pub fn measure(topology: &Topology, kind: ChannelKind, of_pair: Duration) -> Result<Self, LatencyError> {
        let classes = pairs_by_class(topology).into_iter().map(|(class, pairs)| {
            let chosen = choose(&pairs);
            let medians = chosen.iter().map(|pair| round_trip(topology, kind, *pair, of_pair));
            let mut medians: Vec<Duration> = medians.collect::<Result<_, _>>()?;
            medians.sort_unstable();
            let round_trip = medians[medians.len() / 2];
            Ok(ClassLatency { class, pairs: pairs.len(), measured: medians.len(), round_trip })
        });
        classes.collect::<Result<_, _>>().map(Latencies)
    }

    #[cfg(test)]
    pub(crate) fn new(classes: Vec<ClassLatency>) -> Self {
        Latencies(classes)
    }

    /// Returns what was measured, the closest pairs first; empty for a single processor.
    #[must_use]
    pub fn classes(&self) -> &[ClassLatency] {
        &self.0
    }

    /// Returns how long a message and its answer take between the pairs of a class; `None` where the machine has none.
    #[must_use]
    pub fn round_trip(&self, class: PairClass) -> Option<Duration> {
        self.0.iter().find(|latency| latency.class == class).map(|latency| latency.round_trip)
    }
}

/// Returns the pairs of processors, one of each core, and of each core that has two of them these.
fn pairs_by_class(topology: &Topology) -> BTreeMap<PairClass, Vec<[CpuId; 2]>> {
    let mut pairs: BTreeMap<PairClass, Vec<[CpuId; 2]>> = BTreeMap::new();
    for (at, first) in topology.cores().iter().enumerate() {
        let of_core = first.cpus.get(1).map(|second| (first, *second));
        let others = topology.cores()[at + 1..].iter().map(|second| (second, second.cpus[0]));
        for (second, cpu) in of_core.into_iter().chain(others) {
            pairs.entry(PairClass::of(topology, first, second)).or_default().push([first.cpus[0], cpu]);
        }
    }
    pairs
}

/// Returns some of the pairs, from all over.
fn choose(pairs: &[[CpuId; 2]]) -> Vec<[CpuId; 2]> {
    let count = pairs.len().min(PAIRS_MAX);
    (0..count).map(|at| pairs[at * pairs.len() / count]).collect()
}

/// Returns the median of the round trips between two processors.
fn round_trip(
    topology: &Topology,
    kind: ChannelKind,
    [here, there]: [CpuId; 2],
    time: Duration,
) -> Result<Duration, LatencyError> {
    let (link_here, link_there) = UnixStream::pair().map_err(LatencyError::Io)?;
    let answer = || {
        bind_to(topology, there)?;
        let mut channel = connect(kind, link_there).map_err(LatencyError::Channel)?;
        answer_all(&mut *channel).map_err(LatencyError::Channel)
    };
    let ask = || {
        bind_to(topology, here)?;
        let mut channel = connect(kind, link_here).map_err(LatencyError::Channel)?;
        let trips = measure_round_trips(&mut *channel, MESSAGE_BYTES, time, None);
        trips.map(|trips| trips.quantile(0.5)).map_err(LatencyError::Channel)
    };
    thread::scope(|scope| {
        // A thread that does not start drops its end of the link, which ends the other one.
        let answering = thread::Builder::new().spawn_scoped(scope, answer).map_err(LatencyError::Io)?;
        let asking = thread::Builder::new().spawn_scoped(scope, ask).map_err(LatencyError::Io)?;
        let asked = asking.join().unwrap_or_else(|panic| resume_unwind(panic));
        // Why that has failed, if it has because of this.
        answering.join().unwrap_or_else(|panic| resume_unwind(panic)).and(asked)
    })
}

fn bind_to(topology: &Topology, cpu: CpuId) -> Result<(), LatencyError> {
    let place = InstancePlace::of_cpu(topology, cpu);
    place.map_or(Ok(()), |place| bind_this_thread(&place, 0)).map_err(LatencyError::Bind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Regular;

    #[test]
    fn the_pairs_of_a_machine_are_measured_and_take_some_time() {
        let here = Topology::of_this_machine().unwrap();
        for kind in [ChannelKind::Memory, ChannelKind::Unix] {
            let latencies = Latencies::measure(&here, kind, Duration::from_millis(5)).unwrap();
            let pairs: usize = latencies.classes().iter().map(|class| class.pairs).sum();
            let (cores, with_two) =
                (here.cores().len(), here.cores().iter().filter(|core| core.cpus.len() > 1).count());
            assert_eq!(pairs, cores * (cores - 1) / 2 + with_two);
            for latency in latencies.classes() {
                assert!((1..=PAIRS_MAX.min(latency.pairs)).contains(&latency.measured), "{latency:?}");
                assert!(latency.round_trip > Duration::ZERO, "{latency:?}");
            }
        }
    }

    /// The machine of eight sockets has 3,160 pairs of cores.
    #[test]
    fn of_many_pairs_some_of_each_class_are_measured() {
        let octo = Topology::try_from(Regular { cpus_per_core: 2, ..Regular::OCTO_SOCKET }).unwrap();
        let classes: Vec<(PairClass, usize, usize)> = pairs_by_class(&octo)
            .into_iter()
            .map(|(class, pairs)| (class, pairs.len(), choose(&pairs).len()))
            .collect();
        let class = |closeness, distance| PairClass { closeness, distance };
        assert_eq!(
            classes,
            [
                (class(Closeness::Core, 10), 80, 4),
                (class(Closeness::Cache, 10), 8 * 45, 4),
                (class(Closeness::Machine, 20), 12 * 100, 4),
                (class(Closeness::Machine, 30), 16 * 100, 4),
            ]
        );
    }

    #[test]
    fn another_machine_is_not_measured_here() {
        let other = Topology::from_description("# CPU,Core,Socket\n100000,0,0\n100001,1,0\n").unwrap();
        let error = Latencies::measure(&other, ChannelKind::Memory, Duration::from_millis(1)).unwrap_err();
        assert!(matches!(error, LatencyError::Bind(_)), "{error}");
    }
}
