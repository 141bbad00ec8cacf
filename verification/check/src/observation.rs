//! Observations: which state of which key each transaction saw, item reads and predicate reads alike.
//!
//! A state is given as a *position* in the version order of its key: the number of versions up to and including the one
//! seen; 0 is the initial state. The rule for reads that name no version is derived in the documentation of the crate.

use crate::history::{History, Key, Read, Tid, Transaction};
use crate::versions::{INITIAL, KeyId, Version, Versions, position_before};

/// One transaction saw one state of one key.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Observation<'h> {
    /// Index of the transaction.
    pub(crate) reader: u32,
    /// The number of the key, if it was ever written.
    pub(crate) id: Option<KeyId>,
    /// The item read; nothing for a predicate read, which saw no record.
    pub(crate) item: Option<&'h Read>,
    /// The position of the state seen; nothing if nobody committed the version that the item read names.
    pub(crate) position: Option<usize>,
}

impl<'h> Observation<'h> {
    fn of_item(reader: (u32, &Transaction), item: &'h Read, versions: &Versions<'h>) -> Observation<'h> {
        let id = versions.id(&item.key);
        let order = id.map_or(&[][..], |id| versions.of_key(id));
        let position = if item.version == Tid::NEVER_WRITTEN {
            Some(absence_before(order, reader.1))
        } else {
            order.binary_search_by_key(&item.version, |version| version.tid).ok().map(|index| index + 1)
        };
        Observation { reader: reader.0, id, item: Some(item), position }
    }

    fn of_absence(reader: (u32, &Transaction), id: KeyId, versions: &Versions<'h>) -> Observation<'h> {
        let position = absence_before(versions.of_key(id), reader.1);
        Observation { reader: reader.0, id: Some(id), item: None, position: Some(position) }
    }

    /// Returns the version that the reader named; nothing if it found no record, or a placeholder.
    pub(crate) fn version(&self) -> Option<Tid> {
        self.item.map(|item| item.version).filter(|version| *version != Tid::NEVER_WRITTEN)
    }

    /// Returns the key, if it was ever written or named by an item read.
    pub(crate) fn key(&self, versions: &Versions<'h>) -> Option<&'h Key> {
        self.item.map(|item| &item.key).or_else(|| self.id.map(|id| versions.key(id)))
    }
}

/// Calls `each` for everything that each transaction saw; predicate reads only of keys that were ever written.
pub(crate) fn for_each_observation<'h>(
    history: &'h History,
    versions: &Versions<'h>,
    mut each: impl FnMut(Observation<'h>),
) {
    let mut listed = Vec::new();
    for (index, transaction) in history.transactions.iter().enumerate() {
        let reader = (index as u32, transaction);
        for item in &transaction.reads {
            each(Observation::of_item(reader, item, versions));
        }
        for id in transaction.missing.iter().filter_map(|key| versions.id(key)) {
            each(Observation::of_absence(reader, id, versions));
        }
        if transaction.ranges.is_empty() {
            continue;
        }
        collect_listed(transaction, versions, &mut listed);
        for id in transaction.ranges.iter().flat_map(|range| versions.in_range(range)) {
            if listed.binary_search(&id).is_err() {
                each(Observation::of_absence(reader, id, versions));
            }
        }
    }
}

/// The keys of which the ranges of a transaction say nothing: those that it names itself.
fn collect_listed(transaction: &Transaction, versions: &Versions<'_>, listed: &mut Vec<KeyId>) {
    listed.clear();
    let read = transaction.reads.iter().map(|read| &read.key);
    let written = transaction.writes.iter().map(|write| &write.key);
    listed.extend(read.chain(written).filter_map(|key| versions.id(key)));
    listed.sort_unstable();
}

/// Returns the position of the absence that a reader saw which found no record: the newest before its horizon. What was there
/// before the first transaction is behind every reader.
fn absence_before(order: &[Version], reader: &Transaction) -> usize {
    let mut position = position_before(order, reader.horizon());
    while position > 0 && !order[position - 1].absent && order[position - 1].writer != INITIAL {
        position -= 1;
    }
    position
}
