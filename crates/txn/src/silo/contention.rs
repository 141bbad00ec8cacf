//! How contended the rows are that a worker adds to, learned from its last commits.
//!
//! Workers that add to one row take turns at its cache lines, and each turn waits for the lines to come from another core: two of them do less
//! together than one alone. So a worker that finds a row changed since its statement, again and again, waits a moment before it
//! begins to commit, in which the others go on with the lines that they have. It holds no lock then and has published no epoch, so that it holds up
//! nobody.

use ensilo_sync::cpu_relax;

/// A row that has changed counts as much as so many that have not.
const CHANGED: u32 = 4;
/// From this score on a worker waits.
const CONTENDED: u32 = 32;
/// After the end of the contention it is forgotten within so many commits, less [`CONTENDED`].
const SCORE_MAX: u32 = 64;
/// Pauses of a wait: several transactions of another worker, and a small part of what a thread that has to be woken costs.
const PAUSES: u32 = 256;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Contention {
    score: u32,
}

impl Contention {
    /// Notes whether the row that the transaction locks first has changed since it was added to, and waits if that is so and is usual.
    pub(super) fn stand_back(&mut self, has_changed: bool) {
        if !has_changed {
            self.score = self.score.saturating_sub(1);
            return;
        }
        self.score = (self.score + CHANGED).min(SCORE_MAX);
        if self.score >= CONTENDED {
            (0..PAUSES).for_each(|_| cpu_relax());
        }
    }
}
