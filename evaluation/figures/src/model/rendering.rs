//! The model in words, tables and plots.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table as TextTable};

use super::{Check, Model, Prediction, WORKERS, points_of};
use crate::command::PRODUCT;
use crate::error::FiguresError;
use crate::page::{Section, Table};
use crate::plot::{Curve, CurvePoint, LineChart, Ticks};
use crate::table::csv_of;

const ABOUT: &str = "\
What a transaction does to cache lines was counted by workers that take turns, and a model of one formula computes from it how much more workers get \
done: docs/scaling.md. First the paper's machine beside the paper's points, then a machine of one socket with many processors like those that \
the time of a transaction alone was measured on, named here: it need not be the machine of the other sections. Nothing of this is a \
measurement of many cores.";

/// Columns of `model-check.csv`.
const CHECK_COLUMNS: [&str; 6] = [
    "curve",
    "workers",
    "paper_transactions_per_second",
    "predicted_transactions_per_second",
    "error",
    "fitted",
];

/// Columns of `model.csv`.
const COLUMNS: [&str; 5] =
    ["workload", "system", "workers", "predicted_transactions_per_second", "times_one_worker"];

pub(super) fn csv_of_checks(checks: &[Check]) -> String {
    let rows = checks.iter().flat_map(|check| {
        check.points.iter().map(|(paper, predicted)| {
            let workers = paper.x as usize;
            vec![
                check.name.clone(),
                workers.to_string(),
                paper.throughput.to_string(),
                format!("{predicted:.0}"),
                format!("{:.4}", predicted / paper.throughput - 1.0),
                (workers == 1 || check.fitted_at == Some(workers)).to_string(),
            ]
        })
    });
    csv_of(CHECK_COLUMNS.into_iter(), rows)
}

pub(super) fn csv_of_predictions(predictions: &[Prediction]) -> String {
    let rows = predictions.iter().flat_map(|prediction| {
        prediction.points.iter().map(|&(workers, throughput)| {
            vec![
                prediction.workload.clone(),
                prediction.system.clone(),
                workers.to_string(),
                format!("{throughput:.0}"),
                format!("{:.3}", throughput / prediction.points[0].1),
            ]
        })
    });
    csv_of(COLUMNS.into_iter(), rows)
}

pub(super) fn plots_of(model: &Model) -> Result<Vec<(String, String)>, FiguresError> {
    let mut plots = vec![("model-check.svg".to_owned(), checks_chart(&model.checks).to_svg()?)];
    for (workload, title) in [("ycsb", "YCSB"), ("tpcc", "TPC-C")] {
        let of_workload: Vec<_> =
            model.predictions.iter().filter(|prediction| prediction.workload == workload).collect();
        if !of_workload.is_empty() {
            plots.push((format!("model-{workload}.svg"), predictions_chart(title, &of_workload).to_svg()?));
        }
    }
    Ok(plots)
}

fn checks_chart(checks: &[Check]) -> LineChart {
    let predicted = checks.iter().enumerate().map(|(at, check)| Curve {
        name: check.name.clone(),
        series: at,
        is_paper: false,
        is_own: false,
        points: check.predicted.iter().map(|&(workers, y)| point(workers, y)).collect(),
    });
    let mut curves: Vec<_> = predicted.collect();
    for (at, check) in checks.iter().enumerate() {
        let is_drawn = checks[..at].iter().any(|before| before.series == check.series);
        if !is_drawn {
            curves.push(paper_curve(check.series, at));
        }
    }
    chart("YCSB, figure 4: throughput predicted and measured by the paper (up is better)".to_owned(), curves)
}

fn paper_curve(name: &'static str, series: usize) -> Curve {
    let points = points_of(name);
    let points = points
        .iter()
        .map(|paper| CurvePoint { x: paper.x, y: paper.throughput, min: paper.min, max: paper.max })
        .collect();
    Curve { name: format!("{name}, paper"), series, is_paper: true, is_own: false, points }
}

fn predictions_chart(title: &str, predictions: &[&Prediction]) -> LineChart {
    let curve = |(series, prediction): (usize, &&Prediction)| Curve {
        name: prediction.system.clone(),
        series,
        is_paper: false,
        is_own: prediction.system == PRODUCT,
        points: prediction.points.iter().map(|&(workers, y)| point(workers, y)).collect(),
    };
    chart(
        format!("{title}: throughput predicted for one socket (up is better)"),
        predictions.iter().enumerate().map(curve).collect(),
    )
}

fn chart(title: String, curves: Vec<Curve>) -> LineChart {
    LineChart {
        title,
        x_label: "workers".to_owned(),
        y_label: "transactions/s".to_owned(),
        ticks: Ticks::At(vec![1.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0]),
        curves,
        shades: Vec::new(),
        shade_meaning: String::new(),
        has_markers: true,
    }
}

fn point(workers: usize, y: f64) -> CurvePoint {
    CurvePoint { x: workers as f64, y, min: y, max: y }
}

/// Errors of a curve, and those of all of it.
pub(super) fn check_rows(checks: &[Check]) -> Vec<Vec<String>> {
    let row = |check: &Check| {
        let (mean, worst) = check.mean_and_worst();
        let at = |&(paper, predicted): &(crate::experiment::PaperPoint, f64)| {
            let is_given = paper.x as usize == 1 || check.fitted_at == Some(paper.x as usize);
            if is_given { "given".to_owned() } else { percent(predicted / paper.throughput - 1.0) }
        };
        // Means and maxima of amounts, which have no sign.
        let ends = [mean, worst].map(|amount| format!("{:.1} %", 100.0 * amount));
        std::iter::once(check.name.clone()).chain(check.points.iter().map(at)).chain(ends).collect()
    };
    checks.iter().map(row).collect()
}

fn check_header(checks: &[Check]) -> Vec<String> {
    let workers = checks.first().into_iter().flat_map(|check| &check.points);
    let workers = workers.map(|(paper, _)| paper.x.to_string());
    let ends = ["mean amount".to_owned(), "largest".to_owned()];
    std::iter::once("error of the prediction, workers".to_owned()).chain(workers).chain(ends).collect()
}

/// What a transaction needs, and what that makes of some numbers of workers.
fn prediction_rows(predictions: &[Prediction]) -> Vec<Vec<String>> {
    let row = |prediction: &Prediction| {
        let demand = &prediction.demand;
        let mut row = vec![
            format!("{}, {}", prediction.workload, prediction.system),
            format!("{:.0}", demand.alone_ns),
            format!("{:.2}", demand.memory_lines),
            format!("{:.3}", demand.fetched_lines),
            demand.hot_lines.to_string(),
            format!("{:.3}", demand.hot_fetches),
        ];
        let shown = prediction.points.iter().filter(|(workers, _)| SHOWN.contains(workers));
        row.extend(shown.map(|(_, throughput)| format!("{:.2}", throughput / 1e6)));
        row
    };
    predictions.iter().map(row).collect()
}

const SHOWN: [usize; 5] = [1, 8, 16, 32, 64];

fn prediction_header() -> Vec<String> {
    let needs =
        ["predicted for one socket", "alone, ns", "lines from memory", "fetched", "hot lines", "hot fetches"];
    let shown = WORKERS.iter().filter(|workers| SHOWN.contains(workers));
    let shown = shown.map(|workers| format!("Mtx/s, {workers}"));
    needs.map(str::to_owned).into_iter().chain(shown).collect()
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

pub(super) fn text_of(model: &Model) -> String {
    let checks = text_table(check_header(&model.checks), check_rows(&model.checks));
    let predictions = text_table(prediction_header(), prediction_rows(&model.predictions));
    format!(
        "The paper's figure 4 (crowding {:.2}, fitted):\n{checks}\n\nA machine of one socket, by costs of {}:\n{predictions}",
        model.crowding, model.machine
    )
}

fn text_table(header: Vec<String>, rows: Vec<Vec<String>>) -> String {
    let mut table = TextTable::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header(header).add_rows(rows);
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}

pub(super) fn section_of(model: &Model) -> Result<Section, FiguresError> {
    let errors = model.checks.iter().map(|check| {
        let (mean, worst) = check.mean_and_worst();
        format!("{}: off by {:.1} % in the mean, {:.1} % at most", check.name, 100.0 * mean, 100.0 * worst)
    });
    Ok(Section {
        id: "model".to_owned(),
        source: "Silo §5.2, figure 4".to_owned(),
        title: "Scaling on paper".to_owned(),
        about: ABOUT.to_owned(),
        notes: errors.collect(),
        plots: plots_of(model)?.into_iter().map(|(_, svg)| svg).collect(),
        table: Some(Table { header: prediction_header(), rows: prediction_rows(&model.predictions) }),
        commands: vec!["ensilo figures model".to_owned()],
        facts: vec![("costs of", model.machine.clone())],
        ..Section::default()
    })
}
