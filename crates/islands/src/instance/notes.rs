//! What an instance notes in its own database for two-phase commit: parts that are prepared, decisions to commit, and how often it was opened.
//!
//! A note has a place, which is a row that is written again and again: nothing is inserted or deleted while transactions run. A part's place is
//! filled by a transaction of its own, and emptied by that which commits the part. A decision's place is filled by the transaction that is the decision,
//! and may be filled again once the decision is forgotten: a decision that all have heard of can be told once more.

use std::collections::BTreeMap;

use ensilo::{Database, Durability, Error, Result, Row, Session, Table, Ticket};

use super::program::Place;
use crate::commit::{DistributedId, SiteId};

/// A place for a part.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_part")]
struct PartNote {
    #[row(key)]
    place: u32,
    /// A [`DistributedId`] as a message has it; empty where no part is noted.
    id: Vec<u8>,
    part: Vec<u8>,
}

/// A place for a decision to commit.
#[derive(Clone, Debug, Row)]
#[row(table = "islands_decision")]
struct DecisionNote {
    #[row(key)]
    place: u32,
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
    incarnation: u32,
}

/// A part that was found prepared.
pub(crate) struct FoundPart {
    pub(crate) id: DistributedId,
    pub(crate) part: Vec<u8>,
    pub(crate) place: u32,
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
    decisions: Table<DecisionNote>,
    free_parts: Places,
    free_decisions: Places,
}

impl Notes {
    /// Opens the notes of an instance for so many workers, and counts the opening.
    pub(crate) fn open(db: &Database, place: Place, workers: u16) -> Result<(Vec<Notes>, Found)> {
        let (parts, decisions) = (open_table::<PartNote>(db)?, open_table::<DecisionNote>(db)?);
        let mut found = Found { incarnation: count_opening(db, place)?, ..Found::default() };
        db.read(|tx| {
            let (mut notes, mut told) = (Vec::new(), Vec::new());
            parts.scan().for_each(tx, |_, note: PartNote| notes.push(note))?;
            decisions.scan().for_each(tx, |_, note: DecisionNote| told.push(note))?;
            found.take_in(notes, told)
        })?;
        let (mut free_parts, mut free_decisions) = (Places::of_workers(workers), Places::of_workers(workers));
        deal(&mut free_parts, &found.free_parts, found.parts.iter().map(|part| part.place));
        deal(&mut free_decisions, &found.free_decisions, found.decisions.values().map(|(place, _)| *place));
        let of_worker = |(free_parts, free_decisions)| Notes {
            parts: parts.clone(),
            decisions: decisions.clone(),
            free_parts,
            free_decisions,
        };
        Ok((free_parts.into_iter().zip(free_decisions).map(of_worker).collect(), found))
    }

    /// Notes a part that is about to be prepared; returns its place, and a ticket for the note.
    pub(crate) fn add_part(
        &mut self,
        db: &Database,
        id: DistributedId,
        part: &[u8],
    ) -> Result<(u32, Ticket)> {
        let place = self.free_parts.take();
        let note = PartNote { place, id: to_bytes(&id), part: part.to_vec() };
        let parts = &self.parts;
        match db.request().transact_with_ticket(|tx| parts.upsert(tx, &note)) {
            Ok(((), ticket)) => Ok((place, ticket)),
            Err(error) => {
                self.free_parts.give_back(place);
                Err(error)
            }
        }
    }

    /// Has the transaction of a session take a note away.
    pub(crate) fn take_part_away(&self, session: &mut Session, place: u32) -> Result<()> {
        self.parts.upsert(session, &PartNote { place, id: Vec::new(), part: Vec::new() })
    }

    /// Takes a note of a part away that was not committed.
    pub(crate) fn erase_part(&mut self, db: &Database, place: u32) -> Result<()> {
        let (parts, empty) = (&self.parts, PartNote { place, id: Vec::new(), part: Vec::new() });
        db.request().durability(Durability::Visible).transact(|tx| parts.upsert(tx, &empty))?;
        self.free_parts.give_back(place);
        Ok(())
    }

    /// A place can be filled again: the note was taken away.
    pub(crate) fn free_part(&mut self, place: u32) {
        self.free_parts.give_back(place);
    }

    /// Has the transaction of a session note a decision; returns its place.
    pub(crate) fn add_decision(
        &mut self,
        session: &mut Session,
        id: DistributedId,
        participants: &[SiteId],
    ) -> Result<u32> {
        let place = self.free_decisions.take();
        let note = DecisionNote { place, id: to_bytes(&id), participants: to_bytes(&participants) };
        let added = self.decisions.upsert(session, &note).map(|()| place);
        added.inspect_err(|_| self.free_decisions.give_back(place))
    }

    /// A place can be filled again: the decision was not committed, or everybody has heard of it.
    pub(crate) fn free_decision(&mut self, place: u32) {
        self.free_decisions.give_back(place);
    }
}

impl Found {
    fn take_in(&mut self, parts: Vec<PartNote>, decisions: Vec<DecisionNote>) -> Result<()> {
        for PartNote { place, id, part } in parts {
            if id.is_empty() {
                self.free_parts.push(place);
            } else {
                self.parts.push(FoundPart { id: from_bytes(&id)?, part, place });
            }
        }
        for DecisionNote { place, id, participants } in decisions {
            let (id, participants) = (from_bytes(&id)?, from_bytes(&participants)?);
            if let Some((earlier, _)) = self.decisions.insert(id, (place, participants)) {
                self.free_decisions.push(earlier);
            }
        }
        Ok(())
    }
}

/// Places that one worker may fill.
#[derive(Debug)]
struct Places {
    free: Vec<u32>,
    /// The next place that there was never a note at.
    next: u32,
    step: u32,
}

impl Places {
    /// Returns places for so many workers; each has new ones of its own.
    fn of_workers(workers: u16) -> Vec<Places> {
        let step = u32::from(workers);
        (0..step).map(|next| Places { free: Vec::new(), next, step }).collect()
    }

    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let place = self.next;
            self.next += self.step;
            place
        })
    }

    fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }
}

/// Deals free places out, and has all begin new ones behind those that there are.
fn deal(workers: &mut [Places], free: &[u32], used: impl Iterator<Item = u32>) {
    let end = free.iter().copied().chain(used).map(|place| place + 1).max().unwrap_or(0);
    for places in workers.iter_mut() {
        places.next += end;
    }
    for (at, place) in free.iter().enumerate() {
        let worker = at % workers.len();
        workers[worker].give_back(*place);
    }
}

/// Returns how often the instance was opened by now, from 1 on.
fn count_opening(db: &Database, place: Place) -> Result<u32> {
    let notes = open_table::<InstanceNote>(db)?;
    db.transact(|tx| {
        let Place { instance, instances } = place;
        let before = notes.get(tx, 0)?;
        if let Some(found) = &before
            && (found.instance, found.instances) != (instance, instances)
        {
            return Err(Error::rollback(format!(
                "the files are of instance {} of {}, not of instance {instance} of {instances}",
                found.instance, found.instances
            )));
        }
        let incarnation = before.map_or(0, |found| found.incarnation) + 1;
        notes.upsert(tx, &InstanceNote { key: 0, instance, instances, incarnation })?;
        Ok(incarnation)
    })
}

fn open_table<T: Row>(db: &Database) -> Result<Table<T>> {
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
