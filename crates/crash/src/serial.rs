//! A workload of one thread, whose history is the serial order itself.
//!
//! Every state of the database that ever was is kept, so that what is recovered can be compared with all of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{self, Scope, ScopedJoinHandle};

use ensilo::{Database, Error, Order, Protocol, Result, Table, Ticket, Transaction};
use ensilo_disk::Recorder;

use crate::explore::{Acknowledged, Oracle};
use crate::random::Random;
use crate::schema::{Amount, Blob, Event, Numbers, Pair, Progress, Step, Wide};
use crate::state::{State, table};

/// The only worker.
pub const WORKER: u32 = 0;

/// A state of the database, and what led to it.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The database.
    pub state: State,
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
        History { moments: vec![Moment { state: State::default(), epoch: None }] }
    }
}

impl History {
    /// The number of the last moment.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.moments.len() as u64 - 1
    }

    /// Forgets what came after a moment, because it was lost.
    pub fn cut_after(&mut self, moment: u64) {
        self.moments.truncate(moment as usize + 1);
    }

    /// Whether the database was ever in this state.
    #[must_use]
    pub fn has(&self, state: &State) -> bool {
        self.moments.iter().rev().any(|moment| moment.state == *state)
    }

    fn latest(&self) -> &State {
        &self.moments[self.moments.len() - 1].state
    }

    /// The last moment at which the database was in this state.
    fn find(&self, state: &State) -> Result<usize, String> {
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
impl<P: Protocol> Oracle<P> for History {
    type Seen = u64;

    fn check(&self, db: &Database<P>, acknowledged: &Acknowledged) -> Result<u64, String> {
        let state = State::read(db).map_err(|error| error.to_string())?;
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

/// What the workload is made of.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Where all numbers come from.
    pub seed: u64,
    /// How many steps.
    pub steps: u64,
    /// How many of 100 transactions wait until they are stored.
    pub stored_percent: u64,
    /// Rows of the table `wide`, about.
    pub rows: u32,
    /// The largest row of the table `blob`.
    pub blob_bytes_max: u64,
    /// Whether the workload goes on when a checkpoint could not be made.
    pub survives_failed_checkpoints: bool,
}

impl Plan {
    /// A workload that touches everything.
    #[must_use]
    pub fn new(seed: u64, steps: u64) -> Plan {
        Plan {
            seed,
            steps,
            stored_percent: 30,
            rows: 60,
            blob_bytes_max: 90_000,
            survives_failed_checkpoints: false,
        }
    }
}

/// Something that a transaction does.
#[derive(Clone, Debug)]
enum Statement {
    Insert(Wide),
    SetAmount(u32, i64),
    SetNumbers(u32, Numbers),
    Replace(Wide),
    Delete(u32),
    PutPair(Pair),
    DeletePair(u8, u32),
    PutBlob(Arc<Blob>),
    DeleteBlob(u32),
    Event,
}

/// Does the workload on a database, and adds its moments to `history`.
///
/// # Errors
/// The first error of the database.
pub fn run<P: Protocol>(
    db: &Database<P>,
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

/// The tables, as far as they are there.
struct Tables<P: Protocol> {
    progress: Option<Table<Progress, P>>,
    wide: Option<Table<Wide, P>>,
    pairs: Option<Table<Pair, P>>,
    blobs: Option<Table<Blob, P>>,
    events: Option<Table<Event, P>>,
}

impl<P: Protocol> Tables<P> {
    fn open(db: &Database<P>) -> Result<Self> {
        Ok(Tables {
            progress: table(db)?,
            wide: table(db)?,
            pairs: table(db)?,
            blobs: table(db)?,
            events: table(db)?,
        })
    }
}

struct Workload<'w, 'scope, P: Protocol> {
    db: &'w Database<P>,
    recorder: &'w Recorder,
    random: Random,
    plan: &'w Plan,
    history: &'w mut History,
    /// Of moments that are not known to be stored.
    tickets: Vec<(u64, Ticket)>,
    tables: Tables<P>,
    checkpoint: Option<ScopedJoinHandle<'scope, Result<()>>>,
}

impl<'w, 'scope, P: Protocol> Workload<'w, 'scope, P>
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
    fn change_catalog(&mut self, change: impl FnOnce(&mut State)) {
        let mut state = self.history.latest().clone();
        change(&mut state);
        self.history.moments.push(Moment { state, epoch: None });
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

    /// A transaction that changes its mind.
    fn roll_back(&mut self) -> Result<()> {
        let (_, statements) = self.draw_statements();
        let undone = self.db.transact(|tx| {
            statements.iter().try_for_each(|statement| self.execute(tx, statement, 0))?;
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
            statements.iter().try_for_each(|statement| self.execute(tx, statement, step))
        })?;
        for statement in statements {
            if let (Statement::Event, Some(events)) = (statement, &mut state.events) {
                events.push(step);
            }
        }
        self.history.moments.push(Moment { state, epoch: Some(ticket.epoch()) });
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
    fn draw_statements(&mut self) -> (State, Vec<Statement>) {
        let mut state = self.history.latest().clone();
        let count = 1 + if self.random.percent(20) { self.random.below(20) } else { self.random.below(3) };
        let statements: Vec<_> = (0..count).map(|_| self.draw_statement(&mut state)).collect();
        (state, statements)
    }

    fn draw_statement(&mut self, state: &mut State) -> Statement {
        let random = &mut self.random;
        let rows = state.wide.get_or_insert_default();
        let id = random.small(self.plan.rows);
        match random.below(100) {
            0..62 if !rows.contains_key(&id) => {
                let row = draw_row(random, id);
                rows.insert(id, Arc::new(row.clone()));
                Statement::Insert(row)
            }
            0..30 => {
                let amount = random.below(1000) as i64;
                change(rows, id, |row| row.amount = amount);
                Statement::SetAmount(id, amount)
            }
            30..42 => {
                let numbers = draw_numbers(random);
                change(rows, id, |row| {
                    row.group = numbers.group;
                    row.maybe = numbers.maybe;
                    row.first = numbers.first;
                    row.third = numbers.third;
                });
                Statement::SetNumbers(id, numbers)
            }
            42..50 => {
                let row = draw_row(random, id);
                rows.insert(id, Arc::new(row.clone()));
                Statement::Replace(row)
            }
            50..62 => {
                rows.remove(&id);
                Statement::Delete(id)
            }
            62..84 => match &mut state.pairs {
                Some(pairs) => draw_pair(random, pairs),
                None => Statement::Event,
            },
            84..92 => draw_blob(random, self.plan.blob_bytes_max, state.blobs.get_or_insert_default()),
            _ => Statement::Event,
        }
    }

    fn execute(&self, tx: &mut Transaction<'_, P>, statement: &Statement, step: u64) -> Result<()> {
        let Tables { wide: Some(wide), blobs: Some(blobs), events: Some(events), pairs, .. } = &self.tables
        else {
            return Ok(());
        };
        match (statement, pairs) {
            (Statement::Insert(row), _) => wide.insert(tx, row).map(|_| ()),
            (Statement::SetAmount(id, amount), _) => {
                wide.update(tx, *id, |row: &mut Amount| row.amount = *amount)
            }
            (Statement::SetNumbers(id, numbers), _) => {
                wide.update(tx, *id, |row: &mut Numbers| *row = numbers.clone())
            }
            (Statement::Replace(row), _) => wide.replace(tx, row),
            (Statement::Delete(id), _) => wide.delete(tx, *id).map(|_| ()),
            (Statement::PutPair(row), Some(pairs)) => pairs.upsert(tx, row),
            (Statement::DeletePair(left, right), Some(pairs)) => {
                pairs.delete(tx, (*left, *right)).map(|_| ())
            }
            (Statement::PutPair(_) | Statement::DeletePair(..), None) => Ok(()),
            (Statement::PutBlob(row), _) => blobs.upsert(tx, row),
            (Statement::DeleteBlob(id), _) => blobs.delete(tx, *id).map(|_| ()),
            (Statement::Event, _) => events.insert(tx, &Event { step }).map(|_| ()),
        }
    }
}

fn change(rows: &mut BTreeMap<u32, Arc<Wide>>, id: u32, change: impl FnOnce(&mut Wide)) {
    if let Some(row) = rows.get_mut(&id) {
        change(Arc::make_mut(row));
    }
}

fn draw_row(random: &mut Random, id: u32) -> Wide {
    let numbers = draw_numbers(random);
    let note_len = if random.percent(10) { random.below(2000) } else { random.below(40) };
    let letter = char::from(b'a' + random.below(26) as u8);
    Wide {
        id,
        group: numbers.group,
        amount: random.below(1000) as i64,
        maybe: numbers.maybe,
        first: numbers.first,
        second: random.draw(),
        third: numbers.third,
        note: std::iter::repeat_n(letter, note_len as usize).collect(),
    }
}

fn draw_numbers(random: &mut Random) -> Numbers {
    Numbers {
        group: random.below(7) as u16,
        maybe: random.percent(50).then(|| random.draw().cast_signed()),
        first: random.draw(),
        third: random.draw(),
    }
}

fn draw_pair(random: &mut Random, pairs: &mut BTreeMap<(u8, u32), u64>) -> Statement {
    let (left, right) = (random.below(3) as u8, random.small(12));
    if pairs.contains_key(&(left, right)) && random.percent(40) {
        pairs.remove(&(left, right));
        return Statement::DeletePair(left, right);
    }
    let value = random.below(50);
    pairs.insert((left, right), value);
    Statement::PutPair(Pair { left, right, value })
}

fn draw_blob(random: &mut Random, bytes_max: u64, blobs: &mut BTreeMap<u32, Arc<Blob>>) -> Statement {
    let id = random.small(6);
    if blobs.contains_key(&id) && random.percent(30) {
        blobs.remove(&id);
        return Statement::DeleteBlob(id);
    }
    // Half of it compresses well.
    let len = random.below(bytes_max);
    let bytes = (0..len).map(|at| if at % 2 == 0 { random.draw() as u8 } else { 7 }).collect();
    let row = Arc::new(Blob { id, bytes });
    blobs.insert(id, Arc::clone(&row));
    Statement::PutBlob(row)
}
