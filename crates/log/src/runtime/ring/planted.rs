//! Steps that the model leaves out, to see that it notices. The product leaves out none.

use ensilo_sync::atomic::Ordering;

/// A step of the protocol, or the order that one gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(all(loom, test)), allow(dead_code, reason = "the model's own are among them"))]
pub(super) enum Step {
    /// The clock is raised to the epoch before a place is taken.
    RaiseBeforeAdd,
    /// An entry is opened only when it is free.
    DrainedCheck,
    /// An entry is opened only when nobody has a place of an earlier epoch that falls to it.
    ClearCheck,
    /// Who waits has raised its commit epoch.
    MoveCommit,
    /// Whoever finds a segment open finds the segment.
    OrderOfSegment,
    /// Of the model: who is in the dead zone, or across the end of an epoch, leaves skip records.
    SkipOutside,
    /// Of the model: who aborts leaves a skip record.
    SkipOfAbort,
    /// Of the model: whoever sees that a commit has ended sees its record.
    OrderOfEnd,
}

#[cfg(all(loom, test))]
mod switch {
    use super::Step;
    use std::cell::Cell;

    std::thread_local! {
        // All threads of a model run on one thread of the system: the one that the test runs on.
        static LEFT_OUT: Cell<Option<Step>> = const { Cell::new(None) };
    }

    /// Leaves the step out from now on, or none.
    pub(in super::super) fn leave_out(step: Option<Step>) {
        LEFT_OUT.set(step);
    }

    pub(in super::super) fn is_left_out(step: Step) -> bool {
        LEFT_OUT.get() == Some(step)
    }
}

#[cfg(all(loom, test))]
pub(super) use switch::{is_left_out, leave_out};

/// Never, outside a model.
#[cfg(not(all(loom, test)))]
#[inline(always)]
#[allow(clippy::inline_always, reason = "a constant, so that the compiler drops what depends on it")]
pub(super) fn is_left_out(_: Step) -> bool {
    false
}

/// Returns the ordering of an access, of which a model may leave out the order that it gives.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as above")]
pub(super) fn ordering_of(step: Step, ordering: Ordering) -> Ordering {
    if is_left_out(step) { Ordering::Relaxed } else { ordering }
}
