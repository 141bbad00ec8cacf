//! What stops a transaction of a session, or of a job, from outside: a cancellation, or a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::row_ids::{RowIdSource, SessionRowIds};
use crate::worker::UseNote;
use crate::{Error, Result};

/// Nothing is under way.
const IDLE: u64 = 0;
const NO_DEADLINE: u64 = u64::MAX;

/// What a session, or a job, shares with its worker and with whoever may stop it.
// Relaxed throughout: nothing else is read because of these words.
#[derive(Debug)]
pub(crate) struct SessionControl {
    created: Instant,
    /// How many transactions and requests have begun.
    begun: AtomicU64,
    /// The number of the transaction or request that is under way, or `IDLE`.
    under_way: AtomicU64,
    /// The number of the last one that somebody has cancelled.
    cancelled: AtomicU64,
    /// In nanoseconds from `created`.
    deadline_ns: AtomicU64,
    use_note: Arc<UseNote>,
    /// Those of a session. Jobs have none of their own.
    row_ids: Option<SessionRowIds>,
}

/// Says that a transaction or request is under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    control: Arc<SessionControl>,
}

impl SessionControl {
    /// Makes what a session shares.
    pub(crate) fn of_session(database: u64, row_ids: &Arc<RowIdSource>) -> Arc<Self> {
        Self::new(database, Some(SessionRowIds::new(Arc::clone(row_ids))))
    }

    /// Makes what a job shares.
    pub(crate) fn of_job(database: u64) -> Arc<Self> {
        Self::new(database, None)
    }

    fn new(database: u64, row_ids: Option<SessionRowIds>) -> Arc<Self> {
        Arc::new(SessionControl {
            created: Instant::now(),
            begun: AtomicU64::new(0),
            under_way: AtomicU64::new(IDLE),
            cancelled: AtomicU64::new(IDLE),
            deadline_ns: AtomicU64::new(NO_DEADLINE),
            use_note: Arc::new(UseNote::new(database)),
            row_ids,
        })
    }

    /// Returns the session's row ids.
    #[inline]
    pub(crate) fn row_ids(&self) -> Option<&SessionRowIds> {
        self.row_ids.as_ref()
    }

    /// Begins a transaction or a request, on the calling thread.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
        self.under_way.store(number, Ordering::Relaxed);
        self.note_use();
        UnderWay { control: Arc::clone(self) }
    }

    /// Notes that the calling thread goes on with what is under way.
    #[inline]
    pub(super) fn note_use(&self) {
        self.use_note.note_use();
    }

    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        let after = |deadline: Instant| deadline.saturating_duration_since(self.created).as_nanos();
        let deadline_ns =
            deadline.map_or(NO_DEADLINE, |deadline| u64::try_from(after(deadline)).unwrap_or(NO_DEADLINE));
        self.deadline_ns.store(deadline_ns, Ordering::Relaxed);
    }

    /// Checks whether what is under way may go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::DeadlineExceeded`].
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) == self.under_way.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let deadline_ns = self.deadline_ns.load(Ordering::Relaxed);
        if deadline_ns != NO_DEADLINE && self.created.elapsed() >= Duration::from_nanos(deadline_ns) {
            return Err(Error::DeadlineExceeded);
        }
        Ok(())
    }

    /// Cancels what begins first, also before it has begun.
    pub(crate) fn cancel_first(&self) {
        self.cancelled.fetch_max(1, Ordering::Relaxed);
    }

    fn cancel(&self) -> bool {
        let under_way = self.under_way.load(Ordering::Relaxed);
        // Numbers only grow: a slow caller must not take back the cancellation of what began since it has
        // looked.
        self.cancelled.fetch_max(under_way, Ordering::Relaxed);
        under_way != IDLE
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.control.under_way.store(IDLE, Ordering::Relaxed);
        self.control.use_note.note_end();
    }
}

/// Cancels what a session has under way, from any thread.
/// [`Session::cancel_token`](crate::Session::cancel_token) makes one.
#[derive(Clone, Debug)]
pub struct CancelToken {
    control: Arc<SessionControl>,
}

impl CancelToken {
    pub(super) fn new(control: &Arc<SessionControl>) -> Self {
        CancelToken { control: Arc::clone(control) }
    }

    /// Ends the transaction or request that the session has under way with [`Error::Cancelled`]: at its next
    /// statement, in a scan after at most 256 rows, or when it comes to commit. Until then it stays open;
    /// then it is undone as a whole. A commit that has begun already goes on.
    ///
    /// Returns `false`, and does nothing, when the session has nothing under way. What the session begins
    /// later is not affected.
    pub fn cancel(&self) -> bool {
        self.control.cancel()
    }
}
