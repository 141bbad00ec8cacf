//! The table of locks: who holds which, and who waits. It knows nothing of records.
//!
//! Each store has a space of its own, as long as there are not more stores than spaces, and a space consists of stripes. The lock of a
//! key lies in the stripe of the key's hash. A range lock stands in every stripe of its space, so that one stripe says all about a
//! request for a key, and an exclusive lock of a key and a range lock meet in the stripe of the key: whoever comes second finds the other. A
//! stripe is guarded by a mutex, which nobody holds while anything else is done.
//!
//! # Invariants
//! - `I1`: no two transactions hold locks in conflict: of one key, one of them exclusive; or of a range, and an exclusive one of a key in it.
//! - `I2`: a transaction that waits waits for younger ones, none of them prepared, and for those that [commit](committing), which wait for nobody. It
//!   looks again after every grant in its stripe, and at the latest at the end of its time.
//! - `I3`: a lock that is given back wakes those that wait in its stripe.

mod committing;
mod stripe;

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use ensilo_engine::{AbortReason, TableId};
use ensilo_sync::CachePadded;
use ensilo_sync::sync::{Condvar, Mutex, MutexGuard};

use self::committing::Committing;
pub(crate) use self::stripe::{Grant, Mode, Owner};
use self::stripe::{Request, StripeState};
use crate::key::LockKey;
use crate::range::LockRange;

/// The longest time that a statement waits for one lock: of a key, or of a range.
pub const WAIT_MAX: Duration = Duration::from_millis(50);

/// How long a statement waits: [`WAIT_MAX`], and longer in tests of this crate, whose other thread may be without a processor.
const PATIENCE: Duration = if cfg!(test) { Duration::from_secs(2) } else { WAIT_MAX };

const SPACES: usize = if cfg!(loom) { 1 } else { 64 };
const STRIPES: usize = if cfg!(loom) { 2 } else { 16 };

/// The locks of all stores.
#[derive(Debug)]
pub(crate) struct LockTable {
    spaces: Box<[[CachePadded<Stripe>; STRIPES]]>,
    committing: Committing,
}

/// Who asks for a lock, and whether it waits for one that younger transactions hold.
#[derive(Debug, Copy, Clone)]
pub(crate) struct Requester {
    pub(crate) owner: Owner,
    pub(crate) waits: bool,
}

/// How long a statement goes on waiting for a lock.
#[derive(Debug, Default)]
struct Patience {
    /// Set when the first wait begins.
    ends: Option<Instant>,
}

/// A part of a space.
#[derive(Debug, Default)]
struct Stripe {
    state: Mutex<StripeState>,
    /// Notified whenever somebody waits and the state has changed.
    changed: Condvar,
}

impl LockTable {
    pub(crate) fn new() -> Self {
        let space = || std::array::from_fn(|_| CachePadded::new(Stripe::default()));
        LockTable { spaces: (0..SPACES).map(|_| space()).collect(), committing: Committing::new() }
    }

    /// Locks a key, or makes a shared lock of the requester's an exclusive one.
    ///
    /// # Errors
    /// Why it cannot be had; nothing has changed.
    #[inline]
    pub(crate) fn lock_key(
        &self,
        requester: Requester,
        key: &LockKey,
        mode: Mode,
    ) -> Result<Grant, AbortReason> {
        self.acquire(self.stripe(key), requester, Request::Key(key, mode), &mut Patience::default())
    }

    /// Locks all keys of a range. A range that the requester has locked under this number before, and that this one covers, becomes this one.
    ///
    /// # Errors
    /// Why it cannot be had. In some stripes the range may have been locked.
    pub(crate) fn lock_range(
        &self,
        requester: Requester,
        number: u32,
        range: &LockRange,
    ) -> Result<(), AbortReason> {
        let mut patience = Patience::default();
        self.space(range.table()).iter().try_for_each(|stripe| {
            self.acquire(stripe, requester, Request::Range(number, range), &mut patience).map(|_| ())
        })
    }

    /// Gives the lock of a key back.
    #[inline]
    pub(crate) fn unlock_key(&self, owner: Owner, key: &LockKey) {
        self.stripe(key).change(|state| state.remove_key(owner, key));
    }

    /// Gives all range locks in the space of a store back.
    pub(crate) fn unlock_ranges(&self, owner: Owner, table: TableId) {
        for stripe in self.space(table) {
            stripe.change(|state| state.remove_ranges(owner));
        }
    }

    /// Notes that a transaction commits: it waits for no lock any more, and gives back those that it has.
    #[inline]
    pub(crate) fn begin_commit(&self, owner: Owner) {
        self.committing.begin(owner);
    }

    /// Notes that a transaction that has committed has given its locks back.
    #[inline]
    pub(crate) fn end_commit(&self, owner: Owner) {
        self.committing.end(owner);
    }

    /// Notes that the holder of a key's lock is prepared: nobody waits for it any more.
    pub(crate) fn prepare_key(&self, owner: Owner, key: &LockKey) {
        self.stripe(key).change(|state| state.prepare_key(owner, key));
    }

    /// Notes that the holder of range locks in the space of a store is prepared.
    pub(crate) fn prepare_ranges(&self, owner: Owner, table: TableId) {
        for stripe in self.space(table) {
            stripe.change(|state| state.prepare_ranges(owner));
        }
    }

    /// Returns whether no lock is held and nobody waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.spaces.iter().flatten().all(|stripe| stripe.lock().is_empty())
    }

    /// Returns how many transactions wait.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn waiting(&self) -> usize {
        self.spaces.iter().flatten().map(|stripe| stripe.lock().waiting()).sum()
    }

    #[inline]
    fn acquire(
        &self,
        stripe: &Stripe,
        requester: Requester,
        request: Request<'_>,
        patience: &mut Patience,
    ) -> Result<Grant, AbortReason> {
        let mut state = stripe.lock();
        match state.try_grant(requester.owner, request, &self.committing) {
            Ok(grant) => {
                stripe.wake(&state);
                Ok(grant)
            }
            Err(conflict) if requester.waits && conflict.may_wait => {
                self.wait(stripe, state, requester.owner, request, patience)
            }
            Err(conflict) => Err(conflict.reason),
        }
    }

    /// Waits until the request is granted, has to be given up, or was made too long ago.
    #[cold]
    fn wait(
        &self,
        stripe: &Stripe,
        mut state: MutexGuard<'_, StripeState>,
        owner: Owner,
        request: Request<'_>,
        patience: &mut Patience,
    ) -> Result<Grant, AbortReason> {
        state.begin_to_wait(owner, request);
        loop {
            let left = patience.left();
            let waited = stripe.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = waited.0;
            let outcome = match state.try_grant(owner, request, &self.committing) {
                Err(conflict) if conflict.may_wait && !left.is_zero() => continue,
                outcome => outcome.map_err(|conflict| conflict.reason),
            };
            state.end_to_wait(owner);
            stripe.wake(&state);
            return outcome;
        }
    }

    #[inline]
    fn space(&self, table: TableId) -> &[CachePadded<Stripe>; STRIPES] {
        &self.spaces[table.0 as usize % SPACES]
    }

    #[inline]
    fn stripe(&self, key: &LockKey) -> &Stripe {
        &self.space(key.table())[(key.hash() >> 32) as usize % STRIPES]
    }
}

impl Stripe {
    /// Changes what is held, and wakes those that wait.
    #[inline]
    fn change(&self, change: impl FnOnce(&mut StripeState)) {
        let mut state = self.lock();
        change(&mut state);
        self.wake(&state);
    }

    /// Has those that wait look again.
    #[inline]
    fn wake(&self, state: &StripeState) {
        if state.waiting() > 0 {
            self.changed.notify_all();
        }
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, StripeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Patience {
    /// Returns how long the statement may wait from now on.
    fn left(&mut self) -> Duration {
        if cfg!(loom) {
            // No time passes in a model.
            return PATIENCE;
        }
        let now = Instant::now();
        self.ends.get_or_insert(now + PATIENCE).saturating_duration_since(now)
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
