//! The report as tables for people.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::model::{AbortShare, CheckReport, Report, TypeReport};
use crate::driver::grouped;

impl Report {
    /// The report as text: what ran, what each transaction type did, memory and consistency.
    pub fn to_text(&self) -> String {
        let mut text = self.headline();
        text.push_str(&format!("\n\n{}\n", self.transaction_table()));
        if self.runs.len() > 1 {
            text.push_str(&format!("\n{}\n", self.runs_table()));
        }
        text.push_str(&format!("\n{}\n", self.memory_line()));
        text.push_str(&self.consistency_text());
        text
    }

    fn headline(&self) -> String {
        let of_runs = if self.runs.len() > 1 {
            format!(" (median of {} runs)", self.runs.len())
        } else {
            String::new()
        };
        let early = if self.interrupted { ", ended early" } else { "" };
        format!(
            "{}: {} transactions/s{of_runs}\n{} committed, {} aborted in {:.1} s with {} worker{}{early}\n{}, {}",
            self.workload,
            grouped(self.throughput_per_second),
            grouped(self.committed as f64),
            grouped(self.aborted as f64),
            self.seconds,
            self.workers,
            if self.workers == 1 { "" } else { "s" },
            self.machine.cpu,
            self.machine.os,
        )
    }

    fn transaction_table(&self) -> Table {
        let mut table = table(&[
            "transaction",
            "committed",
            "aborted",
            "p50 us",
            "p95 us",
            "p99 us",
            "p99.9 us",
            "aborts by reason",
        ]);
        for (name, of_type) in
            self.transactions.iter().filter(|(_, of_type)| of_type.count + of_type.aborted > 0)
        {
            table.add_row(transaction_row(name, of_type));
        }
        align_right(&mut table, 1..=6);
        table
    }

    fn runs_table(&self) -> Table {
        let mut table = table(&["run", "transactions/s", "committed", "aborted", "memory"]);
        for (number, run) in (1..).zip(&self.runs) {
            table.add_row([
                format!("{number}"),
                grouped(run.throughput_per_second),
                grouped(run.committed as f64),
                grouped(run.aborted as f64),
                bytes(run.memory_bytes),
            ]);
        }
        align_right(&mut table, 1..=4);
        table
    }

    fn memory_line(&self) -> String {
        let mut by_table: Vec<_> = self.memory.by_table.iter().collect();
        by_table.sort_by_key(|&(_, &size)| std::cmp::Reverse(size));
        let tables: Vec<String> =
            by_table.into_iter().map(|(name, &size)| format!("{name} {}", bytes(size))).collect();
        format!(
            "memory: {} in use, {} before the run, {} taken from the system\n        {}",
            bytes(self.memory_bytes),
            bytes(self.memory.live_bytes_before),
            bytes(self.memory.mapped_bytes),
            tables.join(", ")
        )
    }

    fn consistency_text(&self) -> String {
        if self.consistency_failures == 0 {
            return match self.consistency_checks {
                0 => "consistency: not checked".to_owned(),
                checks => format!("consistency: all {checks} checks passed"),
            };
        }
        let mut text = format!(
            "consistency: {} of {} checks FAILED",
            self.consistency_failures, self.consistency_checks
        );
        for check in self.consistency.iter().filter(|check| !check.passed) {
            text.push_str(&failure_text(check));
        }
        text
    }
}

fn transaction_row(name: &str, of_type: &TypeReport) -> Vec<String> {
    let latency = &of_type.latency_us;
    let mut row = vec![name.to_owned(), grouped(of_type.count as f64), grouped(of_type.aborted as f64)];
    row.extend([latency.p50, latency.p95, latency.p99, latency.p99_9].map(|us| format!("{us:.1}")));
    row.push(of_type.aborts.iter().map(abort_text).collect::<Vec<_>>().join(", "));
    row
}

fn abort_text((reason, abort): &(&'static str, AbortShare)) -> String {
    format!("{reason} {:.2} %", abort.share * 100.0)
}

fn failure_text(check: &CheckReport) -> String {
    let CheckReport { name, condition, violated, examined, run, .. } = check;
    let mut text = format!("\n  {name} (run {run}): {condition}\n    {violated} of {examined} violate it");
    for example in &check.examples {
        text.push_str(&format!("\n    {example}"));
    }
    text
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(header.iter().map(Cell::new));
    table
}

fn align_right(table: &mut Table, columns: std::ops::RangeInclusive<usize>) {
    for column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A size in the unit that leaves at most four digits before the point.
fn bytes(size: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let mut scaled = size as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{size} B") } else { format!("{scaled:.1} {}", UNITS[unit]) }
}
