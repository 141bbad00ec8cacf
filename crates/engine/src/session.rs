//! A session: one user's way into an engine, with what lives from one transaction to the next.

use std::fmt;
use std::sync::Arc;

use crate::counters::WorkerCounters;
use crate::history::TransactionRecord;
use crate::remains::Remains;
use crate::store::Store;
use crate::transaction::{Read, Write};

/// Runs transactions, one at a time, on any thread. While no transaction is under way it holds nobody back.
///
/// # Safety
/// From the return of [`Session::begin`] or [`Session::begin_snapshot`] until the transaction is committed, prepared, aborted or
/// dropped, a participant of the [epochs](crate::Engine::epochs) of its engine is pinned for it, also when it can no longer commit: what
/// the tables above the engine share by pointer, such as the set of a table's indexes, is freed once the memory horizon of these
/// epochs has passed.
pub unsafe trait Session: Send {
    /// The stores of the engine that the session belongs to.
    type Store: Store;
    /// A handle to a record that a transaction has found.
    type Found: Copy + fmt::Debug + Send + 'static;
    /// A read-write transaction. It may be moved to another thread between two calls.
    type Transaction<'s>: Write<Store = Self::Store, Found = Self::Found> + Send
    where
        Self: 's;
    /// A read-only transaction on a recent consistent point of the serial order. It may be moved to another thread between two calls.
    type Snapshot<'s>: Read<Store = Self::Store, Found = Self::Found> + Send
    where
        Self: 's;

    /// Whether [`protect_next`](Session::protect_next) may return `true`.
    const PROTECTS: bool = false;
    /// Whether [`prefetch`](Session::prefetch) does anything.
    const PREFETCHES: bool = false;

    /// Begins a read-write transaction. Between transactions, so here, a session may free a bounded amount of its garbage.
    fn begin(&mut self) -> Self::Transaction<'_>;

    /// Begins a read-only transaction on the newest snapshot.
    ///
    /// # Panics
    /// When the engine has no [snapshots](crate::Engine::SNAPSHOTS).
    fn begin_snapshot(&mut self) -> Self::Snapshot<'_>;

    /// Asks that others leave alone what the next read-write transaction of this session reads, until that has ended: what would change it
    /// is refused, with [`AbortReason::PreparedRead`](crate::AbortReason::PreparedRead). For one that was tried in vain many times. Returns
    /// `false`, and does nothing, while another session has asked, or where the engine knows no such thing.
    fn protect_next(&mut self) -> bool {
        false
    }

    /// Announces that the next read-write transaction of this session reads much and writes little, or was tried in vain: the engine does
    /// what it can for it to commit beside those that change what it reads, without holding these up. Has no effect where the engine knows
    /// nothing of the kind.
    fn favor_next(&mut self) {}

    /// Announces that the next read-write transaction of this session is another attempt at the last one, which has aborted. An engine that
    /// lets the older one of two requests go first counts its age from the first attempt.
    fn retry_next(&mut self) {}

    /// Starts to load what transactions need that look these `count` keys up soon: `key` returns each by its number, with its store. The
    /// descents are interleaved. Nothing is read for any transaction, and nothing follows from it but that these come to run sooner. A store
    /// may have been dropped. By default it does nothing: see [`PREFETCHES`](Session::PREFETCHES).
    fn prefetch<'k>(&mut self, count: usize, key: impl Fn(usize) -> (&'k Self::Store, &'k [u8]))
    where
        Self::Store: 'k,
    {
        let _ = (count, key);
    }

    /// Returns what the session counts. Anyone may read it at any time. The engine keeps the sums of a session that has ended, not its
    /// counters.
    fn counters(&mut self) -> Arc<WorkerCounters>;

    /// Returns whether garbage of the session waits to be freed.
    fn remains(&mut self) -> Remains {
        Remains::Nothing
    }

    /// Frees a bounded amount of the session's garbage, as another thread may do while the session has nothing to do.
    fn collect(&mut self) -> Remains {
        Remains::Nothing
    }

    /// Gives memory back, for any session, that this one has whole and does not use. Takes a while, and ends early when interrupted.
    /// Returns how many bytes.
    fn trim(&mut self, is_interrupted: &dyn Fn() -> bool) -> u64 {
        let _ = is_interrupted;
        0
    }

    /// Lends the memory that this session has free to sessions that find none under the limit. Ends early when interrupted.
    fn lend(&mut self, is_interrupted: &dyn Fn() -> bool) {
        let _ = is_interrupted;
    }

    /// Takes the committed transactions that were recorded since the last call; empty unless the engine records.
    #[doc(hidden)]
    fn take_history(&mut self) -> Vec<TransactionRecord> {
        Vec::new()
    }
}
