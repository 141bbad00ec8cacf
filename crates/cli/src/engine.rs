//! Arguments that choose the engine, of all commands that run transactions.

use clap::ValueEnum;

/// The product's engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArgument {
    /// Optimistic: a transaction validates what it has read when it commits (Silo)
    Silo,
    /// Transactions read what was committed when they began, and write new versions (ERMIA)
    Ermia,
    /// Pessimistic: a transaction locks what it reads and writes; of two in conflict the older one waits (WAIT_DIE)
    #[value(name = "2pl")]
    TwoPhaseLocking,
    /// The same, but nobody waits: a transaction that meets a lock is run again (NO_WAIT)
    #[value(name = "2pl-no-wait")]
    TwoPhaseLockingNoWait,
}

/// What transactions may see of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationArgument {
    /// As if one ran after the other
    Serializable,
    /// Snapshot isolation, of ERMIA's engine: write skew is possible
    Snapshot,
}
