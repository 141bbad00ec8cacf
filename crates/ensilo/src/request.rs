//! Requests: a closure that runs as one transaction, again when it met a conflict.

pub(crate) mod backoff;

use std::fmt;
use std::sync::Arc;

use crate::Silo;
use ensilo_engine::{Engine, Session as _};

use crate::durability::{Durability, Ticket};
use crate::outcome::{Outcome, Undone, Visible};
use crate::pool::{JobHandle, WhenFull};
use crate::shared::{Shared, ThreadWorker};
use crate::{Abort, Database, Error, Result, Session, Snapshot, Transaction};

/// A hook that hears of no aborts.
pub type NoHook = fn(&Abort);

/// A request with its own settings; [`Database::request`] makes one.
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
    place: Place<'d, E>,
    retries: u32,
    durability: Option<Durability>,
    on_abort: H,
}

/// Where a request is run.
enum Place<'d, E: Engine> {
    /// On the calling thread's worker.
    Thread(&'d Shared<E>),
    Session(&'d mut Session<E>),
}

impl<'d, E: Engine> Request<'d, NoHook, E> {
    #[inline]
    pub(crate) fn new(database: &'d Database<E>) -> Self {
        Request::at(Place::Thread(database.shared()))
    }

    pub(crate) fn of_session(session: &'d mut Session<E>) -> Self {
        Request::at(Place::Session(session))
    }

    #[inline]
    fn at(place: Place<'d, E>) -> Self {
        let retries = place.shared().retries;
        Request { place, retries, durability: None, on_abort: |_| () }
    }
}

impl<E: Engine> Place<'_, E> {
    #[inline]
    fn shared(&self) -> &Shared<E> {
        match self {
            Place::Thread(shared) => shared,
            Place::Session(session) => session.shared(),
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

    /// Like [`Database::transact`], with this request's settings.
    ///
    /// # Errors
    /// As [`Database::transact`]; [`Error::NotDurable`] when it is to be stored and the database is in memory only.
    #[inline]
    pub fn transact<R>(mut self, body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>) -> Result<R> {
        let level = self.place.shared().level_here(self.durability)?;
        let outcome = self.run(body);
        self.place.shared().answer(outcome, level)
    }

    /// Like [`Database::transact`], but answers as soon as the transaction is visible, with a ticket that tells when it is stored.
    /// A level set by [`Request::durability`] does not matter here. An error comes as soon, and without a ticket: a crash may take back
    /// what it was concluded from.
    ///
    /// # Errors
    /// As [`Database::transact`]; [`Error::NotDurable`] when the database is in memory only.
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
    /// The transaction is stored when [`Database::durable_epoch`] is as late, and [`Database::ticket`] makes a ticket of the epoch.
    /// For programs that feel what a ticket costs: it counts the references to the log in a word that all threads share.
    ///
    /// # Errors
    /// As [`Database::transact`].
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
            Place::Thread(shared) => run(shared, self.retries, &mut self.on_abort, body),
            Place::Session(session) => session.run(self.retries, &mut self.on_abort, body),
        }
    }
}

impl<H, E: Engine> fmt::Debug for Request<'_, H, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("retries", &self.retries).finish_non_exhaustive()
    }
}

/// Runs `body` as a transaction on the calling thread's worker until it commits, fails for good or has used up `retries`.
#[inline]
pub(crate) fn run<E: Engine, R>(
    shared: &Shared<E>,
    retries: u32,
    on_abort: &mut impl FnMut(&Abort),
    body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> Outcome<R> {
    run_on(shared, &mut *shared.enter()?, retries, on_abort, body)
}

/// Like [`run`], on this worker.
#[inline]
pub(crate) fn run_on<E: Engine, R>(
    shared: &Shared<E>,
    worker: &mut ThreadWorker<E>,
    retries: u32,
    on_abort: &mut impl FnMut(&Abort),
    mut body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> Outcome<R> {
    let (mut attempt, mut has_freed_memory) = (0, false);
    loop {
        let undone = match attempt_once(worker, &mut body) {
            Ok(visible) => return Ok(visible),
            Err(undone) => undone,
        };
        if let (Error::Aborted(abort), true) = (&undone.error, undone.is_own_abort) {
            on_abort(abort);
        }
        attempt += 1;
        if undone.is_out_of_memory() && attempt <= retries && !has_freed_memory {
            has_freed_memory = true;
            if shared.free_memory(worker) {
                continue;
            }
        }
        await_next_attempt(shared, worker, attempt, retries, undone)?;
    }
}

/// One attempt. A panic of `body` drops the transaction, which undoes it, and leaves the worker as good as before.
#[inline]
fn attempt_once<E: Engine, R>(
    worker: &mut ThreadWorker<E>,
    body: &mut impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> Result<Visible<R>, Undone> {
    let mut transaction = Transaction::new(worker.raw.begin(), &mut worker.local);
    let result =
        body(&mut transaction).and_then(|value| transaction.inner.local.check_control().map(|()| value));
    match result {
        Ok(value) => transaction.commit().map(|epoch| Visible { value, epoch }).map_err(Undone::by_abort),
        Err(error) => Err(transaction.roll_back(error)),
    }
}

/// Waits before the next attempt, or says with which error there is none.
#[cold]
fn await_next_attempt<E: Engine>(
    shared: &Shared<E>,
    worker: &mut ThreadWorker<E>,
    attempt: u32,
    retries: u32,
    undone: Undone,
) -> Result<(), Box<Undone>> {
    if !undone.is_conflict() || attempt > retries {
        let Undone { error, is_own_abort, .. } = undone;
        let error = if is_own_abort { shared.explain(error) } else { error };
        return Err(Box::new(Undone { error, ..undone }));
    }
    if shared.is_closed() {
        return Err(Error::Closed.into());
    }
    backoff::wait_before_attempt(attempt, &mut worker.local.jitter);
    Ok(())
}

/// Hands `job` to the pool and returns the handle to its result.
pub(crate) fn submit<E: Engine, R: Send + 'static>(
    shared: &Arc<Shared<E>>,
    when_full: WhenFull,
    job: impl FnOnce(&Shared<E>) -> Outcome<R> + Send + 'static,
) -> Result<JobHandle<R>> {
    let log = shared.log().map(Arc::clone);
    let pool = shared.pool()?;
    let (promise, handle) = crate::pool::promise(pool, log, shared.level(None)?);
    let for_job = Arc::clone(shared);
    let run = move || promise.run(|| job(&for_job));
    pool.submit(Box::new(run), when_full)?;
    Ok(handle)
}

/// Runs `body` on a snapshot on the calling thread's worker.
#[inline]
pub(crate) fn run_snapshot<E: Engine, R>(
    shared: &Shared<E>,
    body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
) -> Outcome<R> {
    run_snapshot_on(shared, &mut *shared.enter()?, body)
}

/// Like [`run_snapshot`], on this worker.
#[inline]
pub(crate) fn run_snapshot_on<E: Engine, R>(
    shared: &Shared<E>,
    worker: &mut ThreadWorker<E>,
    body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
) -> Outcome<R> {
    if !E::SNAPSHOTS {
        return Err(Error::NoSnapshots.into());
    }
    // Read before the snapshot begins: what it shows is this point in time or a later one.
    let epoch_shown = shared.engine.epochs().snapshot_epoch().get();
    let ThreadWorker { raw, local } = worker;
    let snapshot_taken = raw.begin_snapshot();
    let mut snapshot = Snapshot::new(snapshot_taken, local, epoch_shown);
    let outcome = body(&mut snapshot).and_then(|value| snapshot.inner.local.check_control().map(|()| value));
    let epoch = snapshot.largest_epoch_seen();
    match outcome {
        Ok(value) => Ok(Visible { value, epoch }),
        Err(error) => {
            let own = snapshot.inner.own_abort(&error);
            let error = own.map_or(error, |abort| shared.explain_read(Error::from_raw(abort)));
            Err(Box::new(Undone { epoch, ..error.into() }))
        }
    }
}
