//! What the user sees on stderr while runs are made.
//!
//! On a terminal one line is redrawn; elsewhere (a log file, CI) there is a line for each run.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ensilo_bench::driver::complain;
use indicatif::{ProgressBar, ProgressStyle};

/// How far an evaluation is. Times are reckoned from the estimates of the runs, corrected by how long those took that are done.
#[derive(Debug)]
pub(crate) struct Progress {
    kind: ProgressKind,
    runs: usize,
    done: usize,
    left: Duration,
    estimated: Duration,
    taken: Duration,
    began: Instant,
}

#[derive(Debug)]
enum ProgressKind {
    Silent,
    Lines,
    Terminal(ProgressBar),
}

impl Progress {
    /// On stderr, or nowhere if `is_quiet`.
    pub(crate) fn new(is_quiet: bool, runs: usize, estimate: Duration) -> Self {
        let kind = if is_quiet {
            ProgressKind::Silent
        } else if std::io::stderr().is_terminal() {
            ProgressKind::Terminal(terminal_bar(runs))
        } else {
            ProgressKind::Lines
        };
        let began = Instant::now();
        Self { kind, runs, done: 0, left: estimate, estimated: Duration::ZERO, taken: Duration::ZERO, began }
    }

    /// A run begins.
    pub(crate) fn begin(&mut self, what: &str) {
        self.began = Instant::now();
        let (at, runs, left) = (self.done + 1, self.runs, in_words(self.left()));
        match &self.kind {
            ProgressKind::Silent => {}
            ProgressKind::Lines => complain(format_args!("{at}/{runs} {what}; {left} left")),
            ProgressKind::Terminal(bar) => bar.set_message(format!("{what}; {left} left")),
        }
    }

    /// The run that began has ended.
    pub(crate) fn end(&mut self, estimate: Duration) {
        self.done += 1;
        self.left = self.left.saturating_sub(estimate);
        self.estimated += estimate;
        self.taken += self.began.elapsed();
        if let ProgressKind::Terminal(bar) = &self.kind {
            bar.inc(1);
        }
    }

    /// Something that is worth a line of its own.
    pub(crate) fn note(&self, text: &str) {
        match &self.kind {
            ProgressKind::Silent => {}
            ProgressKind::Lines => complain(format_args!("{text}")),
            ProgressKind::Terminal(bar) => bar.suspend(|| complain(format_args!("{text}"))),
        }
    }

    /// There is nothing more to show.
    pub(crate) fn close(&self) {
        if let ProgressKind::Terminal(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }

    fn left(&self) -> Duration {
        let correction =
            if self.estimated.is_zero() { 1.0 } else { self.taken.div_duration_f64(self.estimated) };
        self.left.mul_f64(correction)
    }
}

fn terminal_bar(runs: usize) -> ProgressBar {
    let bar = ProgressBar::new(runs as u64);
    // A template that does not parse would leave the default style: a bar with a position.
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} [{bar:30}] {msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// How far runs are that this program makes itself, one after the other.
#[derive(Debug)]
pub struct Course {
    began: Instant,
    done: usize,
    runs: usize,
}

impl Course {
    /// At the beginning of so many runs.
    pub fn new(runs: usize) -> Self {
        Self { began: Instant::now(), done: 0, runs }
    }

    /// What a view calls the next run: which it is, and about how much time is left. At first only the `planned` time of a run is known,
    /// without the load.
    pub fn phase(&self, name: &str, planned: Duration) -> String {
        let each = match self.done {
            0 => planned,
            done => self.began.elapsed().div_f64(done as f64),
        };
        let left = in_words(each.mul_f64((self.runs - self.done) as f64));
        let and_loads = if self.done == 0 { " and the loads" } else { "" };
        format!("{}/{} {name}; {left}{and_loads} left", self.done + 1, self.runs)
    }

    /// The next run has ended.
    pub fn end_one(&mut self) {
        self.done += 1;
    }
}

/// Minutes and seconds, or hours and minutes.
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_how_long_runs_take() {
        let mut progress = Progress::new(true, 3, Duration::from_secs(30));
        assert_eq!(progress.left(), Duration::from_secs(30));
        progress.begin("first");
        progress.began = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
        progress.end(Duration::from_secs(10));
        assert_eq!(progress.left().as_secs(), 40);
    }

    #[test]
    fn a_phase_says_which_run_it_is_and_how_much_time_is_left() {
        let mut course = Course::new(12);
        let phase = |course: &Course| course.phase("redb tpcc", Duration::from_secs(5));
        assert_eq!(phase(&course), "1/12 redb tpcc; 1 min 00 s and the loads left");
        course.began = Instant::now().checked_sub(Duration::from_secs(40)).unwrap();
        (0..4).for_each(|_| course.end_one());
        assert_eq!(phase(&course), "5/12 redb tpcc; 1 min 20 s left");
    }

    #[test]
    fn times_are_told_in_two_units() {
        let told = [5, 65, 3_700].map(|seconds| in_words(Duration::from_secs(seconds)));
        assert_eq!(told, ["5 s", "1 min 05 s", "1 h 01 min"]);
    }
}
