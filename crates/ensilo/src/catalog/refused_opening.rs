//! A table that is being changed, and that a transaction was about to open.
//!
//! A change waits until the transactions end that are under way, so that one of them must not wait for the change. The opening is refused, and it
//! is noted here that it was: the request, which knows nothing of the openings in its closure, has met a conflict then, and runs again once the change is
//! over. A closure that succeeds all the same leaves its note behind; it costs the next request of the thread that fails one more attempt.

use std::cell::Cell;

use ensilo_engine::{Abort, AbortReason, TableId};

thread_local! {
    /// The database in which an opening on this thread was refused last; no database has the number 0.
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}

/// Notes that an opening was refused to a transaction of this thread, and returns the abort that it means.
#[cold]
pub(crate) fn note(database: u64, table: TableId) -> Abort {
    // Where the thread is being torn down nobody runs anything again.
    let _ = REFUSED.try_with(|refused| refused.set(database));
    Abort::new(AbortReason::TableChanging, table, &[])
}

/// Returns the abort of an opening that was refused to the transaction of this thread that has just ended without a commit, if one was.
#[cold]
pub(crate) fn take(database: u64) -> Option<Abort> {
    let was_refused = REFUSED.try_with(|refused| refused.get() == database && refused.replace(0) != 0);
    was_refused.unwrap_or(false).then(|| Abort::new(AbortReason::TableChanging, TableId::NONE, &[]))
}
