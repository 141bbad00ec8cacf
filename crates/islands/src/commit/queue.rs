//! Transactions that wait for what is prepared, here or at another site of the instance.
//!
//! They are tried again, the oldest ones first, when something that was prepared here has ended, and once in a while, since nobody says when
//! that happens at another site.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::ages::Age;
use super::id::DistributedId;
use super::message::Refusal;

/// How long until they are tried again where nothing has ended here.
const INTERVAL: Duration = Duration::from_micros(100);

/// What the queue asks for.
#[derive(Debug)]
pub(super) enum Turn {
    /// Try the transaction again.
    Try,
    /// It has waited too long, for what this says.
    GiveUp(Refusal),
}

#[derive(Debug)]
struct Waiting {
    until: Instant,
    /// What it says about what is in the way. Two that say the same wait for the same.
    held: Refusal,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Queue {
    wait: Duration,
    waiting: BTreeMap<Age, Waiting>,
    next_look: Option<Instant>,
    /// How many have waited.
    added: u64,
}

impl Queue {
    /// Returns a queue in which each waits so long at most.
    pub(super) fn new(wait: Duration) -> Self {
        Queue { wait, waiting: BTreeMap::new(), next_look: None, added: 0 }
    }

    pub(super) fn add(&mut self, age: Age, held: Refusal, now: Instant) {
        self.waiting.insert(age, Waiting { until: now + self.wait, held });
        self.added += 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how many have waited.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Has those tried again that may go on, if it is time: `turn` returns what is in the way of one still, if it goes on to wait.
    pub(super) fn look(
        &mut self,
        now: Instant,
        has_ended: bool,
        mut turn: impl FnMut(DistributedId, Turn) -> Option<Refusal>,
    ) {
        if self.waiting.is_empty() || !has_ended && self.next_look.is_some_and(|next| now < next) {
            return;
        }
        self.next_look = Some(now + INTERVAL);
        let mut in_the_way = BTreeSet::new();
        self.waiting.retain(|age, waiting| {
            if waiting.until <= now {
                turn(age.id, Turn::GiveUp(waiting.held.clone()));
                return false;
            }
            if in_the_way.contains(&waiting.held.message) {
                return true;
            }
            let Some(held) = turn(age.id, Turn::Try) else { return false };
            in_the_way.insert(held.message.clone());
            waiting.held = held;
            true
        });
    }
}
