//! Jobs with settings of their own, for the threads of the pool.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::Engine;

use crate::attempt::{self, RetryPolicy};
use crate::database::Database;
use crate::durability::Durability;
use crate::local::ThreadWorker;
use crate::outcome::Outcome;
use crate::own_error::SharedOwnError;
use crate::pool::{Job, JobFuture, JobHandle, Priority, WhenFull, promise};
use crate::session::control::{SessionControl, UnderWay};
use crate::shared::DatabaseShared;
use crate::transaction::{Reader, Snapshot, Transaction};
use crate::{Result, Silo};

/// A job for the database's pool, with settings that can be changed. [`Database::job`] makes one.
///
/// It runs as [`Database::submit`] says, or when it is awaited.
///
/// ```
/// use ensilo::{Database, Priority};
/// use std::time::{Duration, Instant};
///
/// # fn main() -> ensilo::Result<()> {
/// # let db = Database::in_memory()?;
/// let urgent = db.job().priority(Priority::High).deadline(Instant::now() + Duration::from_millis(50));
/// assert_eq!(urgent.submit(|_tx| Ok(6 * 7))?.wait()?, 42);
/// # Ok(()) }
/// ```
#[must_use = "a job does nothing until it is given a closure"]
pub struct JobRequest<E: Engine = Silo> {
    pub(crate) shared: Arc<DatabaseShared<E>>,
    pub(crate) policy: RetryPolicy,
    priority: Priority,
    durability: Option<Durability>,
    pub(crate) max_staleness: Option<Duration>,
    deadline: Option<Instant>,
}

impl<E: Engine> Database<E> {
    /// Returns a job with settings that can be changed: priority, deadline, retries, durability.
    pub fn job(&self) -> JobRequest<E> {
        JobRequest::new(&self.shared)
    }

    /// Runs `body` like [`Database::transact`] on a thread of the database's pool, once the future is awaited. It keeps no
    /// thread of the executor, and dropping it gives the transaction up: see [`JobFuture`].
    ///
    /// ```
    /// # use ensilo::{Database, Row};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// async fn deposit(db: &Database, id: u32, amount: i64) -> ensilo::Result<i64> {
    ///     let accounts = db.table::<Account>()?;
    ///     db.transact_async(move |tx| {
    ///         accounts.update(tx, id, |account: &mut Account| {
    ///             account.balance += amount;
    ///             account.balance
    ///         })
    ///     })
    ///     .await
    /// }
    /// ```
    ///
    /// # Errors
    /// The future has what [`Database::transact`] returns, and [`Error::JobPanicked`](crate::Error::JobPanicked).
    pub fn transact_async<R: Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R> {
        self.job().transact_async(body)
    }

    /// Runs `body` like [`Database::read`], as [`Database::transact_async`] does.
    ///
    /// # Errors
    /// The future has what [`Database::read`] returns, and [`Error::JobPanicked`](crate::Error::JobPanicked).
    pub fn read_async<R: Send + 'static>(
        &self,
        body: impl FnMut(&mut Reader<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R> {
        self.job().read_async(body)
    }

    /// Runs `body` like [`Database::read_stale`], as [`Database::transact_async`] does.
    ///
    /// # Errors
    /// The future has what [`Database::read_stale`] returns, and [`Error::JobPanicked`](crate::Error::JobPanicked).
    pub fn read_stale_async<R: Send + 'static>(
        &self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R> {
        self.job().read_stale_async(body)
    }
}

impl<E: Engine> JobRequest<E> {
    pub(crate) fn new(shared: &Arc<DatabaseShared<E>>) -> Self {
        JobRequest {
            shared: Arc::clone(shared),
            policy: RetryPolicy::new(shared.retries),
            priority: Priority::default(),
            durability: None,
            max_staleness: None,
            deadline: None,
        }
    }

    /// Sets what the job is called where it turns out to be slow, as [`Request::label`](crate::Request::label).
    pub fn label(mut self, label: &'static str) -> Self {
        self.policy.label = label;
        self
    }

    pub(crate) fn labelled_by<B>(mut self, body: &B) -> Self {
        self.policy = self.policy.labelled_by(body);
        self
    }

    /// Sets how urgent the job is. Jobs of [`Priority::High`] are taken before all others that have not begun. One more
    /// thread, which begins with the first of them, runs no others: so a short one does not wait behind long ones that
    /// keep all of [`Options::pool_threads`](crate::Options::pool_threads) busy. Each priority has a queue of
    /// [`Options::pool_queue_len_max`](crate::Options::pool_queue_len_max).
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets a time after which the job is given up: it ends with
    /// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded) at its next statement, in a scan after at most 256
    /// rows, when it comes to commit, or before it begins. A commit that has begun goes on, and waits until it is stored.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets how often the job is run again after a conflict, as [`Request::retries`](crate::Request::retries).
    pub fn retries(mut self, retries: u32) -> Self {
        self.policy.retries = retries;
        self
    }

    /// Says that the transaction reads much and writes little, as
    /// [`Request::read_mostly`](crate::Request::read_mostly).
    pub fn read_mostly(mut self) -> Self {
        self.policy.is_read_mostly = true;
        self
    }

    /// Sets what the job's answer waits for, instead of [`Options::durability`](crate::Options::durability).
    pub fn durability(mut self, level: Durability) -> Self {
        self.durability = Some(level);
        self
    }

    /// Bounds how old the state may be that a snapshot shows, as
    /// [`Request::max_staleness`](crate::Request::max_staleness). It counts from the beginning of the job.
    pub fn max_staleness(mut self, bound: Duration) -> Self {
        self.max_staleness = Some(bound);
        self
    }

    /// Hands `body` to the pool as [`Database::submit`] does.
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed); [`Error::NotDurable`](crate::Error::NotDurable) when it is to be stored and
    /// the database is in memory only. The handle has what [`Database::transact`] returns.
    pub fn submit<R: Send + 'static>(
        self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        let run = transact(self.policy, body);
        self.hand_over(WhenFull::Wait, run)
    }

    /// Like [`JobRequest::submit`], but returns an error instead of waiting while the queue is full.
    ///
    /// # Errors
    /// As [`JobRequest::submit`]; [`Error::QueueFull`](crate::Error::QueueFull).
    pub fn try_submit<R: Send + 'static>(
        self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        let run = transact(self.policy, body);
        self.hand_over(WhenFull::Refuse, run)
    }

    /// Hands `body` to the pool as [`Database::submit_read_stale`] does.
    ///
    /// # Errors
    /// As [`JobRequest::submit`]; the handle has what [`Database::read_stale`] returns.
    pub fn submit_read_stale<R: Send + 'static>(
        self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        let run = read_stale(self.policy, self.max_staleness, body);
        self.hand_over(WhenFull::Wait, run)
    }

    /// Like [`Database::transact_async`], with this job's settings.
    ///
    /// # Errors
    /// As [`Database::transact_async`]; [`Error::NotDurable`](crate::Error::NotDurable).
    pub fn transact_async<R: Send + 'static>(
        self,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R> {
        self.transaction_when_awaited(SharedOwnError::new(), body)
    }

    /// Like [`Database::read_async`], with this job's settings.
    ///
    /// # Errors
    /// As [`Database::read_async`]; [`Error::NotDurable`](crate::Error::NotDurable).
    pub fn read_async<R: Send + 'static>(
        self,
        body: impl FnMut(&mut Reader<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R> {
        self.read_when_awaited(SharedOwnError::new(), body)
    }

    /// Like [`Database::read_stale_async`], with this job's settings.
    ///
    /// # Errors
    /// As [`Database::read_stale_async`]; [`Error::NotDurable`](crate::Error::NotDurable).
    pub fn read_stale_async<R: Send + 'static>(
        self,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R> {
        self.stale_read_when_awaited(SharedOwnError::new(), body)
    }

    fn hand_over<R: Send + 'static>(
        self,
        when_full: WhenFull,
        run: impl FnOnce(&DatabaseShared<E>, &mut ThreadWorker<E>) -> Outcome<R> + Send + 'static,
    ) -> Result<JobHandle<R>> {
        let control = self.deadline.is_some().then(|| self.control());
        let (job, handle) = self.make(control, run)?;
        self.shared.pool()?.submit(job, self.priority, when_full)?;
        Ok(handle)
    }

    pub(crate) fn transaction_when_awaited<R: Send + 'static, X>(
        self,
        own: SharedOwnError<X>,
        body: impl FnMut(&mut Transaction<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R, X> {
        let run = transact(self.policy, body);
        self.when_awaited(own, run)
    }

    pub(crate) fn read_when_awaited<R: Send + 'static, X>(
        self,
        own: SharedOwnError<X>,
        body: impl FnMut(&mut Reader<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R, X> {
        let policy = self.policy;
        self.when_awaited(own, move |shared, worker| attempt::run_reader_on(shared, worker, policy, body))
    }

    pub(crate) fn stale_read_when_awaited<R: Send + 'static, X>(
        self,
        own: SharedOwnError<X>,
        body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R> + Send + 'static,
    ) -> JobFuture<R, X> {
        let run = read_stale(self.policy, self.max_staleness, body);
        self.when_awaited(own, run)
    }

    fn when_awaited<R: Send + 'static, X>(
        self,
        own: SharedOwnError<X>,
        run: impl FnOnce(&DatabaseShared<E>, &mut ThreadWorker<E>) -> Outcome<R> + Send + 'static,
    ) -> JobFuture<R, X> {
        let control = self.control();
        let made = self.make(Some(Arc::clone(&control)), run);
        self.future_of(made, control, own)
    }

    /// Returns what runs once it is awaited, in a transaction of its own making.
    pub(crate) fn job_when_awaited<R: Send + 'static>(
        &self,
        run: impl FnOnce(&Arc<SessionControl>) -> Outcome<R> + Send + 'static,
    ) -> JobFuture<R> {
        let control = self.control();
        let of_job = Arc::clone(&control);
        self.future_of(self.make_job(move || run(&of_job)), control, SharedOwnError::new())
    }

    fn future_of<R, X>(
        &self,
        made: Result<(Job, JobHandle<R>)>,
        control: Arc<SessionControl>,
        own: SharedOwnError<X>,
    ) -> JobFuture<R, X> {
        match made.and_then(|made| Ok((made, self.shared.pool()?))) {
            Ok(((job, handle), pool)) => JobFuture::new(pool, job, handle, self.priority, control, own),
            Err(error) => JobFuture::refused(error),
        }
    }

    fn control(&self) -> Arc<SessionControl> {
        let control = SessionControl::of_job(self.shared.id());
        control.set_deadline(self.deadline);
        control
    }

    /// Makes the two ends of the job, which is stopped by `control` if there is one.
    fn make<R: Send + 'static>(
        &self,
        control: Option<Arc<SessionControl>>,
        run: impl FnOnce(&DatabaseShared<E>, &mut ThreadWorker<E>) -> Outcome<R> + Send + 'static,
    ) -> Result<(Job, JobHandle<R>)> {
        let shared = Arc::clone(&self.shared);
        self.make_job(move || {
            let mut worker = shared.enter()?;
            let outcome = match control {
                None => run(&shared, &mut worker),
                Some(control) => run(&shared, Controlled::new(&mut worker, &control)?.worker),
            };
            // Before the caller hears of it: what it does next may be done by another thread.
            worker.local.end_use();
            outcome
        })
    }

    fn make_job<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> Outcome<R> + Send + 'static,
    ) -> Result<(Job, JobHandle<R>)> {
        let shared = &self.shared;
        let (log, level) = (shared.log().map(Arc::clone), shared.level(self.durability)?);
        let (promise, handle) = promise(shared.pool()?, log, level);
        Ok((Box::new(move || promise.run(work)), handle))
    }
}

/// A worker whose statements check whether the job is to stop, until this is dropped.
struct Controlled<'w, E: Engine> {
    worker: &'w mut ThreadWorker<E>,
    _under_way: UnderWay,
}

impl<'w, E: Engine> Controlled<'w, E> {
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) and
    /// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded) when the job is not to begin.
    fn new(worker: &'w mut ThreadWorker<E>, control: &Arc<SessionControl>) -> Result<Self> {
        let under_way = control.begin();
        control.check()?;
        worker.local.control = Some(Arc::clone(control));
        Ok(Controlled { worker, _under_way: under_way })
    }
}

impl<E: Engine> Drop for Controlled<'_, E> {
    fn drop(&mut self) {
        self.worker.local.control = None;
    }
}

/// What a job does that runs a transaction.
fn transact<E: Engine, R>(
    policy: RetryPolicy,
    body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> impl FnOnce(&DatabaseShared<E>, &mut ThreadWorker<E>) -> Outcome<R> {
    move |shared, worker| attempt::run_on(shared, worker, policy, &mut |_| (), body)
}

/// What a job does that reads a snapshot.
fn read_stale<E: Engine, R>(
    policy: RetryPolicy,
    bound: Option<Duration>,
    body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
) -> impl FnOnce(&DatabaseShared<E>, &mut ThreadWorker<E>) -> Outcome<R> {
    move |shared, worker| {
        let since = bound.and_then(|bound| Instant::now().checked_sub(bound));
        attempt::run_stale_on(shared, worker, policy, since, body)
    }
}

impl<E: Engine> fmt::Debug for JobRequest<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRequest")
            .field("policy", &self.policy)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
