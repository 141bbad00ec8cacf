//! Snapshots that stay open between the jobs that read in them, and are ended when they have grown too old.
//!
//! The engine ends a statement in a snapshot that is too old, and so keeps nothing for it. A snapshot in which nobody reads makes no
//! statement: the database's collector ends it by time, so that a consumer that has stopped asking holds back no memory.

#![allow(unsafe_code, reason = "a snapshot and the worker that it borrows, in one value")]

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use ensilo_engine::{AbortReason, Engine, TableId};

use crate::attempt::{begin_snapshot, end_snapshot};
use crate::local::ThreadWorker;
use crate::mutex::{lock, try_lock};
use crate::outcome::Outcome;
use crate::session::control::SessionControl;
use crate::session::lend_lasting;
use crate::shared::DatabaseShared;
use crate::transaction::Snapshot;
use crate::worker::Lease;
use crate::{Error, Result};

/// A snapshot that is begun by the first read in it.
pub(crate) struct HeldSnapshot<E: Engine> {
    /// Borrows from `shared`, and so is dropped before.
    state: Mutex<HeldState<E>>,
    /// The oldest state that it may show, as an age.
    max_staleness: Duration,
    /// What is named where it has grown too old.
    table: TableId,
    shared: Arc<DatabaseShared<E>>,
}

enum HeldState<E: Engine> {
    /// Left by the first read.
    NotBegun,
    /// Left by the collector, at an error, and at the end.
    Open(Box<OpenSnapshot<E>>),
    TooOld,
    Ended,
}

// Dropped in this order.
struct OpenSnapshot<E: Engine> {
    /// Borrows the worker that was lent.
    snapshot: Snapshot<'static, E>,
    _lease: Lease<'static, ThreadWorker<E>>,
    begun: Instant,
}

impl<E: Engine> HeldSnapshot<E> {
    pub(crate) fn new(shared: &Arc<DatabaseShared<E>>, max_staleness: Duration, table: TableId) -> Arc<Self> {
        let (state, shared) = (Mutex::new(HeldState::NotBegun), Arc::clone(shared));
        Arc::new(HeldSnapshot { state, max_staleness, table, shared })
    }

    pub(crate) fn shared(&self) -> &Arc<DatabaseShared<E>> {
        &self.shared
    }

    /// Reads in the snapshot, as long as `control` lets it. It is ended by an error.
    pub(super) fn read<R>(
        self: &Arc<Self>,
        control: &Arc<SessionControl>,
        body: impl FnOnce(&mut Snapshot<'static, E>) -> Result<R>,
    ) -> Outcome<R> {
        let mut state = lock(&self.state);
        let outcome = self.read_in(&mut state, control, body);
        if outcome.is_err() {
            *state = HeldState::Ended;
        }
        outcome
    }

    fn read_in<R>(
        self: &Arc<Self>,
        state: &mut HeldState<E>,
        control: &Arc<SessionControl>,
        body: impl FnOnce(&mut Snapshot<'static, E>) -> Result<R>,
    ) -> Outcome<R> {
        let _under_way = control.begin();
        control.check()?;
        let snapshot = &mut self.opened(state)?.snapshot;
        snapshot.inner.local.control = Some(Arc::clone(control));
        let outcome = body(snapshot);
        let outcome = end_snapshot(&self.shared, &mut snapshot.inner, outcome);
        snapshot.inner.local.control = None;
        outcome
    }

    /// Ends the snapshot.
    pub(crate) fn end(&self) {
        *lock(&self.state) = HeldState::Ended;
    }

    fn opened<'s>(self: &Arc<Self>, state: &'s mut HeldState<E>) -> Result<&'s mut OpenSnapshot<E>> {
        if self.shared.is_closed() {
            return Err(Error::Closed);
        }
        if matches!(state, HeldState::NotBegun) {
            *state = HeldState::Open(Box::new(self.begin()?));
            self.shared.held_snapshots.add(self);
        }
        match state {
            HeldState::Open(open) => Ok(open),
            HeldState::TooOld => Err(self.too_old()),
            HeldState::NotBegun | HeldState::Ended => Err(Error::NoTransaction),
        }
    }

    fn begin(&self) -> Result<OpenSnapshot<E>> {
        if !E::SNAPSHOTS {
            return Err(Error::NoSnapshots);
        }
        // SAFETY: this value keeps `shared` for as long as it has the lease, which is dropped behind the snapshot. Nobody uses the worker but
        // the snapshot; that its lifetime says 'static is known to this module
        // and to the one above alone, whose reads keep nothing of it.
        let (lease, worker) = unsafe { lend_lasting(&self.shared) }?;
        // A bound that reaches behind the begin of all clocks is none.
        let since = Instant::now().checked_sub(self.max_staleness);
        let snapshot = begin_snapshot(&self.shared, worker, since);
        Ok(OpenSnapshot { snapshot, _lease: lease, begun: Instant::now() })
    }

    #[cold]
    fn too_old(&self) -> Error {
        let abort = ensilo_engine::Abort::new(AbortReason::SnapshotTooOld, self.table, &[]);
        self.shared.explain_read(Error::from_raw(abort))
    }

    /// Ends the snapshot if it is older than `limit` and nobody reads in it.
    fn end_if_older(&self, limit: Duration) {
        let Some(mut state) = try_lock(&self.state) else { return };
        if matches!(&*state, HeldState::Open(open) if open.begun.elapsed() >= limit) {
            *state = HeldState::TooOld;
        }
    }
}

impl<E: Engine> Drop for HeldSnapshot<E> {
    fn drop(&mut self) {
        self.shared.held_snapshots.remove(self);
    }
}

/// The snapshots of a database that are held, by their addresses.
pub(crate) struct HeldSnapshots<E: Engine>(Mutex<HashMap<usize, Weak<HeldSnapshot<E>>>>);

impl<E: Engine> HeldSnapshots<E> {
    pub(crate) fn new() -> Self {
        HeldSnapshots(Mutex::new(HashMap::new()))
    }

    fn add(&self, held: &Arc<HeldSnapshot<E>>) {
        lock(&self.0).insert(Arc::as_ptr(held).addr(), Arc::downgrade(held));
    }

    fn remove(&self, held: &HeldSnapshot<E>) {
        lock(&self.0).remove(&ptr::from_ref(held).addr());
    }

    /// Ends those that are older than `limit` and in which nobody reads.
    pub(crate) fn end_older(&self, limit: Duration) {
        // Not under the lock: one may go with the last reference to it.
        let held: Vec<_> = lock(&self.0).values().filter_map(Weak::upgrade).collect();
        held.iter().for_each(|held| held.end_if_older(limit));
    }
}
