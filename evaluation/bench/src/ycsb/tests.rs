//! YCSB on small databases.

use super::*;
use crate::driver::{Aborts, Check, Interrupt, RunResult, Session, View, Workload};
use crate::tests::{assert_hold, check, database, run_for};
use ensilo::Engine;
use ensilo::variants::{Allocator, GlobalTid, NoGc, NoSnapshots, Silo, Simple};
use ensilo_baselines::KeyValue;

fn run_and_check(options: YcsbOptions) -> (RunResult, Vec<Check>) {
    run_and_check_on::<Silo>(options)
}

fn run_and_check_on<E: Engine>(options: YcsbOptions) -> (RunResult, Vec<Check>) {
    let workers = options.workers;
    let ycsb = Ycsb::<E>::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap();
    let result = run_for(&ycsb, workers, 80);
    let checks = check(&ycsb);
    (result, checks)
}

#[test]
fn the_records_show_what_was_committed() {
    for operations in [1, 7] {
        let options = YcsbOptions { operations, workers: 1, ..small("read=20,rmw=50,insert=30") };
        let ycsb: Ycsb = Ycsb::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap();
        let mut expected = vec![0; ycsb.transaction_types().len()];
        let mut session = ycsb.session(0);
        for _ in 0..300 {
            let outcome = session.run_one(0, &mut Aborts::default()).unwrap();
            expected[outcome.transaction] += u64::from(outcome.effects);
        }
        assert!(expected.iter().sum::<u64>() > 150);
        assert_eq!(ycsb.count_effects().unwrap(), expected);
    }
}

fn small(mix: &str) -> YcsbOptions {
    let mix: NamedMix = mix.parse().unwrap();
    YcsbOptions { records: 1_200, distribution: mix.distribution, mix, ..YcsbOptions::new(2) }
}

fn assert_passed(options: YcsbOptions) -> RunResult {
    let told = format!("{options:?}");
    let (result, checks) = run_and_check(options);
    assert!(result.measurements.committed() > 0, "{told}");
    assert_hold(&checks);
    result
}

#[test]
fn every_known_mix_leaves_the_records_whole() {
    for mix in ["a", "b", "c", "d", "e", "f", "silo", "silor"] {
        assert_passed(small(mix));
    }
}

#[test]
fn transactions_of_many_operations_leave_the_records_whole() {
    for mix in ["a", "d", "f", "read=20,update=20,rmw=20,insert=20,scan=20"] {
        let result = assert_passed(YcsbOptions { operations: 20, ..small(mix) });
        assert_eq!(result.measurements.types().len(), 2);
    }
}

#[test]
fn values_of_other_lengths_are_kept() {
    for value_bytes in [8, 13, 1_000] {
        assert_passed(YcsbOptions { value_bytes, ..small("silo") });
        assert_passed(YcsbOptions { value_bytes, operations: 4, ..small("a") });
    }
}

#[test]
fn contended_counters_add_up() {
    for operations in [1, 5] {
        let options = YcsbOptions { records: 10, operations, workers: 4, ..small("rmw=100") };
        let (result, checks) = run_and_check(options);
        assert!(result.measurements.committed() > 0);
        assert_eq!(
            checks.iter().map(|check| check.name).collect::<Vec<_>>(),
            ["record_count", "record_contents", "counter_sum"]
        );
        assert_hold(&checks);
    }
}

/// The names of the checks that a contended run of inserts and read-modify-writes on the protocol has passed.
fn checks_passed<E: Engine>(workers: usize) -> Vec<&'static str> {
    let options = YcsbOptions { records: 20, workers, ..small("read=30,rmw=60,insert=10") };
    let (result, checks) = run_and_check_on::<E>(options);
    assert!(result.measurements.committed() > 0);
    assert_hold(&checks);
    checks.iter().map(|check| check.name).collect()
}

#[test]
fn the_systems_that_silo_is_compared_with_leave_the_records_whole() {
    let of_transactions = ["record_count", "record_contents", "counter_sum"];
    assert_eq!(checks_passed::<Silo<GlobalTid>>(4), of_transactions);
    assert_eq!(checks_passed::<Silo<NoSnapshots>>(4), of_transactions);
    assert_eq!(checks_passed::<Silo<Simple>>(4), of_transactions);
    assert_eq!(checks_passed::<Silo<Allocator>>(4), of_transactions);
    assert_eq!(checks_passed::<Silo<NoGc>>(4), of_transactions);
    assert_eq!(checks_passed::<KeyValue>(4), ["record_count", "record_contents", "counter_bound"]);
}

#[test]
fn gets_and_puts_of_one_worker_lose_nothing() {
    let options = YcsbOptions { records: 50, workers: 1, ..small("read=20,rmw=70,insert=10") };
    let ycsb = Ycsb::<KeyValue>::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap();
    let mut expected = vec![0; ycsb.transaction_types().len()];
    let mut session = ycsb.session(0);
    for _ in 0..1_000 {
        let outcome = session.run_one(0, &mut Aborts::default()).unwrap();
        expected[outcome.transaction] += u64::from(outcome.effects);
    }
    assert_eq!(ycsb.count_effects().unwrap(), expected);
}

/// The names of the checks that a run on an engine has passed, with and without batches, sessions, tables and indexes.
fn shapes_hold<E: Engine>() {
    let mix = "read=30,update=20,rmw=20,insert=20,scan=10";
    for (tables, indexes, sessions, batch) in [
        (7, None, Some(5), None),
        (1, Some(0), None, Some(3)),
        (1, Some(INDEXES_MAX), Some(2), Some(32)),
        (3, Some(2), None, None),
    ] {
        let options = YcsbOptions { tables, indexes, sessions, batch, ..small(mix) };
        let told = format!("{options:?}");
        let (result, checks) = run_and_check_on::<E>(options);
        assert!(result.measurements.committed() > 0, "{told}");
        assert_hold(&checks);
        let has_index_check = checks.iter().any(|check| check.name == "index_entries");
        assert_eq!(has_index_check, indexes.is_some_and(|indexes| indexes > 0), "{told}");
    }
}

#[test]
fn tables_indexes_sessions_and_batches_leave_the_records_whole_on_every_engine() {
    shapes_hold::<Silo>();
    shapes_hold::<ensilo::ermia::Ermia>();
    shapes_hold::<ensilo::two_phase_locking::TwoPhaseLocking>();
}

#[test]
fn records_are_spread_over_the_tables() {
    let options = YcsbOptions { tables: 4, ..small("silo") };
    let ycsb = Ycsb::<Silo>::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap();
    let tables = ycsb.database().unwrap().statistics().unwrap().tables;
    let counts: Vec<_> = tables.iter().map(|table| (table.name.as_str(), table.records)).collect();
    assert_eq!(counts, ["usertable", "usertable_1", "usertable_2", "usertable_3"].map(|name| (name, 300)));
}

#[test]
fn a_batch_counts_each_transaction_and_its_conflicts() {
    let options = YcsbOptions { records: 10, batch: Some(50), workers: 4, ..small("rmw=100") };
    let (result, checks) = run_and_check(options);
    assert_eq!(result.measurements.committed() % 50, 0);
    assert_hold(&checks);
    assert!(checks.iter().any(|check| check.name == "counter_sum"));
}

#[test]
fn an_index_with_too_few_entries_or_too_many_is_found() {
    let options = YcsbOptions { indexes: Some(2), ..small("silo") };
    let table = table::YcsbTable::<record::RecordIndexed, Silo>::load(
        options,
        database(),
        &mut View::silent(),
        &Interrupt::new(),
    );
    let table = table.unwrap();
    crate::database::make_fresh_snapshot(&table.database).unwrap();
    let violated = |records| check::index_check(&table, records).unwrap().unwrap().violated;
    assert_eq!([1_199, 1_200, 1_201].map(violated), [2, 0, 2]);
}
