//! The work that every map does.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, LazyLock};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::keys::{Keys, Numbers};
use crate::options::Clock;
use crate::peer::Peer;

/// The operations between two looks at the clock, and the keys of one `get_many`.
pub(crate) const BATCH: usize = 32;

/// The keys of one scan.
pub(crate) const SCAN_LENGTH: usize = 100;

/// A row of the table: a kind of work.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// All keys into an empty map, each thread its share.
    Insert,
    /// Look-ups of keys that are there, one by one.
    Get,
    /// Look-ups of keys that are there, 32 at once.
    GetMany,
    /// Scans of 100 keys.
    Scan,
    /// 80 % look-ups, 10 % inserts, 10 % removes, of any key.
    Mixed,
    /// All keys that are there, each thread its share.
    Remove,
}

impl Work {
    pub(crate) const ALL: [Work; 6] =
        [Work::Insert, Work::Get, Work::GetMany, Work::Scan, Work::Mixed, Work::Remove];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Work::Insert => "insert",
            Work::Get => "get",
            Work::GetMany => "get_many",
            Work::Scan => "scan of 100",
            Work::Mixed => "mixed",
            Work::Remove => "remove",
        }
    }
}

/// A map with its keys.
pub(crate) struct Bench<'a, P, K> {
    pub(crate) map: &'a P,
    pub(crate) keys: K,
    pub(crate) count: u64,
    pub(crate) threads: u64,
    pub(crate) duration: Duration,
    pub(crate) clock: Clock,
    /// Scans that found nothing although their first key was there.
    pub(crate) missed: AtomicU64,
}

impl<P: Peer<K::Key>, K: Keys> Bench<'_, P, K> {
    /// Operations per second, of all threads together.
    pub(crate) fn run(&self, work: Work) -> f64 {
        let barrier = Barrier::new(self.threads as usize + 1);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        let start = processor_time();
                        let operations = self.run_thread(work, thread);
                        (operations, operations as f64 / (processor_time() - start).as_secs_f64())
                    })
                })
                .collect();
            let start = Instant::now();
            barrier.wait();
            let (operations, rates): (Vec<u64>, Vec<f64>) = threads.into_iter().map(join).unzip();
            match self.clock {
                Clock::Wall => operations.iter().sum::<u64>() as f64 / start.elapsed().as_secs_f64(),
                Clock::Processor => rates.iter().sum(),
            }
        })
    }

    fn run_thread(&self, work: Work, thread: u64) -> u64 {
        let mut numbers = Numbers::new(thread + 1);
        let session = &mut self.map.session();
        match work {
            Work::Insert => self.for_each_of_share(session, thread, |session, number| {
                assert!(self.map.insert(session, self.keys.key(number), number + 1), "all keys are new");
            }),
            Work::Remove => self.for_each_of_share(session, thread, |session, number| {
                black_box(self.map.remove(session, self.keys.key(number), number + 1));
            }),
            Work::Get => self.for_duration(session, |session| {
                let key = self.keys.key(numbers.below(self.count));
                assert!(self.map.get(session, black_box(key)).is_some(), "every key is found");
                1
            }),
            Work::GetMany => self.for_duration(session, |session| {
                let keys: [K::Key; BATCH] = std::array::from_fn(|_| self.keys.key(numbers.below(self.count)));
                let (sum, found) = self.map.get_many(session, black_box(&keys));
                black_box(sum);
                assert_eq!(found, BATCH as u64, "every key is found");
                found
            }),
            Work::Scan => self.for_duration(session, |session| {
                let from = self.keys.key(numbers.below(self.count));
                let (sum, found) = self.map.scan(session, black_box(from), SCAN_LENGTH);
                black_box(sum);
                // The key that it begins with is there; a map that does not find it did not do the work.
                self.missed.fetch_add(u64::from(found == 0), Ordering::Relaxed);
                1
            }),
            Work::Mixed => self.for_duration(session, |session| {
                let number = numbers.below(self.count);
                let key = self.keys.key(number);
                match numbers.below(10) {
                    0 => _ = black_box(self.map.insert(session, key, number + 1)),
                    1 => _ = black_box(self.map.remove(session, key, number + 1)),
                    _ => _ = black_box(self.map.get(session, key)),
                }
                1
            }),
        }
    }

    fn for_each_of_share(
        &self,
        session: &mut P::Session<'_>,
        thread: u64,
        mut each: impl FnMut(&mut P::Session<'_>, u64),
    ) -> u64 {
        let share = self.count * thread / self.threads..self.count * (thread + 1) / self.threads;
        for number in share.clone() {
            if number % BATCH as u64 == 0 {
                self.map.refresh(session);
            }
            each(session, number);
        }
        share.end - share.start
    }

    fn for_duration(
        &self,
        session: &mut P::Session<'_>,
        mut each: impl FnMut(&mut P::Session<'_>) -> u64,
    ) -> u64 {
        let start = Instant::now();
        let mut operations = 0;
        while start.elapsed() < self.duration {
            self.map.refresh(session);
            for _ in 0..BATCH {
                operations += each(session);
            }
        }
        operations
    }
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// How long this thread has been running on a processor; the time of the day where the system does not say.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanoseconds = text.ok().and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| EPOCH.elapsed(), Duration::from_nanos)
}

/// Some moment.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);
