//! A durable epoch that is held back, in every order of storing, releasing and waiting:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo-log --lib --profile quick`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ensilo_epoch::Epoch;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::Durable;

/// What is wrong in a model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// What is released is seen by those who come later alone.
    ReleaseWithoutWaking,
    /// What is stored is durable, released or not.
    StoredCounts,
}

const FIRST: u64 = 5;

fn release(durable: &Durable, epoch: Epoch, fault: Fault) {
    if fault == Fault::ReleaseWithoutWaking {
        let mut marks = durable.marks.lock();
        marks.released = Some(epoch);
        durable.move_on(&marks);
    } else {
        durable.release(epoch).call();
    }
}

/// Epochs 5 and 6 are stored, and 5 is released; one waits for 5, and one is called when 6 is stored.
fn model(fault: Fault) {
    let durable = Arc::new(Durable::new(1, Epoch::new(FIRST)));
    if fault != Fault::StoredCounts {
        durable.hold();
    }
    let (called, released) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let storing = thread::spawn({
        let (durable, called) = (Arc::clone(&durable), Arc::clone(&called));
        move || {
            let note = move |stored: Result<(), _>| {
                assert!(stored.is_ok());
                called.fetch_add(1, Ordering::Relaxed);
            };
            durable.on_stored(Epoch::new(FIRST + 1), Box::new(note), || ());
            durable.stored(0, Epoch::new(FIRST + 2), 1).calls.call();
        }
    });
    let releasing = thread::spawn({
        let (durable, released) = (Arc::clone(&durable), Arc::clone(&released));
        move || {
            released.store(1, Ordering::Relaxed);
            release(&durable, Epoch::new(FIRST), fault);
        }
    });
    assert!(durable.wait(Epoch::new(FIRST), || ()).is_ok());
    assert_eq!(released.load(Ordering::Relaxed), 1, "nobody waits for what is not released");
    storing.join().unwrap();
    releasing.join().unwrap();
    assert_eq!(called.load(Ordering::Relaxed), 1);
    assert_eq!((durable.epoch(), durable.stored_epoch()), (Epoch::new(FIRST), Epoch::new(FIRST + 1)));
}

fn explore(fault: Fault) {
    let check = || {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(move || model(fault));
    };
    if fault == Fault::None {
        return check();
    }
    let found = catch_unwind(AssertUnwindSafe(check));
    assert!(found.is_err(), "the model does not notice {fault:?}");
}

#[test]
fn what_is_stored_and_released_is_durable_and_who_waits_for_it_wakes() {
    explore(Fault::None);
}

#[test]
fn who_is_not_woken_is_noticed() {
    explore(Fault::ReleaseWithoutWaking);
}

#[test]
fn what_counts_too_soon_is_noticed() {
    explore(Fault::StoredCounts);
}
