//! Readers, writers and visitors at full speed over memory that is reclaimed beneath them.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_epoch::{EpochOptions, Epochs, Guard, Participant};
use ensilo_slab::{AccountId, Pool};

const CELLS: AccountId = AccountId(1);
const LAYOUT: Layout = Layout::new::<Cell>();

/// Two words that are equal as long as the cell is live.
struct Cell {
    one: AtomicU64,
    other: AtomicU64,
}

fn new_cell(guard: &Guard<'_>, value: u64) -> *mut Cell {
    let cell = guard.allocate(LAYOUT, CELLS).unwrap().cast::<Cell>().as_ptr();
    // SAFETY: the block was just allocated with the layout of a cell, and nobody else knows it. The plain write is what
    // ThreadSanitizer checks against the readers of the memory's former life.
    unsafe { cell.write(Cell { one: AtomicU64::new(value), other: AtomicU64::new(value) }) };
    cell
}

/// Replaces a cell and retires the old one.
fn replace(place: &AtomicPtr<Cell>, guard: &Guard<'_>, value: u64) {
    let old = place.swap(new_cell(guard, value), Ordering::AcqRel);
    // SAFETY: the swap unlinked the cell, and whoever unlinks it retires it.
    unsafe { guard.retire(NonNull::new(old).unwrap().cast(), LAYOUT, CELLS) };
}

fn read(place: &AtomicPtr<Cell>, _guard: &Guard<'_>) -> u64 {
    // SAFETY: the guard keeps what was reachable under it alive.
    let cell = unsafe { &*place.load(Ordering::Acquire) };
    let one = cell.one.load(Ordering::Relaxed);
    let other = cell.other.load(Ordering::Relaxed);
    assert_eq!(one, other, "a cell was reused under a reader");
    one
}

fn ticking(epochs_per_snapshot: u64) -> Arc<Epochs> {
    let options = EpochOptions {
        epoch_interval: Duration::from_micros(50),
        epochs_per_snapshot,
        ..EpochOptions::default()
    };
    Epochs::new(options, Pool::new(Some(1 << 30)))
}

fn for_half_a_second(mut step: impl FnMut(u64)) {
    let end = Instant::now() + Duration::from_millis(500);
    (0..).take_while(|_| Instant::now() < end).for_each(&mut step);
}

/// For ThreadSanitizer, which forgets accesses that are long ago: two threads, and a reader that takes its time.
#[test]
fn a_reader_is_done_before_its_memory_is_reused() {
    let epochs = ticking(4);
    let writer = epochs.participant();
    let place = AtomicPtr::new(new_cell(&writer.pin(), 0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let reader = epochs.participant();
            for_half_a_second(|_| {
                assert!(read(&place, &reader.pin()) < u64::MAX);
                thread::sleep(Duration::from_micros(100));
            });
        });
        for_half_a_second(|step| {
            replace(&place, &writer.pin(), step);
            writer.collect(16);
        });
    });
}

#[test]
fn readers_never_see_reused_memory() {
    let epochs = ticking(4);
    let first = epochs.participant();
    let places: Vec<_> = (0..8).map(|value| AtomicPtr::new(new_cell(&first.pin(), value))).collect();
    let read_all = |participant: &Participant| {
        let guard = participant.pin();
        places.iter().map(|place| read(place, &guard)).max()
    };
    thread::scope(|scope| {
        for writer in 0..2u64 {
            let (epochs, places) = (&epochs, &places);
            scope.spawn(move || {
                let participant = epochs.participant();
                for_half_a_second(|step| {
                    replace(&places[(step % 8) as usize], &participant.pin(), 2 * step + writer);
                    participant.collect(16);
                });
            });
        }
        scope.spawn(|| {
            let reader = epochs.participant();
            for_half_a_second(|_| assert!(read_all(&reader).is_some()));
        });
        scope.spawn(|| {
            for_half_a_second(|step| {
                let visitor = epochs.participant();
                assert!(read_all(&visitor).is_some());
                replace(&places[0], &visitor.pin(), step);
            });
        });
    });
    while epochs.counters().retired_objects > 0 {
        epochs.advance();
        first.collect(usize::MAX);
    }
    assert_eq!(epochs.pool().usage().of(CELLS), 8 * LAYOUT.size() as u64);
}

/// Committers write their epoch into a cell and then, before they end, into a second one. Whoever reads a snapshot epoch must find
/// both done for every commit that it covers.
#[test]
fn a_snapshot_epoch_covers_complete_commits_only() {
    const COMMITTERS: usize = 2;
    let epochs = ticking(1);
    let begun: [AtomicU64; COMMITTERS] = Default::default();
    let done: [AtomicU64; COMMITTERS] = Default::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for (begun, done) in begun.iter().zip(&done) {
            let (epochs, stop) = (&epochs, &stop);
            scope.spawn(move || {
                let participant = epochs.participant();
                while !stop.load(Ordering::Relaxed) {
                    participant.begin_commit();
                    let epoch = participant.global_epoch().get();
                    begun.store(epoch, Ordering::Relaxed);
                    thread::yield_now();
                    done.store(epoch, Ordering::Release);
                    participant.end_commit();
                }
            });
        }
        let reader = epochs.participant();
        for_half_a_second(|_| {
            let (_guard, snapshot) = reader.pin_snapshot();
            for (begun, done) in begun.iter().zip(&done) {
                // Acquire: `begun` is read as it was when this was done, or later.
                let done = done.load(Ordering::Acquire);
                let begun = begun.load(Ordering::Relaxed);
                assert!(
                    begun == done || begun >= snapshot.get(),
                    "a commit of epoch {begun} is not done under snapshot {snapshot}"
                );
            }
        });
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn no_snapshot_is_read_below_the_horizon() {
    let epochs = ticking(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let reader = epochs.participant();
                for_half_a_second(|_| {
                    let (_guard, snapshot) = reader.pin_snapshot();
                    assert!(snapshot >= epochs.snapshot_horizon());
                    assert!(snapshot >= epochs.snapshot_horizon(), "and it stays so");
                });
            });
        }
    });
}
