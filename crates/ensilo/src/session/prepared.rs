//! Prepared transactions: they have voted to commit, and wait for the decision of a two-phase commit.

use std::fmt;
use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;

use crate::durability::Ticket;
use crate::local::ThreadWorker;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::transaction::Prepared;
use crate::worker::Lease;
use crate::{Error, Result, Silo};

/// A transaction that has voted to commit, by [`Session::prepare`](crate::Session::prepare), and waits for the decision. Dropping it is the decision
/// to abort.
///
/// It may be moved to another thread, and wait for seconds: epochs, snapshots, checkpoints and everybody else go on. Others that would change what it
/// has read, or meet what it has written, end with [`Error::Aborted`] at once; they are tried again as after any conflict. An index that
/// is built, or built anew, and a table whose columns are changed, wait for the decision: the thread that is to decide does none of it before.
///
/// Neither the session's deadline nor its [`CancelToken`](crate::CancelToken) reaches it any more.
///
/// It waits in memory alone: after a crash, or when the database was closed, it is as if it had never been.
///
/// ```
/// # use ensilo::{Database, Row, Table};
/// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// # fn main() -> ensilo::Result<()> {
/// # let (here, there) = (Database::in_memory()?, Database::in_memory()?);
/// # let accounts: [Table<Account>; 2] = [here.create_table()?, there.create_table()?];
/// // Money goes from one database to another one, or stays where it is.
/// let mut sessions = [here.begin()?, there.begin()?];
/// for (session, (accounts, balance)) in sessions.iter_mut().zip(accounts.iter().zip([-5, 5])) {
///     accounts.insert(session, &Account { id: 1, balance })?;
/// }
/// let [from, to] = &mut sessions;
/// let (mut from, mut to) = (from.prepare()?, to.prepare()?);
/// from.commit()?;
/// to.commit()?;
/// # Ok(()) }
/// ```
#[must_use = "dropping it is the decision to abort"]
pub struct PreparedTransaction<E: Engine = Silo> {
    /// Borrows from `shared`; `None` behind the decision. In a box, as an open transaction of a session is.
    waiting: Option<Box<Waiting<E>>>,
    shared: Arc<DatabaseShared<E>>,
}

// Dropped in this order.
struct Waiting<E: Engine> {
    /// Borrows the worker that was lent.
    prepared: Prepared<'static, E>,
    lease: Lease<'static, ThreadWorker<E>>,
}

impl<E: Engine> PreparedTransaction<E> {
    /// Takes over a transaction of the worker that was lent, which lies in this database.
    pub(super) fn new(
        prepared: Prepared<'static, E>,
        lease: Lease<'static, ThreadWorker<E>>,
        shared: &Arc<DatabaseShared<E>>,
    ) -> Self {
        PreparedTransaction {
            waiting: Some(Box::new(Waiting { prepared, lease })),
            shared: Arc::clone(shared),
        }
    }

    /// Carries out the decision to commit, and returns when the level of [`Options::durability`](crate::Options::durability) is reached.
    ///
    /// # Errors
    /// [`Error::LogFailed`] as [`Database::transact`](crate::Database::transact), and [`Error::Closed`]: nobody can commit any more. An
    /// [`Error::Aborted`] comes when the last of all epochs has passed since the vote; nothing else keeps a prepared
    /// transaction from committing. [`Error::NestedRequest`] where the caller may not wait for the disk: it waits for the decision
    /// as before. [`Error::NoTransaction`] when the decision was made before.
    pub fn commit(&mut self) -> Result<()> {
        self.check_waits()?;
        let level = self.shared.level_here(None)?;
        let epoch = self.commit_visibly()?;
        self.shared.answer(Ok(Visible { value: (), epoch }), level)
    }

    /// Like [`PreparedTransaction::commit`], but returns as soon as the transaction is visible, with a ticket for the time when it is stored.
    ///
    /// # Errors
    /// As [`PreparedTransaction::commit`]; [`Error::NotDurable`] when the database is in memory only: it waits for the decision as before.
    pub fn commit_with_ticket(&mut self) -> Result<Ticket> {
        self.check_waits()?;
        let log = Arc::clone(self.shared.log().ok_or(Error::NotDurable)?);
        Ok(Ticket::new(self.commit_visibly()?, log))
    }

    /// Returns a ticket for the time when everything that it has read is stored: after that no crash takes back what it has concluded from that.
    ///
    /// # Errors
    /// [`Error::NotDurable`] when the database is in memory only; [`Error::NoTransaction`] when the decision was made before.
    pub fn ticket_of_reads(&self) -> Result<Ticket> {
        let waiting = self.waiting.as_ref().ok_or(Error::NoTransaction)?;
        let log = self.shared.log().ok_or(Error::NotDurable)?;
        Ok(Ticket::new(waiting.prepared.epoch_of_reads, Arc::clone(log)))
    }

    fn check_waits(&self) -> Result<()> {
        if self.waiting.is_some() { Ok(()) } else { Err(Error::NoTransaction) }
    }

    fn commit_visibly(&mut self) -> Result<Epoch> {
        let waiting = self.waiting.take().ok_or(Error::NoTransaction)?;
        if self.shared.is_closed() {
            return Err(Error::Closed);
        }
        // The lease goes at the end of this function. What was prepared is gone by then, also after a panic.
        let Waiting { prepared, lease: _lease } = *waiting;
        prepared.commit().map_err(|abort| self.shared.explain(Error::from_raw(abort)))
    }

    /// Carries out the decision to abort: nothing has changed.
    ///
    /// # Errors
    /// [`Error::NoTransaction`] when the decision was made before.
    pub fn abort(&mut self) -> Result<()> {
        self.waiting.take().map(drop).ok_or(Error::NoTransaction)
    }
}

impl<E: Engine> fmt::Debug for PreparedTransaction<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTransaction")
            .field("is_decided", &self.waiting.is_none())
            .finish_non_exhaustive()
    }
}
