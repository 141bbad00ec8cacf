//! Transactions that wait for what is prepared, here or at another site of the instance.
//!
//! They are tried again, the oldest ones first, when something that was prepared here has ended, and once in a while, since nobody says when
//! that happens at another site.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::ages::Age;
use super::id::DistributedId;
use super::message::{Refusal, RefusalReason};

/// How long until they are tried again where nothing has ended here. Where nobody gets on, it doubles up to the longest.
const INTERVAL_MIN: Duration = Duration::from_micros(100);
const INTERVAL_MAX: Duration = Duration::from_millis(3);

/// How many are tried when something has ended.
const TRIES_MAX: usize = 16;

/// So long everybody may wait, for whomever: in memory what is prepared ends within microseconds, and somebody else's circle costs no more than that.
const MOMENT: Duration = Duration::from_micros(500);

/// What the queue asks for.
#[derive(Debug)]
pub(super) enum Turn {
    /// Try the transaction again. It may wait on in any case if it has waited for a moment only.
    Try { is_new: bool },
    /// What is in the way of an older one is in its way as well: give up if it may not wait any more.
    Stay,
    /// It has waited too long, for what this says.
    GiveUp(Refusal),
}

/// What has become of a transaction that had its turn.
#[derive(Debug)]
pub(super) enum Stand {
    /// It does not wait any more.
    Ended,
    /// It waits for what this says.
    Waits(Refusal),
    /// It waits as before.
    Stays,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    /// What it says about what is in the way. Two that say the same wait for the same, as a rule.
    held: Refusal,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Queue {
    wait: Duration,
    waiting: BTreeMap<Age, Waiting>,
    next_look: Option<Instant>,
    interval: Duration,
    /// How many have waited.
    added: u64,
}

impl Queue {
    /// Returns a queue in which each waits so long at most.
    pub(super) fn new(wait: Duration) -> Self {
        Queue { wait, waiting: BTreeMap::new(), next_look: None, interval: INTERVAL_MIN, added: 0 }
    }

    pub(super) fn add(&mut self, age: Age, held: Refusal, now: Instant) {
        if self.waiting.insert(age, Waiting { since: now, held }).is_none() {
            self.added += 1;
        }
        self.look_in(INTERVAL_MIN, now);
    }

    pub(super) fn has(&self, age: Age) -> bool {
        self.waiting.contains_key(&age)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many have waited.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Has those tried again that may go on, if it is time, or if something has ended.
    pub(super) fn look(
        &mut self,
        now: Instant,
        has_ended: bool,
        mut turn: impl FnMut(DistributedId, Turn) -> Stand,
    ) {
        let is_time = self.next_look.is_none_or(|next| now >= next);
        if self.waiting.is_empty() || !has_ended && !is_time {
            return;
        }
        let (wait, before) = (self.wait, self.waiting.len());
        let mut tries = if is_time { usize::MAX } else { TRIES_MAX };
        let mut in_the_way = BTreeSet::new();
        self.waiting.retain(|age, waiting| {
            let waited = now.saturating_duration_since(waiting.since);
            let (is_new, is_late) = (waited < MOMENT, waited >= wait);
            let is_tried = is_late || tries > 0 && !in_the_way.contains(&waiting.held.message);
            tries -= usize::from(is_tried && tries > 0);
            let mut stand = match (is_tried, is_new) {
                (true, _) => turn(age.id, Turn::Try { is_new }),
                (false, true) => Stand::Stays,
                (false, false) => turn(age.id, Turn::Stay),
            };
            if let Stand::Waits(held) = &stand {
                in_the_way.insert(held.message.clone());
                waiting.held = held.clone();
            }
            if is_late && !matches!(stand, Stand::Ended) {
                stand = turn(age.id, Turn::GiveUp(waiting.held.clone()));
            }
            !matches!(stand, Stand::Ended)
        });
        let got_on = self.waiting.len() < before;
        let interval = if got_on { INTERVAL_MIN } else { (self.interval * 2).min(INTERVAL_MAX) };
        if is_time || got_on {
            self.look_in(interval, now);
        }
    }

    fn look_in(&mut self, interval: Duration, now: Instant) {
        (self.interval, self.next_look) = (interval, Some(now + interval));
    }
}

/// Returns why one does not wait that keeps others waiting.
pub(super) fn older_waits() -> Refusal {
    Refusal::new(RefusalReason::Conflict, "an older transaction is in the way, and others wait for this one")
}
