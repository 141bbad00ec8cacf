//! From an experiment's results to its section of the page, and to the lines for a terminal.

use crate::drawing::svg_of;
use crate::error::FiguresError;
use crate::experiment::{Axis, Claim, Experiment, Metric};
use crate::page::{ClaimRow, Section, Table};
use crate::plot::short_number;
use crate::results::{Results, Why};
use crate::table::command_line;
use crate::verdict::{Verdict, judge, line, number_here};

/// The section of an experiment on a machine with `cores` processors.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(crate) fn section_of(
    experiment: &Experiment,
    results: &Results,
    cores: usize,
) -> Result<Section, FiguresError> {
    let plots =
        experiment.plots.iter().filter_map(|plot| svg_of(experiment, plot, results, cores).transpose());
    Ok(Section {
        id: experiment.name.to_owned(),
        source: experiment.source.to_owned(),
        title: experiment.title.to_owned(),
        about: experiment.about.to_owned(),
        notes: [notes(experiment, results), starved(results, cores)].concat(),
        claims: experiment.claims.iter().map(|claim| claim_row(experiment, claim, results, cores)).collect(),
        plots: plots.collect::<Result<_, _>>()?,
        table: Some(table_of(experiment, results, cores)),
        runs_file: Some(format!("{}.csv", experiment.name)),
        commands: commands(results),
    })
}

/// A line for each claim, and one for each series of which runs are missing.
pub(crate) fn lines_of(experiment: &Experiment, results: &Results, cores: usize) -> Vec<String> {
    let claims = experiment.claims.iter().map(|claim| {
        let verdict = judge(experiment, claim, results, cores);
        line(claim, &verdict)
    });
    claims.chain(notes(experiment, results)).chain(starved(results, cores)).collect()
}

fn starved(results: &Results, cores: usize) -> Vec<String> {
    let note = |share| {
        format!(
            "Others were at work on this machine: a run got {:.0} % of the processors that it could use. The figures say little.",
            100.0 * share
        )
    };
    results.starved(cores).map(note).into_iter().collect()
}

fn notes(experiment: &Experiment, results: &Results) -> Vec<String> {
    let missing = results.missing(experiment).into_iter();
    missing
        .map(|(series, why, count)| match why {
            Why::Refused(why) => format!("{series}: this program refuses {count} run(s): {why}"),
            Why::Failed(why) => format!("{series}: {count} run(s) failed: {why}"),
        })
        .collect()
}

fn claim_row(experiment: &Experiment, claim: &Claim, results: &Results, cores: usize) -> ClaimRow {
    let Verdict { here, ruling } = judge(experiment, claim, results, cores);
    let unit = claim.unit;
    ClaimRow {
        text: claim.text.to_owned(),
        paper: if claim.paper.is_finite() { format!("{:.2}{unit}", claim.paper) } else { String::new() },
        holds_if: format!("{} {:.2}{unit}", claim.relation.words(), claim.relation.bound()),
        here: here.map_or_else(String::new, |here| number_here(here, unit)),
        ruling,
    }
}

/// Medians of what the plots show, with the least and the most; throughput and aborts in any case.
fn table_of(experiment: &Experiment, results: &Results, cores: usize) -> Table {
    let mut metrics = vec![Metric::Throughput, Metric::AbortsPerSecond];
    for plot in &experiment.plots {
        if !metrics.contains(&plot.metric) {
            metrics.push(plot.metric);
        }
    }
    let mut header = vec!["series".to_owned()];
    if experiment.axis != Axis::Series {
        header.push(experiment.axis.label().to_owned());
    }
    header.push("runs".to_owned());
    header.extend(metrics.iter().map(|metric| metric.label().to_owned()));
    let mut rows = Vec::new();
    for (at, series) in experiment.series.iter().enumerate() {
        for (point, described) in series.points.iter().enumerate() {
            let Some(throughput) = results.spread(at, point, Metric::Throughput) else { continue };
            let mut row = vec![series.name.to_owned()];
            if experiment.axis != Axis::Series {
                let beyond =
                    if experiment.is_beyond(described.x, cores) { " (beyond the processors)" } else { "" };
                row.push(format!("{}{beyond}", described.x));
            }
            row.push(throughput.count.to_string());
            row.extend(metrics.iter().map(|&metric| cell(results, at, point, metric)));
            rows.push(row);
        }
    }
    Table { header, rows }
}

fn cell(results: &Results, series: usize, point: usize, metric: Metric) -> String {
    let Some(spread) = results.spread(series, point, metric) else { return String::new() };
    let [median, min, max] = [spread.median, spread.min, spread.max].map(short_number);
    if spread.count > 1 { format!("{median} ({min} to {max})") } else { median }
}

/// The commands of the first repetition of every point.
fn commands(results: &Results) -> Vec<String> {
    let first = results.runs().filter(|((_, _, repetition), ..)| *repetition == 0);
    first.map(|(_, arguments, _)| command_line(arguments)).collect()
}
