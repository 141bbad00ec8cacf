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

/// What the medians of a line of the table are by map.
type Lines = BTreeMap<(Shape, u64, Work), BTreeMap<&'static str, f64>>;

/// Prints the table of medians and writes the files that are asked for.
pub(crate) fn report(rows: &[Row], options: &Options) -> io::Result<()> {
    let lines = medians(rows);
    println!("{}", table(&lines));
    if let Some(path) = &options.json {
        let all = json!({
            "keys": options.keys, "seconds": options.seconds, "runs": options.runs, "rows": rows,
        });
        fs::write(path, format!("{all:#}\n"))?;
    }
    if let Some(path) = &options.csv {
        fs::write(path, csv(&lines))?;
    }
    Ok(())
}

fn medians(rows: &[Row]) -> Lines {
    let mut all: BTreeMap<_, BTreeMap<&'static str, Vec<f64>>> = BTreeMap::new();
    for row in rows {
        let line = all.entry((row.shape, row.threads, row.work)).or_default();
        line.entry(row.map).or_default().push(row.operations_per_second);
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
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
        cells.extend(maps.iter().map(|map| line.get(map).map_or(String::new(), |v| format!("{:.3}", v / 1e6))));
        let best_other = line.iter().filter(|(map, _)| **map != OURS).map(|(_, value)| *value).fold(0.0, f64::max);
        let ratio = line.get(OURS).filter(|_| best_other > 0.0).map(|ours| ours / best_other);
        cells.push(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn csv(lines: &Lines) -> String {
    let mut text = String::from("keys,threads,work,map,operations_per_second\n");
    for ((shape, threads, work), line) in lines {
        for (map, value) in line {
            text += &format!("{shape},{threads},{},{map},{value:.0}\n", work.name());
        }
    }
    text
}
