//! What the user sees on stderr while a workload loads, runs and is checked.
//!
//! On a terminal one line is redrawn; elsewhere (a log file, CI) plain lines are written, at most one a second.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ensilo::RecoveryProgress;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::complain;

/// Where progress goes.
#[derive(Debug)]
pub struct View {
    kind: ViewKind,
    stage: String,
    last_line: Option<Instant>,
}

#[derive(Debug)]
enum ViewKind {
    Silent,
    Lines,
    Terminal(ProgressBar),
}

/// Progress of a stage, in its own unit.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Units done.
    pub done: u64,
    /// Units there are.
    pub total: u64,
    /// The unit's name in plural.
    pub unit: &'a str,
}

/// One second of a run.
#[derive(Debug, Clone, Copy)]
pub struct Tick<'a> {
    /// The phase: warm-up or a run's number.
    pub phase: &'a str,
    /// Seconds of this phase gone by.
    pub elapsed: Duration,
    /// Seconds that the phase will take.
    pub planned: Duration,
    /// Committed transactions a second, since the last tick.
    pub throughput_per_second: f64,
    /// Aborted attempts a second, since the last tick.
    pub aborts_per_second: f64,
}

impl View {
    /// A view on stderr: one redrawn line on a terminal, plain lines elsewhere.
    pub fn stderr() -> Self {
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            // A template that does not parse would leave the default style: a bar with a position.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} [{bar:30}] {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            Self::of(ViewKind::Terminal(bar))
        } else {
            Self::of(ViewKind::Lines)
        }
    }

    /// A view that shows nothing.
    pub fn silent() -> Self {
        Self::of(ViewKind::Silent)
    }

    fn of(kind: ViewKind) -> Self {
        Self { kind, stage: String::new(), last_line: None }
    }

    /// Begins a stage: loading, running, checking.
    pub fn stage(&mut self, name: &str) {
        name.clone_into(&mut self.stage);
        self.last_line = None;
        if let ViewKind::Terminal(bar) = &self.kind {
            bar.set_prefix(self.stage.clone());
            bar.set_message("");
            bar.set_length(1);
            bar.set_position(0);
        }
    }

    /// Shows how far the stage is.
    pub fn progress(&mut self, progress: Progress<'_>) {
        let Progress { done, total, unit } = progress;
        self.share(done, total, format!("{done} of {total} {unit}"));
    }

    /// Shows how far a recovery is, and how long it will yet take.
    pub fn recovery(&mut self, progress: &RecoveryProgress) {
        let RecoveryProgress { bytes_done, bytes_total, left, .. } = *progress;
        self.share(bytes_done, bytes_total, recovery_text(bytes_done, bytes_total, left));
    }

    /// Shows that so much is done, in these words.
    fn share(&mut self, done: u64, total: u64, text: String) {
        match &self.kind {
            ViewKind::Silent => {}
            ViewKind::Terminal(bar) => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(text);
            }
            ViewKind::Lines => {
                let due = self.last_line.is_none_or(|last| last.elapsed() >= Duration::from_secs(1));
                if due || (done == total && total > 0) {
                    self.last_line = Some(Instant::now());
                    complain(format_args!("{}: {text}", self.stage));
                }
            }
        }
    }

    /// Shows one second of a run.
    pub fn tick(&mut self, tick: Tick<'_>) {
        let text = format!(
            "{:>3.0} of {:.0} s  {:>12} tx/s  {:>9} aborts/s",
            tick.elapsed.as_secs_f64(),
            tick.planned.as_secs_f64(),
            grouped(tick.throughput_per_second),
            grouped(tick.aborts_per_second)
        );
        match &self.kind {
            ViewKind::Silent => {}
            ViewKind::Lines => complain(format_args!("{}: {text}", tick.phase)),
            ViewKind::Terminal(bar) => {
                bar.set_prefix(tick.phase.to_owned());
                bar.set_length(tick.planned.as_millis() as u64);
                bar.set_position(tick.elapsed.as_millis() as u64);
                bar.set_message(text);
            }
        }
    }

    /// Writes a line that stays.
    pub fn note(&mut self, line: &str) {
        match &self.kind {
            ViewKind::Silent => {}
            ViewKind::Lines => complain(format_args!("{line}")),
            ViewKind::Terminal(bar) => bar.suspend(|| complain(format_args!("{line}"))),
        }
    }

    /// Writes a warning, also where no progress is shown.
    pub fn warn(&mut self, text: &str) {
        let write = || complain(format_args!("warning: {text}"));
        match &self.kind {
            ViewKind::Silent | ViewKind::Lines => write(),
            ViewKind::Terminal(bar) => bar.suspend(write),
        }
    }

    /// Takes the redrawn line off the terminal.
    pub fn close(&mut self) {
        if let ViewKind::Terminal(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}

fn recovery_text(bytes_done: u64, bytes_total: u64, left: Option<Duration>) -> String {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let text = format!("{} of {} MiB", mib(bytes_done), mib(bytes_total));
    match left {
        Some(left) if left >= Duration::from_secs(1) => format!("{text}, about {} left", HumanDuration(left)),
        Some(left) if !left.is_zero() => format!("{text}, less than a second left"),
        _ => text,
    }
}

/// A number rounded to ones with its thousands set apart: `1 234 567`.
pub fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let numbers = [0.0, 7.4, 999.0, 1_000.0, 1_234_567.8, -1.0];
        assert_eq!(numbers.map(grouped), ["0", "7", "999", "1 000", "1 234 568", "0"]);
    }

    #[test]
    fn a_recovery_is_shown_with_what_is_left_of_it() {
        let mib = 1 << 20;
        assert_eq!(recovery_text(0, 222 * mib, None), "0 of 222 MiB");
        let left = Some(Duration::from_millis(300));
        assert_eq!(recovery_text(200 * mib, 222 * mib, left), "200 of 222 MiB, less than a second left");
        let left = Some(Duration::from_secs(3));
        assert_eq!(recovery_text(33 * mib, 222 * mib, left), "33 of 222 MiB, about 3 seconds left");
        assert_eq!(recovery_text(222 * mib, 222 * mib, Some(Duration::ZERO)), "222 of 222 MiB");
    }
}
