//! Tables as queues: many consumers take rows beside each other, and wait for rows to come.
//!
//! Neither is needed to keep transactions apart, which is the engine's work, and neither is stored: what is
//! here only spares consumers to run into each other, and to ask again and again.
//! - `claims`: which rows some open transaction is about to take. Others pass them over;
//! - `take`: a statement that claims the first row that nobody else has claimed, reads it and deletes it;
//! - `watch`: wakes those that wait for rows of a table;
//! - `report`: what commits report to them.
//!
//! # Terms
//! A table is *observed* from the first time that it is watched. Transactions note which observed tables they
//! write, and report it after they have committed.
//!
//! # Invariants
//! - Q1: a claim is given up after its transaction has committed or was undone, not before. A transaction
//!   that gets it next sees the row deleted, or as it was.
//! - Q2: where a row may be there for the next consumer, the watchers of its table are woken afterwards: a
//!   commit has written it, a claim was given up without a commit, or a claim has ended with one and other
//!   consumers have passed it over. Its row may be there again then: others can insert it as soon as its
//!   deletion is committed, while the claim is not yet gone. In all cases all claims of the transaction are
//!   gone by then.
//!
//! # Memory ordering
//! No commit goes unreported to an observer that has not seen its rows. `Queues::generation` counts the
//! tables that were observed so far. A transaction reads it when it begins, and once more when it has
//! committed.
//! - Both times it finds the observer's table counted. Acquire and Release carry the table's mark to it, so
//!   that its statements have noted all that they wrote there, and it reports that.
//! - Only the second time, or it finds more tables counted than the first time. Then it reports to all
//!   observed tables that anything may have been written. The lock of their list is held while one is added.
//! - It finds the table counted neither time. The generation and the rows are a store buffer: the commit
//!   installs the rows, passes a [`LightBarrier`] and loads the generation; the observer adds to the
//!   generation, passes [`barrier::heavy`] and looks at the table. At least one of the two sees the other's
//!   store: it is the observer, whose look sees the rows.
//!
//! So a commit in a database without observed tables pays two loads of a word that nobody writes.

mod claims;
mod report;
mod take;
mod watch;

use std::sync::{Arc, PoisonError};

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ensilo_sync::barrier::{self, LightBarrier};
use ensilo_sync::sync::{Mutex, MutexGuard};

use self::claims::Claims;
pub(crate) use self::claims::HeldClaims;
pub(crate) use self::report::{TableQueue, WrittenTable};
pub(crate) use self::take::{look_ahead, take_first, take_first_by_index};
pub use self::watch::Arrivals;
use self::watch::WatchEnd;
use crate::{Error, Result};

/// What the queues of a database share. See the module's documentation.
#[derive(Debug)]
pub(crate) struct Queues {
    /// How many tables were observed so far. Every transaction reads it.
    generation: CachePadded<AtomicU64>,
    barrier: LightBarrier,
    observed: Mutex<Observed>,
    claims: Claims,
}

#[derive(Debug, Default)]
struct Observed {
    queues: Vec<Arc<TableQueue>>,
    is_closed: bool,
}

/// What `Queues::generation` is when a transaction begins that need not note what it writes.
const NOTHING_OBSERVED: u64 = 0;

impl Queues {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Queues {
            generation: CachePadded::new(AtomicU64::new(NOTHING_OBSERVED)),
            barrier: LightBarrier::new(),
            observed: Mutex::default(),
            claims: Claims::new(),
        })
    }

    /// Returns the generation, for a transaction that begins.
    #[inline(always)]
    pub(crate) fn generation(&self) -> Generation {
        // Acquire: [observe] the marks of all tables that are counted.
        Generation(self.generation.load(Ordering::Acquire))
    }

    /// Observes a table from now on: what commits write there and the caller's next look does not see is
    /// reported.
    ///
    /// # Errors
    /// [`Error::Closed`].
    fn observe(&self, queue: &Arc<TableQueue>) -> Result<()> {
        // Acquire: the barrier was passed.
        if queue.is_observed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut observed = locked(&self.observed);
        if observed.is_closed {
            return Err(Error::Closed);
        }
        if queue.is_observed.load(Ordering::Relaxed) {
            return Ok(());
        }
        observed.queues.push(Arc::clone(queue));
        // Relaxed: the next store carries it.
        queue.is_noted.store(true, Ordering::Relaxed);
        // Release: [observe]. Under the lock nobody else adds.
        self.generation.fetch_add(1, Ordering::Release);
        barrier::heavy();
        // Release: a thread that finds the table observed has the barrier behind it.
        queue.is_observed.store(true, Ordering::Release);
        Ok(())
    }

    /// Reports what a transaction has written, which was committed just now and had begun in this generation.
    #[inline(always)]
    pub(crate) fn report_commit(&self, begun: Generation, written: &mut Vec<WrittenTable>) {
        // Between the install and the load: see "Memory ordering".
        self.barrier.pass();
        // Relaxed: what follows takes the lock.
        if self.generation.load(Ordering::Relaxed) != begun.0 || !written.is_empty() {
            self.report(begun, written);
        }
    }

    #[inline(never)]
    fn report(&self, begun: Generation, written: &mut Vec<WrittenTable>) {
        if self.generation.load(Ordering::Relaxed) != begun.0 {
            let observed = locked(&self.observed).queues.clone();
            observed.iter().for_each(|queue| queue.wake());
        } else {
            written.iter().for_each(WrittenTable::report);
        }
        written.clear();
    }

    /// Ends the waiting for rows of a table that was dropped.
    pub(crate) fn end_table(&self, queue: &Arc<TableQueue>) {
        locked(&self.observed).queues.retain(|other| !Arc::ptr_eq(other, queue));
        queue.end(WatchEnd::TableDropped);
    }

    /// Ends all waiting, now and later: the database is being closed.
    pub(crate) fn close(&self) {
        let mut observed = locked(&self.observed);
        observed.is_closed = true;
        let queues = std::mem::take(&mut observed.queues);
        drop(observed);
        queues.iter().for_each(|queue| queue.end(WatchEnd::Closed));
    }
}

/// How many tables were observed when a transaction began.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

impl Generation {
    /// Returns whether the transaction is to note what it writes in observed tables.
    #[inline(always)]
    pub(crate) fn observes(self) -> bool {
        self.0 != NOTHING_OBSERVED
    }
}

/// Locks the mutex, also after a panic of a thread that held it: nothing under these locks panics half-way.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
