//! A workload of one thread: its history is the serial order itself.
//!
//! Every state of the database that ever was is kept, so that what is recovered can be compared with all of it.

mod history;
mod plan;
mod statement;
mod tables;

use std::collections::BTreeMap;
use std::thread::{self, Scope, ScopedJoinHandle};

use ensilo::generic::Database;
use ensilo::{Engine, Error, Order, Result, Ticket};
use ensilo_test_disk::Recorder;

pub use history::{History, Moment};
pub use plan::{Plan, WORKER};
use statement::Statement;
use tables::Tables;

use crate::explore::Acknowledged;
use crate::random::Random;
use crate::schema::{Progress, Step};
use crate::state::DatabaseState;

/// Does the workload on a database, and adds its moments to `history`.
///
/// # Errors
/// The first error of the database.
pub fn run<E: Engine>(
    db: &Database<E>,
    recorder: &Recorder,
    history: &mut History,
    plan: &Plan,
) -> Result<()> {
    thread::scope(|scope| {
        let mut workload = Workload {
            db,
            recorder,
            random: Random::new(plan.seed),
            plan,
            history,
            tickets: Vec::new(),
            tables: Tables::open(db)?,
            checkpoint: None,
        };
        for _ in 0..plan.steps {
            workload.step(scope)?;
        }
        workload.join_checkpoint()
    })
}

struct Workload<'w, 'scope, E: Engine> {
    db: &'w Database<E>,
    recorder: &'w Recorder,
    random: Random,
    plan: &'w Plan,
    history: &'w mut History,
    /// Of moments that are not known to be stored.
    tickets: Vec<(u64, Ticket)>,
    tables: Tables<E>,
    checkpoint: Option<ScopedJoinHandle<'scope, Result<()>>>,
}

impl<'w, 'scope, E: Engine> Workload<'w, 'scope, E>
where
    'w: 'scope,
{
    fn step(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<()> {
        self.create_tables()?;
        match self.random.below(100) {
            0..3 => self.change_pairs(),
            3..5 => self.change_index(),
            5..6 => self.checkpoint(),
            6..8 => self.checkpoint_meanwhile(scope),
            8..11 => self.roll_back(),
            _ => self.transact(),
        }?;
        self.note_stored();
        Ok(())
    }

    /// Creates the tables that are missing, one after the other.
    fn create_tables(&mut self) -> Result<()> {
        if self.tables.progress.is_none() {
            self.change_catalog(|state| state.progress = Some(BTreeMap::new()));
            self.tables.progress = Some(self.db.create_table()?);
            self.note_all();
        }
        if self.tables.wide.is_none() {
            self.change_catalog(|state| {
                state.wide = Some(BTreeMap::new());
                state.indexes.insert(("wide".into(), "by_group".into()));
            });
            self.tables.wide = Some(self.db.create_table()?);
            self.note_all();
        }
        if self.tables.blobs.is_none() {
            self.change_catalog(|state| state.blobs = Some(BTreeMap::new()));
            self.tables.blobs = Some(self.db.create_table()?);
            self.note_all();
        }
        if self.tables.events.is_none() {
            self.change_catalog(|state| state.events = Some(Vec::new()));
            self.tables.events = Some(self.db.create_table()?);
            self.note_all();
        }
        Ok(())
    }

    fn change_pairs(&mut self) -> Result<()> {
        let index = ("pair".to_owned(), "pair_by_value".to_owned());
        if self.tables.pairs.take().is_some() {
            self.change_catalog(|state| {
                state.pairs = None;
                state.indexes.remove(&index);
            });
            self.db.drop_table("pair")?;
        } else {
            self.change_catalog(|state| {
                state.pairs = Some(BTreeMap::new());
                state.indexes.insert(index);
            });
            self.tables.pairs = Some(self.db.create_table()?);
        }
        self.note_all();
        Ok(())
    }

    fn change_index(&mut self) -> Result<()> {
        let index = ("wide".to_owned(), "by_amount".to_owned());
        if self.history.latest().indexes.contains(&index) {
            self.change_catalog(|state| _ = state.indexes.remove(&index));
            self.db.drop_index("wide", "by_amount")?;
        } else {
            self.change_catalog(|state| _ = state.indexes.insert(index));
            self.db.create_index("wide", "by_amount", [("amount", Order::Ascending)])?;
        }
        self.note_all();
        Ok(())
    }

    /// The catalog is about to change. If that fails nobody knows whether it did.
    fn change_catalog(&mut self, change: impl FnOnce(&mut DatabaseState)) {
        let mut state = self.history.latest().clone();
        change(&mut state);
        self.history.push(Moment { state, epoch: None });
    }

    /// A change of the catalog was acknowledged, which it is when it is stored, and all before it.
    fn note_all(&mut self) {
        self.tickets.clear();
        self.note(self.history.last());
    }

    fn checkpoint(&self) -> Result<()> {
        self.survive(self.db.checkpoint().map(|_| ()))
    }

    /// A checkpoint that fails does no harm.
    fn survive(&self, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::CheckpointFailed(_)) if self.plan.survives_failed_checkpoints => Ok(()),
            outcome => outcome,
        }
    }

    fn checkpoint_meanwhile(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<()> {
        self.join_checkpoint()?;
        let db = self.db;
        self.checkpoint = Some(scope.spawn(move || db.checkpoint().map(|_| ())));
        Ok(())
    }

    fn join_checkpoint(&mut self) -> Result<()> {
        let Some(checkpoint) = self.checkpoint.take() else { return Ok(()) };
        self.survive(checkpoint.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// Rolls back a transaction that changes its mind.
    fn roll_back(&mut self) -> Result<()> {
        let (_, statements) = self.draw_statements();
        let undone = self.db.transact(|tx| {
            statements.iter().try_for_each(|statement| self.tables.execute(tx, statement, 0))?;
            Err::<(), _>(Error::rollback("planned"))
        });
        match undone {
            Err(Error::User(_)) => Ok(()),
            other => other,
        }
    }

    fn transact(&mut self) -> Result<()> {
        let (mut state, statements) = self.draw_statements();
        let step = state.step_of(WORKER) + 1;
        let progress = state.progress.get_or_insert_default();
        let is_first = progress.insert(WORKER, step).is_none();
        let ((), ticket) = self.db.request().transact_with_ticket(|tx| {
            if let Some(table) = &self.tables.progress {
                match is_first {
                    true => _ = table.insert(tx, &Progress { worker: WORKER, step })?,
                    false => table.update(tx, WORKER, |row: &mut Step| row.step = step)?,
                }
            }
            statements.iter().try_for_each(|statement| self.tables.execute(tx, statement, step))
        })?;
        for statement in statements {
            if let (Statement::Event, Some(events)) = (statement, &mut state.events) {
                events.push(step);
            }
        }
        self.history.push(Moment { state, epoch: Some(ticket.epoch()) });
        self.tickets.push((self.history.last(), ticket.clone()));
        if self.random.percent(self.plan.stored_percent) {
            ticket.wait()?;
        }
        Ok(())
    }

    /// Notes what is stored by now.
    fn note_stored(&mut self) {
        let stored = self.tickets.iter().take_while(|(_, ticket)| ticket.is_stored()).count();
        let last = self.tickets.drain(..stored).next_back().map(|(moment, _)| moment);
        if let Some(moment) = last {
            self.note(moment);
        }
    }

    fn note(&self, moment: u64) {
        self.recorder.note(Acknowledged::mark(WORKER, moment));
    }

    /// Statements, and the state that they lead to but for the events and the progress.
    fn draw_statements(&mut self) -> (DatabaseState, Vec<Statement>) {
        let mut state = self.history.latest().clone();
        let count = 1 + if self.random.percent(20) { self.random.below(20) } else { self.random.below(3) };
        let statements: Vec<_> =
            (0..count).map(|_| Statement::draw(&mut self.random, self.plan, &mut state)).collect();
        (state, statements)
    }
}
