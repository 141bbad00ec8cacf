//! How long a cache line takes from one core to another: two threads that add to one word in turn.
//!
//! ```sh
//! cargo run --release -p ensilo-bench --example ping_pong
//! ```
//! The least of many rounds is printed: in the others a thread had lost its core.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use ensilo_sync::CachePadded;

const TURNS: u64 = 20_000;
const ROUNDS: usize = 200;

fn main() {
    let least = (0..ROUNDS).map(|_| nanoseconds_of_a_turn()).fold(f64::INFINITY, f64::min);
    println!("{least:.0} ns from core to core");
}

/// One thread makes the word odd, the other even; each has to wait for the line.
fn nanoseconds_of_a_turn() -> f64 {
    let word = CachePadded::new(AtomicU64::new(0));
    let play = |own: u64| {
        for turn in (own..TURNS).step_by(2) {
            let mut waits = 0;
            // Relaxed: the word itself is all that goes from one to the other.
            while word.load(Ordering::Relaxed) != turn {
                waits += 1;
                if waits % 100_000 == 0 { thread::yield_now() } else { std::hint::spin_loop() }
            }
            word.fetch_add(1, Ordering::Relaxed);
        }
    };
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| play(1));
        play(0);
    });
    start.elapsed().as_secs_f64() * 1e9 / TURNS as f64
}
