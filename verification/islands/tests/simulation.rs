//! The protocol holds through many seeds, and the judge finds every mistake that is built in.

use ensilo_islands::CommitUnit;
use ensilo_islands_simulation::{
    Failure, Fault, Tally, all_are_tried_until_they_commit, one_waits_behind_another,
    reader_ends_before_the_decision, simulate, two_wait_for_each_other,
};

/// How many seeds are tried for a mistake to be found.
const SEEDS_MAX: u64 = 20_000;

#[test]
fn whatever_is_lost_and_whoever_dies_transactions_happen_everywhere_or_nowhere_and_in_an_order() {
    for unit in CommitUnit::all() {
        let mut tally = Tally::default();
        for seed in 0..4000 {
            tally += simulate(seed, unit, None).unwrap_or_else(|failure| {
                panic!("{unit}: {failure}\nAgain: cargo xtask simulate --first {seed} --seeds 1")
            });
        }
        assert!(
            tally.distributed > 10_000 && tally.crashes > 1000 && tally.aborted > 10_000,
            "{unit}: {tally:?}"
        );
    }
}

#[test]
fn every_mistake_is_found() {
    let of_transactions = Fault::of_transactions().map(|fault| (CommitUnit::Transaction, fault));
    let of_epochs = Fault::of_epochs().map(|fault| (CommitUnit::Epoch, fault));
    for (unit, fault) in of_transactions.into_iter().chain(of_epochs) {
        let found = (0..SEEDS_MAX).find_map(|seed| simulate(seed, unit, Some(fault)).err());
        let failure = found.unwrap_or_else(|| panic!("{unit}: {fault:?} is not found"));
        let is_of_order = matches!(failure, Failure::NotSerializable(_));
        let breaks_order =
            matches!(fault, Fault::UnprotectedReads | Fault::ReadersOut | Fault::OwnReadsUnvalidated);
        assert!(is_of_order || !breaks_order, "{unit}, {fault:?}: {failure}");
    }
}

#[test]
fn of_two_that_wait_for_each_other_the_older_one_commits() {
    two_wait_for_each_other().unwrap();
}

#[test]
fn who_waits_behind_another_gives_up_as_well() {
    one_waits_behind_another().unwrap();
}

#[test]
fn nobody_is_passed_over_for_ever() {
    for seed in 0..1000 {
        all_are_tried_until_they_commit(seed).unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
    }
}

/// It takes too many steps for random runs to meet it.
#[test]
fn a_reader_that_comes_back_before_the_decision_leaves_an_order() {
    assert_eq!(reader_ends_before_the_decision(None), Ok(()));
    let failure = reader_ends_before_the_decision(Some(Fault::EndUntold));
    assert!(matches!(failure, Err(Failure::NotSerializable(_))), "{failure:?}");
}
