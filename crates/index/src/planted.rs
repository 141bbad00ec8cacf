//! Faults that the models must catch, and steps at which tests stop an operation.
//!
//! Faults exist only under a model checker, and there only if a test plants one; steps are seen by the tests of this crate alone.

/// A fault in the node protocol.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
#[cfg_attr(not(shuttle), allow(unreachable_pub, reason = "exported to models only"))]
pub enum Fault {
    /// A look-up trusts what it read without comparing the node's version again.
    LookWithoutCheck,
    /// An insert into a free slot leaves the node's version as it was.
    SilentInsert,
    /// A slot becomes a layer, or a path is left, without a mark.
    UnmarkedLayer,
    /// The same, and the node's version stays as it was.
    SilentLayer,
    /// A split rewrites the left node without a mark.
    UnmarkedSplit,
    /// A node that loses the beginning of its range counts that as an insert.
    ShrinkCountedAsInsert,
    /// When the first child of a node leaves, the key above that bounds the node is not raised.
    BoundNotRaised,
    /// The nodes of an empty layer are retired before the slot that leads to them is taken out.
    RetiredBeforeUnlinked,
    /// A remover does not look again for its empty layer, where that is not where it was.
    LayerLookedForOnce,
    /// What takes over the range of a node that leaves does not take over its latest removal.
    RemovalForgotten,
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

/// A step of an operation behind which a thread may lose its core for many epochs.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The nodes of an empty layer are deleted, the slot that leads to them is still there.
    LayerDeleted,
    /// A descent knows the address of a layer, and has not yet looked at the layer.
    LayerFound,
}

/// A model lets the others run at every step, more often than chance would.
#[cfg(all(shuttle, not(test)))]
pub(crate) fn reach(_: Step) {
    ensilo_sync::Backoff::new().wait();
}

/// Nobody is stopped outside tests.
#[cfg(not(any(test, shuttle)))]
#[inline(always)]
#[allow(clippy::inline_always, reason = "nothing, so that the compiler drops the call")]
pub(crate) fn reach(_: Step) {}

#[cfg(test)]
pub(crate) use stop::{reach, stop_at};

#[cfg(test)]
mod stop {
    use super::Step;
    use std::cell::RefCell;

    type Stopped = Box<dyn FnOnce()>;

    std::thread_local! {
        static STOPPED: RefCell<Option<(Step, Stopped)>> = const { RefCell::new(None) };
    }

    /// Calls `stopped` the next time that this thread comes to `step`.
    pub(crate) fn stop_at(step: Step, stopped: impl FnOnce() + 'static) {
        STOPPED.set(Some((step, Box::new(stopped))));
    }

    /// Says that the thread has come to `step`.
    pub(crate) fn reach(step: Step) {
        let stopped = STOPPED.with_borrow_mut(|stopped| stopped.take_if(|(at, _)| *at == step));
        if let Some((_, stopped)) = stopped {
            stopped();
        }
    }
}
