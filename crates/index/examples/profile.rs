//! One kind of work on the index again and again, for a profiler: `profile get random 1000000`.
//!
//! Prints the processor time per operation, least of several rounds: time that other programs take is not counted.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "a tool for developers")]

use std::hint::black_box;
use std::ops::{Bound, ControlFlow};

use ensilo_epoch::{EpochOptions, Epochs, Guard, Participant};
use ensilo_index::{Direction, Lookup, Masstree, NodeStamp, ScanVisitor};
use ensilo_slab::{AccountId, Pool};

const ROUNDS: u32 = 7;
const BATCH: usize = 32;

/// Nanoseconds that this thread has run.
fn thread_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn spread(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn key(shape: &str, number: u64, count: u64) -> ([u8; 24], usize) {
    let mut bytes = [0; 24];
    let pair = spread(number) % (count / 10).max(1);
    let parts: &[u64] = match shape {
        "random" => &[spread(number)],
        "sequential" => &[number],
        "composite" => &[pair % 1000, pair / 1000, number],
        _ => panic!("random, sequential or composite, not {shape}"),
    };
    for (chunk, part) in bytes.chunks_mut(8).zip(parts) {
        chunk.copy_from_slice(&part.to_be_bytes());
    }
    (bytes, 8 * parts.len())
}

struct First(usize);

impl ScanVisitor for First {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        black_box((key, value));
        self.0 -= 1;
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

struct Profile<'a> {
    tree: &'a Masstree,
    shape: &'a str,
    count: u64,
}

impl Profile<'_> {
    fn batch(&self, work: &str, from: u64, guard: &Guard<'_>) {
        let keys: [([u8; 24], usize); BATCH] = std::array::from_fn(|place| {
            let number = from + place as u64;
            let number =
                if matches!(work, "insert" | "remove") { number } else { spread(number) % self.count };
            key(self.shape, number, self.count)
        });
        let keys = keys.each_ref().map(|(bytes, len)| &bytes[..*len]);
        match work {
            "get_many" => self.tree.get_many(&keys, guard, |_, lookup| {
                assert!(matches!(lookup, Lookup::Found(_)));
            }),
            _ => keys
                .iter()
                .enumerate()
                .for_each(|(place, key)| self.one(work, key, from + place as u64, guard)),
        }
    }

    fn one(&self, work: &str, key: &[u8], number: u64, guard: &Guard<'_>) {
        match work {
            "insert" => drop(black_box(self.tree.insert_if_absent(key, number + 1, guard, &mut ()))),
            "remove" => assert!(self.tree.remove(key, number + 1, guard)),
            "get" => assert!(matches!(self.tree.get(black_box(key), guard), Lookup::Found(_))),
            "scan" => {
                let bounds = (Bound::Included(key), Bound::Unbounded);
                self.tree.scan(bounds, Direction::Forward, guard, &mut First(100));
            }
            _ => panic!("insert, remove, get, get_many or scan, not {work}"),
        }
    }

    /// Nanoseconds for each of `count` operations.
    fn round(&self, work: &str, count: u64, participant: &Participant) -> f64 {
        let start = thread_time();
        for from in (0..count).step_by(BATCH) {
            participant.collect(256);
            self.batch(work, from, &participant.pin());
        }
        (thread_time() - start) as f64 / count as f64
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [work, shape, count] = arguments.as_slice() else { panic!("profile WORK SHAPE COUNT") };
    let count = count.parse::<u64>().unwrap().next_multiple_of(BATCH as u64);
    let epochs = Epochs::new(EpochOptions::default(), Pool::new(None));
    let participant = epochs.participant();
    let tree = Masstree::new(&participant.pin(), AccountId(1)).unwrap();
    let profile = Profile { tree: &tree, shape, count };
    let mut least = f64::MAX;
    profile.round("insert", count, &participant);
    for round in 0..ROUNDS {
        let operations = if work == "scan" { 100_000 } else { count.max(1_000_000) };
        least = least.min(match work.as_str() {
            "insert" => {
                profile.round("remove", count, &participant);
                profile.round("insert", count, &participant)
            }
            "remove" => {
                let time = profile.round("remove", count, &participant);
                profile.round("insert", count, &participant);
                time
            }
            _ => profile.round(work, operations, &participant),
        });
        if round == 0 {
            eprintln!("{:?}", tree.statistics(&participant.pin()));
        }
    }
    println!("{work} {shape} {count}: {least:.1} ns");
}
