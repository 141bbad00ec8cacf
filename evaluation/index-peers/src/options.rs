//! What the program is asked to do.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use serde::Serialize;

/// Measures ordered maps beside each other and prints a table of operations per second.
#[derive(Debug, Clone, Parser)]
#[command(version, about)]
pub(crate) struct Options {
    /// Keys in each map.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub(crate) keys: u64,

    /// Numbers of threads, each measured in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2], value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) threads: Vec<u64>,

    /// How long each measurement of look-ups, scans and mixed work takes, in seconds. Inserts and removes take as long as they
    /// take.
    #[arg(long, default_value_t = 3.0)]
    pub(crate) seconds: f64,

    /// How often everything is measured; the table shows medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: u64,

    /// What the time of a measurement is.
    #[arg(long, default_value_t = Clock::Wall)]
    pub(crate) clock: Clock,

    /// The shapes of keys, each measured in turn.
    #[arg(long, value_delimiter = ',', default_values_t = [Shape::Random, Shape::Sequential, Shape::Composite])]
    pub(crate) shapes: Vec<Shape>,

    /// The maps that take part; all of them if none is named.
    #[arg(long, value_delimiter = ',')]
    pub(crate) maps: Vec<String>,

    /// Also write all results to this file, as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,

    /// Also write the medians to this file, as CSV.
    #[arg(long)]
    pub(crate) csv: Option<PathBuf>,
}

/// What the time of a measurement is.
#[derive(Debug, Copy, Clone, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clock {
    /// From the first thread's start to the last one's end.
    Wall,
    /// The time that the threads were running: for machines on which others work too. Waiting costs nothing then.
    Processor,
}

impl std::fmt::Display for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Clock::Wall => "wall",
            Clock::Processor => "processor",
        })
    }
}

/// What keys look like.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// 8 bytes, spread over the whole range.
    Random,
    /// 8 bytes, one after the other.
    Sequential,
    /// 24 bytes: three numbers, of which the first two are shared by a few keys.
    Composite,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Shape::Random => "random",
            Shape::Sequential => "sequential",
            Shape::Composite => "composite",
        })
    }
}

impl Options {
    /// Whether the map takes part.
    pub(crate) fn wants(&self, map: &str) -> bool {
        self.maps.is_empty() || self.maps.iter().any(|name| name == map)
    }
}
