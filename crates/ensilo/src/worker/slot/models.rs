//! The slot in every order of its steps, as far as weak memory allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo --lib --profile quick slot`.
//!
//! What the worker is made of is a cell that the checker watches: two threads that use it without an order
//! between them fail the model.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use super::*;
use crate::worker::{Lendable, SpareSlots};

/// Stands for a worker.
struct Watched {
    uses: UnsafeCell<u64>,
    drops: Arc<AtomicUsize>,
}

impl Watched {
    fn touch(&mut self) {
        self.uses.with_mut(|uses| {
            // SAFETY: the checker fails the model when somebody else uses the cell meanwhile.
            unsafe { *uses += 1 }
        });
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.touch();
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// One thread makes two requests while another closes the database.
fn requests_meet_a_close(plant_fault: bool) {
    let drops = Arc::new(AtomicUsize::new(0));
    let mut slot = Slot::new(Watched { uses: UnsafeCell::new(0), drops: Arc::clone(&drops) });
    if plant_fault {
        slot.plant_missing_barriers();
    }
    let slot = Arc::new(slot);
    let owner = Arc::clone(&slot);
    let requests = thread::spawn(move || {
        for _ in 0..2 {
            // SAFETY: this thread alone enters.
            match unsafe { owner.enter() } {
                Ok(mut entered) => entered.touch(),
                Err(Error::Closed) => return,
                Err(error) => panic!("{error}"),
            }
        }
    });
    slot.mark_closed();
    barrier::heavy();
    drop(slot.take_if_idle());
    requests.join().unwrap();
    // SAFETY: the owner's thread has ended, and this one takes its place.
    assert!(matches!(unsafe { slot.enter() }, Err(Error::Closed)));
    assert_eq!(drops.load(Ordering::Relaxed), 1, "whoever is last takes the worker out, once");
}

/// One thread makes two requests while another visits its worker; in the end it is closed.
fn requests_meet_a_visitor(plant_fault: bool) {
    let drops = Arc::new(AtomicUsize::new(0));
    let mut slot = Slot::new(Watched { uses: UnsafeCell::new(0), drops: Arc::clone(&drops) });
    if plant_fault {
        slot.plant_missing_barriers();
    }
    let slot = Arc::new(slot);
    let owner = Arc::clone(&slot);
    let requests = thread::spawn(move || {
        for _ in 0..2 {
            // SAFETY: this thread alone enters.
            unsafe { owner.enter() }.unwrap_or_else(|error| panic!("{error}")).touch();
        }
    });
    slot.visit(Watched::touch);
    requests.join().unwrap();
    assert!(slot.visit(Watched::touch).is_some(), "an idle worker can be visited");
    slot.mark_closed();
    barrier::heavy();
    drop(slot.take_if_idle());
    assert_eq!(drops.load(Ordering::Relaxed), 1);
}

/// The database is closed while a visitor comes and the owner makes a request.
fn a_visitor_meets_a_close() {
    let drops = Arc::new(AtomicUsize::new(0));
    let slot = Arc::new(Slot::new(Watched { uses: UnsafeCell::new(0), drops: Arc::clone(&drops) }));
    let (owner, visited) = (Arc::clone(&slot), Arc::clone(&slot));
    let request = thread::spawn(move || {
        // SAFETY: this thread alone enters.
        if let Ok(mut entered) = unsafe { owner.enter() } {
            entered.touch();
        }
    });
    let visit = thread::spawn(move || _ = visited.visit(Watched::touch));
    slot.mark_closed();
    barrier::heavy();
    drop(slot.take_if_idle());
    request.join().unwrap();
    visit.join().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 1, "whoever is last takes the worker out, once");
}

impl Lendable for Watched {
    fn forget_use(&mut self) {}
}

/// Spare workers for threads of the model, which ask for `'static`.
fn spare_slots() -> &'static SpareSlots<Watched> {
    Box::leak(Box::new(SpareSlots::new()))
}

/// Two threads lend a worker, one of them hands it to a third, while the garbage of the first worker is
/// collected.
fn a_lease_goes_from_thread_to_thread() {
    let drops = Arc::new(AtomicUsize::new(0));
    let watched = || Arc::new(Slot::new(Watched { uses: UnsafeCell::new(0), drops: Arc::clone(&drops) }));
    let spare = spare_slots();
    let (first, second) = (watched(), watched());
    drop(spare.lend(|| Ok(Arc::clone(&first))));
    let other = thread::spawn(move || {
        let Ok(mut lease) = spare.lend(|| Ok(second)) else { unreachable!("nothing is closed") };
        lease.touch();
        thread::spawn(move || lease.touch())
    });
    let Ok(mut lease) = spare.lend(|| Ok(watched())) else { unreachable!("nothing is closed") };
    lease.touch();
    drop(lease);
    first.visit(Watched::touch);
    // The checker watches the cells: it fails the model when two use one worker.
    other.join().unwrap().join().unwrap();
}

/// A lease is moved to another thread and ends there, while the database is closed.
fn a_lease_that_moves_meets_a_close() {
    let drops = Arc::new(AtomicUsize::new(0));
    let slot = Arc::new(Slot::new(Watched { uses: UnsafeCell::new(0), drops: Arc::clone(&drops) }));
    let spare = spare_slots();
    let Ok(mut lease) = spare.lend(|| Ok(Arc::clone(&slot))) else { unreachable!("nothing is closed yet") };
    lease.touch();
    let ends = thread::spawn(move || {
        lease.touch();
        drop(lease);
        if let Ok(mut again) = spare.lend(|| Err(Error::Closed)) {
            again.touch();
        }
    });
    slot.mark_closed();
    barrier::heavy();
    drop(slot.take_if_idle());
    ends.join().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 1, "whoever is last takes the worker out, once");
}

fn bounded(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(check);
}

#[test]
fn owner_and_visitor_never_share_the_worker() {
    bounded(4, || requests_meet_a_visitor(false));
}

#[test]
fn the_model_notices_a_visitor_without_barriers() {
    let planted = catch_unwind(AssertUnwindSafe(|| bounded(4, || requests_meet_a_visitor(true))));
    assert!(planted.is_err());
}

#[test]
fn owner_visitor_and_closer_never_share_the_worker() {
    bounded(3, a_visitor_meets_a_close);
}

#[test]
fn owner_and_closer_never_share_the_worker_and_it_is_dropped_once() {
    loom::model(|| requests_meet_a_close(false));
}

#[test]
fn the_model_notices_missing_barriers() {
    let planted = catch_unwind(AssertUnwindSafe(|| loom::model(|| requests_meet_a_close(true))));
    assert!(planted.is_err());
}

#[test]
fn a_lease_that_goes_from_thread_to_thread_has_its_worker_alone() {
    bounded(3, a_lease_goes_from_thread_to_thread);
}

#[test]
fn a_lease_that_moves_and_a_closer_never_share_the_worker() {
    bounded(3, a_lease_that_moves_meets_a_close);
}
