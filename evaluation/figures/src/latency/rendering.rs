//! Runs in words and pictures.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table as TextTable};

use super::measure::DISK;
use super::{FILE_NAME, NAME, TITLE};
use crate::compare::{PeerRun, facts_of, is_own};
use crate::error::FiguresError;
use crate::page::{Section, Table};
use crate::plot::{Curve, CurvePoint, LineChart, Ticks, short_number};
use crate::results::Spread;

const ABOUT: &str = "\
Transfers between two of 100,000 accounts that are chosen uniformly. Each client waits for its answer, which comes when the transfer is on disk, \
before it goes on; a database may sync the transfers of several clients at once. The dashed line is the disk itself: one client that \
overwrites 4 KiB of a file that was written before, past the page cache where the system allows that, and calls fdatasync.";

const HEADER: [&str; 7] =
    ["database", "clients", "runs", "p50 us", "p99 us", "requests/s", "p50 of the disk's"];

/// What is read off a run.
type Figure = fn(&PeerRun) -> f64;

/// What is drawn: a title, what stands beside the axis, and the figure.
const PLOTS: [(&str, &str, Figure); 3] = [
    ("Transfers on disk: half of the answers come within (down is better)", "us", |run| run.latency_us_p50),
    ("Transfers on disk: 99 of 100 answers come within (down is better)", "us", |run| run.latency_us_p99),
    ("Transfers on disk: throughput (up is better)", "requests/s", |run| run.transactions_per_second),
];

/// The runs of one database, or of the disk, by ascending number of clients.
struct PeerRuns<'r> {
    name: &'r str,
    by_clients: Vec<(usize, Vec<&'r PeerRun>)>,
}

impl<'r> PeerRuns<'r> {
    /// Of all that was measured, in the order of the first runs, the disk at the end.
    fn all(runs: &'r [PeerRun]) -> Vec<Self> {
        let mut names: Vec<&str> = Vec::new();
        for run in runs {
            if !names.contains(&run.peer.as_str()) {
                names.push(&run.peer);
            }
        }
        names.sort_by_key(|name| *name == DISK);
        names.into_iter().map(|name| Self::of(name, runs)).collect()
    }

    fn of(name: &'r str, runs: &'r [PeerRun]) -> Self {
        let own = || runs.iter().filter(|run| run.peer == name);
        let mut clients: Vec<usize> = own().map(|run| run.workers).collect();
        clients.sort_unstable();
        clients.dedup();
        let of_clients = |clients| (clients, own().filter(|run| run.workers == clients).collect::<Vec<_>>());
        Self { name, by_clients: clients.into_iter().map(of_clients).collect() }
    }

    fn curve(&self, series: usize, ends: (f64, f64), figure: Figure) -> Curve {
        let point = |(clients, runs): &(usize, Vec<&PeerRun>)| {
            let Spread { median: y, min, max, .. } = spread(runs, figure)?;
            Some(CurvePoint { x: *clients as f64, y, min, max })
        };
        let points: Vec<_> = self.by_clients.iter().filter_map(point).collect();
        match (self.name, points.first()) {
            // Measured with one client, it is drawn beside all numbers of clients.
            (DISK, Some(&point)) => {
                let mut points = vec![CurvePoint { x: ends.0, ..point }, CurvePoint { x: ends.1, ..point }];
                points.dedup();
                Curve {
                    name: "the disk's write and sync".to_owned(),
                    series,
                    is_paper: true,
                    is_own: false,
                    points,
                }
            }
            _ => Curve {
                name: self.name.to_owned(),
                series,
                is_paper: false,
                is_own: is_own(self.name),
                points,
            },
        }
    }
}

fn spread(runs: &[&PeerRun], figure: Figure) -> Option<Spread> {
    Spread::of(runs.iter().map(|run| figure(run)).collect())
}

/// A row for the disk, and one for each database and number of clients.
fn rows_of(runs: &[PeerRun]) -> Vec<Vec<String>> {
    let all = PeerRuns::all(runs);
    let p50 = |run: &PeerRun| run.latency_us_p50;
    let disk =
        all.iter().find(|of| of.name == DISK).and_then(|disk| spread(&disk.by_clients.first()?.1, p50));
    let row = |name: &str, (clients, runs): &(usize, Vec<&PeerRun>)| {
        let figures = PLOTS.map(|(_, _, figure)| spread(runs, figure).map_or(0.0, |spread| spread.median));
        let ratio = disk.map(|disk| format!("{:.2}x", figures[0] / disk.median));
        let mut row = vec![name.to_owned(), clients.to_string(), runs.len().to_string()];
        row.extend(figures.map(short_number));
        row.push(ratio.unwrap_or_default());
        row
    };
    all.iter().flat_map(|of| of.by_clients.iter().map(|point| row(of.name, point))).collect()
}

/// The table for a terminal, and what has to be known of it.
pub fn text_of(runs: &[PeerRun]) -> String {
    let mut table = TextTable::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(HEADER).add_rows(rows_of(runs));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    [vec![format!("{NAME}: {TITLE}"), table.to_string()], notes_of(runs)].concat().join("\n")
}

/// Checks that failed, and that there is nothing to compare with.
fn notes_of(runs: &[PeerRun]) -> Vec<String> {
    let failed = runs.iter().filter(|run| run.checks_failed > 0).map(|run| {
        format!("{} failed the check after run {} with {} client(s)", run.peer, run.run, run.workers)
    });
    let has_others = PeerRuns::all(runs).iter().any(|of| ![DISK, "ensilo"].contains(&of.name));
    let alone = "No other database was measured: the program was built without them (cargo build --release --features peers).";
    failed.chain((!has_others).then(|| alone.to_owned())).collect()
}

/// The section of the page.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(super) fn section_of(runs: &[PeerRun]) -> Result<Section, FiguresError> {
    Ok(Section {
        id: NAME.to_owned(),
        source: "ensilo figures run latency".to_owned(),
        title: TITLE.to_owned(),
        about: ABOUT.to_owned(),
        notes: notes_of(runs),
        plots: plots_of(runs)?,
        table: Some(Table { header: HEADER.map(str::to_owned).to_vec(), rows: rows_of(runs) }),
        runs_file: Some(FILE_NAME.to_owned()),
        facts: facts_of(runs),
        ..Section::default()
    })
}

/// The plots, in order.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(super) fn plots_of(runs: &[PeerRun]) -> Result<Vec<String>, FiguresError> {
    let all = PeerRuns::all(runs);
    let mut clients: Vec<f64> = runs.iter().map(|run| run.workers as f64).collect();
    clients.sort_by(f64::total_cmp);
    clients.dedup();
    let ends = (clients.first().copied().unwrap_or(1.0), clients.last().copied().unwrap_or(1.0));
    let plot = |(title, y_label, figure): (&str, &str, Figure)| {
        let curves = all.iter().enumerate().map(|(series, of)| of.curve(series, ends, figure));
        let chart = LineChart {
            title: title.to_owned(),
            x_label: "clients".to_owned(),
            y_label: y_label.to_owned(),
            ticks: Ticks::Doubling(clients.clone()),
            curves: curves.collect(),
            shades: Vec::new(),
            shade_meaning: String::new(),
            has_markers: true,
        };
        chart.to_svg()
    };
    PLOTS.into_iter().map(plot).collect()
}

#[cfg(test)]
mod tests;
