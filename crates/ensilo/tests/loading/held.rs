//! Engines of which nothing is loaded in the background while a test holds it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use ensilo::ermia::{Ermia, Isolation, Serializable};
use ensilo::two_phase_locking::{Locking, TwoPhaseLocking};
use ensilo::variants::{Failpoint, Silo, Variant};

/// The product, but for the hold.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Held;

impl Variant for Held {
    fn reached(place: Failpoint) {
        wait_at(place);
    }
}

impl Isolation for Held {
    type Dependencies = <Serializable as Isolation>::Dependencies;
    const SERIALIZABLE: bool = true;

    fn reached(place: Failpoint) {
        wait_at(place);
    }
}

/// As [`Held`], of two-phase locking.
#[derive(Copy, Clone, Debug)]
pub(crate) struct HeldLocking;

impl Variant for HeldLocking {
    const VALIDATES: bool = false;

    fn reached(place: Failpoint) {
        wait_at(place);
    }
}

impl Locking for HeldLocking {
    const WAITS: bool = true;
}

pub(crate) type HeldSilo = Silo<Held>;
pub(crate) type HeldErmia = Ermia<Held>;
pub(crate) type HeldTwoPhaseLocking = TwoPhaseLocking<HeldLocking>;

static IS_HELD: Mutex<bool> = Mutex::new(false);
static RELEASED: Condvar = Condvar::new();

/// One test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn wait_at(place: Failpoint) {
    if place == Failpoint::BackgroundBlockTaken {
        let is_held = IS_HELD.lock().unwrap();
        drop(RELEASED.wait_while(is_held, |is_held| *is_held).unwrap());
    }
}

/// Holds the background from the next block on, or lets it go on.
pub(crate) fn set(is_held: bool) {
    *IS_HELD.lock().unwrap() = is_held;
    RELEASED.notify_all();
}

/// As long as this lives, no other test runs.
pub(crate) struct Hold {
    _turn: MutexGuard<'static, ()>,
}

impl Hold {
    pub(crate) fn new() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Hold { _turn: turn }
    }

    /// Lets the background of the databases that are open go on.
    pub(crate) fn release(&self) {
        set(false);
    }
}
