//! The epoch protocol in every order of its steps, as far as weak memory allows:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo-epoch --test loom --profile quick`.
//!
//! Each model runs twice: as it is, and with participants whose barriers are left out, which the model has to find out.
//!
//! The checker knows processor fences only. What the cheaper barrier through the kernel needs beyond them stands in
//! `store_buffers.rs`.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use ensilo_epoch::{Advance, Epoch, EpochOptions, Epochs, Participant};
use ensilo_slab::{AccountId, Pool};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;

/// Whether a model's participants are as they should be.
#[derive(Clone, Copy, PartialEq)]
enum Barriers {
    Kept,
    LeftOut,
}

/// Explores `model` with barriers and expects it to hold, and without and expects it to fail.
fn explore(model: fn(Barriers)) {
    explore_with(Barriers::Kept, model);
    let planted = catch_unwind(AssertUnwindSafe(|| explore_with(Barriers::LeftOut, model)));
    assert!(planted.is_err(), "the model does not notice that barriers are missing");
}

fn explore_with(barriers: Barriers, model: fn(Barriers)) {
    let mut builder = Builder::new();
    // LOOM_MAX_PREEMPTIONS explores further: 4 takes minutes.
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || model(barriers));
}

/// Epochs in which every tick may make a snapshot.
fn epochs() -> Arc<Epochs> {
    let options =
        EpochOptions { epochs_per_snapshot: 1, advance: Advance::Manual, ..EpochOptions::default() };
    Epochs::new(options, Pool::new(None))
}

fn participant(epochs: &Arc<Epochs>, barriers: Barriers) -> Participant {
    let mut participant = epochs.participant();
    if barriers == Barriers::LeftOut {
        participant.plant_missing_barriers();
    }
    participant
}

/// Ticks on a thread of their own. Two are the fewest after which something can be over, and three for what snapshots show.
fn ticks(epochs: &Arc<Epochs>, count: usize) -> thread::JoinHandle<()> {
    let epochs = Arc::clone(epochs);
    thread::spawn(move || (0..count).for_each(|_| epochs.advance()))
}

/// Two objects, and the place where the current one is found. The checker reports any access that races with a reuse.
struct Linked {
    place: AtomicUsize,
    objects: [UnsafeCell<u64>; 2],
}

// SAFETY: loom runs one thread at a time and reports unordered accesses to the objects.
unsafe impl Sync for Linked {}

impl Linked {
    fn new() -> Arc<Linked> {
        Arc::new(Linked { place: AtomicUsize::new(0), objects: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn read(&self, object: usize) {
        // SAFETY: loom checks that nobody writes meanwhile.
        self.objects[object].with(|object| unsafe { object.read() });
    }

    fn reuse(&self, object: usize) {
        // SAFETY: loom checks that nobody reads meanwhile.
        self.objects[object].with_mut(|object| unsafe { object.write(1) });
    }
}

#[test]
fn a_reader_never_touches_reused_memory() {
    explore(|barriers| {
        let epochs = epochs();
        let linked = Linked::new();
        let (reader, writer) = (participant(&epochs, barriers), participant(&epochs, barriers));
        let reading = thread::spawn({
            let linked = Arc::clone(&linked);
            move || {
                let guard = reader.pin();
                linked.read(linked.place.load(Ordering::Acquire));
                drop(guard);
                reader
            }
        });
        let ticking = ticks(&epochs, 2);
        linked.place.store(1, Ordering::Release);
        let tag = writer.retire_epoch();
        if tag < epochs.memory_horizon() {
            linked.reuse(0);
        }
        drop(reading.join().unwrap());
        ticking.join().unwrap();
    });
}

#[test]
fn a_snapshot_epoch_never_covers_an_incomplete_commit() {
    explore(|barriers| {
        let epochs = epochs();
        let installed = Arc::new(AtomicBool::new(false));
        let committer = participant(&epochs, barriers);
        let committing = thread::spawn({
            let installed = Arc::clone(&installed);
            move || {
                committer.begin_commit();
                let epoch = committer.global_epoch();
                installed.store(true, Ordering::Relaxed);
                committer.end_commit();
                (epoch, committer)
            }
        });
        let ticking = ticks(&epochs, 2);
        let snapshot = epochs.snapshot_epoch();
        let complete = installed.load(Ordering::Relaxed);
        let (epoch, _committer) = committing.join().unwrap();
        ticking.join().unwrap();
        assert!(epoch >= snapshot || complete, "{snapshot} covers an incomplete commit of {epoch}");
    });
}

#[test]
fn a_version_outlives_every_snapshot_that_shows_it() {
    explore(|barriers| {
        let epochs = epochs();
        let versions = Linked::new();
        let superseded = epochs.snapshot_of(epochs.global_epoch());
        let reader = participant(&epochs, barriers);
        let reading = thread::spawn({
            let versions = Arc::clone(&versions);
            move || {
                let (guard, snapshot) = reader.pin_snapshot();
                if snapshot <= superseded {
                    versions.read(0);
                }
                drop(guard);
                reader
            }
        });
        let ticking = ticks(&epochs, 3);
        if superseded < epochs.snapshot_horizon() {
            versions.reuse(0);
        }
        drop(reading.join().unwrap());
        ticking.join().unwrap();
    });
}

#[test]
fn a_version_outlives_every_commit_that_looks_at_it() {
    explore(|barriers| {
        let epochs = epochs();
        let versions = Linked::new();
        let superseded = epochs.global_epoch();
        let committer = participant(&epochs, barriers);
        let committing = thread::spawn({
            let (epochs, versions) = (Arc::clone(&epochs), Arc::clone(&versions));
            move || {
                committer.begin_commit();
                if superseded >= epochs.oldest_snapshot() {
                    versions.read(0);
                }
                committer.end_commit();
                committer
            }
        });
        let ticking = ticks(&epochs, 3);
        if superseded < epochs.snapshot_horizon() {
            versions.reuse(0);
        }
        drop(committing.join().unwrap());
        ticking.join().unwrap();
    });
}

#[test]
fn a_snapshot_is_no_older_than_the_instant_that_was_read_before_it() {
    explore_with(Barriers::Kept, |_| {
        let epochs = epochs();
        let (committer, reader) = (epochs.participant(), epochs.participant());
        let committing = thread::spawn(move || {
            committer.begin_commit();
            let epoch = committer.global_epoch();
            committer.end_commit();
            (epoch, Instant::now(), committer)
        });
        let ticking = ticks(&epochs, 2);
        let instant = epochs.snapshot_instant();
        let (_guard, snapshot) = reader.pin_snapshot();
        let (epoch, committed, _committer) = committing.join().unwrap();
        ticking.join().unwrap();
        assert!(
            committed >= instant || epoch < snapshot,
            "the snapshot of {snapshot} lacks a commit of {epoch}"
        );
    });
}

#[test]
fn what_a_participant_leaves_is_adopted_once() {
    const NODES: AccountId = AccountId(1);
    explore_with(Barriers::Kept, |_| {
        let epochs = epochs();
        let heir = epochs.participant();
        let departing = thread::spawn({
            let epochs = Arc::clone(&epochs);
            move || {
                let guest = epochs.participant();
                let layout = std::alloc::Layout::new::<u64>();
                let block = guest.heap().allocate(layout, NODES).unwrap();
                // SAFETY: nobody else ever knew the block.
                unsafe { guest.pin().retire(block, layout, NODES) };
            }
        });
        epochs.advance();
        epochs.advance();
        heir.collect(1);
        departing.join().unwrap();
        while epochs.counters().retired_objects > 0 {
            epochs.advance();
            heir.collect(1);
        }
        assert_eq!(epochs.pool().usage().live_bytes, 0);
        assert_eq!(epochs.counters().oldest_pin, None::<Epoch>);
    });
}
