//! The report as tables for people.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::durable::{
    DurabilityReport, DurableLatencyReport, RecoveryReport, SurvivalReport, TimedCheckpoint,
};
use super::half_seconds::{HalfSecond, HalfSecondsReport};
use super::model::{AbortShare, CheckReport, Report, TypeReport};
use crate::driver::{DurabilityCounts, grouped};

/// Of the tables with their memory, so many are named, the largest ones.
const TABLES_SHOWN: usize = 40;

impl Report {
    /// The report as text: what ran, what each transaction type did, memory and consistency.
    pub fn to_text(&self) -> String {
        let mut text = self.headline();
        text.push_str(&format!("\n\n{}\n", self.transaction_table()));
        if self.runs.len() > 1 {
            text.push_str(&format!("\n{}\n", self.runs_table()));
        }
        text.push('\n');
        text.extend(self.half_seconds.map(|report| format!("{}\n", half_seconds_line(&report))));
        text.extend(self.durable_lines().iter().map(|line| format!("{line}\n")));
        text.push_str(&format!("{}\n", self.memory_line()));
        text.push_str(&self.consistency_text());
        text
    }

    fn headline(&self) -> String {
        let of_runs = if self.runs.len() > 1 {
            format!(" (median of {} runs)", self.runs.len())
        } else {
            String::new()
        };
        let each = self.aborted_per_commit.filter(|each| *each > 0.0);
        let each = each.map_or_else(String::new, |each| format!(" ({each:.3} for each)"));
        let early = if self.interrupted { ", ended early" } else { "" };
        format!(
            "{} on {} (engine {}, isolation {}): {} transactions/s{of_runs}\n{} committed, {} aborted{each} in {:.1} s with {} worker{}{early}\n{}, {}",
            self.workload,
            self.system,
            self.engine,
            self.isolation,
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
        let mut header = vec![
            "transaction",
            "committed",
            "aborted",
            "p50 us",
            "p95 us",
            "p99 us",
            "p99.9 us",
            "longest us",
        ];
        if self.durable_latency_ms.is_some() {
            header.extend(["stored p50 ms", "p99 ms"]);
        }
        let columns = header.len();
        header.push("aborts by reason");
        let mut table = table(&header);
        for (name, of_type) in
            self.transactions.iter().filter(|(_, of_type)| of_type.count + of_type.aborted > 0)
        {
            table.add_row(transaction_row(name, of_type, self.durable_latency_ms.is_some()));
        }
        align_right(&mut table, 1..=columns - 1);
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

    /// What there is to say of log, checkpoints, disk and recovery.
    fn durable_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(latency) = &self.durable_latency_ms {
            let DurableLatencyReport { p50, p95, p99, max, .. } = latency;
            lines.push(format!(
                "stored: after {p50:.2} ms (p50), {p95:.2} ms (p95), {p99:.2} ms (p99), {max:.1} ms (longest)"
            ));
        }
        lines.extend(self.durability.as_ref().map(durability_lines));
        if let Some(disk) = &self.disk {
            lines.push(format!(
                "disk by itself: 4 KiB written and synced in {:.2} ms (median), {:.0} MB/s in sequence",
                disk.sync_4_kib_ms, disk.sequential_mb_per_second
            ));
        }
        lines.extend(self.recovery.as_ref().map(recovery_lines));
        lines.extend(self.timed_checkpoint.map(|TimedCheckpoint { seconds, bytes: size, rows }| {
            let rows = grouped(rows as f64);
            format!("checkpoint by itself: {rows} rows, {} in {seconds:.2} s", bytes(size))
        }));
        lines
    }

    fn memory_line(&self) -> String {
        let mut by_table: Vec<_> = self.memory.by_table.iter().collect();
        by_table.sort_by_key(|&(_, &size)| std::cmp::Reverse(size));
        let others = by_table.len().saturating_sub(TABLES_SHOWN);
        let shown = by_table.into_iter().take(TABLES_SHOWN);
        let mut tables: Vec<String> = shown.map(|(name, &size)| format!("{name} {}", bytes(size))).collect();
        if others > 0 {
            tables.push(format!("{others} others"));
        }
        format!(
            "memory: {} in use, {} before the run, {} taken from the system; {} older versions of {}\n        {}",
            bytes(self.memory_bytes),
            bytes(self.memory.live_bytes_before),
            bytes(self.memory.mapped_bytes),
            grouped(self.memory.versions as f64),
            bytes(self.memory.version_bytes),
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

fn transaction_row(name: &str, of_type: &TypeReport, is_durable: bool) -> Vec<String> {
    let latency = &of_type.latency_us;
    let mut row = vec![name.to_owned(), grouped(of_type.count as f64), grouped(of_type.aborted as f64)];
    let latencies = [latency.p50, latency.p95, latency.p99, latency.p99_9, latency.max];
    row.extend(latencies.map(|us| format!("{us:.1}")));
    if is_durable {
        let stored = &of_type.durable_latency_ms;
        let milliseconds = |ms: Option<f64>| ms.map_or_else(String::new, |ms| format!("{ms:.2}"));
        row.extend([stored.map(|stored| stored.p50), stored.map(|stored| stored.p99)].map(milliseconds));
    }
    let mut aborts: Vec<String> = of_type.aborts.iter().map(abort_text).collect();
    if of_type.aborted_of_one_max > 1 {
        aborts.push(format!("of one at most {}", of_type.aborted_of_one_max));
    }
    row.push(aborts.join(", "));
    row
}

fn half_seconds_line(report: &HalfSecondsReport) -> String {
    let percent = |half_second: &HalfSecond| format!("{:.0} %", half_second.of_median * 100.0);
    let by_checkpoint = match (&report.worst_with_checkpoint, &report.worst_without_checkpoint) {
        (Some(with), Some(without)) => {
            format!("; {} with a checkpoint under way, {} without", percent(with), percent(without))
        }
        (Some(_), None) => "; a checkpoint was under way in each".to_owned(),
        (None, _) => String::new(),
    };
    format!(
        "steadiness: the worst half second had {} of the median one's throughput, at {:.1} s{by_checkpoint}",
        percent(&report.worst),
        report.worst.ended_at,
    )
}

fn durability_lines(durability: &DurabilityReport) -> String {
    let DurabilityCounts {
        log_bytes,
        log_syncs,
        log_buffer_waits,
        log_buffer_wait_seconds,
        checkpoints,
        checkpoints_failed,
        checkpoint_bytes,
        next_recovery_seconds,
        is_next_recovery_measured,
        ..
    } = &durability.counts;
    let how = if *is_next_recovery_measured { "as measured" } else { "as assumed before one was measured" };
    let failed = match checkpoints_failed {
        0 => String::new(),
        failed => format!(", {failed} FAILED"),
    };
    format!(
        "log: {}, {:.0} bytes for each transaction, {:.0} for each that writes\n     \
         {} syncs of {:.2} ms (mean), {:.1} ms (longest); {} commits waited for a buffer, {:.1} s in all\n\
         checkpoints: {checkpoints} completed{failed}, {} written\n\
         a recovery at the end: about {next_recovery_seconds:.1} s, {how}",
        bytes(*log_bytes),
        durability.log_bytes_per_transaction,
        durability.log_bytes_per_logged_transaction,
        grouped(*log_syncs as f64),
        durability.log_sync_ms_mean,
        durability.log_sync_ms_max,
        grouped(*log_buffer_waits as f64),
        log_buffer_wait_seconds,
        bytes(*checkpoint_bytes),
    )
}

fn recovery_lines(recovery: &RecoveryReport) -> String {
    let mut text = format!(
        "crash: killed at the end of the run with its workers at work\n\
         recovery: {:.2} s, {:.0} MB/s; checkpoint {} with {} rows, log {} with {} writes\n          \
         acknowledged transactions lost: {}",
        recovery.seconds,
        recovery.mb_per_second,
        bytes(recovery.checkpoint_bytes),
        grouped(recovery.checkpoint_rows as f64),
        bytes(recovery.log_bytes),
        grouped(recovery.log_writes as f64),
        recovery.transactions_lost
    );
    for SurvivalReport { transaction, acknowledged, found } in &recovery.transactions {
        let (acknowledged, found) = (grouped(*acknowledged as f64), grouped(*found as f64));
        text.push_str(&format!("\n          {transaction}: {acknowledged} acknowledged, {found} there"));
    }
    text
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
