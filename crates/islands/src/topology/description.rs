//! The text that describes a machine, in the form of `lscpu -p`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Core, CpuId, NodeId, Topology, TopologyError};

/// A comment that begins so tells how far the other nodes are from one.
const DISTANCES: &str = "distances of node ";

/// Nodes have numbers before this.
const NODES_MAX: u32 = 1024;

/// The names of the columns, and where each one is in a line.
#[derive(Debug, Default)]
struct Columns(BTreeMap<String, usize>);

/// A line for a logical processor.
struct Line<'a> {
    number: usize,
    columns: &'a Columns,
    fields: Vec<&'a str>,
}

impl Line<'_> {
    /// Returns the number in a column, or `None` where there is no such column or nothing in it.
    fn optional(&self, column: &str) -> Result<Option<u32>, TopologyError> {
        let field = self.columns.0.get(column).and_then(|at| self.fields.get(*at)).copied();
        match field.map(str::trim) {
            // `lscpu` prints a hyphen for a cache that it does not know.
            None | Some("" | "-") => Ok(None),
            Some(field) => match field.parse() {
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(malformed(self.number, &format!("{field:?} in column {column} is no number"))),
            },
        }
    }

    fn required(&self, column: &str) -> Result<u32, TopologyError> {
        let missing = || malformed(self.number, &format!("nothing in column {column}"));
        self.optional(column)?.ok_or_else(missing)
    }

    fn node(&self, socket: u32) -> Result<NodeId, TopologyError> {
        match self.optional("Node")?.unwrap_or(socket) {
            node if node < NODES_MAX => Ok(NodeId(node)),
            node => {
                Err(malformed(self.number, &format!("node {node} is none: there are {NODES_MAX} at most")))
            }
        }
    }
}

fn malformed(line: usize, why: &str) -> TopologyError {
    TopologyError::Malformed(format!("line {line}: {why}"))
}

pub(super) fn parse(text: &str) -> Result<Topology, TopologyError> {
    let mut columns = Columns::default();
    let mut distances = BTreeMap::new();
    // By socket and the core's number there.
    let mut cores: BTreeMap<(u32, u32), Core> = BTreeMap::new();
    let mut cpus = BTreeSet::new();
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#').map(str::trim) {
            if let Some(rest) = comment.strip_prefix(DISTANCES) {
                parse_distances(rest, number, &mut distances)?;
            } else if comment.split(',').any(|name| name == "CPU") {
                columns.0 = comment.split(',').enumerate().map(|(at, name)| (name.into(), at)).collect();
            }
        } else if !line.is_empty() {
            add_cpu(
                &Line { number, columns: &columns, fields: line.split(',').collect() },
                &mut cpus,
                &mut cores,
            )?;
        }
    }
    Topology::new(cores.into_values().collect(), distances)
}

fn add_cpu(
    line: &Line<'_>,
    cpus: &mut BTreeSet<CpuId>,
    cores: &mut BTreeMap<(u32, u32), Core>,
) -> Result<(), TopologyError> {
    let cpu = CpuId(line.required("CPU")?);
    let (core, socket) = (line.required("Core")?, line.required("Socket")?);
    if !cpus.insert(cpu) {
        return Err(malformed(line.number, &format!("processor {} is there twice", cpu.0)));
    }
    let added = Core {
        cpus: vec![cpu],
        socket,
        node: line.node(socket)?,
        l2: line.optional("L2")?.unwrap_or(cpu.0),
        l3: line.optional("L3")?.unwrap_or(socket),
    };
    cores.entry((socket, core)).and_modify(|known| known.cpus.push(cpu)).or_insert(added);
    Ok(())
}

/// Reads `0: 10 20 20`.
fn parse_distances(
    text: &str,
    line: usize,
    distances: &mut BTreeMap<(NodeId, NodeId), u32>,
) -> Result<(), TopologyError> {
    let no_distances = || malformed(line, "distances are a node, a colon, and a number for each node");
    let (from, all) = text.split_once(':').ok_or_else(no_distances)?;
    let from = NodeId(from.trim().parse().map_err(|_| no_distances())?);
    for (to, distance) in (0..).zip(all.split_whitespace()) {
        let distance = distance.parse().map_err(|_| no_distances())?;
        distances.insert((from, NodeId(to)), distance);
    }
    Ok(())
}

pub(super) fn print(topology: &Topology, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for from in topology.nodes() {
        write!(f, "# {DISTANCES}{}:", from.0)?;
        // Those of nodes without cores as well, which are of no matter: a number's place says of which node it is.
        let last = topology.nodes().last().map_or(0, |node| node.0);
        let distance = |to| topology.distances.get(&(from, to)).unwrap_or(&super::DISTANCE_REMOTE);
        (0..=last).try_for_each(|to| write!(f, " {}", distance(NodeId(to))))?;
        writeln!(f)?;
    }
    writeln!(f, "# CPU,Core,Socket,Node,L2,L3")?;
    for (number, core) in topology.cores().iter().enumerate() {
        for cpu in &core.cpus {
            let (node, l2, l3) = (core.node.0, core.l2, core.l3);
            writeln!(f, "{},{number},{},{node},{l2},{l3}", cpu.0, core.socket)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Regular;
    use super::*;

    #[test]
    fn what_lscpu_prints_is_read() {
        let printed = "# The following is the parsable format, which can be fed to other\n\
                       # CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n\
                       0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,0,0,0,,0,0,0,0\n3,1,0,0,,1,1,1,0\n";
        let topology = Topology::from_description(printed).unwrap();
        let cpus: Vec<_> = topology.cores().iter().map(|core| core.cpus.clone()).collect();
        assert_eq!(cpus, [[CpuId(0), CpuId(2)], [CpuId(1), CpuId(3)]]);
        assert_eq!(topology.last_level_cache_count(), 1);
    }

    #[test]
    fn cores_of_two_sockets_with_the_same_number_are_two() {
        let topology = Topology::from_description("# CPU,Core,Socket\n0,0,0\n1,0,1\n").unwrap();
        assert_eq!((topology.cores().len(), topology.nodes().len()), (2, 2));
    }

    #[test]
    fn what_is_printed_is_read_again() {
        for machine in
            [Regular::QUAD_SOCKET, Regular::OCTO_SOCKET, Regular { cpus_per_core: 2, ..Regular::DUAL_SOCKET }]
        {
            let topology = Topology::try_from(machine).unwrap();
            assert_eq!(Topology::from_description(&topology.to_string()), Ok(topology));
        }
        let topology = Topology::from_description("# CPU,Core,Socket,Node\n0,0,0,5\n1,1,3,2\n").unwrap();
        assert_eq!(Topology::from_description(&topology.to_string()), Ok(topology));
    }

    #[test]
    fn an_error_names_its_line() {
        for (text, why) in [
            ("0,0,0\n", "line 1: nothing in column CPU"),
            ("# CPU,Core,Socket,Node\n0,0,0,1024\n", "line 2: node 1024 is none: there are 1024 at most"),
            ("# CPU,Core,Socket\n0,0\n", "line 2: nothing in column Socket"),
            ("# CPU,Core,Socket\n0,0,0\n\n0,1,0\n", "line 4: processor 0 is there twice"),
            ("# CPU,Core,Socket\nx,0,0\n", "line 2: \"x\" in column CPU is no number"),
            ("# CPU,Core,Socket\n0,0,0,\n-1,0,0\n", "line 3: \"-1\" in column CPU is no number"),
            (
                "# distances of node 0 10 20\n",
                "line 1: distances are a node, a colon, and a number for each node",
            ),
        ] {
            let error = Topology::from_description(text).unwrap_err();
            assert_eq!(error, TopologyError::Malformed(why.into()), "{text}");
        }
        assert_eq!(Topology::from_description("# CPU,Core,Socket\n"), Err(TopologyError::NoCpus));
    }
}
