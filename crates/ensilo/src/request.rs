//! Requests with settings of their own, on the calling thread or in a session.

use std::fmt;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::Engine;

use crate::attempt;
use crate::durability::{Durability, Ticket};
use crate::outcome::{Outcome, Visible};
use crate::session::Session;
use crate::shared::Shared;
use crate::transaction::Transaction;
use crate::{Abort, Error, Result};

/// A hook that hears of no aborts.
pub type NoHook = fn(&Abort);

/// A request with its own settings; [`Database::request`](crate::Database::request) makes one.
///
/// ```
/// # fn main() -> ensilo::Result<()> {
/// # let db = ensilo::Database::in_memory()?;
/// let mut aborts = 0;
/// let answer = db.request().retries(5).on_abort(|_abort| aborts += 1).transact(|_tx| Ok(42))?;
/// assert_eq!((answer, aborts), (42, 0));
/// # Ok(()) }
/// ```
#[must_use = "a request does nothing until it is given a closure"]
pub struct Request<'d, H = NoHook, E: Engine = Silo> {
    place: RequestPlace<'d, E>,
    retries: u32,
    durability: Option<Durability>,
    on_abort: H,
}

/// Where a request is run.
enum RequestPlace<'d, E: Engine> {
    /// On the calling thread's worker.
    Thread(&'d Shared<E>),
    Session(&'d mut Session<E>),
}

impl<'d, E: Engine> Request<'d, NoHook, E> {
    #[inline]
    pub(crate) fn new(shared: &'d Shared<E>) -> Self {
        Request::at(RequestPlace::Thread(shared))
    }

    #[inline]
    fn at(place: RequestPlace<'d, E>) -> Self {
        let retries = place.shared().retries;
        Request { place, retries, durability: None, on_abort: |_| () }
    }
}

impl<E: Engine> Session<E> {
    /// Runs `body` like [`Database::transact`](crate::Database::transact), on whatever thread the session is, with the session's deadline, and
    /// so that its [`CancelToken`]s end it.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact); [`Error::NestedRequest`] when the session has a transaction open;
    /// [`Error::Cancelled`], [`Error::DeadlineExceeded`].
    pub fn transact<R>(&mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        self.request().transact(body)
    }

    /// A request like that of [`Database::request`](crate::Database::request), to be run in the way of [`Session::transact`].
    pub fn request(&mut self) -> Request<'_, NoHook, E> {
        Request::at(RequestPlace::Session(self))
    }
}

impl<E: Engine> RequestPlace<'_, E> {
    #[inline]
    fn shared(&self) -> &Shared<E> {
        match self {
            RequestPlace::Thread(shared) => shared,
            RequestPlace::Session(session) => session.shared(),
        }
    }
}

impl<'d, H: FnMut(&Abort), E: Engine> Request<'d, H, E> {
    /// How often the request is run again after a conflict; 0 for never, also when it finds no memory.
    #[inline]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// What the request waits for before it answers, instead of what [`Options::durability`](crate::Options::durability) says.
    #[inline]
    pub fn durability(mut self, level: Durability) -> Self {
        self.durability = Some(level);
        self
    }

    /// Calls `hook` for every conflict, also those that a retry follows. The abort's table is not named yet.
    #[inline]
    pub fn on_abort<G: FnMut(&Abort)>(self, hook: G) -> Request<'d, G, E> {
        let Request { place, retries, durability, .. } = self;
        Request { place, retries, durability, on_abort: hook }
    }

    /// Like [`Database::transact`](crate::Database::transact), with this request's settings.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact); [`Error::NotDurable`] when it is to be stored and the database is in memory only.
    #[inline]
    pub fn transact<R>(mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        let level = self.place.shared().level_here(self.durability)?;
        let outcome = self.run(body);
        self.place.shared().answer(outcome, level)
    }

    /// Like [`Database::transact`](crate::Database::transact), but answers as soon as the transaction is visible, with a ticket that tells when it is stored.
    /// A level set by [`Request::durability`] does not matter here. An error comes as soon, and without a ticket: a crash may take back
    /// what it was concluded from.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact); [`Error::NotDurable`] when the database is in memory only.
    #[inline]
    pub fn transact_with_ticket<R>(
        mut self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
    ) -> Result<(R, Ticket)> {
        self.place.shared().log().ok_or(Error::NotDurable)?;
        let Visible { value, epoch } = self.run(body).map_err(|undone| undone.error)?;
        let log = self.place.shared().log().ok_or(Error::NotDurable)?;
        Ok((value, Ticket::new(epoch, Arc::clone(log))))
    }

    /// Like [`Request::transact_with_ticket`], but with the ticket's epoch alone, also when the database is in memory only.
    ///
    /// The transaction is stored when [`Database::durable_epoch`](crate::Database::durable_epoch) is as late, and [`Database::ticket`](crate::Database::ticket) makes a ticket of the epoch.
    /// For programs that feel what a ticket costs: it counts the references to the log in a word that all threads share.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact).
    #[inline]
    pub fn transact_with_epoch<R>(
        mut self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
    ) -> Result<(R, u64)> {
        let Visible { value, epoch } = self.run(body).map_err(|undone| undone.error)?;
        Ok((value, epoch.get()))
    }

    #[inline]
    fn run<R>(&mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Outcome<R> {
        match &mut self.place {
            RequestPlace::Thread(shared) => attempt::run(shared, self.retries, &mut self.on_abort, body),
            RequestPlace::Session(session) => session.run(self.retries, &mut self.on_abort, body),
        }
    }
}

impl<H, E: Engine> fmt::Debug for Request<'_, H, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("retries", &self.retries).finish_non_exhaustive()
    }
}
