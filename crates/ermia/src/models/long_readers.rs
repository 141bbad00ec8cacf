//! Versions that leave the middle of a chain, beside one that walks over them, and one that begins.

use std::sync::atomic::{AtomicBool, Ordering};

use loom::thread;

use super::records::{explore, look};
use super::{ModelSession, Stage, fails, fails_without};
use crate::isolation::SnapshotIsolation;
use crate::oid_array::Oid;
use crate::planted::Step;

type Level = SnapshotIsolation;

/// Runs `beside` beside a snapshot of a record of 0, over which the session that it gets has put 1 and 2 since the snapshot began.
fn behind_a_snapshot(has_barrier: bool, beside: impl FnOnce(&Stage, Oid, ModelSession<Level>)) {
    let stage = Stage::hasty();
    let record = stage.record::<Level>(0);
    let mut early = stage.session::<Level>();
    if !has_barrier {
        early.participant.plant_missing_barriers();
    }
    let mut early = early.begin_snapshot();
    let mut writer = stage.session::<Level>();
    (1..3).for_each(|row| write(&mut writer, record, row));
    beside(&stage, record, writer);
    assert_eq!(early.first_word(&stage.store, record), Some(0));
}

fn write(session: &mut ModelSession<Level>, record: Oid, row: u64) {
    let stage = session.stage.clone();
    let mut tx = session.begin();
    let (found, _) = look(&mut tx, &stage, record).unwrap();
    tx.put_found(found, &[row], 8).unwrap();
    tx.end_by_commit().unwrap();
}

/// Takes what is in the way out of the chain, and frees it.
fn clear(session: &mut ModelSession<Level>) {
    let stage = session.stage.clone();
    for _ in 0..2 {
        stage.shared.epochs.advance();
        stage.shared.keep_up_now();
        drop(session.begin());
    }
    IS_CLEARED.fetch_or(session.garbage.retired_len() == 0, Ordering::Relaxed);
    IS_AWAITED.fetch_or(session.garbage.retired_len() > 0, Ordering::Relaxed);
}

/// Of all runs: not among the atomics that the model explores.
static IS_CLEARED: AtomicBool = AtomicBool::new(false);
static IS_AWAITED: AtomicBool = AtomicBool::new(false);

fn a_version_leaves_beside_one_that_walks(has_barrier: bool) {
    behind_a_snapshot(has_barrier, |_, _, mut writer| _ = thread::spawn(move || clear(&mut writer)));
}

#[test]
fn a_version_in_the_way_is_freed_when_nobody_walks_over_it() {
    explore(2, || a_version_leaves_beside_one_that_walks(true));
    let has_happened = [&IS_CLEARED, &IS_AWAITED].map(|seen| seen.load(Ordering::Relaxed));
    assert_eq!(has_happened, [true; 2], "freed, awaited");
}

#[test]
fn the_model_notices_one_that_walks_without_a_look() {
    assert!(fails_without(Step::Look, || explore(2, || a_version_leaves_beside_one_that_walks(true))));
}

#[test]
fn the_model_notices_a_look_without_a_barrier() {
    assert!(fails(|| explore(2, || a_version_leaves_beside_one_that_walks(false))));
}

/// A transaction begins beside another commit, and what is behind that is cleared away.
fn a_version_is_needed_by_one_that_begins() {
    behind_a_snapshot(true, |stage, record, mut writer| {
        let clearing = thread::spawn(move || {
            write(&mut writer, record, 3);
            clear(&mut writer);
        });
        let mut session = stage.session::<Level>();
        let mut tx = session.begin();
        let rows = [(); 2].map(|()| look(&mut tx, stage, record).unwrap().1);
        assert!(rows[0] == rows[1] && (2..=3).contains(&rows[0]), "{rows:?}");
        drop(tx);
        clearing.join().unwrap();
    });
}

#[test]
fn one_that_begins_finds_what_it_sees() {
    explore(2, a_version_is_needed_by_one_that_begins);
}

#[test]
fn the_model_notices_one_that_begins_and_is_taken_for_one_that_has() {
    assert!(fails_without(Step::EnteringMark, || explore(2, a_version_is_needed_by_one_that_begins)));
}
