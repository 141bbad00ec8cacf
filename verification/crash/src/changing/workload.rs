//! What the one thread does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use ensilo::generic::{Changes, Database, DynamicTable, Sequence, Table, Transaction};
use ensilo::{Engine, Error, Order, Result, SchemaChange, Ticket, Value};
use ensilo_test_disk::Recorder;

use super::columns::{ColumnChange, draw_value};
use super::copy::TableCopy;
use super::history::{ChangingHistory, Given, Moment};
use super::shifting::{Rows, Shape, ShiftingColumn};
use super::state::ChangingState;
use super::{ANSWERED, CONSUMER, Numbered, NumberedStep, SHIFTING, TICKETS, WORKER};
use crate::explore::Acknowledged;
use crate::random::Random;
use crate::schema::{Progress, Step, table};

/// What the workload is made of.
#[derive(Clone, Copy, Debug)]
pub struct ChangingPlan {
    /// Where all numbers come from.
    pub seed: u64,
    /// How many steps.
    pub steps: u64,
    /// How many of 100 transactions wait until they are stored.
    pub stored_percent: u64,
    /// Keys of the table whose columns change.
    pub rows: u64,
}

impl ChangingPlan {
    /// Returns a workload that touches everything.
    #[must_use]
    pub fn new(seed: u64, steps: u64) -> ChangingPlan {
        ChangingPlan { seed, steps, stored_percent: 30, rows: 40 }
    }
}

/// Does the workload on a database that keeps its changes, and adds its moments to `history`.
///
/// # Errors
/// The first error of the database; an [`Error::User`] when the consumer got something else than what was committed.
pub fn run<E: Engine>(
    db: &Database<E>,
    recorder: &Recorder,
    history: &mut ChangingHistory,
    plan: &ChangingPlan,
) -> Result<()> {
    thread::scope(|scope| {
        let consumer = Consumer::open(db, history)?;
        let (random, tickets) = (Random::new(plan.seed), Vec::new());
        let mut workload =
            Workload { db, recorder, random, plan, history, tickets, consumer, checkpoint: None };
        workload.create_tables()?;
        for _ in 0..plan.steps {
            workload.step(scope)?;
        }
        workload.end()
    })
}

/// The consumer at work.
struct Consumer<E: Engine> {
    changes: Changes<E>,
    copy: TableCopy,
}

impl<E: Engine> Consumer<E> {
    /// Goes on from what is stored, or begins with the first change that there is.
    fn open(db: &Database<E>, history: &ChangingHistory) -> Result<Consumer<E>> {
        if let Some(copy) = history.copies.last() {
            return Ok(Consumer { changes: db.changes().after(copy.position)?, copy: copy.clone() });
        }
        let changes = db.changes().begin_at_oldest()?;
        Ok(Consumer { copy: TableCopy::at(changes.position()), changes })
    }
}

struct Workload<'w, 'scope, E: Engine> {
    db: &'w Database<E>,
    recorder: &'w Recorder,
    random: Random,
    plan: &'w ChangingPlan,
    history: &'w mut ChangingHistory,
    /// Of moments that are not known to be stored.
    tickets: Vec<(u64, Ticket)>,
    consumer: Consumer<E>,
    checkpoint: Option<ScopedJoinHandle<'scope, Result<()>>>,
}

/// What a transaction does to the table whose columns change.
#[derive(Clone, Debug)]
enum Statement {
    Upsert(Vec<Value>),
    Update(u64, String, Value),
    Delete(u64),
}

impl<'w, 'scope, E: Engine> Workload<'w, 'scope, E>
where
    'w: 'scope,
{
    fn step(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<()> {
        match self.random.below(100) {
            0..8 => self.change_columns(),
            8..13 => self.change_index(),
            13..16 => self.truncate(SHIFTING),
            16..18 => self.truncate("numbered"),
            18..19 => self.db.checkpoint().map(|_| ()),
            19..22 => self.checkpoint_meanwhile(scope),
            22..25 => self.take_numbers(),
            25..27 => self.roll_back(),
            27..30 => self.transact(30),
            _ => self.transact(3),
        }?;
        self.consume()?;
        self.note_stored();
        Ok(())
    }

    /// Creates what is missing.
    fn create_tables(&mut self) -> Result<()> {
        if table::<Progress, E>(self.db)?.is_none() {
            self.change_catalog(|state| state.step = Some(0));
            self.db.create_table::<Progress>()?;
            self.note_all();
        }
        if self.history.latest().state.shifting.is_none() {
            let shape = Shape::first();
            let schema = shape.schema()?;
            self.change_catalog(|state| state.shifting = Some((shape, Rows::new())));
            self.db.create_dynamic_table(schema)?;
            self.note_all();
        }
        if table::<Numbered, E>(self.db)?.is_none() {
            self.change_catalog(|state| state.numbered = Some(BTreeMap::new()));
            self.db.create_table::<Numbered>()?;
            self.note_all();
        }
        Ok(())
    }

    /// The catalog is about to change. If that fails nobody knows whether it did.
    fn change_catalog(&mut self, change: impl FnOnce(&mut ChangingState)) {
        let mut moment = self.history.latest().clone();
        change(&mut moment.state);
        moment.epoch = None;
        self.history.moments.push(moment);
    }

    /// Changes the columns, in one step or in several.
    fn change_columns(&mut self) -> Result<()> {
        let (mut all, mut change) = (Vec::new(), SchemaChange::new());
        let mut moment = self.history.latest().clone();
        let Some((shape, rows)) = &mut moment.state.shifting else { return Ok(()) };
        for _ in 0..1 + self.random.below(3) {
            let name = format!("column_{}_{}", self.history.last(), all.len());
            let drawn = ColumnChange::draw(&mut self.random, shape, name);
            change = change.then(&drawn.of_schema(shape));
            drawn.change_shape(shape);
            rows.values_mut().for_each(|row| drawn.change_row(Arc::make_mut(row)));
            all.push(drawn);
        }
        self.history.changes.push(all);
        (moment.epoch, moment.version) = (None, self.history.changes.len());
        self.history.moments.push(moment);
        self.db.change_table(SHIFTING, &change)?;
        // Where it has changed nothing it has waited for nothing; what every transaction has written is stored when it is read.
        let progress = self.db.open_table::<Progress>()?;
        self.db.transact(|tx| progress.get(tx, WORKER))?;
        self.note_all();
        Ok(())
    }

    /// Builds an index, or drops one.
    fn change_index(&mut self) -> Result<()> {
        let Some((shape, _)) = self.history.latest().state.shifting.clone() else { return Ok(()) };
        let name = ["one", "other"][self.random.below(2) as usize];
        if shape.indexes.contains_key(name) {
            self.change_catalog(|state| {
                _ = state.shifting.as_mut().map(|(shape, _)| shape.indexes.remove(name))
            });
            self.db.drop_index(SHIFTING, name)?;
        } else {
            let (key, is_unique) = (shape.key, name == "one");
            let at = self.random.below(shape.columns.len() as u64) as usize;
            // With the key a unique index is one whatever the rows have.
            let columns = if is_unique && at != key { vec![at, key] } else { vec![at] };
            let names: Vec<_> = columns.iter().map(|&at| shape.columns[at].name.clone()).collect();
            let names = names.iter().map(|name| (name.as_str(), Order::Ascending));
            self.change_catalog(|state| {
                let indexes = state.shifting.as_mut().map(|(shape, _)| &mut shape.indexes);
                indexes.and_then(|indexes| indexes.insert(name.to_owned(), (columns, is_unique)));
            });
            match is_unique {
                true => self.db.create_unique_index(SHIFTING, name, names)?,
                false => self.db.create_index(SHIFTING, name, names)?,
            }
        }
        self.note_all();
        Ok(())
    }

    fn truncate(&mut self, name: &str) -> Result<()> {
        self.change_catalog(|state| match (name, &mut state.shifting, &mut state.numbered) {
            (SHIFTING, Some((_, rows)), _) => rows.clear(),
            (_, _, Some(numbered)) => numbered.clear(),
            _ => {}
        });
        self.db.truncate_table(name)?;
        self.note_all();
        Ok(())
    }

    fn checkpoint_meanwhile(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<()> {
        self.join_checkpoint()?;
        let db = self.db;
        self.checkpoint = Some(scope.spawn(move || db.checkpoint().map(|_| ())));
        Ok(())
    }

    fn join_checkpoint(&mut self) -> Result<()> {
        let Some(checkpoint) = self.checkpoint.take() else { return Ok(()) };
        checkpoint.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Takes numbers, and writes nothing. The answer is stored when it comes.
    fn take_numbers(&mut self) -> Result<()> {
        let tickets: Sequence<u64, E> = self.db.sequence(TICKETS)?;
        let taken = self.db.transact(|tx| tickets.next(tx))?;
        let given = self.history.given();
        self.note_answer(Given { ticket: greater(given.ticket, taken)?, ..given });
        Ok(())
    }

    /// Rolls back a transaction that changes its mind. The numbers that it got are given.
    fn roll_back(&mut self) -> Result<()> {
        let (_, statements) = self.draw_statements(3);
        let (shifting, numbered) = (self.db.open_dynamic_table(SHIFTING)?, self.db.open_table::<Numbered>()?);
        let mut id = 0;
        let undone = self.db.transact(|tx| {
            execute(tx, &shifting, &statements)?;
            id = numbered.insert_auto(tx, &Numbered { id: 0, ticket: 0, step: 0 })?;
            Err::<(), _>(Error::rollback("planned"))
        });
        match undone {
            Err(Error::User(_)) => {}
            other => return other,
        }
        let given = self.history.given();
        self.note_answer(Given { id: greater(given.id, id)?, ..given });
        Ok(())
    }

    fn transact(&mut self, statements_end: u64) -> Result<()> {
        let (mut moment, statements) = self.draw_statements(statements_end);
        let shifting = self.db.open_dynamic_table(SHIFTING)?;
        let numbered = self.db.open_table::<Numbered>()?;
        let (progress, tickets) = (self.db.open_table::<Progress>()?, self.db.sequence::<u64>(TICKETS)?);
        let step = moment.state.step.unwrap_or(0) + 1;
        let (is_numbered, old) = (self.random.percent(50), self.draw_number());
        let (given, ticket) = self.db.request().transact_with_ticket(|tx| {
            write_step(tx, &progress, step)?;
            execute(tx, &shifting, &statements)?;
            if let Some((id, is_deleted)) = old {
                change_numbered(tx, &numbered, (id, is_deleted), step)?;
            }
            if !is_numbered {
                return Ok(None);
            }
            let ticket = tickets.next(tx)?;
            let id = numbered.insert_auto(tx, &Numbered { id: 0, ticket, step })?;
            Ok(Some(Given { id, ticket }))
        })?;
        moment.state.step = Some(step);
        if let Some(numbers) = &mut moment.state.numbered {
            match old {
                Some((id, true)) => _ = numbers.remove(&id),
                Some((id, false)) => _ = numbers.entry(id).and_modify(|row| row.1 = step),
                None => {}
            }
            if let Some(Given { id, ticket }) = given {
                numbers.insert(id, (ticket, step));
                let before = self.history.given();
                moment.given = Given { id: greater(before.id, id)?, ticket: greater(before.ticket, ticket)? };
            }
        }
        moment.epoch = Some(ticket.epoch());
        self.history.moments.push(moment);
        self.tickets.push((self.history.last(), ticket.clone()));
        if self.random.percent(self.plan.stored_percent) {
            ticket.wait()?;
        }
        Ok(())
    }

    /// Draws a row under a number of the table, if it has any, and whether it is deleted.
    fn draw_number(&mut self) -> Option<(u64, bool)> {
        let numbered = self.history.latest().state.numbered.as_ref()?;
        let at = self.random.below(numbered.len().max(1) as u64) as usize;
        let id = *numbered.keys().nth(at)?;
        self.random.percent(40).then(|| (id, self.random.percent(50)))
    }

    /// Draws statements, and what they make of the table.
    fn draw_statements(&mut self, end: u64) -> (Moment, Vec<Statement>) {
        let mut moment = self.history.latest().clone();
        let count = self.random.below(end + 1);
        let random = &mut self.random;
        let statements = match &mut moment.state.shifting {
            Some((shape, rows)) => (0..count).map(|_| draw(random, self.plan, shape, rows)).collect(),
            None => Vec::new(),
        };
        (moment, statements)
    }

    /// Lets the consumer take what has come, and store its copy now and then.
    fn consume(&mut self) -> Result<()> {
        if self.random.percent(5) {
            let request = self.db.changes().memory_bytes(1 + self.random.below(4000) as usize);
            self.consumer.changes = request.after(self.consumer.copy.position)?;
        }
        if self.random.percent(30) {
            return Ok(());
        }
        while let Some(batch) = self.consumer.changes.try_next()? {
            let Moment { state, version, .. } = self.history.latest();
            let shape = state.shifting.as_ref().map(|(shape, _)| shape);
            self.consumer.copy.take(&batch, *version, shape).map_err(Error::rollback)?;
            if self.random.percent(20) {
                self.store_copy();
            }
        }
        Ok(())
    }

    fn store_copy(&mut self) {
        self.history.copies.push(self.consumer.copy.clone());
        self.recorder.note(Acknowledged::mark(CONSUMER, self.history.copies()));
    }

    /// Everything that was committed is stored, and the consumer has it.
    fn end(&mut self) -> Result<()> {
        self.join_checkpoint()?;
        let found = ChangingState::read(self.db)?;
        let latest = self.history.latest();
        if found != latest.state {
            return Err(Error::rollback(found.difference(&latest.state)));
        }
        self.note_all();
        let Moment { state, version, .. } = self.history.latest();
        let shape = state.shifting.as_ref().map(|(shape, _)| shape);
        while let Some(batch) = self.consumer.changes.try_next()? {
            self.consumer.copy.take(&batch, *version, shape).map_err(Error::rollback)?;
        }
        self.consumer.copy.compare(state, &self.history.changes).map_err(Error::rollback)?;
        self.store_copy();
        Ok(())
    }

    /// What is acknowledged is stored when it is, and all before it.
    fn note_all(&mut self) {
        self.tickets.clear();
        self.note(self.history.last());
    }

    /// Notes what is stored by now.
    fn note_stored(&mut self) {
        let stored = self.tickets.iter().take_while(|(_, ticket)| ticket.is_stored()).count();
        let last = self.tickets.drain(..stored).next_back().map(|(moment, _)| moment);
        if let Some(moment) = last {
            self.note(moment);
        }
    }

    /// Numbers were answered by a request that wrote nothing. What was written before need not be stored.
    fn note_answer(&mut self, given: Given) {
        self.history.answered.push(given);
        self.recorder.note(Acknowledged::mark(ANSWERED, self.history.answered()));
    }

    fn note(&self, moment: u64) {
        self.recorder.note(Acknowledged::mark(WORKER, moment));
    }
}

/// Returns the number that was given, which has to be greater than the one before.
fn greater(before: u64, given: u64) -> Result<u64> {
    if given > before {
        return Ok(given);
    }
    Err(Error::rollback(format!("{given} is given again: {before} was the last")))
}

fn draw(random: &mut Random, plan: &ChangingPlan, shape: &Shape, rows: &mut Rows) -> Statement {
    let id = random.below(plan.rows);
    let free: Vec<_> = (0..shape.columns.len()).filter(|&at| at != shape.key).collect();
    if rows.contains_key(&id) && random.percent(25) {
        rows.remove(&id);
        return Statement::Delete(id);
    }
    if let (Some(row), false) = (rows.get_mut(&id), free.is_empty()) {
        let at = free[random.below(free.len() as u64) as usize];
        let value = draw_value(random, &shape.columns[at]);
        Arc::make_mut(row)[at] = value.clone();
        return Statement::Update(id, shape.columns[at].name.clone(), value);
    }
    let value = |(at, column): (usize, &ShiftingColumn)| match at == shape.key {
        true => Value::Unsigned(id),
        false => draw_value(random, column),
    };
    let row: Vec<_> = shape.columns.iter().enumerate().map(value).collect();
    rows.insert(id, Arc::new(row.clone()));
    Statement::Upsert(row)
}

fn execute<E: Engine>(
    tx: &mut Transaction<'_, E>,
    table: &DynamicTable<E>,
    statements: &[Statement],
) -> Result<()> {
    statements.iter().try_for_each(|statement| match statement {
        Statement::Upsert(row) => table.upsert(tx, row),
        Statement::Update(id, column, value) => {
            table.update(tx, &[Value::Unsigned(*id)], &[(column, value.clone())])
        }
        Statement::Delete(id) => table.delete(tx, &[Value::Unsigned(*id)]).map(|_| ()),
    })
}

fn write_step<E: Engine>(
    tx: &mut Transaction<'_, E>,
    progress: &Table<Progress, E>,
    step: u64,
) -> Result<()> {
    match step {
        1 => progress.insert(tx, &Progress { worker: WORKER, step }).map(|_| ()),
        _ => progress.update(tx, WORKER, |row: &mut Step| row.step = step),
    }
}

fn change_numbered<E: Engine>(
    tx: &mut Transaction<'_, E>,
    numbered: &Table<Numbered, E>,
    (id, is_deleted): (u64, bool),
    step: u64,
) -> Result<()> {
    match is_deleted {
        true => numbered.delete(tx, id).map(|_| ()),
        false => numbered.update(tx, id, |row: &mut NumberedStep| row.step = step),
    }
}
