//! Calls that would wait for themselves.

use std::fmt;

/// What was called where, of a call that would wait for itself or for what it was made from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NestedCall {
    /// A request, from inside a request to the same database on the same thread, or from a hook that is called in one.
    /// Remedy: use the transaction at hand, or a [`Session`](crate::Session).
    RequestInRequest,
    /// What waits until transactions have ended, from inside a request to the same database: a change of tables, indexes or sequences, a
    /// migration, or [`Database::on_change`](crate::Database::on_change). Remedy: make the call before the request, or behind it.
    ChangeInRequest,
    /// The same, by the thread that ran the last statement of an open transaction of a session. Remedy: end that transaction, or make the
    /// call on a thread that serves no sessions.
    ChangeInTransaction,
    /// A transaction or a request, in a session that has a transaction open. Remedy: commit it or roll it back first, or use
    /// another session.
    InOpenSession,
    /// A migration, in a closure of a step of one. Remedy: do it in that closure.
    MigrationInStep,
    /// What waits for the disk, in a waker or hook that the log calls, as a rule on the thread which writes to the disk. Remedy: pass it
    /// on to another thread; or, of a request, ask for [`Durability::Visible`](crate::Durability::Visible).
    WaitInWaker,
    /// A wait until everything is loaded, on a thread that loads. Remedy: wait on another thread.
    WaitInLoad,
}

impl fmt::Display for NestedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NestedCall::RequestInRequest => {
                "a request was made inside a request to the same database, on the same thread, or in a hook that is called in one: use the \
                 transaction at hand, or a session (`Database::session`)"
            }
            NestedCall::ChangeInRequest => {
                "tables, indexes, sequences or subscriptions were to be changed inside a request to the same database, for the end of which that \
                 would wait: make the call before the request, or behind it"
            }
            NestedCall::ChangeInTransaction => {
                "tables, indexes, sequences or subscriptions were to be changed by the thread that has last used an open transaction of a session, \
                 for the end of which that would wait: commit it or roll it back first, or make the call on a thread that serves no sessions"
            }
            NestedCall::InOpenSession => {
                "a transaction or a request was begun in a session that has a transaction open: commit it or roll it back first, or use another \
                 session"
            }
            NestedCall::MigrationInStep => {
                "`migrate` was called in a closure of a step of a migration, which it would wait for: do in the closure what is to be done"
            }
            NestedCall::WaitInWaker => {
                "a call that waits for the disk was made in a waker or a hook that the log calls: make it on another thread, or ask for \
                 `Durability::Visible` where it can be asked for"
            }
            NestedCall::WaitInLoad => {
                "`wait_until_loaded` was called on a thread that loads, such as in the hook for its progress: wait on another thread"
            }
        })
    }
}
