//! Faults that the models must catch. They exist only under a model checker, and there only if a test plants one.

/// A fault in the node protocol.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[cfg_attr(not(shuttle), allow(unreachable_pub, reason = "exported to models only"))]
pub enum Fault {
    /// A look-up trusts what it read without comparing the node's version again.
    LookWithoutCheck,
    /// An insert into a free slot leaves the node's version as it was.
    SilentInsert,
    /// A split rewrites the left node without a mark.
    UnmarkedSplit,
    /// A node that loses the beginning of its range counts that as an insert.
    ShrinkCountedAsInsert,
    /// When the first child of a node leaves, the key above that bounds the node is not raised.
    BoundNotRaised,
}

#[cfg(shuttle)]
mod switch {
    use super::Fault;
    use std::cell::Cell;

    std::thread_local! {
        // All threads of a model run on one thread of the system: the one that the test runs on.
        static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Plants the fault for the rest of this test.
    pub fn plant(fault: Fault) {
        PLANTED.set(Some(fault));
    }

    pub(crate) fn is_planted(fault: Fault) -> bool {
        PLANTED.get() == Some(fault)
    }
}

#[cfg(shuttle)]
pub(crate) use switch::is_planted;
#[cfg(shuttle)]
pub use switch::plant;

/// Never, outside a model checker.
#[cfg(not(shuttle))]
#[inline(always)]
#[allow(clippy::inline_always, reason = "a constant, so that the compiler drops what depends on it")]
pub(crate) fn is_planted(_: Fault) -> bool {
    false
}
