//! Versions of one record: those that are put in front of it, that are taken back, and that are freed, beside those who read.

use loom::thread;

use super::records::{Op, Program, explore, look, outcomes};
use super::{Stage, fails, fails_without};
use crate::isolation::{Certificates, Fault, Isolation, Serializable, SnapshotIsolation};
use crate::planted::Step;

/// A transaction overwrites its own version before it commits, beside one that looks twice.
const WRITER_AND_READER: &[Program] =
    &[Program::Commits(&[Op::WriteTwice(0)]), Program::Commits(&[Op::Read(0), Op::Read(0)])];

fn a_writer_beside_a_reader() {
    outcomes::<SnapshotIsolation>(3, 1, WRITER_AND_READER);
}

#[test]
fn a_reader_sees_what_was_committed_when_it_began_and_goes_on_to_see_it() {
    assert_eq!(outcomes::<SnapshotIsolation>(3, 1, WRITER_AND_READER), [vec![true, true]].into());
}

#[test]
fn the_model_notices_a_head_that_orders_nothing() {
    assert!(fails_without(Step::OrderOfHead, a_writer_beside_a_reader));
}

/// The same beside one that looks at what is newest, and has no stamp to compare it with.
const WRITER_AND_PEEK: &[Program] =
    &[Program::Commits(&[Op::WriteTwice(0)]), Program::Commits(&[Op::Peek(0)])];

fn a_writer_beside_a_peek() {
    outcomes::<SnapshotIsolation>(3, 1, WRITER_AND_PEEK);
}

#[test]
fn what_is_newest_is_committed_and_whole() {
    a_writer_beside_a_peek();
}

#[test]
fn the_model_notices_a_version_whose_stamp_orders_nothing() {
    assert!(fails_without(Step::OrderOfStamp, a_writer_beside_a_peek));
}

#[test]
fn the_model_notices_rows_that_an_outcome_does_not_order() {
    assert!(fails_without(Step::OrderOfOutcome, a_writer_beside_a_peek));
}

#[test]
fn the_model_notices_a_reader_that_passes_over_an_unannounced_commit() {
    assert!(fails_without(Step::Announcement, a_writer_beside_a_reader));
}

/// Without waiting for commits in the past.
#[derive(Copy, Clone, Debug)]
struct Impatient;

impl Isolation for Impatient {
    type Dependencies = <SnapshotIsolation as Isolation>::Dependencies;
    const SERIALIZABLE: bool = false;
    const FAULT: Option<Fault> = Some(Fault::SkipCommitting);
}

#[test]
fn the_model_notices_a_reader_that_does_not_wait_for_a_stamp_in_the_past() {
    assert!(fails(|| _ = outcomes::<Impatient>(3, 1, WRITER_AND_READER)));
}

/// Two transactions change one record.
const TWO_WRITERS: &[Program] = &[Program::Commits(&[Op::Write(0)]), Program::Commits(&[Op::Write(0)])];

#[test]
fn of_two_that_change_a_record_side_by_side_one_gives_way() {
    let seen = outcomes::<SnapshotIsolation>(3, 1, TWO_WRITERS);
    assert_eq!(seen, [vec![true, true], vec![true, false], vec![false, true]].into());
}

/// With versions that are put in front of any others.
#[derive(Copy, Clone, Debug)]
struct Overwriting;

impl Isolation for Overwriting {
    type Dependencies = Certificates;
    const SERIALIZABLE: bool = false;
    const FAULT: Option<Fault> = Some(Fault::OverwriteUncommitted);
}

#[test]
fn the_model_notices_an_uncommitted_version_that_is_overwritten() {
    assert!(fails(|| _ = outcomes::<Overwriting>(3, 1, TWO_WRITERS)));
}

/// A transaction takes its version back, beside one that has read the record and one that changes it.
const ABORT_AND_READER: &[Program] = &[Program::Aborts(&[Op::Write(0)]), Program::Commits(&[Op::Read(0)])];
const ABORT_AND_WRITER: &[Program] = &[Program::Aborts(&[Op::Write(0)]), Program::Commits(&[Op::Write(0)])];

#[test]
fn what_is_taken_back_is_never_seen() {
    let seen = outcomes::<Serializable>(3, 1, ABORT_AND_READER);
    assert_eq!(seen, [vec![false, true]].into());
}

#[test]
fn what_is_taken_back_is_in_the_way_for_so_long_and_no_longer() {
    let seen = outcomes::<Serializable>(3, 1, ABORT_AND_WRITER);
    assert_eq!(seen, [vec![false, true], vec![false, false]].into());
}

#[test]
fn the_model_notices_an_id_that_an_abort_leaves_behind() {
    assert!(fails_without(Step::WithdrawnSuccessor, || _ = outcomes::<Serializable>(3, 1, ABORT_AND_READER)));
}

/// A session overwrites a version and frees it with its next transaction, while another one reads.
fn a_version_is_freed_beside_a_reader(has_barrier: bool) {
    let stage = Stage::new();
    let record = stage.record::<SnapshotIsolation>(0);
    let mut session = stage.session::<SnapshotIsolation>();
    if !has_barrier {
        session.participant.plant_missing_barriers();
    }
    let reader = thread::spawn({
        let stage = stage.clone();
        move || {
            let mut tx = session.begin();
            let rows = [(); 2].map(|()| look(&mut tx, &stage, record).unwrap().1);
            assert!(rows[0] == rows[1] && rows[0] < 2, "{rows:?}");
        }
    });
    let mut session = stage.session::<SnapshotIsolation>();
    let mut tx = session.begin();
    let (found, _) = look(&mut tx, &stage, record).unwrap();
    tx.put_found(found, &[1], 8).unwrap();
    tx.end_by_commit().unwrap();
    stage.shared.keep_up_now();
    drop(session.begin());
    IS_FREED.fetch_or(session.garbage.is_empty(), std::sync::atomic::Ordering::Relaxed);
    reader.join().unwrap();
}

/// Of all runs: not one of the atomics that the model explores.
static IS_FREED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

#[test]
fn a_version_is_freed_when_nobody_reads_it_any_more() {
    explore(3, || a_version_is_freed_beside_a_reader(true));
    assert!(IS_FREED.load(std::sync::atomic::Ordering::Relaxed), "no run has freed anything");
}

#[test]
fn the_model_notices_a_reader_without_an_older_begin() {
    assert!(fails_without(Step::OlderBegin, || explore(3, || a_version_is_freed_beside_a_reader(true))));
}

#[test]
fn the_model_notices_a_reader_without_a_barrier() {
    assert!(fails(|| explore(3, || a_version_is_freed_beside_a_reader(false))));
}
