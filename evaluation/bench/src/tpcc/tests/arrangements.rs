//! The systems that Silo is compared with run the same transactions, and leave the database as consistent.

use ensilo::Engine;
use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};
use ensilo::variants::{Allocator, GlobalTid, NoGc, NoSnapshots, Silo, Simple};
use ensilo_baselines::PartitionedStore;
use ensilo_map_engine::MapEngine;

use super::super::arrangement::{Arrangement, FastIds, LockedPartitions, Split, Whole};
use super::super::loaded::TpccOf;
use super::super::options::{ReadOnly, TpccOptions, parse_mix};
use super::super::schema::Stock;
use super::runs::assert_consistent;
use super::small;
use crate::driver::{AbortKind, Aborts, Interrupt, Session, View, Workload};
use crate::mix::Share;
use crate::tests::{assert_hold, check, database, run_all_types, run_for};

/// A database of the arrangement, loaded, with a quarter of the items remote.
fn loaded<A: Arrangement>(options: TpccOptions) -> TpccOf<A> {
    let read_only = if A::Engine::SNAPSHOTS { ReadOnly::Snapshot } else { ReadOnly::Ordinary };
    let remote_items = Share::of_percent(25.0).unwrap();
    let options = TpccOptions { read_only, remote_items, ..options };
    TpccOf::load(options, database(), &mut View::silent(), &Interrupt::new()).unwrap()
}

/// Loads few warehouses and runs all types by several workers; every type commits and some new-orders are rolled back.
fn loaded_and_run<A: Arrangement>(options: TpccOptions) -> TpccOf<A> {
    let tpcc = loaded::<A>(options);
    run_all_types(&tpcc, tpcc.options.workers, 300, true);
    assert_eq!(check(&tpcc).len(), if A::HAS_FAST_IDS { 11 } else { 12 });
    tpcc
}

#[test]
fn variants_of_silo_leave_the_database_consistent() {
    assert_consistent(&check(&loaded_and_run::<Whole<Silo<GlobalTid>>>(small(2, 3))));
    assert_consistent(&check(&loaded_and_run::<Whole<Silo<NoSnapshots>>>(small(2, 3))));
    assert_consistent(&check(&loaded_and_run::<Whole<Silo<Simple>>>(small(2, 3))));
    assert_consistent(&check(&loaded_and_run::<Whole<Silo<Allocator>>>(small(2, 3))));
    assert_consistent(&check(&loaded_and_run::<Whole<Silo<NoGc>>>(small(2, 3))));
}

/// An engine that is none of ours: what the workload and the tables do is their own doing.
#[test]
fn another_engine_leaves_the_database_consistent() {
    assert_consistent(&check(&loaded_and_run::<Whole<MapEngine>>(small(1, 1))));
    assert_consistent(&check(&loaded_and_run::<Whole<MapEngine>>(small(2, 2))));
}

#[test]
fn two_phase_locking_leaves_the_database_consistent() {
    assert_consistent(&check(&loaded_and_run::<Whole<TwoPhaseLocking>>(small(2, 3))));
    assert_consistent(&check(&loaded_and_run::<Whole<TwoPhaseLocking<NoWait>>>(small(2, 3))));
}

#[test]
fn split_tables_leave_the_database_consistent() {
    for partitions in [1, 2, 3] {
        let tpcc = loaded_and_run::<Split>(TpccOptions { partitions: Some(partitions), ..small(3, 3) });
        assert_consistent(&check(&tpcc));
        assert_eq!(tpcc.tables.sets().len(), usize::from(partitions));
    }
}

#[test]
fn partitions_under_their_locks_leave_the_database_consistent() {
    for partitions in [1, 2, 3] {
        let tpcc =
            loaded_and_run::<LockedPartitions>(TpccOptions { partitions: Some(partitions), ..small(3, 4) });
        assert_consistent(&check(&tpcc));
        let aborts = run_for(&tpcc, tpcc.options.workers, 100).measurements.aborts();
        assert_eq!(aborts.total(), aborts.of(AbortKind::Rollback), "nothing but planned rollbacks aborts");
    }
}

/// The arrangement of partitions without its locks: a mistake that the conditions have to show.
#[derive(Debug)]
struct Unlocked(Split<PartitionedStore>);

impl Arrangement for Unlocked {
    type Engine = PartitionedStore;
    type Locks<'a> = ();

    const IS_SPLIT: bool = true;

    fn create(
        database: &ensilo::generic::Database<PartitionedStore>,
        options: &TpccOptions,
    ) -> ensilo::Result<Self> {
        Split::create(database, options).map(Self)
    }

    fn of(&self, warehouse: u16) -> &super::super::tables::Tables<PartitionedStore> {
        self.0.of(warehouse)
    }

    fn sets(&self) -> &[super::super::tables::Tables<PartitionedStore>] {
        self.0.sets()
    }

    fn lock(&self, _warehouses: impl Iterator<Item = u16>) {}
}

#[test]
fn partitions_without_their_locks_do_not() {
    const RUNS_MAX: usize = 20;
    let is_noticed = (0..RUNS_MAX).any(|_| {
        // Payments alone: two that meet in a warehouse lose the amount of one.
        let mix = parse_mix("payment=100").unwrap();
        let tpcc = loaded::<Unlocked>(TpccOptions { mix, ..small(1, 4) });
        run_for(&tpcc, tpcc.options.workers, 100);
        check(&tpcc).iter().any(|check| !check.passed())
    });
    assert!(is_noticed, "not in {RUNS_MAX} runs");
}

#[test]
fn orders_with_ids_from_outside_have_gaps_and_no_conflicts_over_them() {
    let tpcc = loaded_and_run::<FastIds>(small(2, 3));
    assert_hold(&check(&tpcc));
    let district = tpcc.database.transact(|tx| tpcc.tables.of(1).districts.get(tx, (1, 1))).unwrap().unwrap();
    assert_eq!(district.d_next_o_id, 31, "nobody counts in the district");
    // Every number was given to one order at most, which the primary key sees to; rolled back ones are missing.
    let orders = |place: (u16, u8)| {
        let orders = &tpcc.tables.of(place.0).orders;
        tpcc.database.transact(|tx| orders.prefix(place).rows(tx)).unwrap().len()
    };
    let places = || (1..=2).flat_map(|warehouse| (1..=10).map(move |district| (warehouse, district)));
    let taken: usize = places().map(orders).sum();
    let given: u32 = places().map(|place| tpcc.tables.next_order(place.0, place.1) - 1).sum();
    assert!((taken as u32) < given && taken as u32 > given / 2, "{taken} of {given}");
}

#[test]
fn effects_are_counted_whatever_the_arrangement() {
    fn effects<A: Arrangement>() {
        let tpcc = loaded::<A>(small(2, 1));
        assert_eq!(tpcc.count_effects().unwrap(), [0; 5]);
        let mut expected = [0; 5];
        let mut session = tpcc.session(0);
        for _ in 0..300 {
            let outcome = session.run_one(1_700_000_000_000_000, &mut Aborts::default()).unwrap();
            expected[outcome.transaction] += u64::from(outcome.effects);
        }
        assert_eq!(tpcc.count_effects().unwrap(), expected);
    }
    effects::<Split>();
    effects::<LockedPartitions>();
    effects::<FastIds>();
}

#[test]
fn remote_items_come_from_the_tables_of_their_warehouse() {
    let mix = parse_mix("new-order=100").unwrap();
    let tpcc = loaded::<LockedPartitions>(TpccOptions { mix, ..small(3, 1) });
    let mut session = tpcc.session(0);
    for _ in 0..100 {
        session.run_one(1_700_000_000_000_000, &mut Aborts::default()).unwrap();
    }
    drop(session);
    for warehouse in 1..=3 {
        let stocks = tpcc.database.transact(|tx| tpcc.tables.of(warehouse).stocks.scan().rows(tx)).unwrap();
        assert!(stocks.iter().all(|stock: &Stock| stock.s_w_id == warehouse) && stocks.len() == 200);
        assert!(
            stocks.iter().any(|stock| stock.s_remote_cnt > 0),
            "none of warehouse {warehouse} was sold elsewhere"
        );
    }
}
