//! Shares in words and pictures.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table as TextTable};
use ensilo_bench::report::RegionRun;

use super::{FILE_NAME, NAME, claims};
use crate::error::FiguresError;
use crate::page::{Section, Table};
use crate::plot::{StackedBar, StackedChart, short_number};

const ABOUT: &str = "\
TPC-C with a warehouse for each worker. A thread looked about a thousand times a second in which part of the program each worker was: shares are of \
the time in which workers were at work, means over the runs, where the paper counts processor cycles. Reading a row is the workload's, as is \
making keys; a new version, filled, is of the indirection arrays; epochs are with the horizon and with freeing what is garbage. The claims are \
about ERMIA-SI with a log, as in the paper, whose log lay in memory. The machine is that of the runs: it need not be the machine of the other \
sections.";

/// The runs of one system with so many workers.
struct Point<'r> {
    runs: Vec<&'r RegionRun>,
}

impl Point<'_> {
    fn mean(&self, figure: impl Fn(&RegionRun) -> f64) -> f64 {
        self.runs.iter().map(|run| figure(run)).sum::<f64>() / self.runs.len() as f64
    }

    fn percents(&self) -> Vec<f64> {
        let parts = 0..RegionRun::PARTS.len();
        parts.map(|part| 100.0 * self.mean(|run| run.shares()[part])).collect()
    }

    fn is_beyond(&self) -> bool {
        self.runs[0].workers > self.runs[0].cores
    }
}

/// Returns the points, those of a system and storage side by side, by ascending number of workers.
fn points_of(runs: &[RegionRun]) -> Vec<Vec<Point<'_>>> {
    let mut systems: Vec<Vec<Point<'_>>> = Vec::new();
    for run in runs {
        let at = systems.iter().position(|points| series(points[0].runs[0]) == series(run));
        let points = match at {
            Some(at) => &mut systems[at],
            None => {
                systems.push(Vec::new());
                let last = systems.len() - 1;
                &mut systems[last]
            }
        };
        match points.iter_mut().find(|point| point.runs[0].workers == run.workers) {
            Some(point) => point.runs.push(run),
            None => points.push(Point { runs: vec![run] }),
        }
    }
    systems.iter_mut().for_each(|points| points.sort_by_key(|point| point.runs[0].workers));
    systems
}

fn series(run: &RegionRun) -> (&str, &str) {
    (&run.system, &run.storage)
}

/// A system as ERMIA's paper calls it, and where its log is.
fn name_of(run: &RegionRun) -> String {
    let system = match run.system.as_str() {
        "ermia-snapshot" => "ERMIA-SI",
        "ermia" => "ERMIA-SSN",
        "ensilo" => "Silo",
        other => other,
    };
    let storage = match run.storage.as_str() {
        "memory" => "in memory",
        "log" => "with a log",
        other => other,
    };
    format!("{system}, {storage}")
}

/// A plot for each system and storage.
pub(super) fn plots_of(runs: &[RegionRun]) -> Result<Vec<String>, FiguresError> {
    points_of(runs).iter().map(|points| chart_of(points).to_svg()).collect()
}

fn chart_of(points: &[Point<'_>]) -> StackedChart {
    let first = points[0].runs[0];
    let bar = |point: &Point<'_>| StackedBar {
        label: point.runs[0].workers.to_string(),
        percents: point.percents(),
        is_marked: point.is_beyond(),
    };
    StackedChart {
        title: format!("TPC-C, {}: where time goes", name_of(first)),
        x_label: "workers".to_owned(),
        y_label: "% of the time at work".to_owned(),
        parts: RegionRun::PARTS.map(str::to_owned).to_vec(),
        bars: points.iter().map(bar).collect(),
        mark_meaning: format!("beyond {} processors", first.cores),
    }
}

fn header() -> Vec<String> {
    let parts = RegionRun::PARTS.map(|part| format!("{part}, %"));
    let begin = ["system", "workers", "runs"].map(str::to_owned);
    begin.into_iter().chain(parts).chain(["waiting, %", "tx/s"].map(str::to_owned)).collect()
}

fn rows_of(runs: &[RegionRun]) -> Vec<Vec<String>> {
    points_of(runs).iter().flatten().map(row_of).collect()
}

fn row_of(point: &Point<'_>) -> Vec<String> {
    let first = point.runs[0];
    let beyond = if point.is_beyond() { " (beyond the processors)" } else { "" };
    let mut row =
        vec![format!("{}{beyond}", name_of(first)), first.workers.to_string(), point.runs.len().to_string()];
    let waiting = 100.0 * point.mean(|run| run.waiting);
    row.extend(point.percents().into_iter().chain([waiting]).map(|percent| format!("{percent:.1}")));
    row.push(short_number(point.mean(|run| run.transactions_per_second)));
    row
}

/// The machines that runs are of, each once.
fn machines_of(runs: &[RegionRun]) -> String {
    let mut machines: Vec<&str> = Vec::new();
    for run in runs {
        if !machines.contains(&run.machine.as_str()) {
            machines.push(&run.machine);
        }
    }
    machines.join("\n")
}

/// Returns the shares and the rulings, for a terminal.
pub fn text_of(runs: &[RegionRun]) -> String {
    let mut table = TextTable::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(header()).add_rows(rows_of(runs));
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let claims = claims::rows_of(runs);
    let lines = claims.iter().map(|claim| format!("{}: here {}: {}", claim.text, claim.here, claim.ruling));
    let lines: Vec<String> = lines.collect();
    format!("On {}:\n{table}\n{}", machines_of(runs), lines.join("\n"))
}

/// The section of the page.
pub(super) fn section_of(runs: &[RegionRun]) -> Result<Section, FiguresError> {
    Ok(Section {
        id: NAME.to_owned(),
        source: "ERMIA §4.4, figure 11".to_owned(),
        title: "Where the time of TPC-C goes".to_owned(),
        about: ABOUT.to_owned(),
        claims: claims::rows_of(runs),
        plots: plots_of(runs)?,
        table: Some(Table { header: header(), rows: rows_of(runs) }),
        runs_file: Some(FILE_NAME.to_owned()),
        commands: vec!["cargo xtask regions --csv FILE; ensilo figures regions --shares FILE".to_owned()],
        facts: vec![("machine", machines_of(runs))],
        ..Section::default()
    })
}
