//! Finds the cycles of a graph that is known to have some, the plainest anomaly first.
//!
//! The graph is searched with more and more kinds of edges: writes and reads of what was written (G1c),
//! then item anti-dependencies (G2-item), predicate anti-dependencies (G2) and at last the order of each worker's
//! transactions. A component is left out if it contains a transaction of a cycle that was reported already.
//!
//! # Snapshot isolation
//! It forbids the cycles in which no two anti-dependencies follow each other: Fekete, Liarokapis, O'Neil, O'Neil, Shasha, "Making snapshot
//! isolation serializable" (2005), and in both directions Cerone, Gotsman, "Analysing snapshot isolation" (2016). Each transaction stands in
//! the graph twice, as it is reached by an anti-dependency or otherwise; the first has no anti-dependency that leads on.

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

/// Returns whether there is a cycle that snapshot isolation forbids.
pub(crate) fn has_forbidden_cycle(nodes: usize, edges: &[Edge]) -> bool {
    !Graph::new(2 * nodes, doubled(edges)).components().is_empty()
}

/// Calls `each` for a short one of the cycles that snapshot isolation forbids, for every component that shows an anomaly not reported before.
pub(crate) fn for_each_forbidden_cycle(nodes: usize, edges: &[Edge], mut each: impl FnMut(Vec<Edge>)) {
    for_each_cycle(2 * nodes, &doubled(edges), |mut cycle| {
        for edge in &mut cycle {
            (edge.from, edge.to) = (edge.from / 2, edge.to / 2);
        }
        each(cycle);
    });
}

/// Returns the edges between transactions that stand twice: as reached by an anti-dependency at odd places.
fn doubled(edges: &[Edge]) -> Vec<Edge> {
    let mut doubled = Vec::new();
    for edge in edges {
        let (from, to) = (2 * edge.from, 2 * edge.to);
        if edge.kind.is_anti_dependency() {
            doubled.push(Edge { from, to: to + 1, ..*edge });
        } else {
            doubled.extend([from, from + 1].map(|from| Edge { from, to, ..*edge }));
        }
    }
    doubled
}

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
