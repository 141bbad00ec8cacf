//! How steady a run was: its worst half second beside the median one.

use serde::Serialize;

use crate::driver::Interval;

/// Intervals of the timeline in a half second.
const INTERVALS: usize = 5;
/// Seconds that these take at least: the last interval of a run may be cut short.
const SECONDS_MIN: f64 = 0.45;

/// The half seconds of a run, which begin every tenth of a second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HalfSecondsReport {
    /// Committed transactions per second in the median half second.
    pub median_per_second: f64,
    /// The worst of all.
    pub worst: HalfSecond,
    /// The worst of those in which a checkpoint was under way; `null` if there was none.
    pub worst_with_checkpoint: Option<HalfSecond>,
    /// The worst of the others; `null` if there was none.
    pub worst_without_checkpoint: Option<HalfSecond>,
}

/// A half second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct HalfSecond {
    /// When it ended, in seconds since the measured time began.
    pub ended_at: f64,
    /// Committed transactions per second.
    pub throughput_per_second: f64,
    /// That, as a share of the median half second's.
    pub of_median: f64,
}

/// Some intervals in a row.
#[derive(Debug, Clone, Copy)]
struct Window {
    ended_at: f64,
    throughput_per_second: f64,
    has_checkpoint: bool,
}

impl HalfSecondsReport {
    /// `None` if the run took less than a half second, or if the median half second saw no transaction.
    pub(super) fn new(timeline: &[Interval]) -> Option<Self> {
        let windows = windows(timeline);
        let median_per_second = median(&windows).filter(|&median| median > 0.0)?;
        let half_second = |window: &Window| HalfSecond {
            ended_at: window.ended_at,
            throughput_per_second: window.throughput_per_second,
            of_median: window.throughput_per_second / median_per_second,
        };
        let worst = |counts: fn(&Window) -> bool| {
            let counted = windows.iter().filter(|window| counts(window));
            let worst = counted.min_by(|a, b| a.throughput_per_second.total_cmp(&b.throughput_per_second));
            worst.map(half_second)
        };
        Some(HalfSecondsReport {
            median_per_second,
            worst: worst(|_| true)?,
            worst_with_checkpoint: worst(|window| window.has_checkpoint),
            worst_without_checkpoint: worst(|window| !window.has_checkpoint),
        })
    }
}

fn windows(timeline: &[Interval]) -> Vec<Window> {
    let begins = std::iter::once(0.0).chain(timeline.iter().map(|interval| interval.ended_at));
    let windows = timeline.windows(INTERVALS).zip(begins).map(|(intervals, begin)| {
        let ended_at = intervals[INTERVALS - 1].ended_at;
        let committed: u64 = intervals.iter().map(|interval| interval.committed).sum();
        let seconds = ended_at - begin;
        let window = Window {
            ended_at,
            throughput_per_second: committed as f64 / seconds.max(f64::MIN_POSITIVE),
            has_checkpoint: intervals.iter().any(|interval| interval.checkpoint),
        };
        (seconds, window)
    });
    windows.filter(|(seconds, _)| *seconds >= SECONDS_MIN).map(|(_, window)| window).collect()
}

/// The median throughput; of an even number, the lower of the two in the middle.
fn median(windows: &[Window]) -> Option<f64> {
    let mut throughputs: Vec<f64> = windows.iter().map(|window| window.throughput_per_second).collect();
    throughputs.sort_by(f64::total_cmp);
    throughputs.get(throughputs.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A timeline of tenths of a second with so many commits each, and a checkpoint in some.
    fn timeline(committed: &[u64], checkpoints: std::ops::Range<usize>) -> Vec<Interval> {
        let interval = |(at, &committed)| Interval {
            ended_at: (at + 1) as f64 / 10.0,
            committed,
            aborted: 0,
            durable_latency_ms_max: None,
            checkpoint: checkpoints.contains(&at),
        };
        committed.iter().enumerate().map(interval).collect()
    }

    #[test]
    fn the_worst_half_second_is_found_wherever_it_begins() {
        let mut committed = [100; 40];
        committed[13..18].fill(50);
        let report = HalfSecondsReport::new(&timeline(&committed, 0..0)).unwrap();
        assert!((report.median_per_second - 1000.0).abs() < 1e-6);
        assert!((report.worst.of_median - 0.5).abs() < 1e-6, "{report:?}");
        assert!((report.worst.ended_at - 1.8).abs() < 1e-9);
        assert!(report.worst_with_checkpoint.is_none());
    }

    #[test]
    fn half_seconds_with_a_checkpoint_are_told_from_the_others() {
        let mut committed = [100; 40];
        committed[5] = 80;
        committed[20..25].fill(90);
        let report = HalfSecondsReport::new(&timeline(&committed, 22..24)).unwrap();
        let with = report.worst_with_checkpoint.unwrap();
        let without = report.worst_without_checkpoint.unwrap();
        assert!((with.of_median - 0.9).abs() < 1e-6, "{report:?}");
        assert!((without.of_median - 0.96).abs() < 1e-6, "{report:?}");
        assert!((report.worst.of_median - 0.9).abs() < 1e-6);
    }

    #[test]
    fn a_run_of_less_than_half_a_second_has_none_and_a_last_interval_cut_short_is_left_out() {
        assert!(HalfSecondsReport::new(&timeline(&[100; 4], 0..0)).is_none());
        assert!(HalfSecondsReport::new(&timeline(&[0; 40], 0..0)).is_none());
        let mut cut = timeline(&[100; 6], 0..0);
        cut[5] = Interval { ended_at: 0.5001, committed: 0, ..cut[5] };
        let report = HalfSecondsReport::new(&cut).unwrap();
        assert!((report.worst.of_median - 1.0).abs() < 1e-3, "{report:?}");
    }
}
