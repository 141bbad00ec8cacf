//! The store-buffering litmus test.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ensilo_sync::barrier::{self, LightBarrier};
use ensilo_sync::{Backoff, CachePadded};

/// Both threads begin each round together; each stores its own cell, passes its barrier and loads the other's.
pub(crate) fn at_least_one_side_sees_the_other(rounds: u64) {
    let light = LightBarrier::new();
    let [light_at, heavy_at, light_cell, heavy_cell, seen_by_light]: [CachePadded<AtomicU64>; 5] =
        Default::default();
    let meet = |own: &AtomicU64, other: &AtomicU64, round| {
        own.store(round, Ordering::Release);
        let mut backoff = Backoff::new();
        while other.load(Ordering::Acquire) < round {
            backoff.wait();
        }
    };
    let mut missed = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=rounds {
                meet(&light_at, &heavy_at, 2 * round - 1);
                light_cell.store(round, Ordering::Relaxed);
                light.pass();
                seen_by_light.store(heavy_cell.load(Ordering::Relaxed), Ordering::Relaxed);
                meet(&light_at, &heavy_at, 2 * round);
            }
        });
        for round in 1..=rounds {
            meet(&heavy_at, &light_at, 2 * round - 1);
            heavy_cell.store(round, Ordering::Relaxed);
            barrier::heavy();
            let seen_by_heavy = light_cell.load(Ordering::Relaxed);
            meet(&heavy_at, &light_at, 2 * round);
            let seen_by_light = seen_by_light.load(Ordering::Relaxed);
            if seen_by_heavy != round && seen_by_light != round {
                missed.push(round);
            }
        }
    });
    assert!(missed.is_empty(), "neither side saw the other in rounds {missed:?}");
}
