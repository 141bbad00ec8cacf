//! The serial safety net: of transactions that commit side by side none closes a cycle.

use std::collections::BTreeSet;

use super::records::{Op, Program, outcomes, outcomes_behind};
use super::{fails, fails_without};
use crate::isolation::{Fault, Isolation, Serializable, SnapshotIsolation};
use crate::planted::Step;

level!(NoWindow, Some(Fault::SkipWindow), "Without the exclusion window.");
level!(NoReaders, Some(Fault::ForgetReaders), "Without the stamps of readers.");

/// Each reads what the other one writes.
const WRITE_SKEW: &[Program] =
    &[Program::Commits(&[Op::Read(0), Op::Write(1)]), Program::Commits(&[Op::Read(1), Op::Write(0)])];

fn write_skew<I: Isolation>() -> BTreeSet<Vec<bool>> {
    outcomes::<I>(3, 2, WRITE_SKEW)
}

#[test]
fn of_two_that_read_what_the_other_writes_one_commits_or_they_follow_each_other() {
    let all = [vec![true, true], vec![true, false], vec![false, true]];
    assert_eq!(write_skew::<Serializable>(), all.into());
}

#[test]
fn the_model_finds_write_skew_under_snapshot_isolation() {
    assert!(fails(|| _ = write_skew::<SnapshotIsolation>()));
}

#[test]
fn the_model_notices_a_commit_without_the_exclusion_window() {
    assert!(fails(|| _ = write_skew::<NoWindow>()));
}

#[test]
fn the_model_notices_readers_that_leave_no_stamp() {
    assert!(fails(|| _ = write_skew::<NoReaders>()));
}

#[test]
fn the_model_notices_a_commit_that_does_not_wait_for_those_who_overwrite() {
    assert!(fails_without(Step::WaitForOverwriters, || _ = write_skew::<Serializable>()));
}

/// The same, where both check what they have read before they write.
const CHECKED_WRITE_SKEW: &[Program] = &[
    Program::Commits(&[Op::Read(0), Op::Check, Op::Write(1)]),
    Program::Commits(&[Op::Read(1), Op::Check, Op::Write(0)]),
];

#[test]
fn checks_of_what_was_read_wait_for_nobody_in_vain() {
    let seen = outcomes_behind::<Serializable>(0..1, 2, 2, CHECKED_WRITE_SKEW);
    assert!(seen.contains(&vec![true, true]) && !seen.contains(&vec![false, false]), "{seen:?}");
}

/// Fekete, O'Neil, O'Neil (2004): a withdrawal has not seen a deposit that commits before it; a statement sees the deposit alone.
const STATEMENT: &[Program] = &[
    Program::Commits(&[Op::Read(0), Op::Read(1)]),
    Program::CommitsAround(&[Op::Read(0)], &[Op::Write(0)], &[Op::Write(1)]),
];

/// The statement comes behind the deposit.
fn statement<I: Isolation>() -> BTreeSet<Vec<bool>> {
    outcomes_behind::<I>(1..2, 3, 2, STATEMENT)
}

#[test]
fn a_statement_between_a_deposit_and_a_withdrawal_costs_the_withdrawal_or_itself() {
    let seen = statement::<Serializable>();
    // The statement, the deposit, the withdrawal.
    let all = [vec![true, true, true], vec![true, true, false], vec![false, true, true]];
    assert_eq!(seen, all.into());
}

#[test]
fn the_model_finds_the_read_only_anomaly_under_snapshot_isolation() {
    assert!(fails(|| _ = statement::<SnapshotIsolation>()));
}

#[test]
fn the_model_notices_a_statement_that_leaves_no_stamp() {
    assert!(fails(|| _ = statement::<NoReaders>()));
}

#[test]
fn the_model_notices_a_withdrawal_that_does_not_wait_for_statements() {
    assert!(fails_without(Step::WaitForReaders, || _ = statement::<Serializable>()));
}

/// The same with a safe snapshot, which leaves no stamps anywhere.
const SNAPSHOT: &[Program] =
    &[Program::Snapshot(&[0, 1]), Program::CommitsAround(&[Op::Read(0)], &[Op::Write(0)], &[Op::Write(1)])];

fn snapshot<I: Isolation>() -> BTreeSet<Vec<bool>> {
    outcomes::<I>(2, 2, SNAPSHOT)
}

#[test]
fn a_safe_snapshot_between_a_deposit_and_a_withdrawal_costs_the_withdrawal() {
    assert_eq!(snapshot::<Serializable>(), [vec![true, true, true], vec![true, true, false]].into());
}

#[test]
fn the_model_finds_the_read_only_anomaly_of_a_snapshot_under_snapshot_isolation() {
    assert!(fails(|| _ = snapshot::<SnapshotIsolation>()));
}

#[test]
fn the_model_notices_a_snapshot_that_comes_unannounced() {
    assert!(fails_without(Step::PendingSnapshot, || _ = snapshot::<Serializable>()));
}

/// The read-only anomaly by three that run side by side from the beginning.
const THREE: &[Program] = &[
    Program::Commits(&[Op::Write(0)]),
    Program::Commits(&[Op::Read(0), Op::Write(1)]),
    Program::Commits(&[Op::Read(0), Op::Read(1)]),
];

#[test]
fn three_side_by_side_close_no_cycle_by_one_that_only_reads() {
    let seen = outcomes_behind::<Serializable>(2..3, 1, 2, THREE);
    assert!(seen.contains(&vec![true, true, true]), "{seen:?}");
    assert!(seen.iter().all(|outcome| outcome[0]), "a deposit has nobody in its way: {seen:?}");
}

/// Each reads what the next one writes.
const RING: &[Program] = &[
    Program::Commits(&[Op::Read(0), Op::Write(1)]),
    Program::Commits(&[Op::Read(1), Op::Write(2)]),
    Program::Commits(&[Op::Read(2), Op::Write(0)]),
];

#[test]
fn three_side_by_side_close_no_ring() {
    let seen = outcomes::<Serializable>(0, 3, RING);
    assert!(seen.contains(&vec![true, true, true]) && !seen.contains(&vec![false; 3]), "{seen:?}");
}

#[test]
fn the_model_finds_a_ring_without_the_exclusion_window() {
    assert!(fails(|| _ = outcomes::<NoWindow>(0, 3, RING)));
}
