//! What an instance notes in its own database for two-phase commit: parts that are prepared, decisions to commit, and how often it was opened.
//!
//! A note has a slot, which is a row that is written again and again: nothing is inserted or deleted while transactions run.
//!
//! # Parts
//! A part is noted by a transaction of its own, once it is prepared. The transaction that commits the part writes beside the slot that it was carried
//! out. A note counts as long as that does not say the same: so nothing locks the note, and it can be erased before the part is undone. Otherwise
//! somebody could overwrite what the part has read, and be found stored with a note that is not erased.
//!
//! # Decisions
//! A decision is noted by the transaction that is the decision. Its slot may be filled again once the decision is forgotten: a decision that all
//! have heard of can be told once more.

use std::collections::BTreeMap;

use ensilo::{Database, Durability, Error, Request, Result, Row, Session, Table, Ticket};

use super::cluster_id::{ClusterId, ClusterMember, ClusterStage};
use super::program::InstanceNumber;
use crate::commit::{DistributedId, SiteId};

/// A slot for a part.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_part")]
struct PartNote {
    #[row(key)]
    slot: u32,
    /// What does not fit into a row has several; the first one is 0.
    #[row(key)]
    piece: u32,
    /// A [`DistributedId`] as a message has it; empty where no part is noted. Pieces with another one than the first are left over.
    id: Vec<u8>,
    /// How many pieces there are.
    pieces: u32,
    /// A piece of what was carried out, as a message has it: one part, or those of an open transaction.
    parts: Vec<u8>,
}

/// The most bytes of a piece.
const PIECE_BYTES_MAX: usize = 1 << 19;

impl PartNote {
    /// Returns what stands in a slot where no part is noted.
    fn empty(slot: u32) -> Self {
        PartNote { slot, piece: 0, id: Vec::new(), pieces: 0, parts: Vec::new() }
    }
}

/// The part that was carried out last at a slot.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_done")]
struct DoneNote {
    #[row(key)]
    slot: u32,
    id: Vec<u8>,
}

/// A slot for a decision to commit.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_decision")]
struct DecisionNote {
    #[row(key)]
    slot: u32,
    id: Vec<u8>,
    /// The sites that have to hear of it, as a message has them.
    participants: Vec<u8>,
}

/// The instance itself, one row.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "islands_instance")]
struct InstanceNote {
    #[row(key)]
    key: u8,
    instance: u16,
    instances: u16,
    workers: u16,
    incarnation: u32,
}

/// The cluster that the instance belongs to, one row.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_cluster")]
struct ClusterNote {
    #[row(key)]
    key: u8,
    /// A [`ClusterId`] as a text.
    cluster: String,
}

/// What is stored at once where the instance is one of several, one row.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_unit")]
struct UnitNote {
    #[row(key)]
    key: u8,
    unit: u8,
}

/// The unit of commit is a transaction.
const TRANSACTIONS: u8 = 1;
/// It is an epoch, and none may have ended.
const EPOCHS: u8 = 2;
/// It is an epoch, and one has ended: there is a record of it.
const RECORDED_EPOCHS: u8 = 3;

/// What the files of an instance say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredInstance {
    /// Which instance it is, and of how many.
    pub number: InstanceNumber,
    /// How many workers it has.
    pub workers: u16,
    /// Whether epochs of all instances are stored as one, and not each transaction.
    pub commits_by_epochs: bool,
}

/// Returns what the files of an instance say of it; `None` for a database that is none of an instance.
///
/// # Errors
/// The database cannot be read.
pub fn stored_instance(db: &Database) -> Result<Option<StoredInstance>> {
    let notes = match db.open_table::<InstanceNote>() {
        Err(Error::UnknownTable(_)) => return Ok(None),
        opened => opened?,
    };
    let units = db.open_table::<UnitNote>()?;
    let (note, unit) = db.read(|tx| Ok((notes.get(tx, 0)?, units.get(tx, 0)?)))?;
    let (Some(note), Some(unit)) = (note, unit) else { return Ok(None) };
    Ok(Some(StoredInstance {
        number: InstanceNumber { instance: note.instance, instances: note.instances },
        workers: note.workers,
        commits_by_epochs: unit.unit != TRANSACTIONS,
    }))
}

/// Returns the cluster that an instance says it belongs to, if it says so.
pub(crate) fn stored_cluster(db: &Database) -> Result<Option<ClusterId>> {
    let Some(text) = noted_cluster(db)? else { return Ok(None) };
    let unreadable = |_| Error::rollback(format!("the note of the cluster cannot be read: {text:?}"));
    text.parse().map(Some).map_err(unreadable)
}

fn noted_cluster(db: &Database) -> Result<Option<String>> {
    let clusters = match db.open_table::<ClusterNote>() {
        Err(Error::UnknownTable(_)) => return Ok(None),
        opened => opened?,
    };
    Ok(db.read(|tx| clusters.get(tx, 0))?.map(|note| note.cluster))
}

/// Checks that an instance belongs to a cluster, before anything of it is changed, and notes that where it may be missing.
pub(crate) fn join_cluster(db: &Database, number: InstanceNumber, member: ClusterMember) -> Result<()> {
    let ClusterMember { cluster, stage, .. } = member;
    if stage != ClusterStage::Whole && noted_cluster(db)?.is_none() {
        let clusters = open_table::<ClusterNote>(db)?;
        return db.transact(|tx| clusters.upsert(tx, &ClusterNote { key: 0, cluster: cluster.to_string() }));
    }
    check_cluster(db, number, cluster)
}

/// Checks that an instance belongs to a cluster.
pub(crate) fn check_cluster(db: &Database, number: InstanceNumber, cluster: ClusterId) -> Result<()> {
    let found = noted_cluster(db)?;
    if found.as_ref().is_some_and(|found| *found == cluster.to_string()) {
        return Ok(());
    }
    let found = found.map_or("no cluster that it names".to_owned(), |found| format!("cluster {found}"));
    Err(Error::rollback(format!(
        "the files of instance {} are of {found}, and the directory is that of cluster {cluster}: put its own files back, or restore a copy of all",
        number.instance
    )))
}

/// A part that was found prepared.
pub(crate) struct FoundPart {
    pub(crate) id: DistributedId,
    pub(crate) parts: Vec<Vec<u8>>,
    pub(crate) slot: u32,
}

/// What was found at the opening of an instance.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) incarnation: u32,
    pub(crate) parts: Vec<FoundPart>,
    pub(crate) decisions: BTreeMap<DistributedId, (u32, Vec<SiteId>)>,
    free_parts: Vec<u32>,
    free_decisions: Vec<u32>,
}

/// The notes of one worker.
#[derive(Debug)]
pub(crate) struct Notes {
    parts: Table<PartNote>,
    done: Table<DoneNote>,
    decisions: Table<DecisionNote>,
    free_parts: Slots,
    free_decisions: Slots,
}

impl Notes {
    /// Opens the notes of an instance with this number of workers, and counts the opening.
    pub(crate) fn open(db: &Database, number: InstanceNumber, workers: u16) -> Result<(Vec<Notes>, Found)> {
        note_unit(db, TRANSACTIONS)?;
        let (parts, done) = (open_table::<PartNote>(db)?, open_table::<DoneNote>(db)?);
        let decisions = open_table::<DecisionNote>(db)?;
        let mut found = Found { incarnation: count_opening(db, number, workers)?, ..Found::default() };
        let (notes, carried_out, told) = db.read(|tx| {
            let (mut notes, mut carried_out, mut told) = (Vec::new(), BTreeMap::new(), Vec::new());
            parts.scan().for_each(tx, |_, note: PartNote| notes.push(note))?;
            done.scan().for_each(tx, |_, note: DoneNote| _ = carried_out.insert(note.slot, note.id))?;
            decisions.scan().for_each(tx, |_, note: DecisionNote| told.push(note))?;
            Ok((notes, carried_out, told))
        })?;
        found.take_in(&notes, &carried_out, told)?;
        let (mut free_parts, mut free_decisions) = (Slots::of_workers(workers), Slots::of_workers(workers));
        deal(&mut free_parts, &found.free_parts, found.parts.iter().map(|part| part.slot));
        deal(&mut free_decisions, &found.free_decisions, found.decisions.values().map(|(slot, _)| *slot));
        let of_worker = |(free_parts, free_decisions)| Notes {
            parts: parts.clone(),
            done: done.clone(),
            decisions: decisions.clone(),
            free_parts,
            free_decisions,
        };
        Ok((free_parts.into_iter().zip(free_decisions).map(of_worker).collect(), found))
    }

    /// Returns a slot for a part.
    pub(crate) fn take_slot(&mut self, db: &Database) -> Result<u32> {
        let (slot, is_new) = self.free_parts.take();
        if is_new {
            // Here, so that no prepared part keeps the slots of others from being made.
            let made = visibly(db).transact(|tx| {
                self.parts.upsert(tx, &PartNote::empty(slot))?;
                self.done.upsert(tx, &DoneNote { slot, id: Vec::new() })
            });
            made.inspect_err(|_| self.free_parts.take_back(slot))?;
        }
        Ok(slot)
    }

    /// Has the transaction of a session say that the part at a slot is carried out.
    pub(crate) fn carry_out(&self, session: &mut Session, slot: u32, id: DistributedId) -> Result<()> {
        self.done.upsert(session, &DoneNote { slot, id: to_bytes(&id) })
    }

    /// Notes a part that is prepared; returns a ticket for the note.
    pub(crate) fn add_part(
        &self,
        db: &Database,
        slot: u32,
        id: DistributedId,
        parts: &[impl AsRef<[u8]>],
    ) -> Result<Ticket> {
        let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
        let (id, bytes) = (to_bytes(&id), to_bytes(&parts));
        let pieces = bytes.chunks(PIECE_BYTES_MAX);
        let count = pieces.len() as u32;
        let note = |(piece, parts): (u32, &[u8])| PartNote {
            slot,
            piece,
            id: id.clone(),
            pieces: count,
            parts: parts.to_vec(),
        };
        let notes: Vec<PartNote> = (0..).zip(pieces).map(note).collect();
        let added = db
            .request()
            .transact_with_ticket(|tx| notes.iter().try_for_each(|note| self.parts.upsert(tx, note)));
        added.map(|((), ticket)| ticket)
    }

    /// Takes the note of a part away that will not be carried out, and is prepared still.
    pub(crate) fn erase_part(&mut self, db: &Database, slot: u32) -> Result<()> {
        visibly(db).transact(|tx| self.parts.upsert(tx, &PartNote::empty(slot)))
    }

    /// A slot can be filled again: its part was carried out, or its note erased.
    pub(crate) fn free_slot(&mut self, slot: u32) {
        self.free_parts.give_back(slot);
    }

    /// Has the transaction of a session note a decision; returns its slot.
    pub(crate) fn add_decision(
        &mut self,
        session: &mut Session,
        id: DistributedId,
        participants: &[SiteId],
    ) -> Result<u32> {
        let (slot, _) = self.free_decisions.take();
        let note = DecisionNote { slot, id: to_bytes(&id), participants: to_bytes(&participants) };
        let added = self.decisions.upsert(session, &note).map(|()| slot);
        added.inspect_err(|_| self.free_decisions.give_back(slot))
    }

    /// A slot can be filled again: the decision was not committed, or everybody has heard of it.
    pub(crate) fn free_decision(&mut self, slot: u32) {
        self.free_decisions.give_back(slot);
    }
}

impl Found {
    /// Counts the opening of an instance that has no notes, since epochs commit; there is a record of them where one has ended.
    pub(crate) fn without_notes(
        db: &Database,
        number: InstanceNumber,
        workers: u16,
        has_record: bool,
    ) -> Result<Self> {
        note_unit(db, if has_record { RECORDED_EPOCHS } else { EPOCHS })?;
        Ok(Found { incarnation: count_opening(db, number, workers)?, ..Found::default() })
    }

    fn take_in(
        &mut self,
        parts: &[PartNote],
        carried_out: &BTreeMap<u32, Vec<u8>>,
        decisions: Vec<DecisionNote>,
    ) -> Result<()> {
        // They come in the order of slots and pieces.
        for pieces in parts.chunk_by(|first, second| first.slot == second.slot) {
            let PartNote { slot, id, pieces: count, .. } = &pieces[0];
            if id.is_empty() || carried_out.get(slot) == Some(id) {
                self.free_parts.push(*slot);
                continue;
            }
            let own = pieces.iter().filter(|piece| piece.id == *id).take(*count as usize);
            let bytes: Vec<u8> = own.flat_map(|piece| piece.parts.iter().copied()).collect();
            self.parts.push(FoundPart { id: from_bytes(id)?, parts: from_bytes(&bytes)?, slot: *slot });
        }
        for DecisionNote { slot, id, participants } in decisions {
            let (id, participants) = (from_bytes(&id)?, from_bytes(&participants)?);
            if let Some((earlier, _)) = self.decisions.insert(id, (slot, participants)) {
                self.free_decisions.push(earlier);
            }
        }
        Ok(())
    }
}

/// Slots that one worker may fill.
#[derive(Debug)]
struct Slots {
    free: Vec<u32>,
    /// The next slot that there was never a note at.
    next: u32,
    step: u32,
}

impl Slots {
    /// Returns the slots of each of these workers.
    fn of_workers(workers: u16) -> Vec<Slots> {
        let step = u32::from(workers);
        (0..step).map(|next| Slots { free: Vec::new(), next, step }).collect()
    }

    /// Returns a slot, and whether there was never a note at it.
    fn take(&mut self) -> (u32, bool) {
        if let Some(slot) = self.free.pop() {
            return (slot, false);
        }
        self.next += self.step;
        (self.next - self.step, true)
    }

    /// Takes the slot back that was taken last, and is new still.
    fn take_back(&mut self, slot: u32) {
        assert_eq!(slot, self.next - self.step, "it was taken last");
        self.next = slot;
    }

    fn give_back(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

/// Deals free slots out, and has all begin new ones behind those that there are.
fn deal(workers: &mut [Slots], free: &[u32], used: impl Iterator<Item = u32>) {
    let end = free.iter().copied().chain(used).map(|slot| slot + 1).max().unwrap_or(0);
    for slots in workers.iter_mut() {
        slots.next += end;
    }
    for (at, slot) in free.iter().enumerate() {
        let worker = at % workers.len();
        workers[worker].give_back(*slot);
    }
}

/// Returns how often the instance was opened by now, from 1 on. It is stored: no two openings have the same number.
fn count_opening(db: &Database, number: InstanceNumber, workers: u16) -> Result<u32> {
    let notes = open_table::<InstanceNote>(db)?;
    db.request().durability(Durability::Stored).transact(|tx| {
        let InstanceNumber { instance, instances } = number;
        let before = notes.get(tx, 0)?;
        if let Some(found) = &before
            && (found.instance, found.instances) != (instance, instances)
        {
            return Err(Error::rollback(format!(
                "the files are of instance {} of {}: open them with as many, and not as instance {instance} of {instances}; \
                 `ensilo islands redistribute` copies tables to another number of instances",
                found.instance, found.instances
            )));
        }
        if let Some(found) = &before
            && found.workers != workers
        {
            return Err(Error::rollback(format!(
                "the instance is stored with {} workers, and messages find their transactions by the worker: open it with as many, not with {workers}; \
                 `ensilo islands redistribute` copies tables to instances with another number of workers",
                found.workers
            )));
        }
        let incarnation = before.map_or(0, |found| found.incarnation) + 1;
        notes.upsert(tx, &InstanceNote { key: 0, instance, instances, workers, incarnation })?;
        Ok(incarnation)
    })
}

/// Notes that there is a record of epochs. The note is of the next one.
pub(crate) fn note_record(db: &Database) -> Result<()> {
    let units = open_table::<UnitNote>(db)?;
    visibly(db).transact(|tx| units.upsert(tx, &UnitNote { key: 0, unit: RECORDED_EPOCHS }))
}

/// Checks that the instance has the unit of commit that it is opened with, and notes that.
fn note_unit(db: &Database, unit: u8) -> Result<()> {
    let units = open_table::<UnitNote>(db)?;
    db.transact(|tx| match (units.get(tx, 0)?.map(|found| found.unit), unit) {
        (Some(TRANSACTIONS), EPOCHS | RECORDED_EPOCHS) => {
            Err(Error::rollback("the instance is stored with transactions as the unit of commit: open it so"))
        }
        (Some(EPOCHS | RECORDED_EPOCHS), TRANSACTIONS) => {
            Err(Error::rollback("the instance is stored with epochs as the unit of commit: open it so"))
        }
        (Some(RECORDED_EPOCHS), EPOCHS) => Err(Error::rollback(
            "the file epochs, which says up to where the instances count, is new or empty, and they are not: put it back, or restore a copy",
        )),
        (_, unit) => units.upsert(tx, &UnitNote { key: 0, unit }),
    })
}

/// Requests whose answer does not wait for the disk.
fn visibly(db: &Database) -> Request<'_> {
    db.request().durability(Durability::Visible)
}

pub(super) fn open_table<T: Row>(db: &Database) -> Result<Table<T>> {
    match db.open_table() {
        Err(Error::UnknownTable(_)) => db.create_table(),
        opened => opened,
    }
}

fn to_bytes(noted: &impl serde::Serialize) -> Vec<u8> {
    let Ok(bytes) = postcard::to_allocvec(noted) else {
        unreachable!("numbers have bytes");
    };
    bytes
}

fn from_bytes<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| Error::rollback("a note of two-phase commit cannot be read"))
}
