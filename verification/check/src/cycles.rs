//! Finds the cycles of a graph that is known to have some, the plainest anomaly first.
//!
//! The graph is searched with more and more kinds of edges: writes and reads of what was written (G1c),
//! then item anti-dependencies (G2-item), predicate anti-dependencies (G2) and at last the order of each worker's
//! transactions. A component is left out if it contains a transaction of a cycle that was reported already.

use std::collections::HashSet;

use crate::dependency::Edge;
use crate::graph::Graph;
use crate::report::DependencyKind;

/// The last kind of edge that takes part in each search.
const STAGES: [DependencyKind; 4] = [
    DependencyKind::PredicateWriteRead,
    DependencyKind::ReadWrite,
    DependencyKind::PredicateReadWrite,
    DependencyKind::ProgramOrder,
];

/// Calls `each` for a short cycle of every component that shows an anomaly not reported before.
pub(crate) fn for_each_cycle(nodes: usize, edges: &[Edge], mut each: impl FnMut(Vec<Edge>)) {
    let mut reported: HashSet<u32> = HashSet::new();
    for last in STAGES {
        let graph = Graph::new(nodes, edges.iter().filter(|edge| edge.kind <= last).copied().collect());
        for component in graph.components() {
            if !component.iter().any(|node| reported.contains(node)) {
                each(graph.short_cycle(&component));
                reported.extend(component);
            }
        }
    }
}
