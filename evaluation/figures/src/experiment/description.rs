//! What an experiment is made of, and what is read of it from `data/experiments.json`: all but its series.

use std::sync::LazyLock;

use serde::Deserialize;

use super::claim::Claim;
use super::metric::Metric;
use super::paper::Paper;
use crate::command::BenchCommand;

const DESCRIPTIONS: &str = include_str!("../../data/experiments.json");

/// The descriptions, in the order of the file.
pub(super) static ALL: LazyLock<Vec<Description>> = LazyLock::new(|| {
    serde_json::from_str(DESCRIPTIONS)
        .unwrap_or_else(|error| unreachable!("the descriptions in this crate can be read: {error}"))
});

/// An experiment as the file describes it; see [`Experiment`].
#[derive(Debug, Deserialize)]
pub(super) struct Description {
    pub(super) name: &'static str,
    pub(super) source: &'static str,
    pub(super) title: &'static str,
    /// Lines that are joined by spaces.
    pub(super) about: Vec<&'static str>,
    pub(super) axis: Axis,
    /// Whether there are as many runs as of an experiment over time.
    #[serde(default)]
    pub(super) timeline_runs: bool,
    pub(super) plots: Vec<Plot>,
    pub(super) claims: Vec<Claim>,
}

/// A figure of a paper, or a section with measurements.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What a user calls it, like `silo-4`.
    pub name: &'static str,
    /// Where it comes from, like `Silo (SOSP 2013), figure 4`.
    pub source: &'static str,
    /// What it shows, in one line.
    pub title: &'static str,
    /// What is run, and in what it differs from the paper's.
    pub about: String,
    /// What the points of a series differ in.
    pub axis: Axis,
    /// The systems that are compared. The first point of the first one is what relative figures relate to.
    pub series: Vec<Series>,
    /// Runs of each point.
    pub runs: usize,
    /// How the results are drawn.
    pub plots: Vec<Plot>,
    /// What the paper says of it.
    pub claims: Vec<Claim>,
}

/// What the points of a series differ in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Nothing: each series is one bar.
    Series,
    /// The number of workers.
    Workers,
    /// Something else that is a number, with its name.
    Number(&'static str),
}

/// One system under one load.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the paper.
    pub name: &'static str,
    /// What the paper measured.
    pub paper: Paper,
    /// What is measured here, by ascending `x`.
    pub points: Vec<Point>,
}

/// One point of a series.
#[derive(Debug, Clone)]
pub struct Point {
    /// Where it lies on the axis; 0 if there is none.
    pub x: f64,
    /// How it is measured.
    pub command: BenchCommand,
}

/// One drawing of the results.
#[derive(Debug, Clone, Deserialize)]
pub struct Plot {
    /// What it shows.
    pub title: &'static str,
    /// What is drawn.
    pub metric: Metric,
    /// How.
    #[serde(default)]
    pub kind: PlotKind,
}

/// How results are drawn: curves if there is an axis, bars if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// The medians with the least and the most.
    #[default]
    Here,
    /// The same and the paper's, each relative to its own first point, since machines differ.
    BesidePaper,
    /// One run of each series over time, with its checkpoints.
    OverTime,
}

impl Experiment {
    /// The most workers that any run has.
    pub fn most_workers(&self) -> usize {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.map(|point| point.command.workers).max().unwrap_or(0)
    }

    /// The workloads of its runs in words, each once.
    pub(crate) fn workload(&self) -> String {
        let mut titles: Vec<&str> = Vec::new();
        for point in self.series.iter().flat_map(|series| &series.points) {
            let title = point.command.workload.title();
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
        titles.join(" and ")
    }

    /// A point's place on the axis in words, like `2 workers`; empty if there is no axis.
    pub(crate) fn place(&self, x: f64) -> String {
        match self.axis {
            Axis::Series => String::new(),
            Axis::Workers => format!("{x} {}", if x == 1.0 { "worker" } else { "workers" }),
            Axis::Number(label) => format!("{x} {label}"),
        }
    }

    /// The series of this name.
    pub(crate) fn series_at(&self, name: &str) -> Option<usize> {
        self.series.iter().position(|series| series.name == name)
    }
}

impl Axis {
    /// What stands beside it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Series => "",
            Self::Workers => "workers",
            Self::Number(label) => label,
        }
    }
}

impl Point {
    /// Whether it has more workers than the machine has processors. Such points are shown and judge no claim.
    pub fn is_beyond(&self, cores: usize) -> bool {
        self.command.workers > cores
    }
}

impl Series {
    /// A series with one point.
    pub(super) fn bar(name: &'static str, paper: Paper, command: BenchCommand) -> Self {
        Self { name, paper, points: vec![Point { x: 0.0, command }] }
    }

    /// A series over numbers of workers.
    pub(super) fn over_workers(
        name: &'static str,
        paper: Paper,
        workers: &[usize],
        command: impl Fn(usize) -> BenchCommand,
    ) -> Self {
        let points = workers.iter().map(|&workers| Point { x: workers as f64, command: command(workers) });
        Self { name, paper, points: points.collect() }
    }
}
