//! Counters that threads count up, each under a lock: what it costs to share something, by where the threads
//! run.
//!
//! Threads are divided among the counters as workers are among instances: a counter for each socket, its
//! threads on that socket or on all of them, or one counter for each thread, or one for all.
//!
//! # Source
//! Islands (VLDB Journal) §4, figures 5 and 7.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use ensilo_islands::{BindError, InstancePlace, LoadTime, Placement, Plan, bind_this_thread};
use serde::Serialize;

/// What is measured.
#[derive(Clone, Debug)]
pub struct CountersOptions {
    /// Where the threads of each counter run.
    pub plan: Plan,
    /// How the plan was made.
    pub placement: Placement,
    /// How many threads there are in all, at least one for each counter.
    pub threads: usize,
    /// How long counting does not count, and how long it counts.
    pub time: LoadTime,
}

/// How often threads have counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountersReport {
    /// `counters`.
    pub workload: &'static str,
    /// How many counters.
    pub counters: usize,
    /// How many threads in all.
    pub workers: usize,
    /// How the cores of the machine are divided among the counters.
    pub placement: String,
    /// How long was measured.
    pub seconds: f64,
    /// Increments a second, of all threads together.
    pub throughput: f64,
}

/// A counter in lines of its own: the processor may fetch two at once.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(Mutex<u64>);

/// What all threads look at.
struct Shared {
    places: Vec<InstancePlace>,
    /// Made by the first thread of each, in whose memory it lies.
    counters: Vec<OnceLock<Box<Counter>>>,
    phase: AtomicU8,
    begin: Barrier,
}

/// How often one thread has counted, and how often of these it was measured.
#[derive(Copy, Clone, Default)]
struct Counted {
    in_all: u64,
    measured: u64,
}

const WARMUP: u8 = 0;
const MEASURED: u8 = 1;
const OVER: u8 = 2;

/// Counts, and checks that no increment is lost.
///
/// # Errors
/// [`BindError`].
///
/// # Panics
/// If one is lost.
pub fn run_counters(options: &CountersOptions) -> Result<CountersReport, BindError> {
    let places = options.plan.instances().to_vec();
    let counters = places.iter().map(|_| OnceLock::new()).collect();
    let begin = Barrier::new(options.threads + 1);
    let shared = Shared { places, counters, phase: AtomicU8::new(WARMUP), begin };
    let (elapsed, counted) = thread::scope(|scope| {
        let shared = &shared;
        let threads: Vec<_> =
            (0..options.threads).map(|number| scope.spawn(move || shared.count(number))).collect();
        let elapsed = shared.pass(options.time);
        let joined = threads
            .into_iter()
            .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (elapsed, joined.collect::<Result<Vec<Counted>, BindError>>())
    });
    let counted = counted?;
    let in_all: u64 = counted.iter().map(|of_thread| of_thread.in_all).sum();
    assert_eq!(shared.sum(), in_all, "no increment is lost");
    let measured: u64 = counted.iter().map(|of_thread| of_thread.measured).sum();
    Ok(CountersReport {
        workload: "counters",
        counters: shared.places.len(),
        workers: options.threads,
        placement: options.placement.name().to_owned(),
        seconds: options.time.measured.as_secs_f64(),
        throughput: measured as f64 / elapsed,
    })
}

impl Shared {
    /// Has the threads begin, and ends them. Returns how many seconds were measured.
    fn pass(&self, time: LoadTime) -> f64 {
        self.begin.wait();
        thread::sleep(time.warmup);
        // Relaxed: a matter of what counts.
        self.phase.store(MEASURED, Ordering::Relaxed);
        let begin = Instant::now();
        thread::sleep(time.measured);
        self.phase.store(OVER, Ordering::Relaxed);
        begin.elapsed().as_secs_f64()
    }

    /// What the thread of this number does.
    fn count(&self, number: usize) -> Result<Counted, BindError> {
        let of = number % self.counters.len();
        let bound = bind_this_thread(&self.places[of], number / self.counters.len());
        let is_first = number == of;
        if is_first {
            self.counters[of].get_or_init(Box::default);
        }
        self.begin.wait();
        bound?;
        let counter = self.counters[of].get_or_init(Box::default);
        let mut counted = Counted::default();
        loop {
            let phase = self.phase.load(Ordering::Relaxed);
            if phase == OVER {
                return Ok(counted);
            }
            counter.increment();
            counted.in_all += 1;
            counted.measured += u64::from(phase == MEASURED);
        }
    }

    fn sum(&self) -> u64 {
        let counters = self.counters.iter().filter_map(OnceLock::get);
        counters.map(|counter| *counter.0.lock().unwrap_or_else(PoisonError::into_inner)).sum()
    }
}

impl Counter {
    #[inline]
    fn increment(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }
}

impl CountersReport {
    /// Returns the report as one JSON object, with the fields of this struct.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Ok(json) = serde_json::to_string_pretty(self) else {
            unreachable!("numbers and names are JSON");
        };
        json
    }
}

impl fmt::Display for CountersReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "" } else { "s" };
        let CountersReport { counters, workers, placement, seconds, throughput, .. } = self;
        let (of_counters, of_threads) = (plural(*counters), plural(*workers));
        write!(
            f,
            "{throughput:.0} increments a second of {counters} counter{of_counters} by {workers} thread{of_threads}, {placement}, over {seconds} s"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ensilo_islands::{Instances, Topology};

    use super::*;

    #[test]
    fn threads_share_counters_and_lose_nothing() {
        let topology = Topology::of_this_machine().unwrap();
        for (counters, threads) in [(1, 1), (1, 3), (2, 3), (3, 3)] {
            for placement in [Placement::Group, Placement::System] {
                let plan = Plan::new(&topology, Instances::Count(counters), placement);
                // A busy machine may let no thread run for some milliseconds.
                let count_for = |measured| {
                    let time = LoadTime { warmup: Duration::from_millis(2), measured };
                    let options = CountersOptions { plan: plan.clone(), placement, threads, time };
                    let report = run_counters(&options).unwrap();
                    assert_eq!((report.counters, report.workers), (counters, threads));
                    report.throughput > 0.0
                };
                assert!([10, 100, 1000, 10_000].map(Duration::from_millis).into_iter().any(count_for));
            }
        }
    }
}
