//! The rows of a simulated instance: each key says which transaction has written it last. They are found again in a log, whose end a crash may cut
//! off.

use std::collections::{BTreeMap, BTreeSet};

use ensilo_islands::CommitUnit;
use ensilo_islands::commit::{
    Decided, DistributedId, Failed, OpenId, OwnPart, PartStore, Participants, Refusal, RefusalReason,
    Refused, SiteId, Voting,
};

use crate::fault::Fault;

/// A key, the same number at each instance names another row.
pub(crate) type Key = u8;

/// Who has written a row last; nobody at first.
pub(crate) type Version = Option<DistributedId>;

/// What a part does with one row. As bytes it has two of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// The part is rejected if anybody has written the row.
    pub(crate) rejects: bool,
}

pub(crate) fn to_bytes(steps: &[Step]) -> Vec<u8> {
    let flags = |step: &Step| u8::from(step.reads) | u8::from(step.writes) << 1 | u8::from(step.rejects) << 2;
    steps.iter().flat_map(|step| [step.key, flags(step)]).collect()
}

pub(crate) fn from_bytes(part: &[u8]) -> Vec<Step> {
    let step = |bytes: &[u8]| Step {
        key: bytes[0],
        reads: bytes[1] & 1 != 0,
        writes: bytes[1] & 2 != 0,
        rejects: bytes[1] & 4 != 0,
    };
    part.chunks(2).map(step).collect()
}

/// What a part has read and will write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    pub(crate) reads: Vec<(Key, Version)>,
    pub(crate) writes: Vec<Key>,
    /// Who has written the row that the part is rejected for.
    rejected_by: Version,
}

/// What stands in the log.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Prepared {
        id: DistributedId,
        part: Vec<u8>,
    },
    /// The writes of a part; where it was prepared, that note is taken away.
    Committed {
        id: DistributedId,
        writes: Vec<Key>,
        was_prepared: bool,
    },
    /// The record of a decision, which belongs to the entry before.
    Decided {
        id: DistributedId,
        participants: Vec<SiteId>,
    },
    Aborted {
        id: DistributedId,
    },
    Forgotten {
        id: DistributedId,
    },
}

/// Something that is stored once the log is stored so far.
#[derive(Debug)]
pub(crate) struct Ticket {
    end: usize,
    of: TicketOf,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum TicketOf {
    Prepared,
    Decided,
    Committed,
    Refused,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Store {
    unit: CommitUnit,
    fault: Option<Fault>,
    log: Vec<Entry>,
    /// How much of the log a crash leaves at least.
    stored: usize,
    /// How much of it counts, where an epoch is the unit of commit.
    recorded: usize,
    rows: BTreeMap<Key, DistributedId>,
    locks: BTreeMap<Key, DistributedId>,
    protected: BTreeSet<(Key, DistributedId)>,
    notes: BTreeMap<DistributedId, Vec<u8>>,
    decisions: BTreeMap<DistributedId, Vec<SiteId>>,
    /// For the judge, not for the instance: what each part has read when it was carried out last.
    pub(crate) seen: BTreeMap<DistributedId, Vec<(Key, Version)>>,
}

impl Store {
    pub(crate) fn new(unit: CommitUnit, fault: Option<Fault>) -> Self {
        Store {
            unit,
            fault,
            log: Vec::new(),
            stored: 0,
            recorded: 0,
            rows: BTreeMap::new(),
            locks: BTreeMap::new(),
            protected: BTreeSet::new(),
            notes: BTreeMap::new(),
            decisions: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    pub(crate) fn log(&self) -> &[Entry] {
        &self.log
    }

    /// Stores all that was written to the log.
    pub(crate) fn sync(&mut self) {
        self.stored = self.log.len();
    }

    /// Returns how much of the log is stored.
    pub(crate) fn stored(&self) -> usize {
        self.stored
    }

    /// Has everything count up to there.
    pub(crate) fn record(&mut self, end: usize) {
        self.recorded = end;
    }

    /// Loses what is in memory, and the end of the log: `kept` chooses how much of what is not stored stays. Where an epoch is the unit of commit
    /// what is not recorded is given up.
    pub(crate) fn crash(&mut self, kept: impl FnOnce(usize) -> usize) {
        let mut end = self.stored + kept(self.log.len() - self.stored);
        if self.commits_by_epoch() {
            end = end.min(self.recorded);
        }
        self.log.truncate(end);
        // A decision is in one entry with the writes before it.
        if let Some(Entry::Committed { id, .. }) = self.log.get(end.wrapping_sub(1))
            && self.decisions.contains_key(id)
            && end > self.stored
        {
            self.log.pop();
        }
        let (log, seen) = (std::mem::take(&mut self.log), std::mem::take(&mut self.seen));
        *self = Store { seen, recorded: self.recorded, ..Store::new(self.unit, self.fault) };
        for entry in &log {
            self.replay(entry);
        }
        self.log = log;
        self.sync();
    }

    /// Prepares once more what was prepared before the crash.
    pub(crate) fn recover_parts(&mut self) -> Vec<(DistributedId, Prepared)> {
        let notes = self.notes.clone();
        let prepare = |(id, part): (DistributedId, Vec<u8>)| {
            let seen = self.seen.get(&id).cloned();
            let sets = self.execute(&part);
            assert!(
                self.fault.is_some() || seen.as_ref() == Some(&sets.reads),
                "what {id} has read was overwritten while it was prepared: {seen:?}, {sets:?}"
            );
            let is_free = self.is_current(&sets) && self.may_write(&sets);
            assert!(self.fault.is_some() || is_free, "two parts that were prepared are in conflict");
            self.protect(id, &sets);
            (id, Prepared { sets })
        };
        notes.into_iter().map(prepare).collect()
    }

    /// Returns the decisions to commit that are recorded.
    pub(crate) fn recover_decisions(&self) -> Vec<(DistributedId, Vec<SiteId>)> {
        self.decisions.clone().into_iter().collect()
    }

    /// Returns whether nobody holds anything.
    pub(crate) fn is_free(&self) -> bool {
        self.locks.is_empty()
            && self.protected.is_empty()
            && self.notes.is_empty()
            && self.decisions.is_empty()
    }

    fn replay(&mut self, entry: &Entry) {
        match entry {
            Entry::Prepared { id, part } => drop(self.notes.insert(*id, part.clone())),
            Entry::Committed { id, writes, was_prepared } => {
                self.rows.extend(writes.iter().map(|key| (*key, *id)));
                if *was_prepared && self.fault != Some(Fault::NoteStays) {
                    self.notes.remove(id);
                }
            }
            Entry::Decided { id, participants } => drop(self.decisions.insert(*id, participants.clone())),
            Entry::Aborted { id } => drop(self.notes.remove(id)),
            Entry::Forgotten { id } => drop(self.decisions.remove(id)),
        }
    }

    fn write(&mut self, entry: Entry) {
        self.replay(&entry);
        self.log.push(entry);
    }

    fn ticket(&self, of: TicketOf) -> Ticket {
        Ticket { end: self.log.len(), of }
    }

    fn execute(&self, part: &[u8]) -> Sets {
        let mut sets = Sets::default();
        for step in from_bytes(part) {
            let version = self.rows.get(&step.key).copied();
            if step.reads {
                sets.reads.push((step.key, version));
            }
            if step.rejects {
                sets.rejected_by = sets.rejected_by.or(version);
            }
            if step.writes {
                sets.writes.push(step.key);
            }
        }
        sets
    }

    fn is_current(&self, sets: &Sets) -> bool {
        let is_current = |(key, version): &(Key, Version)| {
            self.rows.get(key) == version.as_ref() && !self.locks.contains_key(key)
        };
        sets.reads.iter().all(is_current)
    }

    fn may_write(&self, sets: &Sets) -> bool {
        let is_protected = |key: &Key| self.protected.iter().any(|(protected, _)| protected == key);
        sets.writes.iter().all(|key| !self.locks.contains_key(key) && !is_protected(key))
    }

    fn protect(&mut self, id: DistributedId, sets: &Sets) {
        self.locks.extend(sets.writes.iter().map(|key| (*key, id)));
        let is_left_out = match self.fault {
            Some(Fault::UnprotectedReads) => true,
            Some(Fault::ReadersOut) => sets.writes.is_empty(),
            _ => false,
        };
        if !is_left_out {
            self.protected.extend(sets.reads.iter().map(|(key, _)| (*key, id)));
        }
    }

    fn release(&mut self, id: DistributedId) {
        self.locks.retain(|_, holder| *holder != id);
        self.protected.retain(|(_, holder)| *holder != id);
    }

    fn validate(&self, sets: &Sets) -> Result<(), Refused<Ticket>> {
        if !self.is_current(sets) || !self.may_write(sets) {
            // A part is carried out and validated in one: what is in the way is prepared.
            let first = sets.reads.iter().map(|(key, _)| key).chain(&sets.writes).min();
            return Err(
                Refusal::new(RefusalReason::Held, format!("in conflict at {first:?} or behind")).into()
            );
        }
        match sets.rejected_by {
            Some(writer) => Err(Refused {
                refusal: Refusal::new(RefusalReason::Rejected, writer.to_string()),
                ticket: Some(self.ticket(TicketOf::Refused)),
            }),
            None => Ok(()),
        }
    }
}

/// A part that is prepared.
#[derive(Debug)]
pub(crate) struct Prepared {
    sets: Sets,
}

impl PartStore for Store {
    type Prepared = Prepared;
    type Ticket = Ticket;

    fn commits_by_epoch(&self) -> bool {
        self.unit == CommitUnit::Epoch
    }

    fn prepare(
        &mut self,
        id: DistributedId,
        _: Option<OpenId>,
        part: &[u8],
    ) -> Result<Voting<Prepared, Ticket>, Refused<Ticket>> {
        let sets = self.execute(part);
        self.validate(&sets)?;
        self.seen.insert(id, sets.reads.clone());
        self.protect(id, &sets);
        let writes = !sets.writes.is_empty();
        if writes && !self.commits_by_epoch() {
            self.write(Entry::Prepared { id, part: part.to_vec() });
        }
        let ticket = self.ticket(TicketOf::Prepared);
        Ok(Voting { prepared: Prepared { sets }, reply: part.to_vec(), writes, ticket })
    }

    fn commit(&mut self, id: DistributedId, prepared: Prepared) -> Result<Ticket, Failed> {
        let was_prepared = !self.commits_by_epoch();
        self.write(Entry::Committed { id, writes: prepared.sets.writes, was_prepared });
        self.release(id);
        Ok(self.ticket(TicketOf::Committed))
    }

    fn abort(&mut self, id: DistributedId, prepared: Prepared) {
        if !prepared.sets.writes.is_empty() && !self.commits_by_epoch() {
            self.write(Entry::Aborted { id });
        }
        self.release(id);
    }

    fn decide(
        &mut self,
        id: DistributedId,
        own: Option<OwnPart<'_>>,
        participants: Participants<'_>,
    ) -> Result<Decided<Ticket>, Refused<Ticket>> {
        let sets = own.map(|own| self.execute(own.part)).unwrap_or_default();
        let is_unvalidated = sets.writes.is_empty() && self.fault == Some(Fault::OwnReadsUnvalidated);
        if !is_unvalidated {
            self.validate(&sets)?;
        }
        self.seen.insert(id, sets.reads);
        self.write(Entry::Committed { id, writes: sets.writes, was_prepared: false });
        let is_noted = !participants.writers.is_empty() && !self.commits_by_epoch();
        if is_noted && self.fault != Some(Fault::DecisionUnrecorded) {
            self.write(Entry::Decided { id, participants: participants.writers.to_vec() });
        }
        let local = own.map(|own| own.part.to_vec());
        Ok(Decided { local, ticket: self.ticket(TicketOf::Decided) })
    }

    fn forget(&mut self, id: DistributedId) {
        if !self.commits_by_epoch() {
            self.write(Entry::Forgotten { id });
        }
    }

    fn is_stored(&mut self, ticket: &mut Ticket) -> Result<bool, Failed> {
        let is_believed = match self.fault {
            Some(Fault::VoteUnstored) => ticket.of == TicketOf::Prepared,
            Some(Fault::DecisionUnstored) => ticket.of == TicketOf::Decided,
            Some(Fault::DoneUnstored) => ticket.of == TicketOf::Committed,
            Some(Fault::RefusalUnstored) => ticket.of == TicketOf::Refused,
            _ => self.commits_by_epoch() && matches!(ticket.of, TicketOf::Prepared | TicketOf::Committed),
        };
        let waits_for_record = self.commits_by_epoch() && self.fault != Some(Fault::EpochUnrecorded);
        let end = if waits_for_record { self.recorded } else { self.stored };
        Ok(is_believed || ticket.end <= end)
    }
}
