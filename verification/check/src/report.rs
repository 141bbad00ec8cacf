//! What the checker has to say: values that can be compared by programs and read by people.

mod anomaly;
mod cycle;
mod dependency;
mod verdict;
mod violation;

pub use anomaly::Anomaly;
pub use cycle::Cycle;
pub use dependency::{Dependency, DependencyKind, TransactionName};
pub use verdict::{Inconclusive, Report, Summary, Verdict};
pub use violation::Violation;
