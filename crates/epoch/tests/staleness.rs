//! How old snapshots are, and those that are taken because they are too old.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo_epoch::{Advance, Epoch, EpochOptions, Epochs};
use ensilo_slab::Pool;

const K: u64 = 4;
const HOUR: Duration = Duration::from_secs(3600);

/// Epochs that are moved on by hand, with a snapshot after so long, or every `K` epochs.
fn epochs(snapshot_interval: Option<Duration>) -> Arc<Epochs> {
    let options = EpochOptions {
        epochs_per_snapshot: K,
        snapshot_interval,
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    Epochs::new(options, Pool::new(None))
}

/// Moves on to the next epoch that a snapshot may begin at. Returns the instants just before and just after it has begun.
fn begin_snapshot(epochs: &Epochs) -> (Instant, Instant) {
    loop {
        let before = Instant::now();
        epochs.advance();
        if epochs.snapshot_of(epochs.global_epoch()) == epochs.global_epoch() {
            return (before, Instant::now());
        }
    }
}

fn is_within(instant: Instant, (begin, end): (Instant, Instant)) -> bool {
    begin <= instant && instant <= end
}

#[test]
fn the_first_snapshot_is_as_old_as_the_epochs() {
    let begin = Instant::now();
    let epochs = epochs(None);
    assert!(is_within(epochs.snapshot_instant(), (begin, Instant::now())));
}

#[test]
fn a_snapshot_is_as_old_as_its_epoch_however_late_it_can_be_read() {
    for snapshot_interval in [None, Some(Duration::ZERO)] {
        let epochs = epochs(snapshot_interval);
        let committer = epochs.participant();
        for others_under_way in [0, 1, 5] {
            let before = (epochs.snapshot_epoch(), epochs.snapshot_instant());
            committer.begin_commit();
            for _ in 0..others_under_way {
                begin_snapshot(&epochs);
            }
            assert_eq!((epochs.snapshot_epoch(), epochs.snapshot_instant()), before);
            committer.end_commit();
            let began = begin_snapshot(&epochs);
            assert_eq!(epochs.snapshot_epoch(), epochs.global_epoch());
            assert!(is_within(epochs.snapshot_instant(), began));
        }
    }
}

#[test]
fn a_snapshot_between_others_is_as_old_as_its_own_epoch() {
    let epochs = epochs(None);
    let committer = epochs.participant();
    let first_began = begin_snapshot(&epochs);
    epochs.advance();
    // A commit within the interval that has begun holds back the one after it.
    committer.begin_commit();
    begin_snapshot(&epochs);
    begin_snapshot(&epochs);
    assert!(is_within(epochs.snapshot_instant(), first_began));
    committer.end_commit();
}

#[test]
fn of_many_snapshots_that_were_held_back_none_counts_as_younger_than_it_is() {
    let epochs = epochs(None);
    let committer = epochs.participant();
    let before = epochs.snapshot_instant();
    committer.begin_commit();
    let began: Vec<_> = (0..100).map(|_| begin_snapshot(&epochs)).collect();
    committer.end_commit();
    epochs.advance();
    assert_eq!(epochs.snapshot_epoch(), epochs.snapshot_of(epochs.global_epoch()));
    assert!(epochs.snapshot_instant() > before && epochs.snapshot_instant() <= began[99].1);
    let next = begin_snapshot(&epochs);
    assert!(is_within(epochs.snapshot_instant(), next));
}

#[test]
fn the_last_epoch_grows_old() {
    let options = EpochOptions {
        epochs_per_snapshot: 1,
        first_epoch: Epoch::new(Epoch::LAST.get() - 2),
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    let epochs = Epochs::new(options, Pool::new(None));
    while epochs.global_epoch() < Epoch::LAST {
        epochs.advance();
    }
    let last = (epochs.snapshot_epoch(), epochs.snapshot_instant());
    epochs.advance();
    epochs.take_snapshot(Instant::now());
    assert_eq!((epochs.snapshot_epoch(), epochs.snapshot_instant()), last);
}

#[test]
fn a_snapshot_that_is_young_enough_is_not_taken_again() {
    for snapshot_interval in [None, Some(HOUR)] {
        let epochs = epochs(snapshot_interval);
        let wanted = Instant::now();
        epochs.take_snapshot(wanted);
        let taken = (epochs.global_epoch(), epochs.snapshot_instant());
        assert!(is_within(taken.1, (wanted, Instant::now())));
        (0..100).for_each(|_| epochs.take_snapshot(wanted));
        assert_eq!((epochs.global_epoch(), epochs.snapshot_instant()), taken);
        epochs.take_snapshot(Instant::now());
        assert!(epochs.snapshot_instant() > taken.1);
    }
}

#[test]
fn a_snapshot_that_is_held_back_is_waited_for_and_not_taken_again() {
    let epochs = epochs(Some(HOUR));
    let committer = epochs.participant();
    let (since, before) = (Instant::now(), epochs.global_epoch());
    committer.begin_commit();
    thread::scope(|scope| {
        let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| epochs.take_snapshot(since))).collect();
        // Those that wait move the epochs on, one by one.
        while epochs.global_epoch().get() < before.get() + 1000 {
            thread::yield_now();
        }
        committer.end_commit();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
    });
    assert_eq!(epochs.snapshot_epoch().get(), epochs.snapshot_of(before).get() + K);
    assert!(epochs.snapshot_instant() > since);
}

#[test]
fn snapshots_grow_old_also_where_others_are_taken_all_the_time() {
    let epochs = epochs(None);
    let before = epochs.snapshots();
    for _ in 0..3 * K {
        epochs.take_snapshot(Instant::now());
        epochs.advance();
    }
    let grown = epochs.snapshots() - before;
    assert!((2..=3).contains(&grown), "{grown}");
}

#[test]
fn those_that_wait_for_a_snapshot_move_the_epoch_on_together_and_seldom() {
    let epochs = epochs(Some(HOUR));
    let committer = epochs.participant();
    committer.begin_commit();
    let (begin, before) = (Instant::now(), epochs.global_epoch().get());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| epochs.take_snapshot(begin));
        }
        thread::sleep(Duration::from_millis(50));
        committer.end_commit();
    });
    let moved = epochs.global_epoch().get() - before;
    let ticks_max = begin.elapsed().as_millis() as u64 + 8;
    assert!(moved <= ticks_max + 2 * K, "{moved} in {ticks_max} ms");
}
