//! Every database keeps what it was given, and the check would say if it did not.

#![allow(clippy::unwrap_used, reason = "tests")]

mod faulty;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ensilo_bench::driver::{Failure, Interrupt, RunOptions, View, Workload, run};
use ensilo_bench::peer::{Peer, Setting};
use ensilo_bench::tpcc::Scale;
use ensilo_bench::transfer::{Skew, Transfers};
use ensilo_bench::ycsb::YcsbOptions;
use ensilo_figures::compare::PeerRun;
use ensilo_peers::engine::{KeyValue, OrderedTable, Postgres};
use ensilo_peers::workload::Records;
use ensilo_peers::{CompareOptions, PeerName, WorkloadName, compare};

use faulty::{Fault, Faulty};

const SHORT: Duration = Duration::from_millis(100);

/// The environment variable that has the address of a PostgreSQL server, such as `host=/run/postgresql user=postgres dbname=test`. What
/// is about PostgreSQL is tested only where it is set; without it those tests pass and say so.
const POSTGRES: &str = "ENSILO_TEST_POSTGRES";

/// PostgreSQL is asked by one test at a time: it has one schema for all.
static POSTGRES_TURN: Mutex<()> = Mutex::new(());

/// The address of PostgreSQL, if there is one, and the right to use it.
fn postgres() -> Option<(String, MutexGuard<'static, ()>)> {
    let Ok(address) = std::env::var(POSTGRES) else {
        eprintln!("not tested: {POSTGRES} is not set");
        return None;
    };
    Some((address, POSTGRES_TURN.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Every workload at every setting.
fn options(peer: PeerName) -> CompareOptions {
    CompareOptions {
        peers: vec![peer],
        workloads: WorkloadName::ALL.to_vec(),
        settings: vec![Setting::NotSynced, Setting::Synced],
        workers: vec![1, 3],
        synced_workers: vec![3],
        records: 2_000,
        accounts: 100,
        warehouses: 2,
        tpcc_scale: Scale { items: 200, customers: 30 },
        measured: 3 * SHORT,
        warmup: SHORT / 10,
        runs: 1,
        directory: None,
        postgres: std::env::var(POSTGRES).ok(),
        seed: 1,
    }
}

fn keeps_what_it_is_given(peer: PeerName) {
    let options = options(peer);
    let mut runs = Vec::new();
    let keep = |run| {
        runs.push(run);
        Ok(())
    };
    compare(&options, &mut View::silent(), &Interrupt::new(), keep).unwrap();
    assert_eq!(runs.len(), options.run_count());
    for run in runs {
        assert!(run.committed > 0 && run.checks >= 2 && run.checks_failed == 0, "{run:?}");
    }
}

#[test]
fn ensilo_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::Ensilo);
}

#[test]
fn ensilo_on_ermias_engine_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::EnsiloErmia);
    keeps_what_it_is_given(PeerName::EnsiloErmiaSnapshot);
}

#[test]
fn ensilo_with_two_phase_locking_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::EnsiloTwoPhaseLocking);
    keeps_what_it_is_given(PeerName::EnsiloTwoPhaseLockingNoWait);
}

/// A transaction that waits for no disk is answered within a few microseconds, and no disk syncs so fast.
const LEAST_MEDIAN_US: f64 = 20.0;

#[test]
fn synced_answers_of_ensilo_wait_for_the_disk() {
    let options = CompareOptions {
        workloads: vec![WorkloadName::TransferUniform, WorkloadName::Tpcc],
        settings: vec![Setting::Synced],
        ..options(PeerName::Ensilo)
    };
    let keep = |run: PeerRun| {
        assert!(run.latency_us_p50 > LEAST_MEDIAN_US, "{run:?}");
        Ok(())
    };
    compare(&options, &mut View::silent(), &Interrupt::new(), keep).unwrap();
}

#[test]
fn sqlite_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::Sqlite);
}

#[test]
fn lmdb_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::Lmdb);
}

#[test]
fn redb_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::Redb);
}

#[test]
fn fjall_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::Fjall);
}

#[cfg(feature = "rocksdb")]
#[test]
fn rocksdb_keeps_what_it_is_given() {
    keeps_what_it_is_given(PeerName::Rocksdb);
}

#[cfg(not(feature = "rocksdb"))]
#[test]
fn rocksdb_is_refused_where_it_was_not_built() {
    let failure = compare(&options(PeerName::Rocksdb), &mut View::silent(), &Interrupt::new(), |_| Ok(()));
    assert!(matches!(failure, Err(Failure::Refused(_))));
}

#[test]
fn postgresql_keeps_what_it_is_given() {
    if let Some((_, _turn)) = postgres() {
        keeps_what_it_is_given(PeerName::Postgresql);
    }
}

#[test]
fn a_schema_of_somebody_else_is_left_alone() {
    let Some((address, _turn)) = postgres() else { return };
    let first = Postgres::open(&address, Setting::NotSynced).unwrap();
    first.load_accounts(3).unwrap();
    assert!(matches!(Postgres::open(&address, Setting::NotSynced), Err(Failure::Refused(_))));
    let mut accounts = 0;
    first.for_each_account(|_| accounts += 1).unwrap();
    assert_eq!(accounts, 3);
    drop(first);
    let next = Postgres::open(&address, Setting::NotSynced).unwrap();
    next.for_each_account(|account| panic!("{account:?} outlived its schema")).unwrap();
}

#[test]
fn postgresql_without_an_address_is_refused() {
    let options = CompareOptions { postgres: None, ..options(PeerName::Postgresql) };
    let failure = compare(&options, &mut View::silent(), &Interrupt::new(), |_| Ok(()));
    assert!(matches!(failure, Err(Failure::Refused(_))));
}

/// The names of the checks that do not hold after a run.
fn violated(workload: &impl Workload) -> Vec<&'static str> {
    let options = RunOptions { workers: 2, warmup: SHORT / 10, measured: SHORT, pin: false };
    let (mut view, interrupt) = (View::silent(), Interrupt::new());
    let result = run(workload, &options, "run", &mut view, &interrupt).unwrap();
    assert!(result.measurements.committed() > 1_000, "too few for the fault to be planted");
    let checks = workload.check(&mut view, &interrupt).unwrap();
    checks.iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

#[test]
fn a_lost_update_of_an_account_is_noticed() {
    let violated_with = |fault| {
        let peer = KeyValue::from(Faulty::with(fault));
        violated(&Transfers::load(peer, 100, Skew::Uniform, 1).unwrap())
    };
    assert_eq!(violated_with(Fault::None), [""; 0]);
    assert_eq!(violated_with(Fault::LostPut(OrderedTable::Accounts)), ["balance_sum", "update_sum"]);
    assert_eq!(violated_with(Fault::LostTransaction), ["update_sum"]);
}

#[test]
fn a_lost_or_torn_update_of_a_record_is_noticed() {
    let violated_with = |fault| {
        let peer = KeyValue::from(Faulty::with(fault));
        let options = YcsbOptions { records: 10, mix: "rmw=100".parse().unwrap(), ..YcsbOptions::new(2) };
        violated(&Records::load(peer, options).unwrap())
    };
    assert_eq!(violated_with(Fault::None), [""; 0]);
    assert_eq!(violated_with(Fault::LostPut(OrderedTable::Records)), ["counter_sum"]);
}

#[test]
fn a_torn_record_is_noticed() {
    let peer = KeyValue::from(Faulty::with(Fault::TornPut(OrderedTable::Records)));
    // So many records that hardly one is written again after it was torn.
    let options = YcsbOptions { records: 1 << 20, mix: "silo".parse().unwrap(), ..YcsbOptions::new(2) };
    let torn = Records::load(peer, options).unwrap();
    assert!(violated(&torn).contains(&"record_contents"));
}

#[test]
fn what_is_not_compared_is_refused() {
    for mix in ["e", "d", "insert=100"] {
        let peer = KeyValue::from(Faulty::with(Fault::None));
        let options = YcsbOptions { mix: mix.parse().unwrap(), ..YcsbOptions::new(1) };
        assert!(matches!(Records::load(peer, options), Err(Failure::Refused(_))), "{mix}");
    }
}
