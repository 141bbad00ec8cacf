//! The page in Markdown: how to read it, all verdicts, and a section for each curve.

use std::path::Path;

use super::description::{Curve, Measured};
use super::fit::TOLERANCE;
use super::plots::file_name;
use super::rows::{GrowthRow, missing_of, spreads_of};
use super::{FILE_NAME, TITLE};
use crate::plot::short_number;
use crate::provenance::from_to;
use crate::results::Spread;

/// The page on these rows; `results` is where the plots and the table are, as seen from the page.
pub(super) fn markdown(rows: &[GrowthRow], results: &Path) -> String {
    let curves = Curve::all().iter().filter(|curve| rows.iter().any(|row| row.curve == curve.name));
    let sections: Vec<String> = curves.map(|curve| section(curve, rows, results)).collect();
    format!(
        "# Cost as the work grows\n\n{}\n\n{}\n\n{}\n\n{}\n",
        preface(results),
        facts(rows),
        summary(rows),
        sections.join("\n\n")
    )
}

fn preface(results: &Path) -> String {
    format!(
        "{TITLE}. This page and its plots are written by `ensilo figures growth` from [`{FILE_NAME}`]({}), \
         and change with it: do not edit them.\n\n\
         Each section lets one thing grow and keeps the others as they are. The *exponent* is the slope of the line that fits the \
         logarithms of work and cost best: 1 is a cost in proportion to the work, 0 one that does not depend on it. What the work \
         is: records, sessions, tables and seconds as many as the axis says; a throughput counts as the cost of one transaction for \
         each of them. The dashed line in a plot is what `n log n` would allow from the first point on. No cost may grow \
         faster than that between any two points, beyond a tolerance of {TOLERANCE} times for the noise of the machine, unless a \
         sentence says why.",
        link(results, FILE_NAME)
    )
}

/// With what the runs were made.
fn facts(rows: &[GrowthRow]) -> String {
    let all = |of: fn(&GrowthRow) -> &String| {
        let mut different: Vec<&str> = Vec::new();
        for text in rows.iter().map(of) {
            if !different.contains(&text.as_str()) {
                different.push(text);
            }
        }
        different.join("; ")
    };
    let machine = all(|row| &row.machine);
    let program = all(|row| &row.program);
    let measured = from_to(rows.iter().map(|row| row.measured_at.as_str()));
    format!("- machine: {machine}\n- program: {program}\n- measured: {measured}")
}

/// A line for each measure.
fn summary(rows: &[GrowthRow]) -> String {
    let mut lines = vec![
        "| what grows | measured | from | to | exponent | no worse than n log n |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for (measured, verdict) in Curve::all().iter().flat_map(|curve| curve.verdicts(rows)) {
        let spreads = spreads_of(rows, measured);
        let end = |end: Option<&(f64, Spread)>| {
            end.map_or_else(String::new, |(x, spread)| {
                format!("{} at {}", short_number(spread.median), short_number(*x))
            })
        };
        let ruling = match (verdict.is_no_worse(), verdict.why) {
            (true, _) => "yes",
            (false, Some(_)) => "no, see below",
            (false, None) => "**no, and nothing says why**",
        };
        lines.push(format!(
            "| {} | {}, {} | {} | {} | {:.2} | {ruling} |",
            measured.curve.title,
            measured.measure.title,
            measured.key(),
            end(spreads.first()),
            end(spreads.last()),
            verdict.exponent
        ));
    }
    lines.join("\n")
}

fn section(curve: &'static Curve, rows: &[GrowthRow], results: &Path) -> String {
    let mut parts = vec![format!("## {}", curve.title), curve.about(), table(curve, rows)];
    for (measured, verdict) in curve.verdicts(rows) {
        parts.push(format!("{} ({}): {verdict}.", capitalized(measured.measure.title), measured.key()));
    }
    let missing = missing_of(rows, curve);
    parts.extend(
        missing.iter().map(|(x, why)| format!("**Missing**: {} {}: {why}.", short_number(*x), curve.axis)),
    );
    let plots = curve.measured().filter(|&measured| !spreads_of(rows, measured).is_empty());
    parts.extend(
        plots.map(|measured| format!("![{}]({})", measured.name(), link(results, &file_name(measured)))),
    );
    parts.extend(commands(curve, rows));
    parts.join("\n\n")
}

/// The medians of all measures, and the number of runs.
fn table(curve: &'static Curve, rows: &[GrowthRow]) -> String {
    let columns: Vec<(Measured, Vec<(f64, Spread)>)> =
        curve.measured().map(|measured| (measured, spreads_of(rows, measured))).collect();
    let mut xs: Vec<f64> = columns.iter().flat_map(|(_, spreads)| spreads.iter().map(|(x, _)| *x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let header = |(measured, _): &(Measured, _)| format!("{}, {}", measured.measure.title, measured.key());
    let header: Vec<String> = columns.iter().map(header).collect();
    let mut lines = vec![
        format!("| {} | {} | {} | runs |", curve.axis, header.join(" | "), per_unit_header(curve)),
        format!("|---|{}---|---|", "---|".repeat(columns.len())),
    ];
    for x in xs {
        let at = |spreads: &[(f64, Spread)]| spreads.iter().find(|(other, _)| *other == x).map(|(_, s)| *s);
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, spreads)| at(spreads).map_or_else(String::new, |spread| short_number(spread.median)))
            .collect();
        let runs = columns.iter().filter_map(|(_, spreads)| Some(at(spreads)?.count)).max().unwrap_or(0);
        lines.push(format!(
            "| {} | {} | {} | {runs} |",
            short_number(x),
            cells.join(" | "),
            per_unit(&columns, x)
        ));
    }
    lines.join("\n")
}

/// The last measure is also shown for each unit of the axis.
fn per_unit_header(curve: &'static Curve) -> String {
    let last = curve.measured().last();
    last.map_or_else(String::new, |measured| format!("{}, each of the {}", measured.key(), curve.axis))
}

fn per_unit(columns: &[(Measured, Vec<(f64, Spread)>)], x: f64) -> String {
    let found = columns.last().and_then(|(_, spreads)| spreads.iter().find(|(other, _)| *other == x));
    found.filter(|_| x > 0.0).map_or_else(String::new, |(_, spread)| precise(spread.median / x))
}

/// With three digits also where it is small.
fn precise(number: f64) -> String {
    if number.abs() >= 0.01 || number == 0.0 { short_number(number) } else { format!("{number:.2e}") }
}

/// The call of the largest run, as an example of all.
fn commands(curve: &Curve, rows: &[GrowthRow]) -> Option<String> {
    let measured = rows.iter().filter(|row| row.curve == curve.name && row.value.is_some());
    let largest = measured.max_by(|a, b| a.x.total_cmp(&b.x))?;
    Some(format!("The last of its runs: `{}`", largest.command))
}

fn link(results: &Path, file: &str) -> String {
    results.join(file).display().to_string()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
