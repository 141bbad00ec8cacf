//! TPC-C on PostgreSQL: what is loaded is there, all conditions hold after a run, and the check says what was lost.
//!
//! Tested only where `ENSILO_TEST_POSTGRES` has the address of a server, such as `host=/run/postgresql user=postgres dbname=test`; without
//! it these tests pass and say so.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ensilo::Database;
use ensilo_bench::driver::{AbortKind, Aborts, Interrupt, RunOptions, Session, View, Workload, run};
use ensilo_bench::peer::Setting;
use ensilo_bench::tpcc::{Scale, Tpcc, TpccOptions, parse_mix};
use ensilo_peers::workload::{LoadedRows, PeerTpcc, RelationalTpcc};
use postgres::{Client, NoTls};

/// One test at a time: there is one schema for all.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `test` with the address of a server, if there is one.
fn on_postgres(test: impl FnOnce(&str)) {
    let Ok(address) = std::env::var("ENSILO_TEST_POSTGRES") else {
        return eprintln!("not tested: ENSILO_TEST_POSTGRES is not set");
    };
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test(&address);
}

fn options(workers: usize) -> TpccOptions {
    TpccOptions { warehouses: 2, scale: Scale { items: 200, customers: 30 }, ..TpccOptions::new(workers) }
}

fn rows_of(options: &TpccOptions) -> LoadedRows {
    LoadedRows::new(options, &mut View::silent(), &Interrupt::new()).unwrap()
}

fn loaded(address: &str, options: TpccOptions) -> PeerTpcc<RelationalTpcc> {
    let rows = rows_of(&options);
    PeerTpcc::new(RelationalTpcc::load(address, Setting::NotSynced, &rows).unwrap(), options)
}

/// Lets clients run, and returns how often each transaction committed and how many orders were rolled back.
fn run_clients(tpcc: &PeerTpcc<RelationalTpcc>, workers: usize) -> (Vec<u64>, u64) {
    let measured = Duration::from_millis(600);
    let options = RunOptions { workers, warmup: measured / 10, measured, pin: false };
    let result = run(tpcc, &options, "run", &mut View::silent(), &Interrupt::new()).unwrap();
    let types = result.measurements.types();
    let rollbacks = result.measurements.aborts().of(AbortKind::Rollback);
    (types.iter().map(|of_type| of_type.committed).collect(), rollbacks)
}

/// The names of the checks that do not hold.
fn violated(tpcc: &PeerTpcc<RelationalTpcc>) -> Vec<&'static str> {
    let checks = tpcc.check(&mut View::silent(), &Interrupt::new()).unwrap();
    assert_eq!(checks.len(), 12 + 1, "the conditions of clause 3.3.2, and what was committed");
    checks.iter().filter(|check| !check.passed()).map(|check| check.name).collect()
}

/// Changes the database behind the back of the workload.
fn plant(address: &str, statements: &str) {
    let mut connection = Client::connect(address, NoTls).unwrap();
    connection.batch_execute(&format!("SET search_path = ensilo_compare; {statements}")).unwrap();
}

#[test]
fn postgresql_has_the_rows_that_were_loaded() {
    on_postgres(|address| {
        let rows = rows_of(&options(1));
        let tpcc = RelationalTpcc::load(address, Setting::NotSynced, &rows).unwrap();
        assert!(tpcc.rows().unwrap() == rows);
        plant(address, "UPDATE stock SET s_quantity = s_quantity + 1 WHERE s_w_id = 2 AND s_i_id = 7");
        assert!(tpcc.rows().unwrap() != rows);
    });
}

/// Runs the first transactions of one client, a millisecond apart.
fn run_first(workload: &impl Workload) -> Vec<bool> {
    let (mut session, mut aborts) = (workload.session(0), Aborts::default());
    let mut run = |at: i64| session.run_one(1_000 * at, &mut aborts).unwrap().committed;
    let committed = (0..2_000).map(&mut run).collect();
    session.finish();
    committed
}

#[test]
fn postgresql_makes_the_same_rows_of_the_same_input_as_ensilo() {
    on_postgres(|address| {
        // There are a thousand last names: with more customers, some have the same.
        let options = TpccOptions { scale: Scale { items: 200, customers: 1_500 }, ..options(1) };
        let database = Database::in_memory().unwrap();
        let own = Tpcc::load(options.clone(), database, &mut View::silent(), &Interrupt::new()).unwrap();
        let rows = LoadedRows::of(&own).unwrap();
        let tpcc = RelationalTpcc::load(address, Setting::NotSynced, &rows).unwrap();
        let tpcc = PeerTpcc::new(tpcc, options);
        assert_eq!(run_first(&tpcc), run_first(&own));
        let after = LoadedRows::of(&own).unwrap();
        assert!(after != rows);
        assert!(tpcc.peer().rows().unwrap() == after);
    });
}

#[test]
fn all_conditions_hold_after_clients_of_postgresql() {
    on_postgres(|address| {
        let tpcc = loaded(address, options(4));
        let (committed, _) = run_clients(&tpcc, 4);
        assert!(committed.iter().all(|&count| count > 0), "{committed:?}");
        assert_eq!(violated(&tpcc), [""; 0]);
    });
}

#[test]
fn orders_of_an_unused_item_are_rolled_back_by_postgresql() {
    on_postgres(|address| {
        let tpcc = loaded(address, TpccOptions { mix: parse_mix("new-order=100").unwrap(), ..options(1) });
        let (committed, rollbacks) = run_clients(&tpcc, 1);
        assert!(rollbacks > 0, "of {committed:?} none");
        assert_eq!(violated(&tpcc), [""; 0]);
    });
}

#[test]
fn a_lost_row_or_update_of_postgresql_is_noticed() {
    on_postgres(|address| {
        let tpcc = loaded(address, options(2));
        plant(
            address,
            "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN OLD; END';
             CREATE TRIGGER lost_update BEFORE UPDATE OF w_ytd ON warehouse FOR EACH ROW
                WHEN (random() < 0.5) EXECUTE FUNCTION lose()",
        );
        run_clients(&tpcc, 2);
        assert_eq!(violated(&tpcc), ["3.3.2.1", "3.3.2.8"]);
    });
    on_postgres(|address| {
        let tpcc = loaded(address, options(2));
        run_clients(&tpcc, 2);
        plant(address, "DELETE FROM history WHERE ctid = (SELECT max(ctid) FROM history)");
        assert_eq!(violated(&tpcc), ["3.3.2.8", "3.3.2.9", "3.3.2.10", "effects"]);
    });
}
