//! When a request's caller gets its answer, and how to learn that the answer is on disk.
//!
//! # Source
//! SiloR (OSDI 2014) §3.2: results are released by epochs. Decision: the level is chosen for each request.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ensilo_epoch::Epoch;
use ensilo_log::{Log, Stored, is_in_foreign_code};

use crate::error::NestedCall;
use crate::outcome::{Outcome, epoch_of};
use crate::{Error, Result};

/// What a request waits for before its caller gets the answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// The transaction has committed: every later one sees its writes. A crash within the next milliseconds
    /// may still undo it, together with all that came after it in the serial order, and with nothing that
    /// came before (but see [`ermia`](crate::ermia)).
    Visible,
    /// The transaction is on disk, and so is every transaction that it has read from. This is the default of
    /// a database in a directory. A request that ends with an error waits, too, until what it has read is on
    /// disk: no crash takes back what the error follows from. A transaction that misses a row, or reads a range,
    /// waits for the deletions of up to about fifteen neighbouring keys as well.
    Stored,
}

/// Returns a request's answer once its transaction is stored in `log`; without a log at once.
#[inline]
pub(crate) fn answer<R>(outcome: Outcome<R>, log: Option<&Log>) -> Result<R> {
    if let Some(log) = log {
        wait_stored(log, epoch_of(&outcome))?;
    }
    outcome.map(|visible| visible.value).map_err(|undone| undone.error)
}

/// Returns the answers of many requests once all of their transactions are stored in `log`; without a log at once.
pub(crate) fn answer_many<R>(outcomes: Vec<Outcome<R>>, log: Option<&Log>) -> Vec<Result<R>> {
    if let Some(log) = log
        && let Some(last) = outcomes.iter().map(epoch_of).max()
    {
        // One wait for all. Where it fails, each finds out by itself whether it is stored.
        let _ = wait_stored(log, last);
    }
    outcomes.into_iter().map(|outcome| answer(outcome, log)).collect()
}

/// Waits until everything up to `epoch` is stored.
///
/// # Errors
/// [`Error::LogFailed`]; [`Error::NestedRequest`] on a thread of the log, which would wait for itself.
#[inline]
fn wait_stored(log: &Log, epoch: Epoch) -> Result<()> {
    if log.durable_epoch() >= epoch {
        return Ok(());
    }
    // Whoever releases what was held back calls wakers as well.
    if is_in_foreign_code() && (log.is_own_thread() || log.is_held()) {
        return Err(Error::NestedRequest(NestedCall::WaitInWaker));
    }
    log.wait_durable(epoch).map_err(Error::from_log)
}

/// Whether a visible transaction is stored, too: it can be asked, waited for, or awaited in async code.
///
/// ```no_run
/// # fn main() -> ensilo::Result<()> {
/// # let db = ensilo::Database::open("accounts")?;
/// let (answer, ticket) = db.request().transact_with_ticket(|_tx| Ok(42))?;
/// // 42 is what every transaction from now on will agree on; a crash could still undo it.
/// ticket.wait()?;
/// // Now it could not.
/// # Ok(()) }
/// ```
#[must_use = "a ticket is how one learns that its transaction is stored"]
#[derive(Clone)]
pub struct Ticket {
    stored: Stored,
}

impl Ticket {
    pub(crate) fn new(epoch: Epoch, log: Arc<Log>) -> Self {
        Ticket { stored: Stored::new(log, epoch) }
    }

    /// Returns the epoch that has to be durable. All transactions of an epoch become durable at once.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.stored.epoch().get()
    }

    /// Returns whether the transaction is stored by now.
    #[inline]
    #[must_use]
    pub fn is_stored(&self) -> bool {
        self.stored.log().durable_epoch() >= self.stored.epoch()
    }

    /// Waits until the transaction is stored.
    ///
    /// # Errors
    /// [`Error::LogFailed`]: whether the transaction survives is not known. [`Error::NestedRequest`] in a
    /// waker that the database calls.
    pub fn wait(&self) -> Result<()> {
        wait_stored(self.stored.log(), self.stored.epoch())
    }
}

/// Becomes ready when the transaction is stored, or when the log has failed. The last waker that the ticket
/// was polled with is kept until then, or until the ticket is dropped. The thread that writes to the disk
/// calls the waker, which should only pass the news on: a request in it that waits for the disk ends with
/// [`Error::NestedRequest`].
impl Future for Ticket {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        if self.is_stored() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stored).poll(context).map_err(Error::from_log)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("epoch", &self.stored.epoch())
            .field("is_stored", &self.is_stored())
            .finish_non_exhaustive()
    }
}
