//! How many transactions with parts elsewhere a site has under way at a time.
//!
//! Where many want the same few rows, each holds some while it waits for others, and gives up for older ones: the more are under way, the fewer
//! commit. So those that are begun while too many are under way wait until some have ended, the oldest ones first. How many are too many is found
//! out: each that commits lets a part of one more through, and each that is in conflict a fifth less.

use std::collections::BTreeMap;

use super::ages::Age;
use super::request::Request;

/// Where nothing is in conflict nobody waits.
const LIMIT_MAX: f64 = 4096.0;

/// What a conflict leaves of the limit.
const LEFT_BY_CONFLICT: f64 = 0.8;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Admission {
    limit: f64,
    under_way: usize,
    waiting: BTreeMap<Age, Request>,
}

impl Admission {
    pub(super) fn new() -> Self {
        Admission { limit: LIMIT_MAX, under_way: 0, waiting: BTreeMap::new() }
    }

    /// Returns whether another transaction may begin, before none that waits: it is under way from now on.
    pub(super) fn admit(&mut self) -> bool {
        let may_begin = self.waiting.is_empty() && self.has_room();
        self.under_way += usize::from(may_begin);
        may_begin
    }

    /// Has a transaction wait for [its turn](Self::next).
    pub(super) fn add(&mut self, age: Age, request: Request) {
        self.waiting.insert(age, request);
    }

    /// Returns the oldest transaction that waits, if there is room for it: it is under way from now on.
    pub(super) fn next(&mut self) -> Option<(Age, Request)> {
        let next = if self.has_room() { self.waiting.pop_first()? } else { return None };
        self.under_way += 1;
        Some(next)
    }

    /// One that was under way has committed.
    pub(super) fn note_commit(&mut self) {
        self.under_way -= 1;
        self.limit = (self.limit + 1.0 / self.limit).min(LIMIT_MAX);
    }

    /// One that was under way was aborted, by a conflict or by something else.
    pub(super) fn note_abort(&mut self, by_conflict: bool) {
        self.under_way -= 1;
        if by_conflict {
            self.limit = (self.limit * LEFT_BY_CONFLICT).max(1.0);
        }
    }

    fn has_room(&self) -> bool {
        (self.under_way as f64) < self.limit
    }

    /// Returns whether no transaction waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
