//! Closing a database: requests are refused, and its parts end one after the other.

use ensilo_engine::Engine;
use ensilo_log::is_in_foreign_code;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::barrier;

use super::DatabaseShared;
use crate::changes::subscription::is_in_callback;
use crate::closing::{Closer, FirstPanic};
use crate::durable::Durable;
use crate::pool::Pool;
use crate::{Result, trace};

impl<E: Engine> DatabaseShared<E> {
    /// Closes the database; by its collector's thread, and without waiting for it, where the calling thread
    /// runs a hook, a callback or a waker: closing may wait for that thread, or for one that waits for it.
    ///
    /// # Errors
    /// As [`DatabaseShared::close`].
    pub(crate) fn close_from_anywhere(&self) -> Result<()> {
        let is_own = self.durable().is_some_and(Durable::is_own_thread);
        if !is_own && !is_in_foreign_code() && !is_in_callback() {
            return self.close();
        }
        self.refuse_requests();
        if !self.collector.close_database() {
            // The opening has failed: nobody else knows of the database.
            return self.close();
        }
        self.closing.outcome().unwrap_or_else(|| self.failure())
    }

    /// Refuses all requests from now on, stores what was committed, and ends the database's threads. Requests
    /// that run are not waited for; once the log has ended, one that has something to commit is refused. A
    /// second call waits for the first, and returns the same.
    ///
    /// # Errors
    /// [`Error::LogFailed`], [`Error::CheckpointFailed`], [`Error::ThreadPanicked`].
    ///
    /// # Panics
    /// For the first caller, when a thread of the database has panicked.
    fn close(&self) -> Result<()> {
        self.refuse_requests();
        match self.closing.begin() {
            Some(closer) => self.close_as(closer),
            // A closure that the first one waits for may wait for this job.
            None if Pool::is_in_job() && self.notifier.has_thread() => self.failure(),
            None => self.closing.wait(self.pool.get()).unwrap_or_else(|| self.failure()),
        }
    }

    /// Closes the database, unless another thread does so already; it does not wait for that thread.
    pub(crate) fn close_unless_begun(&self) {
        self.refuse_requests();
        if let Some(closer) = self.closing.begin() {
            // Whoever wants to know asks by `close`.
            let _ = self.close_as(closer);
        }
    }

    /// Ends all parts of the database, also those that come after one that panics.
    fn close_as(&self, closer: Closer<'_>) -> Result<()> {
        let mut panics = FirstPanic::default();
        if let Some(durable) = self.durable() {
            // Before the threads that may make one are waited for.
            durable.give_up_checkpoints();
        }
        #[cfg(feature = "live-statistics")]
        panics.catch(|| self.statistics_server.stop());
        panics.catch(|| self.give_back_numbers());
        // Requests, jobs and callbacks may wait for it.
        self.loading.stop(&mut panics);
        // Callbacks make requests and jobs, which may commit as long as they do, and may wait for a job of any database.
        panics.catch(|| self.notifier.stop(!Pool::is_in_job()));
        panics.catch(|| self.collector.stop());
        self.close_slots(&mut panics);
        if let Some(pool) = self.pool.get() {
            panics.catch(|| pool.stop());
        }
        // Its next transaction is refused. One under way ends soon: a wait for a lock is bounded (2PL's `WAIT_MAX`), and a closed database has no
        // further attempt. But the clock and the hook of the program are waited for.
        self.expiries.join(&mut panics);
        let stored = self.durable().map_or(Ok(()), |durable| durable.close(&*self.engine, &mut panics));
        if let Some(read_only) = self.read_only.get() {
            panics.catch(|| read_only.close());
        }
        panics.catch(|| self.engine.epochs().close());
        trace::closed(&stored);
        closer.end(stored, panics)
    }

    fn close_slots(&self, panics: &mut FirstPanic) {
        let registered = std::mem::take(&mut self.lock_slots().registered);
        let slots: Vec<_> = registered.iter().filter_map(|watched| watched.slot.upgrade()).collect();
        slots.iter().for_each(|slot| slot.mark_closed());
        barrier::heavy();
        for slot in slots {
            panics.catch(|| drop(slot.take_if_idle()));
        }
    }

    /// Checks that the log has not failed.
    fn failure(&self) -> Result<()> {
        self.durable().map_or(Ok(()), Durable::failure)
    }

    /// Registers no slot any more, starts no pool, lets nobody wait for rows or changes, and removes no rows that expire.
    fn refuse_requests(&self) {
        self.lock_slots().is_closed = true;
        self.is_closed.store(true, Ordering::Relaxed);
        self.catalog.queues.close();
        self.expiries.stop();
        if let Some(durable) = self.durable() {
            // Behind `is_closed`, at which those look who are called.
            durable.log.end_next_waits();
        }
    }
}
