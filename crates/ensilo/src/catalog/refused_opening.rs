//! A table that is being changed, and that a transaction was about to open.
//!
//! A change waits until the transactions end that are under way, so that one of them must not wait for the change. The opening is refused, and it
//! is noted here that it was: the request, which knows nothing of the openings in its closure, has met a conflict then, and runs again once the change is
//! over. A snapshot, and a reader that has come to one, return the abort. The note is of the attempt that is under way on the thread; each attempt forgets what others have left.

use std::cell::Cell;

use ensilo_engine::{Abort, AbortReason, TableId};

/// No database has the number 0.
const NOBODY: (u64, TableId) = (0, TableId::NONE);

thread_local! {
    /// The database in which an opening on this thread was refused last, and the table.
    static REFUSED: Cell<(u64, TableId)> = const { Cell::new(NOBODY) };
}

/// Notes that an opening was refused to a transaction of this thread, and returns the abort that it means.
#[cold]
pub(crate) fn note(database: u64, table: TableId) -> Abort {
    REFUSED.set((database, table));
    abort(table)
}

/// Forgets what was noted, as an attempt does when it begins.
#[inline]
pub(crate) fn forget() {
    REFUSED.set(NOBODY);
}

/// Returns the abort of an opening in this database that was refused to the attempt which is under way, if one was.
#[cold]
pub(crate) fn take(database: u64) -> Option<Abort> {
    let (refused_in, table) = REFUSED.replace(NOBODY);
    (refused_in == database).then(|| abort(table))
}

fn abort(table: TableId) -> Abort {
    Abort::new(AbortReason::TableChanging, table, &[])
}
