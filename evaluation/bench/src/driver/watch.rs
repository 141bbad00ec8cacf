//! Watching a run from outside: what the workers let others see, looked at ten times a second.
//!
//! The workers share nothing for it: each stores its own counts, and how long the disk took, on cache lines of its own. All is Relaxed, as
//! nothing else is published by it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ensilo::Engine;
use ensilo::generic::Database;
use serde::{Deserialize, Serialize};

use super::interrupt::Interrupt;
use super::view::{Tick, View};

/// How long an interval of the timeline is, in milliseconds.
const INTERVAL_MS: u128 = 100;

/// What a worker lets others see while it runs; each is written by one worker only and alone on its cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct LiveCounts {
    pub(super) committed: AtomicU64,
    pub(super) aborted: AtomicU64,
    /// Nanoseconds until a transaction was stored, the longest since somebody looked.
    durable_latency_ns_max: AtomicU64,
}

impl LiveCounts {
    /// Takes note of a transaction that is stored now.
    pub(super) fn note_stored(&self, latency_ns: u64) {
        self.durable_latency_ns_max.fetch_max(latency_ns, Relaxed);
    }
}

/// A tenth of a second of a run, a little more if the machine was too busy to look in time. The names are those in the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it ended, in seconds since the measured time began.
    pub ended_at: f64,
    /// Transactions that committed in it.
    pub committed: u64,
    /// Attempts that aborted in it.
    pub aborted: u64,
    /// Milliseconds from the start of a request until it was seen to be stored: the longest of those that were seen in it; `None` without any.
    pub durable_latency_ms_max: Option<f64>,
    /// Whether a checkpoint was under way in it, if only for a part.
    pub checkpoint: bool,
}

/// One second of a run (the last may be a part of one).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SecondCounts {
    /// When it ended, in seconds since the measured time began.
    pub ended_at: f64,
    /// Transactions that committed in it.
    pub committed: u64,
    /// Attempts that aborted in it.
    pub aborted: u64,
}

/// What was seen of a phase.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) elapsed: Duration,
    pub(super) timeline: Vec<Interval>,
    pub(super) per_second: Vec<SecondCounts>,
}

/// Looks at the workers of a run.
pub(super) struct Watch<'w, E: Engine> {
    pub(super) live: &'w [LiveCounts],
    pub(super) database: Option<&'w Database<E>>,
    pub(super) view: &'w mut View,
    pub(super) interrupt: &'w Interrupt,
}

impl<E: Engine> Watch<'_, E> {
    /// Waits for the end of a phase, which is after the time planned, or when the user or `is_stopped` says so, and tells each second how it
    /// goes.
    pub(super) fn watch(&mut self, phase: &str, planned: Duration, is_stopped: impl Fn() -> bool) -> Watched {
        let start = Instant::now();
        let mut watched = Watched::default();
        let mut before = LiveTotals::at(self);
        while watched.elapsed < planned && !self.interrupt.is_raised() && !is_stopped() {
            self.interrupt.wait_until(start + next_look(watched.elapsed).min(planned));
            let elapsed = start.elapsed();
            let look = LiveTotals::at(self);
            watched.timeline.push(look.since(&before, elapsed));
            let is_second_over = elapsed.as_secs() > watched.elapsed.as_secs() || elapsed >= planned;
            (before, watched.elapsed) = (look, elapsed);
            if is_second_over {
                self.end_second(phase, planned, &mut watched);
            }
        }
        self.end_second(phase, planned, &mut watched);
        watched
    }

    /// Sums up the intervals since the last whole second, if there are any, and shows them.
    fn end_second(&mut self, phase: &str, planned: Duration, watched: &mut Watched) {
        let began_at = watched.per_second.last().map_or(0.0, |second| second.ended_at);
        let intervals = || watched.timeline.iter().filter(|interval| interval.ended_at > began_at);
        let second = SecondCounts {
            ended_at: watched.elapsed.as_secs_f64(),
            committed: intervals().map(|interval| interval.committed).sum(),
            aborted: intervals().map(|interval| interval.aborted).sum(),
        };
        let length = second.ended_at - began_at;
        if length <= 0.0 {
            return;
        }
        self.view.tick(Tick {
            phase,
            elapsed: watched.elapsed,
            planned,
            throughput_per_second: second.committed as f64 / length,
            aborts_per_second: second.aborted as f64 / length,
        });
        watched.per_second.push(second);
    }
}

/// The end of the interval that has begun, in time since the beginning.
fn next_look(elapsed: Duration) -> Duration {
    Duration::from_millis(((elapsed.as_millis() / INTERVAL_MS + 1) * INTERVAL_MS) as u64)
}

/// What a look shows.
struct LiveTotals {
    committed: u64,
    aborted: u64,
    /// Of those that were stored since the look before.
    durable_latency_ns_max: u64,
    checkpoints_ended: u64,
    is_checkpoint_under_way: bool,
}

impl LiveTotals {
    fn at<E: Engine>(watch: &Watch<'_, E>) -> LiveTotals {
        let sum = |pick: fn(&LiveCounts) -> &AtomicU64| {
            watch.live.iter().map(|live| pick(live).load(Relaxed)).sum()
        };
        let latencies = watch.live.iter().map(|live| live.durable_latency_ns_max.swap(0, Relaxed));
        let statistics = watch.database.and_then(|database| database.statistics().ok());
        let checkpoints = statistics.and_then(|statistics| statistics.durability).map(|of| of.checkpoints);
        let checkpoints = checkpoints.unwrap_or_default();
        LiveTotals {
            committed: sum(|live| &live.committed),
            aborted: sum(|live| &live.aborted),
            durable_latency_ns_max: latencies.max().unwrap_or(0),
            checkpoints_ended: checkpoints.made + checkpoints.failed,
            is_checkpoint_under_way: checkpoints.is_under_way,
        }
    }

    /// What happened since `before`, when so much time has gone by.
    fn since(&self, before: &LiveTotals, elapsed: Duration) -> Interval {
        Interval {
            ended_at: elapsed.as_secs_f64(),
            committed: self.committed - before.committed,
            aborted: self.aborted - before.aborted,
            durable_latency_ms_max: Some(self.durable_latency_ns_max)
                .filter(|&ns| ns > 0)
                .map(|ns| ns as f64 / 1e6),
            checkpoint: self.is_checkpoint_under_way
                || before.is_checkpoint_under_way
                || self.checkpoints_ended > before.checkpoints_ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_made_at_tenths_of_a_second_however_late_the_last_one_was() {
        let after_ms = |ms| next_look(Duration::from_millis(ms)).as_millis();
        assert_eq!([0, 1, 99, 100, 101, 270].map(after_ms), [100, 100, 100, 200, 200, 300]);
    }

    #[test]
    fn an_interval_touches_a_checkpoint_that_began_or_ended_in_it() {
        let look = |checkpoints_ended, is_checkpoint_under_way| LiveTotals {
            committed: 0,
            aborted: 0,
            durable_latency_ns_max: 0,
            checkpoints_ended,
            is_checkpoint_under_way,
        };
        let touches =
            |before: &LiveTotals, after: &LiveTotals| after.since(before, Duration::ZERO).checkpoint;
        assert!(!touches(&look(1, false), &look(1, false)));
        assert!(touches(&look(1, false), &look(1, true)));
        assert!(touches(&look(1, true), &look(2, false)));
        assert!(touches(&look(1, false), &look(2, false)), "it was too short to be seen");
    }
}
