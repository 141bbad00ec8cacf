//! Transactions that a worker makes itself, for measurements: no other thread takes its processor for them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::clock::machine_nanos;
use super::pause::pause_before_attempt;
use crate::commit::{DistributedId, Outcome, Request};

/// Nanoseconds beyond which a transaction counts as taking that long.
const NANOS_MAX: u64 = 100_000_000_000;

/// Two digits of the measured times are kept.
const DIGITS: u8 = 2;

/// Makes the transactions of one worker.
pub type RequestSource = Box<dyn FnMut() -> Request + Send>;

/// What became of the transactions that workers have made themselves.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// How many have committed in the time that counts.
    pub committed: u64,
    /// How many have committed in all, before and after it as well.
    pub committed_in_all: u64,
    /// How often one was aborted by a conflict, and tried again.
    pub retried: u64,
    /// How often one, or a part of one, has waited for what was prepared, before and after the time that counts as well.
    pub waited: u64,
    /// How many were refused for good, before and after the time that counts as well.
    pub rejected: u64,
    /// Nanoseconds from the first begin of each that has committed to its outcome.
    pub nanos: Histogram<u64>,
}

impl LoadReport {
    pub(crate) fn new() -> Self {
        let Ok(nanos) = Histogram::new_with_bounds(1, NANOS_MAX, DIGITS) else {
            unreachable!("the bounds are those that the histogram allows");
        };
        LoadReport { committed: 0, committed_in_all: 0, retried: 0, waited: 0, rejected: 0, nanos }
    }

    /// Returns the report as numbers that can be sent.
    pub(crate) fn to_counts(&self) -> LoadCounts {
        let nanos =
            self.nanos.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect();
        LoadCounts {
            committed: self.committed,
            committed_in_all: self.committed_in_all,
            retried: self.retried,
            waited: self.waited,
            rejected: self.rejected,
            nanos,
        }
    }

    /// Returns the report that these numbers are of.
    pub(crate) fn from_counts(counts: &LoadCounts) -> Self {
        let mut report = LoadReport::new();
        report.committed = counts.committed;
        report.committed_in_all = counts.committed_in_all;
        (report.retried, report.waited, report.rejected) = (counts.retried, counts.waited, counts.rejected);
        counts.nanos.iter().for_each(|(nanos, count)| report.nanos.saturating_record_n(*nanos, *count));
        report
    }

    /// Adds what another worker has made.
    pub(crate) fn add(&mut self, other: &LoadReport) {
        self.committed += other.committed;
        self.committed_in_all += other.committed_in_all;
        self.retried += other.retried;
        self.waited += other.waited;
        self.rejected += other.rejected;
        let added = self.nanos.add(&other.nanos);
        assert!(added.is_ok(), "all have the same bounds");
    }
}

/// A report as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadCounts {
    committed: u64,
    committed_in_all: u64,
    retried: u64,
    waited: u64,
    rejected: u64,
    /// Values of the histogram, and how often each was counted.
    nanos: Vec<(u64, u64)>,
}

/// What a worker is to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    /// What the [program](super::Program::requests) is told.
    pub(crate) description: Vec<u8>,
    /// How many are under way at a time.
    pub(crate) width: usize,
    pub(crate) time: LoadTime,
}

/// When a load is measured.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub struct LoadTime {
    /// How long it runs before it is measured.
    pub warmup: Duration,
    /// How long it is measured.
    pub measured: Duration,
}

/// A load that a worker makes.
pub(super) struct RunningLoad {
    source: RequestSource,
    width: usize,
    /// What ends before this does not count.
    counts_from: Instant,
    /// None begins from here on.
    until: Instant,
    under_way: BTreeMap<DistributedId, Made>,
    /// Those that were in conflict, and begin again, by when that is.
    again: BTreeMap<(Instant, DistributedId), Made>,
    report: LoadReport,
    /// How many had waited at the worker when it began.
    waited_before: u64,
}

struct Made {
    request: Request,
    /// See [`machine_nanos`].
    since: u64,
    begin: Instant,
    /// How often it was begun.
    attempts: u32,
}

impl RunningLoad {
    /// Returns a load that begins now; `None` if it would not end as long as clocks can tell.
    pub(super) fn new(load: &Load, source: RequestSource, now: Instant, waited_before: u64) -> Option<Self> {
        let counts_from = now.checked_add(load.time.warmup)?;
        Some(RunningLoad {
            source,
            width: load.width,
            counts_from,
            until: counts_from.checked_add(load.time.measured)?,
            under_way: BTreeMap::new(),
            again: BTreeMap::new(),
            report: LoadReport::new(),
            waited_before,
        })
    }

    /// Begins as many as there should be under way.
    pub(super) fn begin_more(&mut self, now: Instant, mut begin: impl FnMut(&Request, u64) -> DistributedId) {
        if now >= self.until {
            // What has not committed by then is not tried again.
            self.again.clear();
            return;
        }
        // One that begins may have ended before the next one's turn: no more than so many in one go.
        for _ in self.under_way.len() + self.again.len()..self.width {
            let made = Made { request: (self.source)(), since: machine_nanos(), begin: now, attempts: 0 };
            self.begin(made, &mut begin);
        }
        while let Some(entry) = self.again.first_entry()
            && entry.key().0 <= now
        {
            let made = entry.remove();
            self.begin(made, &mut begin);
        }
    }

    /// Returns whether some wait for another attempt.
    pub(super) fn has_attempts(&self) -> bool {
        !self.again.is_empty()
    }

    fn begin(&mut self, mut made: Made, begin: &mut impl FnMut(&Request, u64) -> DistributedId) {
        made.attempts += 1;
        let id = begin(&made.request, made.since);
        self.under_way.insert(id, made);
    }

    /// Takes in what has become of a transaction; returns it if it is none of these.
    pub(super) fn end(&mut self, id: DistributedId, outcome: Outcome, now: Instant) -> Option<Outcome> {
        let Some(made) = self.under_way.remove(&id) else { return Some(outcome) };
        let counts = u64::from(now >= self.counts_from && now < self.until);
        match outcome {
            Outcome::Committed { .. } => {
                self.report.committed += counts;
                self.report.committed_in_all += 1;
                if counts > 0 {
                    self.report.nanos.saturating_record(now.duration_since(made.begin).as_nanos() as u64);
                }
            }
            Outcome::Aborted(refusal) if refusal.reason.may_pass() => {
                self.report.retried += counts;
                self.again.insert((now + pause_before_attempt(made.attempts), id), made);
            }
            Outcome::Aborted(_) | Outcome::Unknown(_) => self.report.rejected += 1,
        }
        None
    }

    /// Returns what has become of all, if it is over. `waited` is how many have waited at the worker, since ever.
    pub(super) fn report(&self, now: Instant, waited: u64) -> Option<LoadReport> {
        let is_over = now >= self.until && self.under_way.is_empty() && self.again.is_empty();
        is_over.then(|| LoadReport { waited: waited - self.waited_before, ..self.report.clone() })
    }
}

impl fmt::Debug for RunningLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningLoad").field("report", &self.report).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{Refusal, RefusalReason, SiteId};

    /// One each: while it warms up, while it is measured, and behind that.
    #[test]
    fn what_is_refused_counts_at_any_time() {
        let second = Duration::from_secs(1);
        let load =
            Load { description: Vec::new(), width: 1, time: LoadTime { warmup: second, measured: second } };
        let begin = Instant::now();
        let mut running = RunningLoad::new(&load, Box::new(Request::default), begin, 0).unwrap();
        let coordinator = SiteId { instance: 0, worker: 0 };
        for sequence in 0..3 {
            let id = DistributedId { coordinator, incarnation: 0, sequence };
            running.begin_more(begin, |_, _| id);
            let outcome = match sequence {
                1 => Outcome::Committed { local: None, remote: Vec::new() },
                _ => Outcome::Aborted(Refusal::new(RefusalReason::Rejected, "no")),
            };
            let now = begin + second * sequence as u32 + second / 2;
            assert_eq!(running.end(id, outcome, now), None);
        }
        let report = running.report(begin + 2 * second, 0).unwrap();
        assert_eq!((report.committed, report.rejected), (1, 2));
    }
}
