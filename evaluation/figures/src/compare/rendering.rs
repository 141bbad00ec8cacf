//! Runs in words and pictures.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table as TextTable};

use super::run::{FILE_NAME, PeerRun};
use crate::error::FiguresError;
use crate::page::{Fact, Section, Table};
use crate::plot::{Bar, BarChart, BarGroup, short_number};
use crate::provenance::from_to;
use crate::results::Spread;

const ABOUT: &str = "\
The same rows, keys and transactions on Ensilo and on what a user would pick instead, by the same driver and with the same check after \
every run; each database is used as its documentation recommends. Not synced: in memory, or without waiting for the disk. Synced: an answer \
comes when the transaction is on disk; each client waits for its answer before it goes on, and a database may sync the transactions of \
several clients at once.";

const HEADER: [&str; 12] = [
    "workload, setting, database",
    "clients",
    "runs",
    "tx/s, median",
    "least",
    "most",
    "of Ensilo's",
    "retried",
    "p50 us",
    "p99 us",
    "isolation",
    "checks",
];

/// The name of the database that the others are set against.
const OWN: &str = "ensilo";

/// Whether a database is Ensilo, on any of its engines.
pub(crate) fn is_own(peer: &str) -> bool {
    peer.strip_prefix(OWN).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '-', ',']))
}

/// All runs of one database under one workload, setting and number of clients.
struct PeerPoint<'r> {
    runs: Vec<&'r PeerRun>,
}

impl PeerPoint<'_> {
    fn spread(&self, figure: impl Fn(&PeerRun) -> f64) -> Option<Spread> {
        Spread::of(self.runs.iter().map(|run| figure(run)).collect())
    }

    fn throughput(&self) -> Option<Spread> {
        self.spread(|run| run.transactions_per_second)
    }

    fn is_beside(&self, other: &Self) -> bool {
        subject(self.runs[0]) == subject(other.runs[0])
    }
}

/// What databases are compared under.
fn subject(run: &PeerRun) -> (&str, &str, usize) {
    (&run.workload, &run.setting, run.workers)
}

/// The points in the order of their first runs.
fn points_of(runs: &[PeerRun]) -> Vec<PeerPoint<'_>> {
    let mut points: Vec<PeerPoint<'_>> = Vec::new();
    for run in runs {
        let is_of = |point: &&mut PeerPoint<'_>| {
            subject(point.runs[0]) == subject(run) && point.runs[0].peer == run.peer
        };
        match points.iter_mut().find(is_of) {
            Some(point) => point.runs.push(run),
            None => points.push(PeerPoint { runs: vec![run] }),
        }
    }
    points
}

/// A row for each database under each workload, setting and number of clients.
fn rows_of(runs: &[PeerRun]) -> Vec<Vec<String>> {
    let points = points_of(runs);
    points.iter().filter_map(|point| row_of(point, &points)).collect()
}

fn row_of(point: &PeerPoint<'_>, all: &[PeerPoint<'_>]) -> Option<Vec<String>> {
    let first = point.runs[0];
    let throughput = point.throughput()?;
    let own = all.iter().find(|other| other.is_beside(point) && other.runs[0].peer == OWN);
    let ratio = own.and_then(PeerPoint::throughput).map(|own| throughput.median / own.median);
    let share = |run: &PeerRun| run.aborted as f64 / (run.aborted + run.committed).max(1) as f64;
    let failed: usize = point.runs.iter().map(|run| run.checks_failed).sum();
    Some(vec![
        format!("{}, {}, {}", first.workload, first.setting, first.peer),
        first.workers.to_string(),
        throughput.count.to_string(),
        short_number(throughput.median),
        short_number(throughput.min),
        short_number(throughput.max),
        ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}x")),
        format!("{:.1} %", 100.0 * point.spread(share)?.median),
        short_number(point.spread(|run| run.latency_us_p50)?.median),
        short_number(point.spread(|run| run.latency_us_p99)?.median),
        first.isolation.clone(),
        if failed == 0 { "passed".to_owned() } else { format!("{failed} failed") },
    ])
}

/// The table for a terminal.
pub fn text_of(runs: &[PeerRun]) -> String {
    let mut table = TextTable::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(HEADER).add_rows(rows_of(runs));
    for column in table.column_iter_mut().skip(1).take(9) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// The section of the page.
///
/// # Errors
/// [`FiguresError::Plot`].
pub fn section_of(runs: &[PeerRun]) -> Result<Section, FiguresError> {
    let failed = runs.iter().filter(|run| run.checks_failed > 0);
    let notes = failed.map(|run| {
        let PeerRun { peer, workload, setting, workers, run, .. } = run;
        format!("{peer} failed the check after run {run} of {workload}, {setting}, {workers} clients")
    });
    Ok(Section {
        id: "compare".to_owned(),
        source: "ensilo compare".to_owned(),
        title: "What a user would pick instead".to_owned(),
        about: ABOUT.to_owned(),
        notes: notes.collect(),
        plots: plots_of(runs)?.into_iter().map(|(_, svg)| svg).collect(),
        table: Some(Table { header: HEADER.map(str::to_owned).to_vec(), rows: rows_of(runs) }),
        runs_file: Some(FILE_NAME.to_owned()),
        facts: facts_of(runs),
        ..Section::default()
    })
}

/// With what the runs were made; several comparisons may have been.
pub(crate) fn facts_of(runs: &[PeerRun]) -> Vec<Fact> {
    let all = |of: fn(&PeerRun) -> &str| {
        let mut different: Vec<&str> = Vec::new();
        for text in runs.iter().map(of) {
            let text = if text.is_empty() { "not noted for some runs" } else { text };
            if !different.contains(&text) {
                different.push(text);
            }
        }
        different.join("\n")
    };
    vec![
        ("machine", all(|run| &run.machine)),
        ("program", all(|run| &run.program)),
        ("measured", from_to(runs.iter().map(|run| run.measured_at.as_str()))),
        ("command", all(|run| &run.command)),
    ]
}

/// A plot for each workload, setting and number of clients, by a name for its file.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(super) fn plots_of(runs: &[PeerRun]) -> Result<Vec<(String, String)>, FiguresError> {
    let points = points_of(runs);
    let is_first =
        |(at, point): &(usize, &PeerPoint<'_>)| !points[..*at].iter().any(|other| other.is_beside(point));
    let firsts = points.iter().enumerate().filter(is_first).map(|(_, point)| point);
    firsts.map(|first| plot_of(points.iter().filter(|point| point.is_beside(first)))).collect()
}

/// The plot of databases under the same workload.
fn plot_of<'p>(
    points: impl Iterator<Item = &'p PeerPoint<'p>> + Clone,
) -> Result<(String, String), FiguresError> {
    let Some((workload, setting, workers)) = points.clone().next().map(|point| subject(point.runs[0])) else {
        return Err(FiguresError::Plot("there is nothing to compare".to_owned()));
    };
    let clients = if workers == 1 { "client" } else { "clients" };
    let chart = BarChart {
        title: format!("{workload}, {setting}, {workers} {clients}: throughput (up is better)"),
        y_label: "transactions a second".to_owned(),
        groups: points.map(group_of).collect(),
        mark_meaning: String::new(),
    };
    Ok((format!("{workload}-{}-{workers}", setting.replace(' ', "-")), chart.to_svg()?))
}

fn group_of(point: &PeerPoint<'_>) -> BarGroup {
    let bar = |Spread { median, min, max, .. }| Bar { value: median, min, max };
    BarGroup {
        label: point.runs[0].peer.clone(),
        here: point.throughput().map(bar),
        paper: None,
        is_marked: false,
        is_own: is_own(&point.runs[0].peer),
    }
}

#[cfg(test)]
pub(super) mod tests;
