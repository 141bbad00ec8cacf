//! From an experiment's results to its section of the page, and to the lines for a terminal.

use crate::drawing::svg_of;
use crate::error::FiguresError;
use crate::experiment::{Axis, Claim, Experiment, Metric};
use crate::page::{ClaimRow, Section, Table};
use crate::plot::short_number;
use crate::processors::Processors;
use crate::provenance::{Provenance, from_to};
use crate::results::{MissingRun, Results};
use crate::table::command_line;
use crate::verdict::{judge, line};

/// The section of an experiment with what `provenance` says of its runs.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(crate) fn section_of(
    experiment: &Experiment,
    results: &Results,
    provenance: &Provenance,
) -> Result<Section, FiguresError> {
    let processors = Processors::Known(provenance.sizes.cores);
    let measured = from_to(results.runs().map(|(_, run)| run.measured_at.as_str()));
    let plots =
        experiment.plots.iter().filter_map(|plot| svg_of(experiment, plot, results, processors).transpose());
    Ok(Section {
        id: experiment.name.to_owned(),
        source: experiment.source.to_owned(),
        title: experiment.title.to_owned(),
        about: experiment.about.clone(),
        notes: all_notes(experiment, results, processors),
        claims: experiment
            .claims
            .iter()
            .map(|claim| claim_row(experiment, claim, results, processors))
            .collect(),
        plots: plots.collect::<Result<_, _>>()?,
        table: Some(table_of(experiment, results, processors.at_least())),
        runs_file: Some(format!("{}.csv", experiment.name)),
        commands: commands(results),
        facts: provenance.facts(&measured),
    })
}

/// What the experiment is, then a line for each claim, and one for each series of which runs are missing. Claims that there is no number for
/// are left out if the runs have not all been made.
pub(crate) fn lines_of(
    experiment: &Experiment,
    results: &Results,
    processors: Processors,
    is_complete: bool,
) -> Vec<String> {
    let claims = experiment.claims.iter().filter_map(|claim| {
        let verdict = judge(experiment, claim, results, processors);
        (is_complete || verdict.here.is_some()).then(|| line(claim, &verdict))
    });
    let below = claims.chain(all_notes(experiment, results, processors));
    let title = format!("{} ({}): {}", experiment.name, experiment.source, experiment.title);
    std::iter::once(title).chain(below.map(|line| format!("  {line}"))).collect()
}

fn all_notes(experiment: &Experiment, results: &Results, processors: Processors) -> Vec<String> {
    [notes(experiment, results), beyond(experiment, processors), starved(results, processors.at_least())]
        .concat()
}

fn beyond(experiment: &Experiment, processors: Processors) -> Vec<String> {
    let workers = experiment.most_workers();
    let note = format!(
        "Points with more workers than {} (up to {workers}) are marked and judge no claim.",
        processors.with_article()
    );
    if workers > processors.at_least() { vec![note] } else { Vec::new() }
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
            MissingRun::Refused(why) => format!("{series}: this program refuses {count} run(s): {why}"),
            MissingRun::Failed(why) => format!("{series}: {count} run(s) failed: {why}"),
        })
        .collect()
}

fn claim_row(experiment: &Experiment, claim: &Claim, results: &Results, processors: Processors) -> ClaimRow {
    let verdict = judge(experiment, claim, results, processors);
    let unit = claim.unit;
    ClaimRow {
        text: claim.text.to_owned(),
        paper: claim.paper.map(|paper| format!("{paper:.2}{unit}")).unwrap_or_default(),
        holds_if: claim.relation.in_words(unit),
        here: verdict.number_here(unit).unwrap_or_default(),
        ruling: verdict.ruling,
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
    header.extend(metrics.iter().map(|metric| metric.label()));
    let mut rows = Vec::new();
    for (at, series) in experiment.series.iter().enumerate() {
        for (point, described) in series.points.iter().enumerate() {
            let Some(throughput) = results.spread(at, point, Metric::Throughput) else { continue };
            let beyond = if described.is_beyond(cores) { " (beyond the processors)" } else { "" };
            let mut row = vec![format!("{}{beyond}", series.name)];
            if experiment.axis != Axis::Series {
                row.push(described.x.to_string());
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
    let first = results.runs().filter(|((_, _, repetition), _)| *repetition == 0);
    first.map(|(_, run)| command_line(&run.arguments)).collect()
}
