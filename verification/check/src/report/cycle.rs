//! A cycle of the direct serialization graph, and its name.

use std::fmt;

use super::anomaly::Anomaly;
use super::dependency::{Dependency, DependencyKind};

/// Transactions none of which can come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// The edges; each begins where the one before ends, the first where the last ends.
    pub steps: Vec<Dependency>,
    /// The well-known pattern that this is, if it is one.
    pub pattern: Option<&'static str>,
}

impl Cycle {
    pub(crate) fn of(steps: Vec<Dependency>, has_reader: bool) -> Cycle {
        let kinds: Vec<DependencyKind> = steps.iter().map(|step| step.kind).collect();
        let on_one_key = steps.iter().all(|step| step.key == steps[0].key);
        let anti = kinds.iter().filter(|kind| **kind == DependencyKind::ReadWrite).count();
        let pattern = match kinds.len() {
            _ if kinds.contains(&DependencyKind::ProgramOrder) => None,
            _ if kinds.contains(&DependencyKind::PredicateReadWrite) => Some("phantom"),
            2 if on_one_key && anti == 1 && kinds.contains(&DependencyKind::WriteWrite) => {
                Some("lost update")
            }
            2 if !on_one_key && anti == 2 => Some("write skew"),
            2 if anti == 1 && kinds.contains(&DependencyKind::WriteRead) => Some("read skew"),
            3 if has_reader && anti == 2 => Some("read-only anomaly"),
            _ => None,
        };
        Cycle { steps, pattern }
    }

    /// Returns the class of the cycle: that of its least harmless edge.
    pub fn anomaly(&self) -> Anomaly {
        let worst = self.steps.iter().map(|step| step.kind).max();
        match worst.expect("a cycle has edges") {
            DependencyKind::WriteWrite | DependencyKind::WriteRead | DependencyKind::PredicateWriteRead => {
                Anomaly::G1c
            }
            DependencyKind::ReadWrite => Anomaly::G2Item,
            DependencyKind::PredicateReadWrite => Anomaly::G2,
            DependencyKind::ProgramOrder => Anomaly::ProgramOrder,
        }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cycle of {}", self.steps.len())?;
        if let Some(pattern) = self.pattern {
            write!(f, " ({pattern})")?;
        }
        for step in &self.steps {
            write!(f, "\n    {step}")?;
        }
        Ok(())
    }
}
