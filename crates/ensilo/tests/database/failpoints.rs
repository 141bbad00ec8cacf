//! A protocol that calls a test's closure at the named places of jobs, on the thread of the job.

use std::cell::RefCell;

use ensilo::Engine;
use ensilo::ermia::{Ermia, Isolation, Serializable};
use ensilo::two_phase_locking::{Locking, TwoPhaseLocking};
use ensilo::variants::{Failpoint, Fault, Silo, Variant};

type Hook = Box<dyn FnMut(Failpoint)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// The product, with a closure at its named places.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Hooked;

impl Variant for Hooked {
    fn reached(place: Failpoint) {
        call(place);
    }
}

impl Isolation for Hooked {
    type Dependencies = <Serializable as Isolation>::Dependencies;
    const SERIALIZABLE: bool = true;

    fn reached(place: Failpoint) {
        call(place);
    }
}

/// As [`Hooked`], of two-phase locking.
#[derive(Copy, Clone, Debug)]
pub(crate) struct HookedLocking;

impl Variant for HookedLocking {
    const VALIDATES: bool = false;

    fn reached(place: Failpoint) {
        call(place);
    }
}

impl Locking for HookedLocking {
    const WAITS: bool = true;
}

/// As [`Hooked`], with rows that take the entries of others with them.
#[derive(Debug)]
pub(crate) struct HookedAndFaulty;

impl Variant for HookedAndFaulty {
    const FAULT: Option<Fault> = Some(Fault::RemoveEntriesOfOthers);

    fn reached(place: Failpoint) {
        call(place);
    }
}

/// Sets what this thread calls at named places from now on.
pub(crate) fn hook(hook: impl FnMut(Failpoint) + 'static) {
    HOOK.set(Some(Box::new(hook)));
}

/// Calls what the thread has set for named places.
pub(crate) fn call(place: Failpoint) {
    // While it runs, places mean nothing to it; nor while the thread ends and drops it, with what it holds.
    let Ok(Some(mut hook)) = HOOK.try_with(RefCell::take) else { return };
    hook(place);
    HOOK.set(Some(hook));
}

/// Calls `at_place` at the `times`-th time that this thread comes to `place`, and never again.
pub(crate) fn hook_once(place: Failpoint, times: u32, mut at_place: impl FnMut() + 'static) {
    let mut left = times;
    hook(move |reached| {
        if reached == place && left > 0 {
            left -= 1;
            if left == 0 {
                at_place();
            }
        }
    });
}

/// The protocols that a test with hooks runs: the product, and one with a fault that the test has to see.
pub(crate) type HookedSilo = Silo<Hooked>;
pub(crate) type HookedErmia = Ermia<Hooked>;
pub(crate) type HookedTwoPhaseLocking = TwoPhaseLocking<HookedLocking>;
pub(crate) type FaultySilo = Silo<HookedAndFaulty>;

const _: () = assert!(HookedSilo::FAULT.is_none() && FaultySilo::FAULT.is_some());
