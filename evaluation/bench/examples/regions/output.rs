//! Shares as a table and as CSV.

use std::path::Path;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use ensilo_bench::report::RegionRun;

pub(crate) fn text_of(runs: &[RegionRun]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    let header = ["system, storage", "workers", "run"].into_iter().chain(RegionRun::PARTS);
    table.set_header(header.chain(["waiting", "looks"]));
    for run in runs {
        let subject =
            [format!("{}, {}", run.system, run.storage), run.workers.to_string(), run.run.to_string()];
        let shares = run.shares().into_iter().chain([run.waiting]).map(percent);
        table.add_row(subject.into_iter().chain(shares).chain([run.looks.to_string()]));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    format!(
        "Percent of the time in which workers were at work, and of the time of transactions waiting:\n{table}"
    )
}

pub(crate) fn write_csv(path: &Path, runs: &[RegionRun]) -> csv::Result<()> {
    let mut file = csv::Writer::from_path(path)?;
    runs.iter().try_for_each(|run| file.serialize(rounded(run)))?;
    Ok(file.flush()?)
}

/// A run whose shares have the digits that mean something.
fn rounded(run: &RegionRun) -> RegionRun {
    let round = |share: f64| (share * 1e6).round() / 1e6;
    RegionRun {
        index: round(run.index),
        indirection: round(run.indirection),
        log: round(run.log),
        epochs: round(run.epochs),
        engine: round(run.engine),
        workload: round(run.workload),
        waiting: round(run.waiting),
        transactions_per_second: run.transactions_per_second.round(),
        ..run.clone()
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}
