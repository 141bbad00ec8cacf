//! Requests with settings of their own, on the calling thread or in a session.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Silo;
use ensilo_engine::Engine;

use crate::attempt::{self, RetryPolicy};
use crate::batch::Batch;
use crate::durability::{Durability, Ticket};
use crate::outcome::{Outcome, Visible};
use crate::prefetch::Prefetch;
use crate::session::Session;
use crate::shared::DatabaseShared;
use crate::transaction::{Reader, Snapshot, Transaction};
use crate::{Abort, Error, Result};

/// The type of a hook that does nothing: that of a [`Request`] without [`Request::on_abort`].
pub type NoHook = fn(&Abort);

/// A request with settings that can be changed. [`Database::request`](crate::Database::request) and
/// [`Session::request`] make one.
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
    policy: RetryPolicy,
    durability: Option<Durability>,
    max_staleness: Option<Duration>,
    on_abort: H,
}

/// Where a request is run.
enum RequestPlace<'d, E: Engine> {
    /// On the calling thread's worker.
    Thread(&'d DatabaseShared<E>),
    Session(&'d mut Session<E>),
}

impl<'d, E: Engine> Request<'d, NoHook, E> {
    #[inline]
    pub(crate) fn new(shared: &'d DatabaseShared<E>) -> Self {
        Request::at(RequestPlace::Thread(shared))
    }

    #[inline]
    fn at(place: RequestPlace<'d, E>) -> Self {
        let policy = RetryPolicy::new(place.shared().retries);
        Request { place, policy, durability: None, max_staleness: None, on_abort: |_| () }
    }
}

impl<E: Engine> Session<E> {
    /// Runs `body` like [`Database::transact`](crate::Database::transact), on whatever thread the session is.
    /// The session's deadline applies, and its [`CancelToken`](crate::CancelToken)s end the request.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact); [`Error::NestedRequest`] when the session has a
    /// transaction open; [`Error::Cancelled`], [`Error::DeadlineExceeded`].
    pub fn transact<R>(&mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        self.request().transact(body)
    }

    /// Returns a request like that of [`Database::request`](crate::Database::request), which runs like
    /// [`Session::transact`].
    pub fn request(&mut self) -> Request<'_, NoHook, E> {
        Request::at(RequestPlace::Session(self))
    }
}

impl<E: Engine> RequestPlace<'_, E> {
    #[inline]
    fn shared(&self) -> &DatabaseShared<E> {
        match self {
            RequestPlace::Thread(shared) => shared,
            RequestPlace::Session(session) => session.shared(),
        }
    }
}

impl<'d, H: FnMut(&Abort), E: Engine> Request<'d, H, E> {
    /// Sets how often the request is run again after a conflict. With 0 it never is, not even when it finds
    /// no memory, but for a sum that has no room, which is found by another attempt ([`Table::add`](crate::Table::add)).
    #[inline]
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// Sets what the request is called where it turns out to be slow ([`Options::on_slow_request`](crate::Options::on_slow_request)),
    /// instead of the name of its closure's type.
    #[inline]
    pub fn label(mut self, label: &'static str) -> Self {
        self.policy.label = label;
        self
    }

    #[inline]
    pub(crate) fn labelled_by<B>(mut self, body: &B) -> Self {
        self.policy = self.policy.labelled_by(body);
        self
    }

    /// Says that the transaction reads much and writes little, beside others that change what it reads: it gets
    /// the help at once that a request gets otherwise after a few conflicts. Has no effect on
    /// [`Request::read`] and [`Request::read_stale`], which need none.
    ///
    /// With ERMIA's engine such a transaction commits beside writers of what it reads, unless it may close a cycle
    /// with them, or writes a row that another one has written since it began. The check for cycles is a careful
    /// one: it is run again also where somebody has looked at a row that it writes, and has ended after somebody
    /// else has changed a row that it has read. So let it write rows that few others look at, such as its own
    /// results, and leave it to short transactions to change others by them. As long as it runs,
    /// [`Request::read_stale`] may show a state that is as old as snapshots get, instead of a new one. A
    /// snapshot that is taken all the same, for a [`Request::max_staleness`] or for a [`Request::read`] that has
    /// met conflicts, may still end it. With Silo's engine it runs once as any other; if it meets a conflict,
    /// what it reads is protected in the next attempt, and who would change it is refused meanwhile: beside one
    /// that takes longer than half a second others may come to the end of their [retries](crate::Options::retries). One such
    /// request at a time is protected.
    #[inline]
    pub fn read_mostly(mut self) -> Self {
        self.policy.is_read_mostly = true;
        self
    }

    /// Sets what the request waits for before it answers, instead of
    /// [`Options::durability`](crate::Options::durability).
    #[inline]
    pub fn durability(mut self, level: Durability) -> Self {
        self.durability = Some(level);
        self
    }

    /// Calls `hook` at every conflict, including those that a retry follows. The abort does not name its
    /// table there.
    #[inline]
    pub fn on_abort<G: FnMut(&Abort)>(self, hook: G) -> Request<'d, G, E> {
        let Request { place, policy, durability, max_staleness, .. } = self;
        Request { place, policy, durability, max_staleness, on_abort: hook }
    }

    /// Bounds how old the state may be that [`Request::read_stale`] shows: it has everything that was
    /// committed, and visible to others, longer before that call than `bound`. By default there is no bound,
    /// and the state is at most about one snapshot interval old. Transactions show the present in any case.
    ///
    /// Where the newest snapshot that there is fits, this costs nothing. Otherwise one is taken, which then
    /// serves everybody. With [`Duration::ZERO`] it shows the present. One is taken in 10 ms at most, so that
    /// with a bound below that the call may wait for up to 10 ms, and for commits that are under way. Each
    /// snapshot that is taken keeps a version of each row that changes afterwards, until no snapshot needs
    /// it.
    #[inline]
    pub fn max_staleness(mut self, bound: Duration) -> Self {
        self.max_staleness = Some(bound);
        self
    }

    /// Like [`Database::read_stale`](crate::Database::read_stale), with this request's settings. It is never
    /// tried again: those of retries and aborts have no effect.
    ///
    /// ```
    /// # use ensilo::{Database, Row, Table};
    /// # use std::time::Duration;
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// # db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
    /// let (count, age) = db.request().max_staleness(Duration::from_millis(100)).read_stale(|tx| {
    ///     Ok((accounts.scan().count(tx)?, tx.staleness()))
    /// })?;
    /// println!("{count} accounts, {age:?} ago");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Database::read_stale`](crate::Database::read_stale); [`Error::NotDurable`] when it is to be stored
    /// and the database is in memory only.
    #[inline]
    pub fn read_stale<R>(self, body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>) -> Result<R> {
        let Request { place, policy, durability, max_staleness, .. } = self;
        // A bound that reaches behind the begin of all clocks is none.
        let since = max_staleness.and_then(|bound| Instant::now().checked_sub(bound));
        let level = place.shared().level_here(durability)?;
        match place {
            RequestPlace::Thread(shared) => {
                shared.answer(attempt::run_stale(shared, policy, since, body), level)
            }
            RequestPlace::Session(session) => {
                let outcome = session.run_stale(policy, since, body);
                session.shared().answer(outcome, level)
            }
        }
    }

    /// Like [`Database::read`](crate::Database::read), with this request's durability: with
    /// [`Durability::Visible`] it does not wait until what `body` has read is on disk. The settings of
    /// retries, aborts and staleness have no effect.
    ///
    /// ```
    /// # use ensilo::{Database, Durability, Row, Table};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let accounts: Table<Account> = db.create_table()?;
    /// # db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 10 }))?;
    /// let count = db.request().durability(Durability::Visible).read(|tx| accounts.scan().count(tx))?;
    /// assert_eq!(count, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Database::read`](crate::Database::read); [`Error::NotDurable`] when it is to be stored and the
    /// database is in memory only.
    pub fn read<R>(self, body: impl FnMut(&mut Reader<'_, E>) -> Result<R>) -> Result<R> {
        let Request { place, policy, durability, .. } = self;
        let level = place.shared().level_here(durability)?;
        match place {
            RequestPlace::Thread(shared) => shared.answer(attempt::run_reader(shared, policy, body), level),
            RequestPlace::Session(session) => {
                let outcome = session.run_reader(policy, body);
                session.shared().answer(outcome, level)
            }
        }
    }

    /// Like [`Database::transact`](crate::Database::transact), with this request's settings.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact); [`Error::NotDurable`] when it is to be stored
    /// and the database is in memory only.
    #[inline]
    pub fn transact<R>(mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        let level = self.place.shared().level_here(self.durability)?;
        let outcome = self.run(body);
        self.place.shared().answer(outcome, level)
    }

    /// Like [`Database::transact`](crate::Database::transact), but answers as soon as the transaction is
    /// visible, with a ticket for the time when it is stored. The setting of [`Request::durability`] has no
    /// effect here. An error, too, is returned at once and without a ticket: a crash may take back what it
    /// follows from.
    ///
    /// # Errors
    /// As [`Database::transact`](crate::Database::transact); [`Error::NotDurable`] when the database is in
    /// memory only.
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

    /// Like [`Request::transact_with_ticket`], but returns the ticket's epoch alone, also for a database in
    /// memory.
    ///
    /// The transaction is stored when [`Database::durable_epoch`](crate::Database::durable_epoch) has reached
    /// the epoch, and [`Database::ticket`](crate::Database::ticket) makes a ticket of it. This is for
    /// programs that notice the cost of a ticket: it counts references to the log in a word that all threads
    /// share.
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

    /// Like [`Database::transact_many`](crate::Database::transact_many), with this request's settings for each
    /// of the requests. In a session, its deadline or a cancellation ends the one that is under way, and those behind it.
    ///
    /// # Errors
    /// As [`Database::transact_many`](crate::Database::transact_many); [`Error::NotDurable`] when they are to be stored
    /// and the database is in memory only.
    pub fn transact_many<Q, R>(
        mut self,
        requests: &[Q],
        first_keys: impl FnMut(&Q, &mut Prefetch<E>),
        body: impl FnMut(&mut Transaction<'_, E>, &Q) -> Result<R>,
    ) -> Result<Vec<Result<R>>> {
        let level = self.place.shared().level_here(self.durability)?;
        let outcomes = self.run_many(Batch { requests, first_keys, body })?;
        Ok(self.place.shared().answer_many(outcomes, level))
    }

    /// Like [`Request::transact_many`], but answers as soon as the transactions are visible, each with the epoch
    /// that [`Request::transact_with_epoch`] returns. The setting of [`Request::durability`] has no effect here. An
    /// error, too, is returned at once and without an epoch: a crash may take back what it follows from.
    ///
    /// # Errors
    /// As [`Database::transact_many`](crate::Database::transact_many).
    pub fn transact_many_with_epoch<Q, R>(
        mut self,
        requests: &[Q],
        first_keys: impl FnMut(&Q, &mut Prefetch<E>),
        body: impl FnMut(&mut Transaction<'_, E>, &Q) -> Result<R>,
    ) -> Result<Vec<Result<(R, u64)>>> {
        let outcomes = self.run_many(Batch { requests, first_keys, body })?;
        let answer = |outcome: Outcome<R>| {
            let Visible { value, epoch } = outcome.map_err(|undone| undone.error)?;
            Ok((value, epoch.get()))
        };
        Ok(outcomes.into_iter().map(answer).collect())
    }

    fn run_many<Q, F, B, R>(&mut self, batch: Batch<'_, Q, F, B>) -> Result<Vec<Outcome<R>>>
    where
        F: FnMut(&Q, &mut Prefetch<E>),
        B: FnMut(&mut Transaction<'_, E>, &Q) -> Result<R>,
    {
        match &mut self.place {
            RequestPlace::Thread(shared) => {
                Ok(batch.run_on(shared, &mut *shared.enter()?, self.policy, &mut self.on_abort))
            }
            RequestPlace::Session(session) => session.run_many(self.policy, &mut self.on_abort, batch),
        }
    }

    #[inline]
    fn run<R>(&mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Outcome<R> {
        match &mut self.place {
            RequestPlace::Thread(shared) => attempt::run(shared, self.policy, &mut self.on_abort, body),
            RequestPlace::Session(session) => session.run(self.policy, &mut self.on_abort, body),
        }
    }
}

impl<H, E: Engine> fmt::Debug for Request<'_, H, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("policy", &self.policy).finish_non_exhaustive()
    }
}
