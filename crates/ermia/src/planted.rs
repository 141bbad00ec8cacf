//! Steps that a model leaves out, to see that it notices. The product leaves out none.

use ensilo_sync::atomic::Ordering;

/// A step of a protocol, or the order that one gives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Who asks for an outcome looks at the id again.
    SecondLookAtId,
    /// A transaction that begins takes its place's id away before it writes an outcome.
    FenceAtBegin,
    /// A commit is announced before its stamp is taken.
    Announcement,
    /// Whoever takes a later stamp finds what those with smaller ones have announced.
    OrderOfStamps,
    /// Whoever finds a transaction committed finds what it did before.
    OrderOfOutcome,
    /// Whoever finds a transaction gone finds its stamps.
    OrderOfEnd,
    /// Whoever finds a version finds all of it.
    OrderOfHead,
    /// Whoever finds a version's stamp finds its row as its author has left it.
    OrderOfStamp,
    /// A transaction that aborts takes its id out of the version that it would have overwritten.
    WithdrawnSuccessor,
    /// A transaction publishes an older stamp before it reads the one that it begins at.
    OlderBegin,
    /// A transaction that only reads has a fence between its announcement and its stamp.
    FenceOfReader,
    /// A transaction that has written has a fence between its stamp and its look at others.
    FenceOfWriter,
    /// Who commits waits for those who have overwritten what it has read, and commit before it.
    WaitForOverwriters,
    /// Who commits waits for those who may have read what it overwrites, and commit before it.
    WaitForReaders,
    /// A safe snapshot that is about to be taken says so.
    PendingSnapshot,
    /// A transaction that is about to begin, and has published an older stamp, says so.
    EnteringMark,
    /// Who walks over versions has published that it looks.
    Look,
    /// A record that a key leads to, and that is not seen, is looked at again behind the node.
    SecondLookAtRecord,
}

#[cfg(all(test, any(loom, shuttle)))]
mod switch {
    use super::Step;
    use std::cell::Cell;

    std::thread_local! {
        // All threads of a model run on one thread of the system: the one that the test runs on.
        static LEFT_OUT: Cell<Option<Step>> = const { Cell::new(None) };
    }

    /// Leaves the step out from now on, or none.
    pub(crate) fn leave_out(step: Option<Step>) {
        LEFT_OUT.set(step);
    }

    pub(crate) fn is_left_out(step: Step) -> bool {
        LEFT_OUT.get() == Some(step)
    }
}

#[cfg(all(test, any(loom, shuttle)))]
pub(crate) use switch::{is_left_out, leave_out};

/// Never, outside a model.
#[cfg(not(all(test, any(loom, shuttle))))]
#[inline(always)]
#[allow(clippy::inline_always, reason = "a constant, so that the compiler drops what depends on it")]
pub(crate) fn is_left_out(_: Step) -> bool {
    false
}

/// Returns the ordering of an access, of which a model may leave out the order that it gives.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as above")]
pub(crate) fn ordering_of(step: Step, ordering: Ordering) -> Ordering {
    if is_left_out(step) { Ordering::Relaxed } else { ordering }
}
