//! Rows that leave memory, beside those who use them.

use std::sync::atomic::{AtomicBool, Ordering};

use loom::thread;

use super::records::{explore, look};
use super::{Stage, fails};
use crate::cold::Evictor;
use crate::isolation::{Fault, Isolation};
use crate::session::SessionState;

level!(Evicting, None, "The product, but for the haste.");
level!(EvictingUsed, Some(Fault::EvictUsed), "Rows leave while others may have found them.");
level!(KeepingMarks, Some(Fault::KeepMark), "Who uses a row leaves the mark there.");

/// Lets the row leave memory, or tries to, while a transaction looks at it twice and overwrites it. It `is_marked` before that, or beside it.
fn a_row_leaves_beside_a_transaction<I: Isolation>(is_marked: bool) {
    let stage = Stage::with_cold_rows();
    let record = stage.record::<I>(1);
    (0..2).for_each(|_| stage.shared.epochs.advance());
    stage.shared.keep_up_now();
    let (mut evictor, mut state) =
        (Evictor::default(), SessionState::<I>::new(stage.shared.epochs.participant()));
    let mut step = || _ = evictor.step(&stage.shared, &mut state);
    if is_marked {
        step();
    }
    let user = thread::spawn({
        let (stage, mut session) = (stage.clone(), stage.session::<I>());
        move || {
            let mut tx = session.begin();
            let (found, row) = look(&mut tx, &stage, record).unwrap();
            assert_eq!((row, look(&mut tx, &stage, record).unwrap().1), (1, 1));
            tx.put_found(found, &[2], 8).unwrap();
            tx.end_by_commit().unwrap();
        }
    });
    if !is_marked {
        step();
    }
    (0..2).for_each(|_| stage.shared.epochs.advance());
    step();
    user.join().unwrap();
    let mut session = stage.session::<I>();
    assert_eq!(look(&mut session.begin(), &stage, record).unwrap().1, 2);
    let cold = stage.shared.cold_rows().counters();
    IS_EVICTED.fetch_or(cold.evicted > 0, Ordering::Relaxed);
    IS_KEPT.fetch_or(cold.evicted == 0, Ordering::Relaxed);
    HAS_COME_BACK.fetch_or(cold.loaded > 0, Ordering::Relaxed);
}

/// Of all runs: not among the atomics that the model explores.
static IS_EVICTED: AtomicBool = AtomicBool::new(false);
static IS_KEPT: AtomicBool = AtomicBool::new(false);
static HAS_COME_BACK: AtomicBool = AtomicBool::new(false);

#[test]
fn a_row_leaves_memory_when_nobody_uses_it_and_comes_back() {
    for is_marked in [false, true] {
        explore(2, move || a_row_leaves_beside_a_transaction::<Evicting>(is_marked));
    }
    let has_happened = [&IS_EVICTED, &IS_KEPT, &HAS_COME_BACK].map(|seen| seen.load(Ordering::Relaxed));
    assert_eq!(has_happened, [true; 3], "evicted, kept, come back");
}

#[test]
fn the_model_notices_a_row_that_leaves_while_it_is_used() {
    assert!(fails(|| explore(2, || a_row_leaves_beside_a_transaction::<EvictingUsed>(false))));
}

#[test]
fn the_model_notices_a_user_who_leaves_the_mark_there() {
    assert!(fails(|| explore(2, || a_row_leaves_beside_a_transaction::<KeepingMarks>(true))));
}
