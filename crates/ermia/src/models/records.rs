//! Records that models find without an index, and loom's bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use ensilo_engine::{Abort, TableId};
use ensilo_sync::atomic::Ordering;
use loom::thread;

use super::serial_order::{Deed, is_serializable};
use super::{ModelSession, Stage};
use crate::handle::ErmiaHandle;
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::read::{Seen, SeenRow};
use crate::stamp::Author;
use crate::transaction::Transaction;
use crate::version::Version;

const ROW_BYTES: usize = 8;

/// What a transaction of a model does, one after the other.
#[derive(Copy, Clone, Debug)]
pub(super) enum Op {
    /// It looks at a record.
    Read(usize),
    /// It looks at a record and puts a number of its own there.
    Write(usize),
    /// The same, and puts another number over its own.
    WriteTwice(usize),
    /// It looks at what is newest, and relies on nothing.
    Peek(usize),
    /// It checks what it has read.
    Check,
}

/// A transaction of a model.
#[derive(Copy, Clone, Debug)]
pub(super) enum Program {
    Commits(&'static [Op]),
    Aborts(&'static [Op]),
    /// Between its operations another transaction, of another session, runs from beginning to end.
    CommitsAround(&'static [Op], &'static [Op], &'static [Op]),
    /// A read-only one on a safe snapshot, of these records.
    Snapshot(&'static [usize]),
}

impl Stage {
    /// Returns a record with a committed row.
    pub(super) fn record<I: Isolation>(&self, row: u64) -> Oid {
        let participant = self.shared.epochs.participant();
        let guard = participant.pin();
        let stamp = self.shared.clock.take_in(self.shared.epochs.global_epoch(), 1);
        let version = Version::<I>::allocate(&guard, TableId(1), ROW_BYTES, Author::At(stamp), None).unwrap();
        version.record().store_row([row].into_iter(), ROW_BYTES);
        let oid = self.store.records().take_one().unwrap();
        self.store.slot(oid).store(version.to_word(), Ordering::Release);
        oid
    }
}

/// Returns a handle to a record, and its row.
pub(super) fn look<I: Isolation>(
    tx: &mut Transaction<'_, I>,
    stage: &Stage,
    oid: Oid,
) -> Result<(ErmiaHandle, u64), Abort> {
    match tx.see(&stage.store, oid)? {
        Seen::Version(version, stamp) => {
            tx.track(version, stamp)?;
            let found = tx.add_found(&stage.store, SeenRow { oid, version, stamp: Some(stamp) }, b"key")?;
            Ok((found, version.row().word(0)))
        }
        seen => unreachable!("every record has a row, and is written once: {seen:?}"),
    }
}

/// Before it is overwritten by the same transaction.
const NEVER_COMMITTED: u64 = u64::MAX;

/// What a transaction has seen and made, if it has committed.
type Outcome = Option<Vec<Deed>>;

/// Runs operations, and adds what the transaction has seen and made. What it makes is `number`.
fn operate<I: Isolation>(
    tx: &mut Transaction<'_, I>,
    (stage, oids): (&Stage, &[Oid]),
    (number, ops): (u64, &[Op]),
    deeds: &mut Vec<Deed>,
) -> Result<(), Abort> {
    for op in ops {
        match *op {
            Op::Read(record) => deeds.push(Deed::Saw(record, Some(look(tx, stage, oids[record])?.1))),
            Op::Write(record) | Op::WriteTwice(record) => {
                let (found, row) = look(tx, stage, oids[record])?;
                if let Op::WriteTwice(_) = op {
                    tx.put_found(found, &[NEVER_COMMITTED], ROW_BYTES)?;
                }
                tx.put_found(found, &[number], ROW_BYTES)?;
                deeds.extend([Deed::Saw(record, Some(row)), Deed::Made(record, Some(number))]);
            }
            Op::Peek(record) => {
                let newest = tx.newest_row(&stage.store, oids[record]).unwrap();
                let row = newest.map(|seen| seen.row().word(0));
                assert!(row.is_some_and(|row| row != NEVER_COMMITTED), "no committed row: {row:?}");
            }
            Op::Check => _ = tx.check_reads()?,
        }
    }
    Ok(())
}

/// Runs what one thread does, with a session for each transaction. What the first makes is `number`. From `when_apart` on others may run.
fn run_program<I: Isolation>(
    sessions: &mut [ModelSession<I>; 2],
    number: u64,
    program: Program,
    oids: &[Oid],
    when_apart: &mut dyn FnMut(),
) -> Vec<Outcome> {
    if !matches!(program, Program::CommitsAround(..)) {
        when_apart();
    }
    let stage = sessions[0].stage.clone();
    let at = (&stage, oids);
    let [first, second] = sessions;
    let mut deeds = Vec::new();
    match program {
        Program::Commits(ops) => {
            let mut tx = first.begin();
            let done = operate(&mut tx, at, (number, ops), &mut deeds).and_then(|()| tx.end_by_commit());
            vec![done.ok().map(|_| deeds)]
        }
        Program::CommitsAround(before, between, after) => {
            let mut tx = first.begin();
            let mut done = operate(&mut tx, at, (number, before), &mut deeds);
            let (mut others, mut other) = (Vec::new(), second.begin());
            let inner = operate(&mut other, at, (number + 10, between), &mut others);
            let inner = inner.and_then(|()| other.end_by_commit()).ok().map(|_| others);
            when_apart();
            done = done.and_then(|()| operate(&mut tx, at, (number, after), &mut deeds));
            vec![inner, done.and_then(|()| tx.end_by_commit()).ok().map(|_| deeds)]
        }
        Program::Aborts(ops) => {
            let _ = operate(&mut first.begin(), at, (number, ops), &mut deeds);
            vec![None]
        }
        Program::Snapshot(records) => {
            let mut snapshot = first.begin_snapshot();
            let row = |record: usize| Deed::Saw(record, snapshot.first_word(&stage.store, oids[record]));
            vec![Some(records.iter().copied().map(row).collect())]
        }
    }
}

/// Runs transactions side by side over records of 0, the one at `leading` on the model's first thread, and checks that a serial order explains
/// those that have committed. Returns which have.
fn side_by_side<I: Isolation>(records: usize, programs: &'static [Program], leading: usize) -> Vec<bool> {
    let stage = Stage::new();
    let oids: Arc<[Oid]> = (0..records).map(|_| stage.record::<I>(0)).collect();
    let run = |at: usize| {
        let mut sessions = [(); 2].map(|()| stage.session::<I>());
        // As in the product, where a light barrier orders nothing as long as nobody has a heavy one.
        sessions.iter_mut().for_each(|session| session.participant.plant_missing_barriers());
        let oids = Arc::clone(&oids);
        move |when_apart: &mut dyn FnMut()| {
            run_program(&mut sessions, at as u64 + 1, programs[at], &oids, when_apart)
        }
    };
    let mut lead = run(leading);
    let others: Vec<_> = (0..programs.len()).filter(|at| *at != leading).map(run).collect();
    let (mut others, mut threads) = (Some(others), Vec::new());
    let of_leading = lead(&mut || {
        let others = others.take().into_iter().flatten();
        threads = others.map(|mut run| thread::spawn(move || run(&mut || ()))).collect();
    });
    let mut outcomes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    outcomes.insert(leading, of_leading);
    let outcomes = outcomes.concat();
    let mut session = stage.session::<I>();
    let mut tx = session.begin();
    let end: BTreeMap<usize, u64> =
        (0..records).map(|record| (record, look(&mut tx, &stage, oids[record]).unwrap().1)).collect();
    drop(tx);
    let committed: Vec<&[Deed]> = outcomes.iter().flatten().map(Vec::as_slice).collect();
    let begin = (0..records).map(|record| (record, 0)).collect();
    assert!(
        is_serializable(&committed, &begin, &end),
        "no serial order: {outcomes:?}, and {end:?} in the end"
    );
    outcomes.iter().map(Option::is_some).collect()
}

/// Runs every order of the threads' steps with so many preemptions.
pub(super) fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 4000;
    builder.check(model);
}

/// Explores transactions side by side, and returns who has committed, in all cases that there were.
///
/// Loom tries another order where two threads use an atomic one after the other, but not where a load by the second one lies between: so each
/// of the transactions is in turn the one that the others come behind.
pub(super) fn outcomes<I: Isolation>(
    preemptions: usize,
    records: usize,
    programs: &'static [Program],
) -> BTreeSet<Vec<bool>> {
    outcomes_behind::<I>(0..programs.len(), preemptions, records, programs)
}

/// The same where the others come behind some of the transactions alone.
pub(super) fn outcomes_behind<I: Isolation>(
    leading: Range<usize>,
    preemptions: usize,
    records: usize,
    programs: &'static [Program],
) -> BTreeSet<Vec<bool>> {
    // Of all runs: not one of the locks that the model explores.
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    for leading in leading {
        let all = Arc::clone(&seen);
        explore(preemptions, move || {
            let outcome = side_by_side::<I>(records, programs, leading);
            all.lock().unwrap().insert(outcome);
        });
    }
    let seen = seen.lock().unwrap();
    println!("{seen:?}");
    seen.clone()
}
