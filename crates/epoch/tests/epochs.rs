//! What epochs promise, one tick at a time.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::Layout;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo_epoch::{Advance, Epoch, EpochOptions, Epochs, Guard, OpenSnapshots, Participant};
use ensilo_slab::{AccountId, Pool};

const K: u64 = 5;
const FIRST: u64 = 4 * K;
const NODES: AccountId = AccountId(1);

fn epochs() -> Arc<Epochs> {
    let options =
        EpochOptions { epochs_per_snapshot: K, advance: Advance::Manual, ..EpochOptions::default() };
    Epochs::new(options, Pool::new(None))
}

fn layout() -> Layout {
    Layout::from_size_align(320, 64).unwrap()
}

/// Allocates a block and retires it at once, as if it had been unlinked.
fn retire_one(guard: &Guard<'_>) {
    let block = guard.allocate(layout(), NODES).unwrap();
    // SAFETY: nobody else ever knew the block.
    unsafe { guard.retire(block, layout(), NODES) };
}

fn advance_by(epochs: &Epochs, ticks: u64) {
    for _ in 0..ticks {
        epochs.advance();
    }
}

fn live_bytes(epochs: &Epochs) -> u64 {
    epochs.pool().usage().of(NODES)
}

/// Ticks until `participant` could free everything that is retired now.
fn ticks_until_freed(epochs: &Epochs, participant: &Participant) -> u64 {
    for ticks in 0..10 {
        participant.collect(usize::MAX);
        if epochs.counters().retired_objects == 0 {
            return ticks;
        }
        epochs.advance();
    }
    panic!("the memory was never freed: {:?}", epochs.counters());
}

#[test]
fn time_begins_at_a_snapshot_boundary() {
    let epochs = epochs();
    assert_eq!(epochs.global_epoch(), Epoch::new(FIRST));
    assert_eq!(epochs.snapshot_epoch(), Epoch::new(FIRST));
    assert_eq!(epochs.snapshot_horizon(), Epoch::new(FIRST));
    assert_eq!(epochs.memory_horizon(), Epoch::new(FIRST - 1));
    assert_eq!(epochs.snapshot_of(Epoch::new(FIRST + K + 1)), Epoch::new(FIRST + K));
}

#[test]
fn snapshots_come_every_k_epochs_and_their_horizon_two_ticks_later() {
    let epochs = epochs();
    let _idle = epochs.participant();
    for epoch in FIRST + 1..FIRST + 4 * K {
        epochs.advance();
        assert_eq!(epochs.global_epoch(), Epoch::new(epoch));
        assert_eq!(epochs.snapshot_epoch(), Epoch::new(epoch / K * K));
        assert_eq!(epochs.oldest_snapshot(), Epoch::new((epoch - 1) / K * K));
        assert_eq!(epochs.snapshot_horizon(), Epoch::new((epoch - 2).max(FIRST) / K * K));
        assert_eq!(epochs.memory_horizon(), Epoch::new(epoch - 1));
    }
    assert_eq!(epochs.counters().epochs_advanced, 4 * K - 1);
}

#[test]
fn a_sleeper_that_is_pinned_holds_back_memory_alone() {
    let epochs = epochs();
    let (sleeper, worker) = (epochs.participant(), epochs.participant());
    let asleep = sleeper.pin();
    retire_one(&worker.pin());
    advance_by(&epochs, 2 * K);
    assert_eq!(epochs.global_epoch(), Epoch::new(FIRST + 2 * K));
    assert_eq!(epochs.snapshot_epoch(), Epoch::new(FIRST + 2 * K));
    assert_eq!(epochs.memory_horizon(), Epoch::new(FIRST - 1));
    assert_eq!(epochs.counters().oldest_pin, Some(Epoch::new(FIRST)));
    assert_eq!((worker.collect(usize::MAX), live_bytes(&epochs)), (0, 320));
    drop(asleep);
    assert_eq!(ticks_until_freed(&epochs, &worker), 1);
    assert_eq!(live_bytes(&epochs), 0);
}

#[test]
fn a_sleeper_that_commits_holds_back_snapshots_alone() {
    let epochs = epochs();
    let (sleeper, worker) = (epochs.participant(), epochs.participant());
    advance_by(&epochs, K + 2);
    sleeper.begin_commit();
    retire_one(&worker.pin());
    advance_by(&epochs, 3 * K);
    assert_eq!(epochs.global_epoch(), Epoch::new(FIRST + 4 * K + 2));
    assert_eq!(epochs.snapshot_epoch(), Epoch::new(FIRST + K));
    assert_eq!(epochs.counters().oldest_commit, Some(Epoch::new(FIRST + K + 2)));
    assert_eq!(ticks_until_freed(&epochs, &worker), 0, "memory goes on");
    sleeper.end_commit();
    epochs.advance();
    assert_eq!(epochs.snapshot_epoch(), Epoch::new(FIRST + 4 * K));
    assert_eq!(epochs.counters().oldest_commit, None);
}

#[test]
fn a_long_snapshot_holds_back_the_snapshot_horizon_until_it_ends() {
    let epochs = epochs();
    let (reader, later) = (epochs.participant(), epochs.participant());
    let (long, epoch) = reader.pin_snapshot();
    assert_eq!(epoch, Epoch::new(FIRST));
    advance_by(&epochs, 3 * K);
    let (short, now) = later.pin_snapshot();
    assert_eq!((now, epochs.snapshot_horizon()), (Epoch::new(FIRST + 3 * K), epoch));
    assert_eq!(epochs.counters().oldest_snapshot, Some(epoch));
    drop(long);
    advance_by(&epochs, 2 * K);
    assert_eq!(epochs.snapshot_horizon(), now, "the other one still reads");
    drop(short);
    advance_by(&epochs, 2);
    assert_eq!(epochs.snapshot_horizon(), epochs.snapshot_epoch());
}

#[test]
fn a_commit_holds_the_snapshot_horizon_where_it_may_have_read_the_oldest_snapshot() {
    let epochs = epochs();
    let committer = epochs.participant();
    advance_by(&epochs, K - 1);
    committer.begin_commit();
    let oldest = epochs.oldest_snapshot();
    advance_by(&epochs, 5 * K);
    assert_eq!(epochs.snapshot_horizon(), oldest);
    committer.end_commit();
    advance_by(&epochs, 3);
    assert_eq!(epochs.snapshot_horizon(), Epoch::new(FIRST + 6 * K));
}

#[test]
fn a_snapshot_counts_as_overtaken_once_the_snapshot_epoch_has_moved_on_twice() {
    let epochs = epochs();
    let reader = epochs.participant();
    let mut known = OpenSnapshots::default();
    let (snapshot, epoch) = reader.pin_snapshot();
    for (ticks, is_overtaken) in [(K, false), (K - 1, false), (2, true)] {
        advance_by(&epochs, ticks);
        assert_eq!(epochs.has_overtaken_snapshots(&mut known), is_overtaken, "{}", epochs.global_epoch());
    }
    assert!(known.may_show(Epoch::new(epoch.get() - 1), epoch) && !known.may_show(epoch, epoch));
    drop(snapshot);
    advance_by(&epochs, 1);
    assert!(!epochs.has_overtaken_snapshots(&mut known));
}

#[test]
fn by_the_clock_nobody_needs_what_lies_between_snapshots_however_many_epochs_go_by() {
    let options = EpochOptions {
        epochs_per_snapshot: K,
        snapshot_interval: Some(Duration::from_secs(3600)),
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let epochs = Epochs::new(options, Pool::new(None));
    let reader = epochs.participant();
    let mut known = OpenSnapshots::default();
    let (_long, oldest) = reader.pin_snapshot();
    for _ in 0..2 {
        epochs.take_snapshot(Instant::now());
    }
    let newest = epochs.snapshot_epoch();
    advance_by(&epochs, 100 * K);
    assert_eq!(epochs.snapshot_epoch(), newest, "it was not time for another");
    assert!(epochs.has_overtaken_snapshots(&mut known));
    let behind = |epoch: Epoch, epochs: u64| Epoch::new(epoch.get() + epochs);
    for (created, superseded, may_show) in [
        (oldest, newest, true),
        (oldest, behind(newest, 99 * K), true),
        (newest, behind(newest, 99 * K), false),
        (behind(newest, 40 * K), behind(newest, 60 * K), false),
        (behind(newest, 40 * K), behind(newest, 101 * K), true),
    ] {
        assert_eq!(known.may_show(created, superseded), may_show, "{created} to {superseded}");
    }
}

#[test]
fn memory_is_freed_by_the_second_tick_and_not_before() {
    let epochs = epochs();
    let worker = epochs.participant();
    retire_one(&worker.pin());
    assert_eq!((epochs.counters().retired_objects, epochs.counters().retired_bytes), (1, 320));
    assert_eq!(ticks_until_freed(&epochs, &worker), 2);
    assert_eq!((epochs.counters().retired_bytes, live_bytes(&epochs)), (0, 0));
}

#[test]
fn a_pin_protects_what_is_retired_after_it_under_any_later_epoch() {
    let epochs = epochs();
    let (reader, worker) = (epochs.participant(), epochs.participant());
    advance_by(&epochs, 7);
    let pinned = reader.pin();
    for _ in 0..10 {
        retire_one(&worker.pin());
        epochs.advance();
        worker.collect(usize::MAX);
    }
    assert_eq!(epochs.counters().retired_objects, 10);
    drop(pinned);
    ticks_until_freed(&epochs, &worker);
}

#[test]
fn collect_keeps_to_its_budget_and_goes_on_where_it_stopped() {
    let epochs = epochs();
    let worker = epochs.participant();
    (0..25).for_each(|_| retire_one(&worker.pin()));
    advance_by(&epochs, 2);
    let freed: Vec<_> = (0..4).map(|_| worker.collect(10)).collect();
    assert_eq!(freed, [10, 10, 5, 0]);
}

#[test]
fn pins_nest() {
    let epochs = epochs();
    let participant = epochs.participant();
    let outer = participant.pin();
    epochs.advance();
    let inner = participant.pin();
    assert_eq!((inner.epoch(), outer.epoch()), (Epoch::new(FIRST), Epoch::new(FIRST)));
    drop(outer);
    assert_eq!(epochs.counters().oldest_pin, Some(Epoch::new(FIRST)), "the inner guard still pins");
    drop(inner);
    assert_eq!(epochs.counters().oldest_pin, None);
    assert_eq!(participant.pin().epoch(), Epoch::new(FIRST + 1));
}

#[test]
fn a_snapshot_inside_a_snapshot_reads_the_same() {
    let epochs = epochs();
    let participant = epochs.participant();
    let (outer, epoch) = participant.pin_snapshot();
    advance_by(&epochs, 2 * K);
    let (inner, same) = participant.pin_snapshot();
    assert_eq!(epoch, same);
    drop((outer, inner));
    assert_eq!(participant.pin_snapshot().1, Epoch::new(FIRST + 2 * K));
}

#[test]
fn a_slot_is_used_again_and_the_garbage_in_it_adopted() {
    let epochs = epochs();
    let heir = epochs.participant();
    for _ in 0..100 {
        let epochs = Arc::clone(&epochs);
        let visit = move || retire_one(&epochs.participant().pin());
        thread::spawn(visit).join().unwrap();
    }
    let counters = epochs.counters();
    assert_eq!((counters.active_slots, counters.retired_objects), (1, 100));
    assert_eq!(counters.retired_bytes, 32_000);
    assert_eq!(epochs.pool().mapped_bytes(), 2 << 20, "one heap served all visitors");
    advance_by(&epochs, 2);
    assert_eq!((heir.collect(60), heir.collect(60), heir.collect(60)), (60, 40, 0));
    assert_eq!((epochs.counters().retired_bytes, live_bytes(&epochs)), (0, 0));
}

#[test]
fn more_participants_than_a_block_holds() {
    let epochs = epochs();
    let participants: Vec<_> = (0..100).map(|_| epochs.participant()).collect();
    let guard = participants[99].pin();
    advance_by(&epochs, 3);
    assert_eq!(epochs.memory_horizon(), Epoch::new(FIRST - 1), "the last slot is seen");
    assert_eq!(epochs.counters().active_slots, 100);
    drop(guard);
}

#[test]
fn a_participant_that_goes_in_the_midst_of_a_commit_holds_nothing_back() {
    let epochs = epochs();
    let participant = epochs.participant();
    participant.begin_commit();
    #[allow(clippy::mem_forget, reason = "a guard that leaks must not outlast its participant")]
    std::mem::forget(participant.pin_snapshot());
    drop(participant);
    advance_by(&epochs, K + 2);
    assert_eq!(epochs.snapshot_horizon(), Epoch::new(FIRST + K));
    assert_eq!(epochs.memory_horizon(), Epoch::new(FIRST + K + 1));
}

#[test]
fn the_pool_gets_back_what_nobody_collected() {
    let pool = Pool::new(None);
    let options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
    let epochs = Epochs::new(options, Arc::clone(&pool));
    let worker = epochs.participant();
    let large = Layout::from_size_align(100_000, 64).unwrap();
    let guard = worker.pin();
    let block = guard.allocate(large, NODES).unwrap();
    // SAFETY: nobody else ever knew the block.
    unsafe { guard.retire(block, large, NODES) };
    drop(guard);
    drop(epochs);
    drop(worker);
    assert_eq!((pool.usage().live_bytes, pool.mapped_bytes()), (0, 0));
}

fn ticking() -> Arc<Epochs> {
    let options = EpochOptions {
        epoch_interval: Duration::from_millis(1),
        epochs_per_snapshot: 2,
        ..Default::default()
    };
    Epochs::new(options, Pool::new(None))
}

fn wait_for(epochs: &Epochs, epoch: u64) {
    while epochs.global_epoch() < Epoch::new(epoch) {
        thread::yield_now();
    }
}

#[test]
fn the_thread_advances_and_ends_with_the_database() {
    let epochs = ticking();
    wait_for(&epochs, 20);
    let weak = Arc::downgrade(&epochs);
    drop(epochs);
    // The thread may hold the epochs for the length of a tick; then it is the one who drops them.
    while weak.strong_count() > 0 {
        thread::yield_now();
    }
}

#[test]
fn a_closed_clock_stands_still() {
    let epochs = ticking();
    wait_for(&epochs, 20);
    epochs.close();
    let stopped = epochs.global_epoch();
    epochs.close();
    epochs.advance();
    assert_eq!(epochs.global_epoch(), Epoch::new(stopped.get() + 1));
}

#[test]
fn a_sleeper_in_a_transaction_does_not_stop_the_thread() {
    let epochs = ticking();
    let participant = epochs.participant();
    let guard = participant.pin();
    wait_for(&epochs, 30);
    assert!(epochs.memory_horizon() < guard.epoch());
}

#[test]
fn time_goes_on_after_an_earlier_life() {
    let first_epoch = Epoch::new(1001);
    let options =
        EpochOptions { epochs_per_snapshot: K, first_epoch, advance: Advance::Manual, ..Default::default() };
    let epochs = Epochs::new(options, Pool::new(None));
    assert_eq!(epochs.global_epoch(), Epoch::new(1005));
    assert_eq!(epochs.snapshot_epoch(), Epoch::new(1005));
}

#[test]
fn a_commit_under_way_holds_back_what_is_complete() {
    let epochs = epochs();
    let worker = epochs.participant();
    assert_eq!(epochs.complete_frontier(), Epoch::new(FIRST));
    worker.begin_commit();
    advance_by(&epochs, 3);
    assert_eq!(epochs.complete_frontier(), Epoch::new(FIRST));
    worker.end_commit();
    assert_eq!(epochs.complete_frontier(), Epoch::new(FIRST + 3));
}

#[test]
fn snapshots_come_by_the_clock_and_leave_epochs_out() {
    let options = EpochOptions {
        epochs_per_snapshot: 1000,
        snapshot_interval: Some(Duration::ZERO),
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let epochs = Epochs::new(options, Pool::new(None));
    let worker = epochs.participant();
    let before = epochs.global_epoch();
    let guard = worker.pin();
    retire_one(&guard);
    epochs.advance();
    assert_eq!(epochs.global_epoch(), Epoch::new(before.get() + 1000));
    assert_eq!(epochs.snapshot_epoch(), epochs.global_epoch());
    // Whoever pins now may have read its epoch before the tick's barrier: the block stays until that pin is gone.
    let late = epochs.participant();
    let late_guard = late.pin();
    drop(guard);
    advance_by(&epochs, 3);
    assert_eq!(worker.collect(usize::MAX), 0);
    drop(late_guard);
    assert!(ticks_until_freed(&epochs, &worker) <= 2);
}

#[test]
fn snapshots_do_not_come_before_their_time_however_fast_epochs_go_by() {
    let options = EpochOptions {
        epochs_per_snapshot: 4,
        snapshot_interval: Some(Duration::from_secs(3600)),
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let epochs = Epochs::new(options, Pool::new(None));
    let (first, first_snapshot) = (epochs.global_epoch(), epochs.snapshot_epoch());
    for step in 1..=100 {
        epochs.advance();
        assert_eq!(epochs.global_epoch(), Epoch::new(first.get() + step));
        assert_eq!((epochs.snapshot_epoch(), epochs.snapshots()), (first_snapshot, 0));
    }
}

#[test]
fn a_snapshot_comes_when_the_commits_before_it_are_complete() {
    let options = EpochOptions {
        epochs_per_snapshot: K,
        snapshot_interval: Some(Duration::ZERO),
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let epochs = Epochs::new(options, Pool::new(None));
    let worker = epochs.participant();
    let before = epochs.snapshot_epoch();
    worker.begin_commit();
    advance_by(&epochs, 3);
    assert_eq!((epochs.snapshot_epoch(), epochs.snapshots()), (before, 0));
    worker.end_commit();
    advance_by(&epochs, 1);
    assert_eq!((epochs.snapshot_epoch(), epochs.snapshots()), (epochs.global_epoch(), 1));
}

#[test]
fn the_last_epoch_comes_step_by_step_and_stays() {
    let epochs = Epochs::new(
        EpochOptions {
            epochs_per_snapshot: 1024,
            snapshot_interval: Some(Duration::ZERO),
            first_epoch: Epoch::new(Epoch::LAST.get() - 2000),
            advance: Advance::Manual,
            ..EpochOptions::default()
        },
        Pool::new(None),
    );
    let mut before = epochs.global_epoch();
    for _ in 0..1100 {
        assert!(epochs.advance_past(before) || before == Epoch::LAST);
        let now = epochs.global_epoch();
        assert_eq!(now, Epoch::new(before.get() + 1).min(Epoch::LAST));
        assert!(epochs.memory_horizon() <= before.min(Epoch::new(Epoch::LAST.get() - 1)));
        before = now;
    }
    assert_eq!(before, Epoch::LAST);
    // Who asks for an epoch that is past gets no tick.
    assert!(epochs.advance_past(Epoch::new(5)));
}

/// Epochs whose snapshots come by the clock, every hour.
fn epochs_by_the_clock() -> Arc<Epochs> {
    let options = EpochOptions {
        epochs_per_snapshot: K,
        snapshot_interval: Some(Duration::from_secs(3600)),
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    Epochs::new(options, Pool::new(None))
}

#[test]
fn a_snapshot_that_is_taken_begins_after_the_call_and_makes_no_other_one_old() {
    for (epochs, is_by_the_clock) in [(epochs(), false), (epochs_by_the_clock(), true)] {
        for _ in 0..3 {
            advance_by(&epochs, 2);
            let (before, count) = (epochs.global_epoch(), epochs.snapshots());
            epochs.take_snapshot(Instant::now());
            let taken = epochs.snapshot_epoch();
            assert!(taken > before && taken <= epochs.global_epoch());
            assert_eq!(taken, epochs.snapshot_of(taken), "an interval begins there");
            assert_eq!(epochs.snapshots(), count);
            advance_by(&epochs, 3 * K);
            assert_eq!(epochs.snapshot_epoch() == taken, is_by_the_clock);
        }
    }
}

#[test]
fn a_snapshot_that_is_taken_waits_for_commits_that_are_under_way() {
    let epochs = epochs_by_the_clock();
    let committer = epochs.participant();
    committer.begin_commit();
    let before = epochs.snapshot_epoch();
    thread::scope(|scope| {
        let taking = scope.spawn(|| epochs.take_snapshot(Instant::now()));
        thread::sleep(Duration::from_millis(50));
        assert!(!taking.is_finished());
        assert_eq!(epochs.snapshot_epoch(), before);
        committer.end_commit();
        taking.join().unwrap();
    });
    assert!(epochs.snapshot_epoch() > before);
}

#[test]
fn snapshots_that_are_taken_at_once_are_shared() {
    let epochs = epochs_by_the_clock();
    let before = epochs.global_epoch();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..3).for_each(|_| epochs.take_snapshot(Instant::now())));
        }
    });
    let intervals = (epochs.snapshot_epoch().get() - before.get()) / K;
    assert!((3..=12).contains(&intervals), "{intervals}");
}
