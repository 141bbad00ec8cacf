//! A directed graph over transactions: strongly connected components, and short cycles inside them.
//!
//! # Layout
//! Edges lie in one array, grouped by their origin and sorted by kind within the group; `starts` says where each group
//! begins.
//!
//! # Source
//! R. Tarjan, "Depth-first search and linear graph algorithms" (1972), without recursion.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::dependency::Edge;

/// How many nodes of a component are tried as the beginning of its shortest cycle.
const CYCLE_STARTS_MAX: usize = 64;

const UNSEEN: u32 = u32::MAX;

/// A graph over the transactions `0..nodes`.
pub(crate) struct Graph {
    starts: Vec<usize>,
    edges: Vec<Edge>,
}

impl Graph {
    /// Returns the graph with these edges.
    pub(crate) fn new(nodes: usize, mut edges: Vec<Edge>) -> Graph {
        edges.sort_unstable_by_key(|edge| (edge.from, edge.kind));
        let mut starts = vec![0; nodes + 1];
        for edge in &edges {
            starts[edge.from as usize + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        Graph { starts, edges }
    }

    fn edges_of(&self, node: u32) -> &[Edge] {
        &self.edges[self.starts[node as usize]..self.starts[node as usize + 1]]
    }

    /// Returns the strongly connected components of more than one node.
    pub(crate) fn components(&self) -> Vec<Vec<u32>> {
        let mut search = Tarjan::new(self);
        for node in 0..self.starts.len() as u32 - 1 {
            if search.order[node as usize] == UNSEEN {
                search.visit_from(node);
            }
        }
        search.components
    }

    /// Returns a cycle through some of the nodes of a strongly connected component: the shortest of those through any of its
    /// first nodes.
    pub(crate) fn short_cycle(&self, component: &[u32]) -> Vec<Edge> {
        let inside: HashSet<u32> = component.iter().copied().collect();
        let mut best: Vec<Edge> = Vec::new();
        for start in component.iter().take(CYCLE_STARTS_MAX) {
            let length_max = best.len().checked_sub(1).unwrap_or(usize::MAX);
            if let Some(cycle) = self.cycle_through(*start, &inside, length_max) {
                best = cycle;
            }
            if best.len() == 2 {
                break;
            }
        }
        best
    }

    /// Returns the shortest cycle through `start`, by breadth-first search, unless it has more than `length_max` edges.
    fn cycle_through(&self, start: u32, inside: &HashSet<u32>, length_max: usize) -> Option<Vec<Edge>> {
        let mut reached_by: HashMap<u32, Edge> = HashMap::new();
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((node, distance)) = queue.pop_front() {
            if distance == length_max {
                return None;
            }
            for edge in self.edges_of(node).iter().filter(|edge| inside.contains(&edge.to)) {
                if reached_by.contains_key(&edge.to) {
                    continue;
                }
                reached_by.insert(edge.to, *edge);
                if edge.to == start {
                    return Some(walk_back(start, &reached_by));
                }
                queue.push_back((edge.to, distance + 1));
            }
        }
        None
    }
}

fn walk_back(start: u32, reached_by: &HashMap<u32, Edge>) -> Vec<Edge> {
    let mut cycle = vec![reached_by[&start]];
    while cycle[cycle.len() - 1].from != start {
        cycle.push(reached_by[&cycle[cycle.len() - 1].from]);
    }
    cycle.reverse();
    cycle
}

/// The state of Tarjan's search.
struct Tarjan<'g> {
    graph: &'g Graph,
    /// When a node was first visited.
    order: Vec<u32>,
    /// The earliest node on the stack that is known to be reachable from a node.
    low: Vec<u32>,
    on_stack: Vec<bool>,
    stack: Vec<u32>,
    /// The path of the search: a node and how many of its edges have been followed.
    path: Vec<(u32, usize)>,
    visited: u32,
    components: Vec<Vec<u32>>,
}

impl<'g> Tarjan<'g> {
    fn new(graph: &'g Graph) -> Tarjan<'g> {
        let nodes = graph.starts.len() - 1;
        Tarjan {
            graph,
            order: vec![UNSEEN; nodes],
            low: vec![UNSEEN; nodes],
            on_stack: vec![false; nodes],
            stack: Vec::new(),
            path: Vec::new(),
            visited: 0,
            components: Vec::new(),
        }
    }

    fn visit_from(&mut self, root: u32) {
        self.enter(root);
        while let Some((node, followed)) = self.path.last_mut() {
            let node = *node;
            match self.graph.edges_of(node).get(*followed) {
                Some(edge) => {
                    *followed += 1;
                    self.follow(node, edge.to);
                }
                None => self.leave(node),
            }
        }
    }

    fn enter(&mut self, node: u32) {
        self.order[node as usize] = self.visited;
        self.low[node as usize] = self.visited;
        self.visited += 1;
        self.stack.push(node);
        self.on_stack[node as usize] = true;
        self.path.push((node, 0));
    }

    fn follow(&mut self, from: u32, to: u32) {
        if self.order[to as usize] == UNSEEN {
            self.enter(to);
        } else if self.on_stack[to as usize] {
            self.low[from as usize] = self.low[from as usize].min(self.order[to as usize]);
        }
    }

    fn leave(&mut self, node: u32) {
        self.path.pop();
        if let Some((parent, _)) = self.path.last() {
            self.low[*parent as usize] = self.low[*parent as usize].min(self.low[node as usize]);
        }
        if self.low[node as usize] == self.order[node as usize] {
            self.take_component(node);
        }
    }

    fn take_component(&mut self, root: u32) {
        let first = self.stack.iter().rposition(|node| *node == root).expect("the root is on the stack");
        let component = self.stack.split_off(first);
        for node in &component {
            self.on_stack[*node as usize] = false;
        }
        if component.len() > 1 {
            self.components.push(component);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::DependencyKind;

    fn graph(nodes: usize, edges: &[(u32, u32)]) -> Graph {
        let edges = edges
            .iter()
            .map(|&(from, to)| Edge { from, to, kind: DependencyKind::WriteWrite, key: 0 })
            .collect();
        Graph::new(nodes, edges)
    }

    #[test]
    fn a_graph_without_cycles_has_no_components() {
        assert!(graph(4, &[(0, 1), (1, 2), (0, 2), (3, 2)]).components().is_empty());
    }

    #[test]
    fn components_are_separated() {
        let mut components = graph(6, &[(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]).components();
        for component in &mut components {
            component.sort_unstable();
        }
        components.sort();
        assert_eq!(components, [vec![0, 1], vec![2, 3, 4]]);
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        let graph = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 2)]);
        let components = graph.components();
        assert_eq!(components.len(), 1);
        let cycle = graph.short_cycle(&components[0]);
        assert_eq!(cycle.len(), 2);
        assert_eq!(cycle[0].to, cycle[1].from);
        assert_eq!(cycle[1].to, cycle[0].from);
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let nodes = 300_000;
        let mut edges: Vec<(u32, u32)> = (1..nodes).map(|node| (node - 1, node)).collect();
        assert!(graph(nodes as usize, &edges).components().is_empty());
        edges.push((nodes - 1, 0));
        assert_eq!(graph(nodes as usize, &edges).components()[0].len(), nodes as usize);
    }
}
