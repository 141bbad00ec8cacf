//! All states that the database ever was in, with what was given and what a consumer has stored, to be compared with what is recovered.

use std::sync::Arc;

use ensilo::generic::{Changes, Database, Sequence, Table};
use ensilo::{Engine, Value};

use super::columns::ColumnChange;
use super::copy::TableCopy;
use super::state::ChangingState;
use super::{ANSWERED, CONSUMER, Numbered, TICKETS, WORKER};
use crate::explore::{Acknowledged, Oracle};
use crate::schema::table;

/// The largest numbers that were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// By the table.
    pub id: u64,
    /// By the sequence.
    pub ticket: u64,
}

impl Given {
    fn max(self, other: Given) -> Given {
        Given { id: self.id.max(other.id), ticket: self.ticket.max(other.ticket) }
    }
}

/// A state of the database, and what led to it.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    pub(super) state: ChangingState,
    /// The epoch of the transaction; `None` for a change of the catalog.
    pub(super) epoch: Option<u64>,
    /// How often the columns were changed before.
    pub(super) version: usize,
    /// The numbers that were given up to here.
    pub(super) given: Given,
}

/// All states in their order; the first is that of an empty database.
#[derive(Clone, Debug)]
pub struct ChangingHistory {
    pub(super) moments: Vec<Moment>,
    /// Each change of the columns.
    pub(super) changes: Vec<Vec<ColumnChange>>,
    /// What the consumer has stored, one copy after the other.
    pub(super) copies: Vec<TableCopy>,
    /// The numbers that were given up to each answer of a request that wrote nothing.
    pub(super) answered: Vec<Given>,
}

impl Default for ChangingHistory {
    fn default() -> ChangingHistory {
        let (state, given) = (ChangingState::default(), Given::default());
        let first = Moment { state, epoch: None, version: 0, given };
        let (changes, copies, answered) = (Vec::new(), Vec::new(), Vec::new());
        ChangingHistory { moments: vec![first], changes, copies, answered }
    }
}

impl ChangingHistory {
    /// Returns the number of the last moment.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.moments.len() as u64 - 1
    }

    /// Returns how many copies the consumer has stored.
    #[must_use]
    pub fn copies(&self) -> u64 {
        self.copies.len() as u64
    }

    /// Returns how many requests were answered that wrote nothing.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.len() as u64
    }

    /// Returns how often the columns were changed.
    #[must_use]
    pub fn versions(&self) -> usize {
        self.changes.len()
    }

    /// Forgets what came after a moment, and what was not acknowledged of the rest, because it was lost.
    pub fn cut_after(&mut self, moment: u64, acknowledged: &Acknowledged) {
        self.moments.truncate(moment as usize + 1);
        self.changes.truncate(self.latest().version);
        self.copies.truncate(acknowledged.of(CONSUMER) as usize);
        self.answered.truncate(acknowledged.of(ANSWERED) as usize);
    }

    /// Returns what was given up to now.
    pub(super) fn given(&self) -> Given {
        self.answered.last().copied().unwrap_or_default().max(self.latest().given)
    }

    /// Says that greater numbers were given than were, so that a check has something to find.
    pub fn claim_greater_numbers(&mut self) {
        let claim =
            |given: &mut Given| *given = Given { id: given.id + 10_000, ticket: given.ticket + 10_000 };
        self.answered.iter_mut().for_each(claim);
    }

    /// Takes the rows out of each copy that the consumer has stored, so that a check has something to find.
    pub fn forget_copied_rows(&mut self) {
        self.copies.iter_mut().for_each(TableCopy::forget_rows);
    }

    /// Expects another value in each row of the table whose columns change, so that a check has something to find.
    pub fn expect_other_values(&mut self) {
        let rows = self.moments.iter_mut().filter_map(|moment| moment.state.shifting.as_mut());
        for (shape, rows) in rows.map(|(shape, rows)| (&*shape, rows)) {
            let other = |row: &mut Arc<Vec<Value>>| {
                // The key stays.
                let at = usize::from(shape.key == 0).min(row.len() - 1);
                Arc::make_mut(row)[at] = Value::Text("another value".to_owned());
            };
            rows.values_mut().for_each(other);
        }
    }

    pub(super) fn latest(&self) -> &Moment {
        &self.moments[self.moments.len() - 1]
    }

    /// Returns the last moment at which the database was in this state.
    fn find(&self, state: &ChangingState) -> Result<usize, String> {
        let found = self.moments.iter().rposition(|moment| moment.state == *state);
        found.ok_or_else(|| {
            let step = state.step;
            match self.moments.iter().rfind(|moment| moment.state.step == step) {
                Some(moment) => format!("after step {step:?}: {}", state.difference(&moment.state)),
                None => format!("there was no step {step:?}"),
            }
        })
    }

    /// Checks that the next numbers are none that were given up to a moment, or in so many answers.
    fn check_numbers<E: Engine>(&self, db: &Database<E>, at: usize, answered: u64) -> Result<(), String> {
        let text = |error: ensilo::Error| error.to_string();
        let answered = self.answered[..answered as usize].last().copied().unwrap_or_default();
        let given = self.moments[at].given.max(answered);
        if db.list_sequences().map_err(text)?.iter().any(|name| name == TICKETS) {
            let tickets: Sequence<u64, E> = db.sequence(TICKETS).map_err(text)?;
            let ticket = db.transact(|tx| tickets.next(tx)).map_err(text)?;
            if ticket <= given.ticket {
                return Err(format!("ticket {ticket} is given again: {} was the last", given.ticket));
            }
        }
        if let Some(numbered) = table::<Numbered, E>(db).map_err(text)? {
            let id = next_id(db, &numbered).map_err(text)?;
            if id <= given.id {
                return Err(format!("number {id} is given again: {} was the last", given.id));
            }
        }
        Ok(())
    }

    /// Lets the consumer go on from one of the copies that it has stored, and compares what comes of it with the tables.
    fn follow<E: Engine>(&self, db: &Database<E>, at: usize, copy: u64) -> Result<(), String> {
        let Some(number) = copy.checked_sub(1) else { return Ok(()) };
        let mut copy = self.copies[number as usize].clone();
        let changes = db.changes().memory_bytes(2000).after(copy.position);
        let changes = changes.map_err(|error| format!("copy {number} cannot go on: {error}"))?;
        self.go_on(changes, &mut copy, at).map_err(|what| format!("copy {number}: {what}"))
    }

    fn go_on<E: Engine>(
        &self,
        mut changes: Changes<E>,
        copy: &mut TableCopy,
        at: usize,
    ) -> Result<(), String> {
        let Moment { state, version, .. } = &self.moments[at];
        let shape = state.shifting.as_ref().map(|(shape, _)| shape);
        while let Some(batch) = changes.try_next().map_err(|error| error.to_string())? {
            copy.take(&batch, *version, shape)?;
        }
        copy.compare(state, &self.changes[..*version])
    }
}

/// Returns the number that the table gives next, without a row under it.
fn next_id<E: Engine>(db: &Database<E>, numbered: &Table<Numbered, E>) -> ensilo::Result<u64> {
    let mut id = 0;
    let undone = db.transact(|tx| {
        id = numbered.insert_auto(tx, &Numbered { id: 0, ticket: 0, step: 0 })?;
        Err::<(), _>(ensilo::Error::rollback("only the number is looked at"))
    });
    match undone {
        Err(ensilo::Error::User(_)) => Ok(id),
        other => other.map(|()| id),
    }
}

/// What has to be found: acknowledged moments, whole epochs, numbers that were not given yet, and all changes behind what the consumer
/// has stored.
impl<E: Engine> Oracle<E> for ChangingHistory {
    type Seen = u64;

    fn check(&self, db: &Database<E>, acknowledged: &Acknowledged) -> Result<u64, String> {
        let state = ChangingState::read(db).map_err(|error| error.to_string())?;
        let at = self.find(&state)?;
        let needed = acknowledged.of(WORKER);
        if (at as u64) < needed {
            let difference = state.difference(&self.moments[needed as usize].state);
            return Err(format!(
                "moment {needed} was acknowledged, {at} is what was recovered: {difference}"
            ));
        }
        let epoch = self.moments[at].epoch;
        let torn = |after: &Moment| epoch.is_some() && after.epoch == epoch;
        if self.moments[at + 1..].iter().any(torn) {
            return Err(format!("epoch {epoch:?} was recovered up to moment {at} only"));
        }
        let stored = acknowledged.of(CONSUMER);
        self.follow(db, at, stored)?;
        self.follow(db, at, stored / 2)?;
        self.check_numbers(db, at, acknowledged.of(ANSWERED))?;
        Ok(at as u64)
    }
}
