//! How long messages take between two processes, as a report.
//!
//! # Source
//! Islands (VLDB Journal) §3, figure 2.

use std::fmt;

use ensilo_islands::{ChannelKind, RoundTrips};
use serde::Serialize;

/// Round trips through one kind of channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChannelReport {
    /// `channels`.
    pub workload: &'static str,
    /// The kind of channel.
    pub channel: &'static str,
    /// How the two processes were placed; `cpus` where their processors were named.
    pub placement: &'static str,
    /// The length of a message.
    pub message_bytes: usize,
    /// How many processes send and answer: two.
    pub workers: usize,
    /// How long was measured, and again with the other end asleep.
    pub seconds: f64,
    /// Messages a second, two for each round trip, one round trip right after the other.
    pub throughput: f64,
    /// Microseconds of a round trip, of the middle one and of one in a hundred.
    pub round_trip_us_p50: f64,
    /// See `round_trip_us_p50`.
    pub round_trip_us_p99: f64,
    /// Microseconds of the middle one of the round trips that have found the other end asleep.
    pub asleep_us_p50: f64,
}

/// How round trips were measured.
#[derive(Copy, Clone, Debug)]
pub struct ChannelRun {
    /// Through which channel.
    pub kind: ChannelKind,
    /// See [`ChannelReport::placement`].
    pub placement: &'static str,
    /// The length of a message.
    pub message_bytes: usize,
    /// How long.
    pub seconds: f64,
}

impl ChannelReport {
    /// The report on round trips one right after the other, and on those that have found the other end
    /// asleep.
    #[must_use]
    pub fn new(run: ChannelRun, [busy, asleep]: [&RoundTrips; 2]) -> Self {
        let micros = |trips: &RoundTrips, share| trips.quantile(share).as_secs_f64() * 1e6;
        ChannelReport {
            workload: "channels",
            channel: run.kind.name(),
            placement: run.placement,
            message_bytes: run.message_bytes,
            workers: 2,
            seconds: run.seconds,
            throughput: 2.0 * busy.per_second(),
            round_trip_us_p50: micros(busy, 0.5),
            round_trip_us_p99: micros(busy, 0.99),
            asleep_us_p50: micros(asleep, 0.5),
        }
    }

    /// What stands above the lines of reports.
    #[must_use]
    pub fn header() -> String {
        format!(
            "{:8} {:>12} {:>12} {:>12} {:>16}",
            "channel", "per second", "median us", "99 % us", "asleep median us"
        )
    }

    /// Returns the report as one JSON object on one line, with the fields of this struct.
    #[must_use]
    pub fn to_json(&self) -> String {
        let Ok(json) = serde_json::to_string(self) else {
            unreachable!("numbers and names are JSON");
        };
        json
    }
}

/// A line below the [header](ChannelReport::header), with round trips a second.
impl fmt::Display for ChannelReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:8} {:>12.0} {:>12.2} {:>12.2} {:>16.2}",
            self.channel,
            self.throughput / 2.0,
            self.round_trip_us_p50,
            self.round_trip_us_p99,
            self.asleep_us_p50
        )
    }
}
