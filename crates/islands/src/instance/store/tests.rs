use std::path::Path;

use ensilo::{Durability, Row, Table};

use super::*;
use crate::commit::{Outcome, RefusalReason};
use crate::instance::InstanceNumber;
use crate::instance::rejected::RejectedOutcomes;

/// Rows that parts insert, or change.
struct Rows(Table<Item>, Database);

#[derive(Row)]
#[row(table = "item")]
struct Item {
    #[row(key)]
    id: u32,
    count: u64,
}

/// A row that is written so that there is something to store.
const MARK: u32 = u32::MAX;

const INSERT: u8 = 0;
const ADD: u8 = 1;
const READ: u8 = 2;
/// Reads, and is overtaken by another transaction that changes the row.
const READ_AND_OVERTAKEN: u8 = 3;

/// A part: what it does, to a row.
fn part(what: u8, id: u32) -> Vec<u8> {
    [&[what][..], &id.to_le_bytes()].concat()
}

impl Program for Rows {
    fn open(db: &Database, _: InstanceNumber) -> Result<Self> {
        if let Ok(rows) = db.open_table() {
            return Ok(Rows(rows, db.clone()));
        }
        let rows = db.create_table()?;
        db.transact(|tx| rows.upsert(tx, &Item { id: MARK, count: 0 }))?;
        Ok(Rows(rows, db.clone()))
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        let id = u32::from_le_bytes(part[1..].try_into().unwrap());
        let before = self.0.get(tx, id)?;
        match (part[0], before) {
            (INSERT, None) => self.0.insert(tx, &Item { id, count: 1 }).map(drop)?,
            (ADD, Some(item)) => self.0.replace(tx, &Item { id, count: item.count + 1 })?,
            (READ, Some(_)) => {}
            (READ_AND_OVERTAKEN, Some(item)) => {
                self.1.transact(|tx| self.0.replace(tx, &Item { id, count: item.count + 1 }))?;
            }
            _ => return Err(Error::rollback("another row was expected")),
        }
        Ok(Vec::new())
    }
}

fn id(sequence: u64) -> DistributedId {
    DistributedId { coordinator: SiteId { instance: 1, worker: 0 }, incarnation: 1, sequence }
}

/// An instance as an opening finds it.
struct Opened {
    store: InstanceStore<Rows>,
    recovered: Recovered,
    db: Database,
}

fn open(directory: &Path) -> Opened {
    let db = Database::open(directory).unwrap();
    let number = InstanceNumber { instance: 0, instances: 2 };
    let (mut notes, found) = Notes::open(&db, number, 1).unwrap();
    let keeping = notes.pop().map_or(Keeping::Memory, Keeping::Transactions);
    let program = Arc::new(Rows::open(&db, number).unwrap());
    let open = Arc::new(OpenTransactions::new(db.clone(), Arc::clone(&program)));
    let mut store = InstanceStore::new((db.clone(), program), open, keeping, Waker::noop().clone());
    let tried_out: Vec<_> = found.parts.iter().map(|part| store.try_out(part).unwrap()).collect();
    let recovered = store.recover(&found, |_| true).unwrap();
    drop(tried_out);
    Opened { store, recovered, db }
}

/// Carries a part out and prepares it; waits until that is stored.
fn prepare(
    store: &mut InstanceStore<Rows>,
    id: DistributedId,
    part: &[u8],
) -> std::result::Result<PreparedPart, Refusal> {
    let Voting { prepared, ticket, .. } = store.prepare(id, None, part).map_err(|refused| refused.refusal)?;
    ticket.0.unwrap().0.wait().unwrap();
    Ok(prepared)
}

/// Returns the directory of the instance as a crash would leave it once all is stored that has been done.
fn crash(opened: &Opened) -> tempfile::TempDir {
    let rows = &opened.store.program.0;
    let request = opened.db.request().durability(Durability::Stored);
    request.transact(|tx| rows.replace(tx, &Item { id: MARK, count: 0 })).unwrap();
    let directory = tempfile::tempdir().unwrap();
    opened.db.backup(directory.path()).unwrap();
    directory
}

fn insert_all(opened: &Opened, ids: impl Iterator<Item = u32>) {
    let rows = &opened.store.program.0;
    let request = opened.db.request().durability(Durability::Stored);
    let ids: Vec<u32> = ids.collect();
    request
        .transact(|tx| ids.iter().try_for_each(|id| rows.insert(tx, &Item { id: *id, count: 0 }).map(drop)))
        .unwrap();
}

/// The nodes of the index are others after the opening, and each part relies on some.
#[test]
fn parts_that_were_prepared_beside_each_other_are_again() {
    for seed in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let mut opened = open(directory.path());
        let mut random = fastrand::Rng::with_seed(seed);
        let mut ids: Vec<u32> = (0..200).map(|at| at * 10).collect();
        random.shuffle(&mut ids);
        insert_all(&opened, ids.into_iter());
        opened.db.checkpoint().unwrap();
        let prepared: Vec<_> = (0..30)
            .filter_map(|at| prepare(&mut opened.store, id(at), &part(INSERT, at as u32 * 65 + 1)).ok())
            .collect();
        assert!(prepared.len() > 3, "{}", prepared.len());
        let left = crash(&opened);
        let mut again = open(left.path());
        assert_eq!(again.recovered.parts.len(), prepared.len());
        for (id, part) in mem::take(&mut again.recovered.parts) {
            again.store.commit(id, part).unwrap().0.unwrap().0.wait().unwrap();
        }
        let (rows, left) = (&again.store.program.0, crash(&again));
        let count = again.db.read(|tx| {
            let mut count = 0;
            rows.scan().for_each(tx, |_, item: Item| count += item.count)?;
            Ok(count)
        });
        assert_eq!(count.unwrap(), prepared.len() as u64);
        assert!(open(left.path()).recovered.parts.is_empty());
    }
}

#[test]
fn a_part_that_was_not_prepared_or_was_undone_leaves_no_note() {
    let directory = tempfile::tempdir().unwrap();
    let mut opened = open(directory.path());
    insert_all(&opened, 0..4);
    let first = prepare(&mut opened.store, id(0), &part(ADD, 0)).unwrap();
    // It is in conflict with that.
    assert_eq!(prepare(&mut opened.store, id(1), &part(ADD, 0)).unwrap_err().reason, RefusalReason::Held);
    let undone = prepare(&mut opened.store, id(2), &part(ADD, 1)).unwrap();
    opened.store.abort(id(2), undone);
    // What it had read may be changed from here on.
    let committed = prepare(&mut opened.store, id(3), &part(ADD, 1)).unwrap();
    opened.store.commit(id(3), committed).unwrap();
    let again = open(crash(&opened).path());
    assert_eq!(again.recovered.parts.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [id(0)]);
    opened.store.commit(id(0), first).unwrap();
    assert!(open(crash(&opened).path()).recovered.parts.is_empty());
}

/// A commit that has read a single row takes it as of its begin. What is decided together with others is read at the decision.
#[test]
fn what_the_coordinator_has_only_read_is_validated_at_the_decision() {
    let directory = tempfile::tempdir().unwrap();
    let stored = open(directory.path());
    insert_all(&stored, 0..4);
    let db = Database::in_memory().unwrap();
    let program = Arc::new(Rows::open(&db, InstanceNumber { instance: 0, instances: 2 }).unwrap());
    let open = Arc::new(OpenTransactions::new(db.clone(), Arc::clone(&program)));
    let store = InstanceStore::new((db.clone(), program), open, Keeping::Memory, Waker::noop().clone());
    let in_memory = Opened { store, recovered: Recovered::default(), db };
    in_memory.db.transact(|tx| in_memory.store.program.0.insert(tx, &Item { id: 0, count: 0 })).unwrap();
    let other = [SiteId { instance: 1, worker: 0 }];
    for mut opened in [stored, in_memory] {
        for participants in
            [Participants { writers: &[], readers: &other }, Participants { writers: &other, readers: &[] }]
        {
            for (what, expected) in [(READ, Ok(())), (READ_AND_OVERTAKEN, Err(RefusalReason::Conflict))] {
                let part = part(what, 0);
                let own = OwnPart { open: None, part: &part, replies: &[] };
                let decided = opened.store.decide(id(0), Some(own), participants);
                assert_eq!(decided.map(drop).map_err(|refused| refused.refusal.reason), expected);
            }
        }
    }
}

#[test]
fn a_decision_is_found_until_its_slot_is_filled_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut opened = open(directory.path());
    insert_all(&opened, 0..4);
    let writers = [SiteId { instance: 1, worker: 0 }];
    let participants = Participants { writers: &writers, readers: &[] };
    let own = part(ADD, 0);
    opened.store.decide(id(0), Some(OwnPart { open: None, part: &own, replies: &[] }), participants).unwrap();
    opened.store.decide(id(1), None, participants).unwrap();
    let again = open(crash(&opened).path());
    assert_eq!(again.recovered.decisions, [(id(0), writers.to_vec()), (id(1), writers.to_vec())]);
    opened.store.forget(id(0));
    opened.store.decide(id(2), None, participants).unwrap();
    let again = open(crash(&opened).path());
    assert_eq!(again.recovered.decisions.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [id(1), id(2)]);
}

#[test]
fn files_of_another_instance_or_of_another_number_of_workers_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let db = Database::open(directory.path()).unwrap();
    for (number, workers) in [
        (InstanceNumber { instance: 1, instances: 2 }, 1),
        (InstanceNumber { instance: 0, instances: 3 }, 1),
        (InstanceNumber { instance: 0, instances: 2 }, 2),
    ] {
        let refused = Notes::open(&db, number, workers).map(drop);
        assert!(matches!(refused, Err(Error::User(_))), "{refused:?}");
    }
}

/// What it has done is more than fits into one row of its note.
#[test]
fn an_open_transaction_of_many_parts_is_prepared_again() {
    let directory = tempfile::tempdir().unwrap();
    let mut opened = open(directory.path());
    insert_all(&opened, 0..10);
    let number = crate::commit::OpenId(1);
    let parts = 100_000;
    for at in 0..parts {
        opened.store.open().execute(number, at == 0, &part(ADD, at % 10)).unwrap();
    }
    let prepared = opened.store.prepare(id(1), Some(number), &[]).unwrap();
    prepared.ticket.0.unwrap().0.wait().unwrap();
    let copy = crash(&opened);
    drop(prepared.prepared);
    let mut opened = open(copy.path());
    let (_, prepared) = opened.recovered.parts.pop().unwrap();
    opened.store.commit(id(1), prepared).unwrap();
    let rows = &opened.store.program.0;
    let count = opened.db.transact(|tx| Ok(rows.get(tx, 3)?.unwrap().count)).unwrap();
    assert_eq!(count, u64::from(parts) / 10);
    // It is gone: nothing more can be done in it.
    assert!(opened.store.open().execute(number, false, &part(ADD, 0)).is_err());
}

/// An instance whose transactions are stored by epochs.
fn open_by_epochs(directory: &Path) -> (InstanceStore<Rows>, GroupMember) {
    let db = Database::open(directory).unwrap();
    let number = InstanceNumber { instance: 0, instances: 2 };
    let program = Arc::new(Rows::open(&db, number).unwrap());
    let open = Arc::new(OpenTransactions::new(db.clone(), Arc::clone(&program)));
    let member = db.group_member().unwrap();
    member.hold();
    let keeping = Keeping::Epochs(member.clone());
    (InstanceStore::new((db, program), open, keeping, Waker::noop().clone()), member)
}

/// Ends an epoch, and has it count.
fn end_epoch(member: &GroupMember) {
    let (sender, stored) = std::sync::mpsc::channel();
    let end = member.end_epoch();
    member.on_stored(end, move |is_stored| sender.send(is_stored).unwrap());
    stored.recv().unwrap().unwrap();
    member.release(end);
}

fn insert_visibly(db: &Database, rows: &Rows, id: u32) {
    let request = db.request().durability(Durability::Visible);
    request.transact(|tx| rows.0.insert(tx, &Item { id, count: 0 }).map(drop)).unwrap();
}

/// Inserts a row that is there, as a participant and as the coordinator behind another one's vote, and returns the refusals.
fn refuse(store: &mut InstanceStore<Rows>, row: u32) -> [Refused<Storing>; 2] {
    let part = part(INSERT, row);
    let of_participant = store.prepare(id(1), None, &part).map(drop).unwrap_err();
    let own = OwnPart { open: None, part: &part, replies: &[] };
    let others = [SiteId { instance: 1, worker: 0 }];
    let participants = Participants { writers: &others, readers: &[] };
    let of_coordinator = store.decide(id(2), Some(own), participants).map(drop).unwrap_err();
    let refused = [of_participant, of_coordinator];
    assert!(refused.iter().all(|refused| refused.refusal.reason == RefusalReason::Rejected));
    refused
}

#[test]
fn a_refusal_has_a_ticket_for_the_row_that_it_follows_from() {
    let directory = tempfile::tempdir().unwrap();
    let mut opened = open(directory.path());
    let rows = Arc::clone(&opened.store.program);
    insert_visibly(&opened.db, &rows, 7);
    for refused in refuse(&mut opened.store, 7) {
        refused.ticket.unwrap().0.unwrap().0.wait().unwrap();
    }
}

/// The row that it follows from may be of the next epoch, where another instance has ended this one before.
#[test]
fn what_is_rejected_while_an_epoch_ends_is_told_with_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, member) = open_by_epochs(directory.path());
    let mut rejected = RejectedOutcomes::default();
    let outcome = || Outcome::Aborted(Refusal::new(RefusalReason::Rejected, "not enough"));
    let take = |rejected: &mut RejectedOutcomes, store: &mut InstanceStore<Rows>| {
        rejected.take_stored(|storing| store.is_stored(storing)).unwrap().is_some()
    };
    rejected.keep(&member, id(1), outcome());
    end_epoch(&member);
    assert!(take(&mut rejected, &mut store), "it was rejected before");
    rejected.pause();
    rejected.keep(&member, id(2), outcome());
    end_epoch(&member);
    assert!(!take(&mut rejected, &mut store));
    rejected.resume(Some(&member));
    assert!(!take(&mut rejected, &mut store));
    end_epoch(&member);
    assert!(take(&mut rejected, &mut store) && rejected.is_empty());
    // Nobody waits for the others' parts meanwhile: what refuses them says so at once.
    insert_visibly(store.db(), &Arc::clone(&store.program), 7);
    for refused in refuse(&mut store, 7) {
        assert!(refused.ticket.is_none());
    }
}

/// Votes wait for nothing, and what is decided waits for the epoch.
#[test]
fn by_epochs_decisions_alone_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (mut store, member) = open_by_epochs(directory.path());
    let Voting { prepared, ticket: mut vote, .. } = store.prepare(id(1), None, &part(INSERT, 1)).unwrap();
    assert_eq!(store.is_stored(&mut vote), Ok(true));
    let mut carried_out = store.commit(id(1), prepared).unwrap();
    assert_eq!(store.is_stored(&mut carried_out), Ok(true));
    let own = [part(INSERT, 2), part(READ, 1)];
    let others = [SiteId { instance: 1, worker: 0 }];
    for part in own.iter().map(Some).chain([None]) {
        let own = part.map(|part| OwnPart { open: None, part, replies: &[] });
        let participants = Participants { writers: &others, readers: &[] };
        let mut decided = store.decide(id(2), own, participants).unwrap().ticket;
        assert_eq!(store.is_stored(&mut decided), Ok(false), "{part:?}");
        end_epoch(&member);
        assert_eq!(store.is_stored(&mut decided), Ok(true), "{part:?}");
    }
}
