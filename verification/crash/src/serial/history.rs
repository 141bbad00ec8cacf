//! All states that a database ever was in, to be compared with what is recovered.

use ensilo::Engine;
use ensilo::generic::Database;

use super::plan::WORKER;
use crate::explore::{Acknowledged, Oracle};
use crate::state::DatabaseState;

/// A state of the database, and what led to it.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The database.
    pub state: DatabaseState,
    /// The epoch of the transaction; `None` for a change of the catalog.
    pub epoch: Option<u64>,
}

/// All states in their order; the first is that of an empty database.
#[derive(Clone, Debug)]
pub struct History {
    moments: Vec<Moment>,
}

impl Default for History {
    fn default() -> History {
        History { moments: vec![Moment { state: DatabaseState::default(), epoch: None }] }
    }
}

impl History {
    /// Returns the number of the last moment.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.moments.len() as u64 - 1
    }

    /// Forgets what came after a moment, because it was lost.
    pub fn cut_after(&mut self, moment: u64) {
        self.moments.truncate(moment as usize + 1);
    }

    /// Returns whether the database was ever in this state.
    #[must_use]
    pub fn has(&self, state: &DatabaseState) -> bool {
        self.moments.iter().rev().any(|moment| moment.state == *state)
    }

    /// Returns what the database holds.
    pub(super) fn latest(&self) -> &DatabaseState {
        &self.moments[self.moments.len() - 1].state
    }

    /// The next moment.
    pub(super) fn push(&mut self, moment: Moment) {
        self.moments.push(moment);
    }

    /// Returns the last moment at which the database was in this state.
    fn find(&self, state: &DatabaseState) -> Result<usize, String> {
        let same_step = |moment: &&Moment| moment.state.step_of(WORKER) == state.step_of(WORKER);
        let found = self.moments.iter().rposition(|moment| moment.state == *state);
        found.ok_or_else(|| {
            let step = state.step_of(WORKER);
            match self.moments.iter().find(same_step) {
                Some(moment) => format!("after step {step}: {}", state.difference(&moment.state)),
                None => format!("there was no step {step}"),
            }
        })
    }
}

/// What has to be found: acknowledged moments, and whole epochs.
impl<E: Engine> Oracle<E> for History {
    type Seen = u64;

    fn check(&self, db: &Database<E>, acknowledged: &Acknowledged) -> Result<u64, String> {
        let state = DatabaseState::read(db).map_err(|error| error.to_string())?;
        let at = self.find(&state)?;
        let needed = acknowledged.of(WORKER);
        if (at as u64) < needed {
            return Err(format!("moment {needed} was acknowledged, moment {at} is what was recovered"));
        }
        let epoch = self.moments[at].epoch;
        let torn = |after: &Moment| epoch.is_some() && after.epoch == epoch;
        if self.moments[at + 1..].iter().any(torn) {
            return Err(format!("epoch {epoch:?} was recovered up to moment {at} only"));
        }
        Ok(at as u64)
    }
}
