//! The table, and the files.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;

use crate::measure::Row;
use crate::options::{Options, Shape};
use crate::work::Work;

const OURS: &str = "ensilo";

/// What the medians of a line of the table are by map, none for a map that did not do the work.
type Lines = BTreeMap<(Shape, u64, Work), BTreeMap<&'static str, Option<f64>>>;

/// Prints the table of medians and writes the files that are asked for.
pub(crate) fn report(rows: &[Row], options: &Options) -> io::Result<()> {
    let lines = medians(rows);
    println!("{}", table(&lines));
    if let Some(path) = &options.json {
        let all = json!({
            "keys": options.keys, "seconds": options.seconds, "runs": options.runs,
            "clock": options.clock, "rows": rows,
        });
        fs::write(path, format!("{all:#}\n"))?;
    }
    if let Some(path) = &options.csv {
        fs::write(path, csv(&lines))?;
    }
    Ok(())
}

fn medians(rows: &[Row]) -> Lines {
    let mut all: BTreeMap<_, BTreeMap<&'static str, Vec<Option<f64>>>> = BTreeMap::new();
    for row in rows {
        let line = all.entry((row.shape, row.threads, row.work)).or_default();
        let rate = (row.missed == 0).then_some(row.operations_per_second);
        line.entry(row.map).or_default().push(rate);
    }
    let median = |values: Vec<Option<f64>>| {
        let mut values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        values.sort_by(f64::total_cmp);
        Some(values[values.len() / 2])
    };
    all.into_iter()
        .map(|(key, line)| (key, line.into_iter().map(|(map, values)| (map, median(values))).collect()))
        .collect()
}

/// The maps of all lines, ours first.
fn maps(lines: &Lines) -> Vec<&'static str> {
    let mut maps: Vec<&'static str> = lines.values().flat_map(|line| line.keys().copied()).collect();
    maps.sort_by_key(|&map| (map != OURS, map));
    maps.dedup();
    maps
}

fn table(lines: &Lines) -> Table {
    let maps = maps(lines);
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let mut header = vec!["keys", "threads", "work, M/s"];
    header.extend(&maps);
    header.push("ours / best other");
    table.set_header(header);
    for ((shape, threads, work), line) in lines {
        let mut cells = vec![shape.to_string(), threads.to_string(), work.name().to_owned()];
        cells.extend(maps.iter().map(|map| cell(line.get(map))));
        let others = line.iter().filter(|(map, _)| **map != OURS);
        let best_other = others.filter_map(|(_, value)| *value).fold(0.0, f64::max);
        let ours = line.get(OURS).copied().flatten().filter(|_| best_other > 0.0);
        cells.push(ours.map_or(String::new(), |ours| format!("{:.2}", ours / best_other)));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Nothing for a map that does not take part.
fn cell(value: Option<&Option<f64>>) -> String {
    match value {
        None => String::new(),
        Some(None) => "wrong".to_owned(),
        Some(Some(value)) => format!("{:.3}", value / 1e6),
    }
}

fn csv(lines: &Lines) -> String {
    let mut text = String::from("keys,threads,work,map,operations_per_second\n");
    for ((shape, threads, work), line) in lines {
        for (map, value) in line {
            let value = value.map_or(String::new(), |value| format!("{value:.0}"));
            text += &format!("{shape},{threads},{},{map},{value}\n", work.name());
        }
    }
    text
}
