//! Where the time of workers goes, by looking a thousand times a second at which [`Region`] each of them is in.
//!
//! A thread of its own looks, and asks nothing of the kernel but to be woken: a profiler that the kernel feeds is not allowed everywhere. The
//! times between looks are uneven, so that they keep no step with anything that workers do at regular times.
//!
//! # What is counted
//! A look finds a worker in one region. Time in which a worker has lost its processor to another thread counts where it was lost, which
//! happens in each region as often as there is time spent in it; waiting for the disk has a region of its own, which is not work.
//!
//! # What is not seen
//! What the processor does ahead of the program: a load from memory counts where the program waits for what comes of it. A guard takes a few
//! nanoseconds, which make regions larger that are entered often.

use std::ops::RangeInclusive;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use ensilo_sync::region::{Region, current};

/// The regions in which a worker is at work.
pub const WORK: [Region; 6] =
    [Region::Index, Region::Indirection, Region::Log, Region::Epochs, Region::Engine, Region::Workload];

/// The time from one look to the next, in microseconds.
const INTERVAL_US: RangeInclusive<u64> = 500..=1_500;

/// How often workers were found in each region.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionCounts {
    found: [u64; Region::ALL.len()],
}

impl RegionCounts {
    /// Looks once at the workers `0..workers`. Those that are not observed count nowhere.
    pub fn look(&mut self, workers: usize) {
        for region in (0..workers).filter_map(current) {
            self.found[region as usize] += 1;
        }
    }

    /// Returns how often workers were found at work.
    #[must_use]
    pub fn at_work(&self) -> u64 {
        WORK.iter().map(|&region| self.found(region)).sum()
    }

    /// Returns a region's share of the time at work; 0 where no worker was found at work.
    #[must_use]
    pub fn share(&self, region: Region) -> f64 {
        if WORK.contains(&region) { share(self.found(region), self.at_work()) } else { 0.0 }
    }

    /// Returns the share of the time of transactions that was spent waiting for the disk.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        let waiting = self.found(Region::Waiting);
        share(waiting, waiting + self.at_work())
    }

    fn found(&self, region: Region) -> u64 {
        self.found[region as usize]
    }
}

/// Looks at the workers `0..workers` while `body` runs, and returns what it returns with what was found.
pub fn look_during<R>(workers: usize, body: impl FnOnce() -> R) -> (R, RegionCounts) {
    thread::scope(|scope| {
        // Dropped when the body ends, also by a panic.
        let (running, ended) = channel::<()>();
        let looking = scope.spawn(move || look_until(workers, &ended));
        let outcome = body();
        drop(running);
        let counts = looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (outcome, counts)
    })
}

fn look_until(workers: usize, ended: &Receiver<()>) -> RegionCounts {
    let (mut counts, mut interval) = (RegionCounts::default(), UnevenInterval(1));
    while ended.recv_timeout(interval.next()) == Err(RecvTimeoutError::Timeout) {
        counts.look(workers);
    }
    counts
}

/// Times between looks, drawn by a linear congruential generator.
struct UnevenInterval(u64);

impl UnevenInterval {
    fn next(&mut self) -> Duration {
        // Knuth's constants. The high bits are the random ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let span = INTERVAL_US.end() - INTERVAL_US.start() + 1;
        Duration::from_micros(INTERVAL_US.start() + (self.0 >> 33) % span)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::Sender;

    use ensilo_sync::region::{enter, observe};

    use super::*;

    /// Workers have numbers, which tests that run side by side would share.
    static WORKERS: Mutex<()> = Mutex::new(());

    /// Runs a worker that is in each of these regions when it is let there, and ends when `steps` does.
    fn work(worker: usize, regions: &[Region], arrived: &Sender<()>, steps: &Receiver<()>) {
        let _observed = observe(worker);
        for &region in regions {
            let _region = enter(region);
            arrived.send(()).unwrap();
            steps.recv().unwrap();
        }
    }

    /// Two workers that walk through regions in step, looked at once at every step.
    fn look_at_two(regions: [&[Region]; 2]) -> RegionCounts {
        let _workers = WORKERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut counts = RegionCounts::default();
        thread::scope(|scope| {
            let (arrived, arrivals) = channel();
            let steps = [0, 1].map(|worker| {
                let (step, steps) = channel();
                let arrived = arrived.clone();
                scope.spawn(move || work(worker, regions[worker], &arrived, &steps));
                step
            });
            for _ in regions[0] {
                (0..2).for_each(|_| arrivals.recv().unwrap());
                // A third worker is not there.
                counts.look(3);
                steps.iter().for_each(|step| step.send(()).unwrap());
            }
        });
        counts
    }

    #[test]
    fn shares_are_of_the_time_at_work_and_add_up() {
        use Region::{Engine, Epochs, Index, Indirection, Log, Outside, Waiting, Workload};
        let counts = look_at_two([
            &[Index, Index, Indirection, Log, Epochs, Outside],
            &[Index, Engine, Workload, Waiting, Waiting, Outside],
        ]);
        assert_eq!(counts.at_work(), 8);
        assert_eq!(counts.share(Index), 3.0 / 8.0);
        for region in [Indirection, Log, Epochs, Engine, Workload] {
            assert_eq!(counts.share(region), 1.0 / 8.0, "{region:?}");
        }
        assert!((WORK.iter().map(|&region| counts.share(region)).sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!((counts.share(Outside), counts.share(Waiting)), (0.0, 0.0));
        assert_eq!(counts.waiting(), 2.0 / 10.0);
    }

    #[test]
    fn nobody_at_work_has_no_shares() {
        let counts = RegionCounts::default();
        assert_eq!((counts.share(Region::Index), counts.waiting(), counts.at_work()), (0.0, 0.0, 0));
    }

    #[test]
    fn looks_end_with_what_they_look_at() {
        let _workers = WORKERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (outcome, counts) = look_during(1, || "done");
        assert_eq!((outcome, counts.at_work()), ("done", 0));
        let caught = std::panic::catch_unwind(|| look_during(1, || panic!("on purpose")));
        assert!(caught.is_err(), "a panic of the body passes, and the thread that looks ends");
    }

    #[test]
    fn times_between_looks_are_uneven_and_about_a_millisecond() {
        let mut interval = UnevenInterval(1);
        let times: Vec<u64> = (0..10_000).map(|_| interval.next().as_micros() as u64).collect();
        assert!(times.iter().all(|time| INTERVAL_US.contains(time)));
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
        assert!((990.0..1_010.0).contains(&mean), "{mean}");
        assert!(times.iter().filter(|&&time| time < 750).count() > 2_000);
    }
}
