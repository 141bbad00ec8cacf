//! Counts as a table and as CSV, for each transaction.

use std::collections::BTreeMap;
use std::path::Path;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{CellAlignment, Table};
use ensilo_counting::{LabelCounts, SharingCounts};

use crate::arguments::Subject;
use crate::place::Place;

/// The lines of one place, or of all, under one workload on one system.
#[derive(Debug)]
pub(crate) struct Row {
    workload: &'static str,
    system: &'static str,
    place: &'static str,
    workers: u16,
    /// Counts for each transaction, in the order of [`COLUMNS`].
    counts: [f64; COLUMNS.len()],
}

const ALL: &str = "all";

/// Names in the file and in the table.
const COLUMNS: [(&str, &str); 13] = [
    ("loads", "loads"),
    ("stores", "stores"),
    ("read_modify_writes", "RMWs"),
    ("shared_lines_written", "shared lines written"),
    ("shared_writes", "writes to shared"),
    ("shared_read_modify_writes", "RMWs on shared"),
    ("foreign_loads", "loads of others' lines"),
    ("fetched_to_load", "fetched to read"),
    ("fetched_to_write", "fetched to write"),
    ("from_memory", "from memory"),
    ("hot_lines", "hot lines"),
    ("hot_lines_written", "hot lines written"),
    ("hot_lines_fetched", "hot lines fetched"),
];

/// What was counted of a place.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    counts: LabelCounts,
    hot_lines: u64,
    hot_lines_written: u64,
    hot_lines_fetched: u64,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        self.hot_lines += other.hot_lines;
        self.hot_lines_written += other.hot_lines_written;
        self.hot_lines_fetched += other.hot_lines_fetched;
    }

    fn per_transaction(&self, transactions: u64) -> [f64; COLUMNS.len()] {
        let each = |sum: u64| sum as f64 / transactions.max(1) as f64;
        let counts = &self.counts;
        [
            each(counts.loads),
            each(counts.stores),
            each(counts.read_modify_writes),
            each(counts.shared_lines_written),
            each(counts.shared_writes),
            each(counts.shared_read_modify_writes),
            each(counts.foreign_loads),
            each(counts.fetched_to_load),
            each(counts.fetched_to_write),
            each(counts.from_memory),
            // A number of lines, not one for each transaction.
            self.hot_lines as f64,
            each(self.hot_lines_written),
            each(self.hot_lines_fetched),
        ]
    }
}

/// All lines, and then those of each place.
pub(crate) fn rows_of(subject: &Subject, workers: u16, counts: &SharingCounts) -> Vec<Row> {
    let mut by_place = BTreeMap::<Place, Sums>::new();
    for (file, of_file) in &counts.by_file {
        by_place.entry(Place::of(file)).or_default().counts.add(of_file);
    }
    for line in &counts.hot_lines {
        let sums = by_place.entry(Place::of(line.file)).or_default();
        sums.hot_lines += 1;
        sums.hot_lines_written += line.writing_transactions;
        sums.hot_lines_fetched += line.fetched;
    }
    let mut all = Sums::default();
    by_place.values().for_each(|sums| all.add(sums));
    let places = by_place.iter().map(|(place, sums)| (place.name(), sums));
    let row = |(place, sums): (&'static str, &Sums)| Row {
        workload: subject.workload.name(),
        system: subject.system.name(),
        place,
        workers,
        counts: sums.per_transaction(counts.transactions),
    };
    std::iter::once((ALL, &all)).chain(places).map(row).collect()
}

pub(crate) fn text_of(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY);
    let header = ["workload, system", "lines of"].into_iter().chain(COLUMNS.map(|(_, name)| name));
    table.set_header(header);
    for row in rows {
        let subject =
            if row.place == ALL { format!("{}, {}", row.workload, row.system) } else { String::new() };
        let counts =
            row.counts.map(|count| if count == 0.0 { "0".to_owned() } else { format!("{count:.3}") });
        table.add_row([subject, row.place.to_owned()].into_iter().chain(counts));
    }
    table.column_iter_mut().skip(2).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    format!("For each transaction, but for the number of hot lines:\n{table}\n")
}

pub(crate) fn write_csv(path: &Path, rows: &[Row]) -> csv::Result<()> {
    let mut file = csv::Writer::from_path(path)?;
    file.write_record(
        ["workload", "system", "place", "workers"].into_iter().chain(COLUMNS.map(|(name, _)| name)),
    )?;
    for row in rows {
        let texts = [row.workload, row.system, row.place, &row.workers.to_string()].map(str::to_owned);
        file.write_record(texts.into_iter().chain(row.counts.map(|count| format!("{count:.6}"))))?;
    }
    Ok(file.flush()?)
}
