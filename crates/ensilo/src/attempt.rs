//! Attempts of a request: its closure runs as one transaction, again when that has met a conflict.

pub(crate) mod backoff;
pub(crate) mod panics;

use std::any::type_name_of_val;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Read as _, Session, SnapshotOf};

use self::panics::CaughtPanic;
use crate::catalog::refused_opening;
use crate::local::ThreadWorker;
use crate::outcome::{Outcome, Undone, Visible};
use crate::shared::DatabaseShared;
use crate::shortage::Shortage;
use crate::slow_request::RequestWatch;
use crate::transaction::{EndedReader, Inner, Reader, Snapshot, Transaction};
use crate::{Abort, Error, Result};

/// After so many attempts in vain a request gets ahead of others: what an attempt has read stays as it is
/// until its end.
pub(crate) const UNPROTECTED_ATTEMPTS: u32 = 6;

/// After so many attempts in vain a reader gets a snapshot of its own.
const VALIDATED_READERS: u32 = 2;

/// One request at a time gets ahead. Another one waits for its turn in steps of this, and no longer than
/// that: it may take as long as the closure of the first does.
const PROTECTION_WAIT: Duration = Duration::from_micros(50);
const PROTECTION_WAIT_MAX: Duration = Duration::from_millis(20);

/// So often a request that a change of a table has refused looks whether that is over, and for so long before it runs again all the same.
const CHANGE_LOOK: Duration = Duration::from_micros(100);
const CHANGE_WAIT_MAX: Duration = Duration::from_millis(10);

/// After so many attempts that others' writes have ended at their commit, the engine is asked to favor the next one.
const UNFAVORED_ATTEMPTS: u32 = 3;

/// How often a request is tried, and with how much help.
#[derive(Debug, Copy, Clone)]
pub(crate) struct RetryPolicy {
    /// How often it is run again after a conflict.
    pub(crate) retries: u32,
    /// Whether the program has said that it reads much and writes little: it gets the help at once that others get later.
    pub(crate) is_read_mostly: bool,
    /// What a slow request is called; empty to be called by its closure.
    pub(crate) label: &'static str,
    /// Whether it is a program's request, which is reported where it is slow.
    pub(crate) is_watched: bool,
}

impl RetryPolicy {
    #[inline]
    pub(crate) fn new(retries: u32) -> Self {
        RetryPolicy { retries, is_read_mostly: false, label: "", is_watched: true }
    }

    /// That of a transaction of the database's own, which may hold locks of it.
    pub(crate) fn internal(retries: u32) -> Self {
        RetryPolicy { is_watched: false, ..RetryPolicy::new(retries) }
    }

    /// Calls a request without a label by its closure.
    #[inline]
    pub(crate) fn labelled_by<B>(mut self, body: &B) -> Self {
        if self.label.is_empty() {
            self.label = type_name_of_val(body);
        }
        self
    }

    /// Returns whether the attempt behind so many that have failed by their reads is to be favored.
    fn favors_after(self, outdated: u32) -> bool {
        self.is_read_mostly || outdated >= UNFAVORED_ATTEMPTS
    }

    /// Returns after how many attempts in vain the next one is to be protected.
    fn unprotected_attempts(self) -> u32 {
        if self.is_read_mostly { 1 } else { UNPROTECTED_ATTEMPTS }
    }
}

/// Runs `body` as a transaction on the calling thread's worker until it commits, fails for good or has used
/// up its retries.
#[inline]
pub(crate) fn run<E: Engine, R>(
    shared: &DatabaseShared<E>,
    policy: RetryPolicy,
    on_abort: &mut impl FnMut(&Abort),
    body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> Outcome<R> {
    run_on(shared, &mut *shared.enter()?, policy, on_abort, body)
}

/// Like [`run`], on this worker.
#[inline]
pub(crate) fn run_on<E: Engine, R>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    policy: RetryPolicy,
    on_abort: &mut impl FnMut(&Abort),
    mut body: impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> Outcome<R> {
    if policy.is_read_mostly {
        worker.raw.favor_next();
    }
    let mut watch = shared.watch(&policy, type_name_of_val(&body));
    worker.local.adds_by_reading = false;
    let outcome = match attempt_once(worker, &mut body) {
        Ok(visible) => Ok(visible),
        Err(undone) => try_again(shared, worker, policy, on_abort, &mut body, undone, &mut watch),
    };
    watch.end(shared, &outcome);
    outcome
}

/// Goes on after a first attempt that has ended so.
#[cold]
fn try_again<E: Engine, R>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    policy: RetryPolicy,
    on_abort: &mut impl FnMut(&Abort),
    body: &mut impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
    mut undone: Undone,
    watch: &mut RequestWatch<'_>,
) -> Outcome<R> {
    let mut attempts = Attempts::default();
    loop {
        if let (Error::Aborted(abort), true) = (&undone.error, undone.is_own_abort) {
            on_abort(abort);
        }
        watch.note_undone(&undone);
        attempts.await_next(shared, worker, policy, undone)?;
        worker.raw.retry_next();
        if policy.favors_after(attempts.outdated) {
            worker.raw.favor_next();
        }
        watch.note_attempt();
        match attempt_once(worker, body) {
            Ok(visible) => {
                worker.raw.counters().note_attempts(attempts.made + attempts.by_sums + 1);
                return Ok(visible);
            }
            Err(next) => undone = next,
        }
    }
}

/// The attempts of a request that were in vain.
#[derive(Debug, Default)]
struct Attempts {
    made: u32,
    /// How many were made besides, to find out that a number has no room for a sum.
    by_sums: u32,
    /// How many of them have failed because of what they had read.
    outdated: u32,
    shortage: Shortage,
    /// Whether the last one was protected.
    was_protected: bool,
    /// Whether there was no memory for what protection takes.
    is_protection_too_large: bool,
}

impl Attempts {
    /// Waits for the next attempt after one that has ended so, or says with which error there is none.
    fn await_next<E: Engine>(
        &mut self,
        shared: &DatabaseShared<E>,
        worker: &mut ThreadWorker<E>,
        policy: RetryPolicy,
        undone: Undone,
    ) -> Result<(), Box<Undone>> {
        let was_protected = mem::take(&mut self.was_protected);
        // No retry: the next one goes another way.
        if undone.is_unread_sum() {
            self.by_sums += 1;
            worker.local.adds_by_reading = true;
            return Ok(());
        }
        // No retry: the shortage has its own end.
        if undone.is_out_of_memory()
            && policy.retries > 0
            && self.shortage.ends_by(shared, || shared.free_memory(worker))
        {
            return Ok(());
        }
        self.made += 1;
        self.outdated += u32::from(undone.is_outdated());
        if undone.is_out_of_memory() && was_protected && self.made <= policy.retries {
            self.is_protection_too_large = true;
            return Ok(());
        }
        await_next_attempt(shared, worker, [self.made, self.by_sums], policy.retries, undone)?;
        let unprotected = policy.unprotected_attempts();
        if E::Session::PROTECTS && self.made >= unprotected && !self.is_protection_too_large {
            // It waits for its turn once: where a request can never commit, that comes out soon.
            let wait_max = if self.made == unprotected { PROTECTION_WAIT_MAX } else { Duration::ZERO };
            self.was_protected = protect_next_attempt(&mut worker.raw, wait_max);
        }
        Ok(())
    }
}

/// One attempt. A panic of `body` undoes the transaction, and leaves the worker as good as before.
#[inline]
fn attempt_once<E: Engine, R>(
    worker: &mut ThreadWorker<E>,
    body: &mut impl FnMut(&mut Transaction<'_, E>) -> Result<R>,
) -> Result<Visible<R>, Undone> {
    refused_opening::forget();
    let mut transaction = Transaction::new(worker.raw.begin(), &mut worker.local);
    let outcome = panics::catch(|| body(&mut transaction));
    end_attempt(transaction, outcome)
}

/// Ends an attempt whose closure has ended so.
#[inline(always)]
fn end_attempt<E: Engine, R>(
    transaction: Transaction<'_, E>,
    outcome: Result<Result<R>, CaughtPanic>,
) -> Result<Visible<R>, Undone> {
    let result = match outcome {
        Ok(result) => result,
        Err(panic) => return Err(transaction.give_up(panic)),
    };
    match result.and_then(|value| transaction.inner.local.check_control().map(|()| value)) {
        Ok(value) => transaction.commit().map(|epoch| Visible { value, epoch }).map_err(Undone::by_abort),
        Err(error) => Err(transaction.roll_back(error)),
    }
}

/// Waits before the next attempt, or says with which error there is none. So many attempts were made, and besides so many that count as no retries.
#[cold]
fn await_next_attempt<E: Engine>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    [attempt, besides]: [u32; 2],
    retries: u32,
    undone: Undone,
) -> Result<(), Box<Undone>> {
    let is_conflict = undone.is_conflict();
    let is_by_changing_table = undone.is_by_changing_table();
    if !is_conflict || attempt > retries {
        worker.raw.counters().note_attempts(attempt + besides);
        let Undone { error, is_own_abort, .. } = undone;
        let mut error = if is_own_abort { shared.explain(error) } else { error };
        if is_conflict
            && retries > 0
            && let Error::Aborted(abort) = &mut error
        {
            abort.give_up_after(attempt + besides);
        }
        return Err(Box::new(Undone { error, ..undone }));
    }
    if shared.is_closed() {
        return Err(Error::Closed.into());
    }
    if is_by_changing_table {
        wait_for_change(shared);
    } else {
        backoff::wait_before_attempt(attempt, &mut worker.local.jitter);
    }
    Ok(())
}

/// Waits until nobody changes a table any more, but not for long: a session of this thread may be what the change waits for.
#[cold]
fn wait_for_change<E: Engine>(shared: &DatabaseShared<E>) {
    let begin = Instant::now();
    while shared.catalog.is_being_changed() && begin.elapsed() < CHANGE_WAIT_MAX {
        thread::sleep(CHANGE_LOOK);
    }
}

/// Waits for a while until the next attempt can be protected. Returns `false` if it cannot: it goes without.
#[cold]
fn protect_next_attempt(session: &mut impl Session, wait_max: Duration) -> bool {
    let begin = Instant::now();
    loop {
        if session.protect_next() {
            return true;
        }
        if begin.elapsed() >= wait_max {
            return false;
        }
        thread::sleep(PROTECTION_WAIT);
    }
}

/// Runs `body` on a snapshot on the calling thread's worker. With `since`, it shows all that was committed
/// before that.
#[inline]
pub(crate) fn run_stale<E: Engine, R>(
    shared: &DatabaseShared<E>,
    policy: RetryPolicy,
    since: Option<Instant>,
    body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
) -> Outcome<R> {
    run_stale_on(shared, &mut *shared.enter()?, policy, since, body)
}

/// Like [`run_stale`], on this worker.
#[inline]
pub(crate) fn run_stale_on<E: Engine, R>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    policy: RetryPolicy,
    since: Option<Instant>,
    body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
) -> Outcome<R> {
    if !E::SNAPSHOTS {
        return Err(Error::NoSnapshots.into());
    }
    let mut watch = shared.watch(&policy, type_name_of_val(&body));
    let outcome = read_snapshot(shared, worker, since, body);
    if let Err(undone) = &outcome {
        watch.note_undone(undone);
    }
    watch.end(shared, &outcome);
    outcome
}

fn read_snapshot<E: Engine, R>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    since: Option<Instant>,
    body: impl FnOnce(&mut Snapshot<'_, E>) -> Result<R>,
) -> Outcome<R> {
    let mut snapshot = begin_snapshot(shared, worker, since);
    let outcome = body(&mut snapshot);
    end_snapshot(shared, &mut snapshot.inner, outcome)
}

/// Begins a snapshot on this worker. With `since`, it shows all that was committed before that.
#[inline]
pub(crate) fn begin_snapshot<'w, E: Engine>(
    shared: &DatabaseShared<E>,
    worker: &'w mut ThreadWorker<E>,
    since: Option<Instant>,
) -> Snapshot<'w, E> {
    if let Some(since) = since {
        shared.engine.take_snapshot(since);
    }
    // Both are read before the snapshot begins: what it shows is this point in time or a later one.
    let shown_since = shared.engine.snapshot_instant();
    let epoch_shown = shared.engine.epochs().snapshot_epoch().get();
    let ThreadWorker { raw, local } = worker;
    Snapshot::new(raw.begin_snapshot(), local, epoch_shown, shown_since)
}

/// Ends statements of a snapshot that have ended so.
pub(crate) fn end_snapshot<E: Engine, R>(
    shared: &DatabaseShared<E>,
    snapshot: &mut Inner<'_, SnapshotOf<'_, E>>,
    outcome: Result<R>,
) -> Outcome<R> {
    let outcome = outcome.and_then(|value| snapshot.local.check_control().map(|()| value));
    // It has to be durable before what was read is.
    let epoch = snapshot.raw.largest_epoch_seen();
    match outcome {
        Ok(value) => {
            snapshot.local.end_transaction();
            Ok(Visible { value, epoch })
        }
        Err(error) => {
            let own = snapshot.own_abort(&error);
            let is_own_abort = own.is_some();
            let error = own.map_or(error, |abort| shared.explain_read(Error::from_raw(abort)));
            Err(Box::new(Undone { error, epoch, is_own_abort }))
        }
    }
}

/// Runs `body` as a read-only transaction on the present, on the calling thread's worker.
pub(crate) fn run_reader<E: Engine, R>(
    shared: &DatabaseShared<E>,
    policy: RetryPolicy,
    body: impl FnMut(&mut Reader<'_, E>) -> Result<R>,
) -> Outcome<R> {
    run_reader_on(shared, &mut *shared.enter()?, policy, body)
}

/// Like [`run_reader`], on this worker.
pub(crate) fn run_reader_on<E: Engine, R>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    policy: RetryPolicy,
    mut body: impl FnMut(&mut Reader<'_, E>) -> Result<R>,
) -> Outcome<R> {
    let mut watch = shared.watch(&policy, type_name_of_val(&body));
    let mut shortage = Shortage::default();
    loop {
        match read_present(shared, worker, &mut body, &mut watch) {
            Err(undone)
                if E::EVICTS
                    && undone.is_out_of_memory()
                    && shortage.ends_by(shared, || shared.free_memory(worker)) =>
            {
                watch.note_attempt();
            }
            outcome => {
                watch.end(shared, &outcome);
                return outcome;
            }
        }
    }
}

/// Some attempts whose reads are validated, and then one on a snapshot of its own.
fn read_present<E: Engine, R>(
    shared: &DatabaseShared<E>,
    worker: &mut ThreadWorker<E>,
    body: &mut impl FnMut(&mut Reader<'_, E>) -> Result<R>,
    watch: &mut RequestWatch<'_>,
) -> Outcome<R> {
    let retries = if E::SNAPSHOTS { VALIDATED_READERS } else { shared.retries };
    let mut attempt = 0;
    while !E::SNAPSHOTS || attempt < VALIDATED_READERS {
        if attempt > 0 {
            worker.raw.retry_next();
        }
        match attempt_reader(worker, body) {
            Ok(visible) => return Ok(visible),
            // A snapshot remembers nothing of what it has read, and leaves rows on the disk that are there.
            Err(undone)
                if E::SNAPSHOTS && (undone.is_too_large() || (E::EVICTS && undone.is_out_of_memory())) =>
            {
                watch.note_attempt();
                break;
            }
            Err(undone) => {
                attempt += 1;
                watch.note_undone(&undone);
                await_next_attempt(shared, worker, [attempt, 0], retries, undone)?;
            }
        }
        watch.note_attempt();
    }
    shared.engine.take_snapshot(Instant::now());
    let epoch_shown = shared.engine.epochs().snapshot_epoch().get();
    let ThreadWorker { raw, local } = worker;
    let mut reader = Reader::snapshot(raw.begin_snapshot(), local, epoch_shown);
    let outcome = body(&mut reader);
    match reader.end() {
        EndedReader::Snapshot(mut snapshot) => end_snapshot(shared, &mut snapshot, outcome),
        EndedReader::Validated(_) => unreachable!("it was begun as a snapshot"),
    }
}

/// One attempt whose reads are validated.
fn attempt_reader<E: Engine, R>(
    worker: &mut ThreadWorker<E>,
    body: &mut impl FnMut(&mut Reader<'_, E>) -> Result<R>,
) -> Result<Visible<R>, Undone> {
    refused_opening::forget();
    let mut reader = Reader::validated(worker.raw.begin(), &mut worker.local);
    let outcome = panics::catch(|| body(&mut reader));
    match reader.end() {
        EndedReader::Validated(transaction) => end_attempt(transaction, outcome),
        EndedReader::Snapshot(_) => unreachable!("it was begun to be validated"),
    }
}
