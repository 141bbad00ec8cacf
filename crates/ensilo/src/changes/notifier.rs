//! The subscribers of a database, and the thread that calls them.
//!
//! The thread reads the change feed on behalf of all subscribers, up to what is stored, and then calls each of them with the changes of its
//! range. While it calls, more may be stored: that is read as a whole afterwards, of each row the last change. So what a slow callback has
//! before it is bounded, and lies in the log.
//!
//! # Invariants
//! - N1: the feed is read, and subscribers come, under one lock. What was read by then is of no later epoch than the durable one that a subscriber
//!   finds when it comes, behind which its changes are. So the feed misses none of them, and never has to go back.
//! - N2: callbacks are called without that lock, and without any other.

use std::collections::BTreeSet;
use std::mem;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread::{self, JoinHandle};

use ensilo_engine::{Engine, Store};
use ensilo_epoch::Epoch;
use ensilo_log::{ForeignAfter, LogPlace};

use super::coalesced::{CoalescedChanges, ReceivedChange};
use super::news::News;
use super::subscription::{Callback, Subscriber, Subscription, begin_calling};
use super::{Change, ChangePosition, Changes, NOTES_TABLE, Source};
use crate::catalog::table_core::TableCore;
use crate::error::Name;
use crate::mutex::lock;
use crate::shared::DatabaseShared;
use crate::table::Bounds;
use crate::{Error, Result};

/// How many bytes of changes are read at once, and how many before calls are made.
const READ_BYTES: usize = 8 << 20;
const WAITING_BYTES: usize = 8 << 20;

/// So many batches are read before calls are made, and subscribers may come.
const BATCHES_MAX: usize = 64;

/// See the module's documentation.
pub(crate) struct Notifier<E: Engine> {
    state: Mutex<NotifierState<E>>,
    news: Arc<News>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct NotifierState<E: Engine> {
    subscribed: Vec<Subscribed<E>>,
    /// There while anybody has subscribed.
    changes: Option<Changes<E>>,
    /// Whether the thread was started, and may be calling a closure.
    has_thread: bool,
    /// Whether the thread has ended, by a panic or because the database is closed.
    is_over: bool,
}

/// A subscriber, and its table.
struct Subscribed<E: Engine> {
    subscriber: Arc<Subscriber>,
    table: Arc<TableCore<E::Store>>,
    /// The id of the table in the changes that were read last: a table that is truncated gets another one.
    id: u32,
}

/// Ends all calls when the thread ends, also where that is by a panic.
struct EndsSubscribers<'n, E: Engine>(&'n Notifier<E>);

impl<E: Engine> Drop for EndsSubscribers<'_, E> {
    fn drop(&mut self) {
        self.0.end_subscribers();
    }
}

/// What the thread is to do next, outside of the lock.
#[derive(Default)]
struct Round {
    changes: CoalescedChanges,
    /// Comes behind the changes.
    errors: Vec<(Arc<Subscriber>, Error)>,
    /// Those that these errors have ended.
    ended: Vec<(Arc<Subscriber>, Error)>,
    /// Whether there is nothing to be done before there is news.
    waits: bool,
}

impl<E: Engine> Notifier<E> {
    pub(crate) fn new() -> Self {
        let state =
            NotifierState { subscribed: Vec::new(), changes: None, has_thread: false, is_over: false };
        Notifier { state: Mutex::new(state), news: Arc::default(), thread: Mutex::new(None) }
    }

    /// Calls `callback` with the changes of a range that are stored from now on.
    ///
    /// # Errors
    /// Those of a change feed.
    pub(super) fn subscribe(
        &self,
        shared: &Arc<DatabaseShared<E>>,
        (table, bounds): (Arc<TableCore<E::Store>>, Bounds),
        callback: Callback,
    ) -> Result<Subscription> {
        let mut state = lock(&self.state);
        if state.is_over && !shared.is_closed() {
            return Err(Error::ThreadPanicked(Name::new("that which calls subscribers")));
        }
        // N1: under the lock. `stop` has closed the database before it comes here.
        let after = Source::of(shared)?.durable.log.durable_epoch();
        // Behind that: a table is refused before it is stored that it was truncated. So what truncates this one comes after that epoch.
        table.check_is_of(shared.id())?;
        self.start(shared)?;
        state.has_thread = true;
        let subscriber = Subscriber::new(Arc::clone(&table.name), bounds, after, callback);
        let id = table.store.id().0;
        state.subscribed.push(Subscribed { subscriber: Arc::clone(&subscriber), table, id });
        let followed = state.follow(shared, after);
        if followed.is_err() {
            state.subscribed.pop();
        }
        drop(state);
        followed?;
        self.news.note();
        Ok(Subscription::new(subscriber, Arc::clone(&self.news)))
    }

    /// Starts the thread, unless it runs. It keeps the database's shared part until [`Notifier::stop`].
    fn start(&self, shared: &Arc<DatabaseShared<E>>) -> Result<()> {
        let mut thread = lock(&self.thread);
        if thread.is_some() {
            return Ok(());
        }
        let shared = Arc::clone(shared);
        let started = thread::Builder::new().name("ensilo-notifier".into()).spawn(move || {
            let _working = ForeignAfter::default();
            begin_calling();
            let _ending = EndsSubscribers(&shared.notifier);
            shared.notifier.run(&shared);
        });
        let refused = |error| Error::not_started("the thread that calls subscribers", &error);
        *thread = Some(started.map_err(refused)?);
        Ok(())
    }

    /// Notes that something has happened, other than that more is stored, for which subscribers may have to be called.
    pub(crate) fn note(&self) {
        self.news.note();
    }

    /// Returns whether a closure may be under way: somebody has subscribed once.
    pub(crate) fn has_thread(&self) -> bool {
        lock(&self.state).has_thread
    }

    /// Ends all calls. Waits for one that is under way, unless the caller may not wait, such as a job that the callback may wait for. The
    /// database is closed for requests.
    ///
    /// # Panics
    /// When the thread has panicked.
    pub(crate) fn stop(&self, may_wait: bool) {
        self.end_subscribers();
        self.news.stop();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread.filter(|_| may_wait)
            && thread.thread().id() != thread::current().id()
            && let Err(panic) = thread.join()
        {
            resume_unwind(panic);
        }
    }

    /// Ends all calls, and lets nobody subscribe any more.
    fn end_subscribers(&self) {
        let mut state = lock(&self.state);
        state.is_over = true;
        let (subscribed, changes) = (mem::take(&mut state.subscribed), state.changes.take());
        drop(state);
        drop(changes);
        subscribed.iter().for_each(|subscribed| subscribed.subscriber.end());
    }

    /// What the thread does from its first moment to its last.
    fn run(&self, shared: &Arc<DatabaseShared<E>>) {
        let waker = Waker::from(Arc::clone(&self.news));
        loop {
            // Before the look: what comes after it is news.
            if self.news.begin_look() {
                return;
            }
            let round = lock(&self.state).next_round(shared, &waker);
            let waits = round.waits;
            round.call(shared);
            if waits {
                self.news.wait();
            }
        }
    }
}

impl<E: Engine> NotifierState<E> {
    /// Follows the tables of all subscribers from here on, behind this epoch if none was followed before.
    fn follow(&mut self, shared: &Arc<DatabaseShared<E>>, after: Epoch) -> Result<()> {
        let ids = self.subscribed.iter().map(|subscribed| subscribed.id).chain([NOTES_TABLE]).collect();
        let names = self.subscribed.iter().map(|subscribed| subscribed.table.name.to_string()).collect();
        match &mut self.changes {
            Some(changes) => changes.follow(names, ids),
            None => self.changes = Some(begin(shared, after, (names, ids))?),
        }
        Ok(())
    }

    /// Follows the tables of all subscribers as they are now, behind everything that is stored now.
    fn follow_anew(&mut self, shared: &Arc<DatabaseShared<E>>) -> Result<()> {
        let after = Source::of(shared)?.durable.log.durable_epoch();
        // Behind that, as in `subscribe`: what has truncated a table by then was perhaps never read.
        self.subscribed.iter_mut().for_each(|subscribed| subscribed.skip_to_table(shared));
        self.follow(shared, after)
    }

    /// Reads what is stored of the subscribers' changes, up to a bound.
    fn next_round(&mut self, shared: &Arc<DatabaseShared<E>>, waker: &Waker) -> Round {
        let mut round = Round::default();
        self.forget_ended(&mut round, shared);
        if let Err(error) = self.read(shared, &mut round, waker) {
            self.fail(shared, &mut round, error);
        }
        round
    }

    /// Forgets the subscribers that have ended, and ends those whose tables were dropped.
    fn forget_ended(&mut self, round: &mut Round, shared: &Arc<DatabaseShared<E>>) {
        let before = self.subscribed.len();
        self.subscribed.retain_mut(|subscribed| {
            if subscribed.subscriber.is_over() {
                return false;
            }
            let is_there = subscribed.finds_table(shared);
            if !is_there {
                let error = Error::UnknownTable(Name::new(&*subscribed.table.name));
                round.ended.push((Arc::clone(&subscribed.subscriber), error));
            }
            is_there
        });
        if self.subscribed.is_empty() {
            self.changes = None;
        } else if self.subscribed.len() < before {
            // It reads on where it is: nothing is begun that could fail.
            let _ = self.follow(shared, Epoch::new(0));
        }
    }

    fn read(&mut self, shared: &Arc<DatabaseShared<E>>, round: &mut Round, waker: &Waker) -> Result<()> {
        let Some(changes) = &mut self.changes else {
            round.waits = true;
            return Ok(());
        };
        let stored_to = Source::of(shared)?.durable.log.durable_epoch();
        let mut read_bytes = 0;
        for _ in 0..BATCHES_MAX {
            if read_bytes.max(round.changes.bytes()) >= WAITING_BYTES || shared.is_closed() {
                return Ok(());
            }
            let Some(batch) = changes.next_up_to(stored_to)? else {
                let stored = changes.poll_stored(Some(stored_to), Some(waker));
                round.waits = stored.is_pending();
                return if let Poll::Ready(Err(error)) = stored { Err(error) } else { Ok(()) };
            };
            let epoch = Epoch::new(batch.epoch);
            for change in batch.changes {
                read_bytes += change.len_bytes();
                let subscribed = self.subscribed.iter_mut();
                let subscribers: Vec<_> =
                    subscribed.filter_map(|subscribed| subscribed.receives(epoch, &change)).collect();
                if !subscribers.is_empty() {
                    round.changes.add(ReceivedChange { change, subscribers });
                }
            }
        }
        Ok(())
    }

    /// Passes an error to all subscribers, and goes on where that can be.
    fn fail(&mut self, shared: &Arc<DatabaseShared<E>>, round: &mut Round, error: Error) {
        self.changes = None;
        let of_all = || self.subscribed.iter().map(|subscribed| Arc::clone(&subscribed.subscriber));
        if let Error::ChangesMissed(_) = &error {
            let errors = of_all().map(|subscriber| (subscriber, error.clone())).collect();
            // Before they are called: what they read then is of this moment or later.
            match self.follow_anew(shared) {
                Ok(()) => round.errors = errors,
                Err(error) => self.fail(shared, round, error),
            }
            return;
        }
        round.ended.extend(of_all().map(|subscriber| (subscriber, error.clone())));
        self.subscribed.clear();
    }
}

/// Begins to read changes of these tables behind an epoch.
fn begin<E: Engine>(
    shared: &Arc<DatabaseShared<E>>,
    after: Epoch,
    (names, ids): (Vec<String>, BTreeSet<u32>),
) -> Result<Changes<E>> {
    let (history, _) = Source::of(shared)?.history()?;
    let position = ChangePosition { history, place: LogPlace::after(after) };
    Changes::begin(shared, position, Some((names, ids)), READ_BYTES)
}

impl<E: Engine> Subscribed<E> {
    /// Returns whether the table is there, also if it was changed or truncated since.
    fn finds_table(&mut self, shared: &DatabaseShared<E>) -> bool {
        if self.table.accepts(shared.id()) {
            return true;
        }
        // What takes the place of a table has its queue.
        let now = shared.catalog.any_table(&self.table.name);
        let now = now.filter(|now| !self.table.is_dropped() && Arc::ptr_eq(&now.queue, &self.table.queue));
        now.map(|now| self.table = now).is_some()
    }

    /// Takes the table as it is now for the one of the changes that are read next. Waits where it is being changed.
    fn skip_to_table(&mut self, shared: &DatabaseShared<E>) {
        while self.finds_table(shared) && self.table.is_changed() {
            // Whoever changes it has the catalog until it is changed.
            drop(shared.catalog.change());
        }
        self.id = self.table.store.id().0;
    }

    /// Returns the subscriber if it is called with this change.
    fn receives(&mut self, epoch: Epoch, change: &Change) -> Option<Arc<Subscriber>> {
        let is_new = epoch > self.subscriber.after;
        let is_in_range = if change.empties_table() {
            let is_of_table = change.table() == &*self.table.name;
            if is_of_table && is_new {
                self.id = change.store();
            }
            is_of_table
        } else {
            change.store() == self.id && self.subscriber.bounds.contains_bytes(change.encoded_key())
        };
        (is_new && is_in_range).then(|| Arc::clone(&self.subscriber))
    }
}

impl Round {
    /// Calls the subscribers.
    fn call<E: Engine>(self, shared: &DatabaseShared<E>) {
        let report = |subscriber: &Subscriber, panic: Option<String>| {
            if let (Some(panic), Some(durable)) = (panic, shared.durable()) {
                durable.note_callback_panic(&subscriber.table, panic);
            }
        };
        for ReceivedChange { change, subscribers } in self.changes.into_changes() {
            subscribers.iter().for_each(|subscriber| report(subscriber, subscriber.call(Ok(&change))));
        }
        for (subscriber, error) in self.errors {
            report(&subscriber, subscriber.call(Err(error)));
        }
        for (subscriber, error) in self.ended {
            match error {
                // Whoever has closed the database knows.
                Error::Closed => subscriber.end(),
                error => report(&subscriber, subscriber.end_with(error)),
            }
        }
    }
}
