//! The check of a whole history.
//!
//! # Why the graph is searched epoch by epoch
//! The serial order agrees with the epochs: every edge leads from one level to the same or to a later one. So the history
//! is serializable in such an order if and only if no edge leads backward and the edges *within* each level make no
//! cycle. Edges between levels are only looked at, not kept, which makes a graph of millions of transactions small. Only
//! when something is wrong is the whole graph built, to name the anomaly by its cycle.

use crate::cycles::{for_each_cycle, for_each_forbidden_cycle, has_forbidden_cycle};
use crate::dependency::{Edge, for_each_edge_of, for_each_program_edge, for_each_version_edge};
use crate::graph::Graph;
use crate::history::{History, Tid};
use crate::observation::for_each_observation;
use crate::report::{
    Cycle, Dependency, DependencyKind, Inconclusive, Report, Summary, TransactionName, Verdict, Violation,
};
use crate::rules::{Findings, check_observation, check_tids, check_versions, check_workers};
use crate::versions::Versions;

/// What a history is held to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum IsolationLevel {
    /// There is no cycle.
    Serializable,
    /// Each transaction reads what was committed when it began, and of two that overlap and write one key only one commits: every cycle has
    /// two anti-dependencies one after the other. What is said of missing records in view of the epochs is Silo's rule: where that may not
    /// hold, all transactions of the history are of one epoch.
    SnapshotIsolation,
}

/// What is asked of a history.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the history is held to (default: serializability).
    pub isolation: IsolationLevel,
    /// Whether the serial order has to agree with the order of each worker's ordinary transactions (default: yes).
    pub program_order: bool,
    /// Whether the serial order has to agree with the epochs (default: yes).
    pub epoch_order: bool,
    /// With fewer transactions the check is inconclusive (default: 2).
    pub transactions_min: u64,
    /// With fewer dependencies between transactions the check is inconclusive (default: 1).
    pub dependencies_min: u64,
    /// How many findings of each kind are kept (default: 4); all are counted.
    pub violations_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            isolation: IsolationLevel::Serializable,
            program_order: true,
            epoch_order: true,
            transactions_min: 2,
            dependencies_min: 1,
            violations_max: 4,
        }
    }
}

/// Decides whether a history is serializable, or is one of snapshot isolation where that is asked.
///
/// # Panics
/// If the history has more than 2^31 - 2 transactions, or 2^32 - 2 keys.
pub fn check(history: &History, options: &Options) -> Verdict {
    assert!(history.transactions.len() < i32::MAX as usize, "a history has less than 2^31 - 1 transactions");
    let mut findings = Findings::new(options.violations_max);
    let judge = Judge { history, options: *options, versions: Versions::of(history) };
    check_versions(&judge.versions, &mut findings);
    check_workers(history, &mut findings);
    check_tids(history, &mut findings);
    let pass = judge.first_pass(&mut findings);
    let nodes = history.transactions.len();
    let has_cycles = match options.isolation {
        IsolationLevel::Serializable => !Graph::new(nodes, pass.kept).components().is_empty(),
        IsolationLevel::SnapshotIsolation => has_forbidden_cycle(nodes, &pass.kept),
    };
    if has_cycles || !pass.backward.is_empty() {
        judge.name_cycles(&mut findings);
    }
    for edge in &pass.backward {
        findings.add(Violation::EpochOrder(judge.explain(edge)));
    }
    judge.verdict(findings, pass.summary)
}

/// What the first walk over the edges found.
struct FirstPass {
    /// The edges that can take part in a cycle.
    kept: Vec<Edge>,
    /// The edges against the order of the epochs.
    backward: Vec<Edge>,
    summary: Summary,
}

/// A history with what is known about it.
struct Judge<'h> {
    history: &'h History,
    options: Options,
    versions: Versions<'h>,
}

impl Judge<'_> {
    /// Walks over all observations and edges once and keeps what the epochs do not settle.
    fn first_pass(&self, findings: &mut Findings) -> FirstPass {
        let mut pass = FirstPass { kept: Vec::new(), backward: Vec::new(), summary: self.sizes() };
        for_each_observation(self.history, &self.versions, |observation| {
            check_observation(&observation, self.history, &self.versions, findings);
            for_each_edge_of(&observation, &self.versions, |edge| self.sort_edge(edge, &mut pass));
        });
        for_each_version_edge(&self.versions, |edge| self.sort_edge(edge, &mut pass));
        if self.options.program_order {
            for_each_program_edge(self.history, |edge| self.sort_edge(edge, &mut pass));
        }
        pass
    }

    fn sort_edge(&self, edge: Edge, pass: &mut FirstPass) {
        let [from, to] = [edge.from, edge.to].map(|index| self.history.transactions[index as usize].level());
        if edge.kind != DependencyKind::ProgramOrder {
            pass.summary.dependencies += 1;
            pass.summary.dependencies_within_epochs += u64::from(from == to);
        }
        // Under snapshot isolation an anti-dependency may lead back, and so close a cycle with any other edge.
        let (is_serializable, is_anti) =
            (self.options.isolation == IsolationLevel::Serializable, edge.kind.is_anti_dependency());
        if !self.options.epoch_order || from == to || !is_serializable {
            pass.kept.push(edge);
        }
        if self.options.epoch_order && from > to && (is_serializable || !is_anti) {
            pass.backward.push(edge);
        }
    }

    fn sizes(&self) -> Summary {
        let transactions = &self.history.transactions;
        Summary {
            transactions: transactions.len() as u64,
            snapshots: transactions.iter().filter(|transaction| transaction.snapshot.is_some()).count()
                as u64,
            reads: transactions.iter().map(|transaction| transaction.reads.len() as u64).sum(),
            predicate_reads: transactions
                .iter()
                .map(|transaction| (transaction.missing.len() + transaction.ranges.len()) as u64)
                .sum(),
            versions: self.versions.len() as u64,
            keys: self.versions.ids().len() as u64,
            ..Summary::default()
        }
    }

    /// Builds the whole graph and reports its cycles.
    fn name_cycles(&self, findings: &mut Findings) {
        let mut edges = Vec::new();
        for_each_version_edge(&self.versions, |edge| edges.push(edge));
        for_each_observation(self.history, &self.versions, |observation| {
            for_each_edge_of(&observation, &self.versions, |edge| edges.push(edge));
        });
        if self.options.program_order {
            for_each_program_edge(self.history, |edge| edges.push(edge));
        }
        let nodes = self.history.transactions.len();
        let name = |cycle: Vec<Edge>| {
            let has_reader =
                cycle.iter().any(|edge| self.history.transactions[edge.from as usize].writes.is_empty());
            let steps = cycle.iter().map(|edge| self.explain(edge)).collect();
            findings.add(Violation::Cycle(Cycle::of(steps, has_reader)));
        };
        match self.options.isolation {
            IsolationLevel::Serializable => for_each_cycle(nodes, &edges, name),
            IsolationLevel::SnapshotIsolation => for_each_forbidden_cycle(nodes, &edges, name),
        }
    }

    fn explain(&self, edge: &Edge) -> Dependency {
        let [from, to] =
            [edge.from, edge.to].map(|index| TransactionName::of(&self.history.transactions[index as usize]));
        let key = (edge.kind != DependencyKind::ProgramOrder).then(|| self.versions.key(edge.key).clone());
        let read = (edge.kind == DependencyKind::ReadWrite).then(|| self.version_before(edge)).flatten();
        Dependency { from, to, kind: edge.kind, key, read }
    }

    /// Returns the version that the target of an edge overwrote.
    fn version_before(&self, edge: &Edge) -> Option<Tid> {
        let order = self.versions.of_key(edge.key);
        let index = order.iter().position(|version| version.writer == edge.to)?;
        Some(order[index.checked_sub(1)?].tid)
    }

    fn verdict(&self, findings: Findings, summary: Summary) -> Verdict {
        if !findings.counts.is_empty() {
            let Findings { violations, counts, .. } = findings;
            return Verdict::Violated(Report {
                isolation: self.options.isolation,
                violations,
                counts,
                summary,
            });
        }
        let Options { transactions_min, dependencies_min, .. } = self.options;
        if summary.transactions < transactions_min {
            let found = summary.transactions;
            return Verdict::Inconclusive(Inconclusive::TooFewTransactions {
                found,
                wanted: transactions_min,
            });
        }
        if summary.dependencies < dependencies_min {
            let found = summary.dependencies;
            return Verdict::Inconclusive(Inconclusive::TooFewDependencies {
                found,
                wanted: dependencies_min,
            });
        }
        match self.options.isolation {
            IsolationLevel::Serializable => Verdict::Serializable(summary),
            IsolationLevel::SnapshotIsolation => Verdict::SnapshotIsolated(summary),
        }
    }
}
