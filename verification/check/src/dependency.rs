//! The edges of the direct serialization graph.
//!
//! # Source
//! Adya (1999) chapter 4. A predicate read is matched by the rows of its range: it depends on the delete that made a key
//! absent, and the insert that makes the key present again depends on it; absences written over absences change no match
//! and make no edge.

use crate::history::History;
use crate::observation::Observation;
use crate::report::DependencyKind;
use crate::versions::{INITIAL, KeyId, Version, Versions};

/// `to` comes after `from` in every serial order that explains the history.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) kind: DependencyKind,
    /// The key that they conflict on; without meaning for the order of a worker's transactions.
    pub(crate) key: KeyId,
}

/// Calls `each` for the edges that an observation makes: from the writer of what was seen, and to the next writer.
pub(crate) fn for_each_edge_of(
    observation: &Observation<'_>,
    versions: &Versions<'_>,
    mut each: impl FnMut(Edge),
) {
    let (Some(key), Some(position)) = (observation.id, observation.position) else {
        return;
    };
    let reader = observation.reader;
    let order = versions.of_key(key);
    let (seen, next, kinds) = if observation.item.is_some() {
        (position, position, (DependencyKind::WriteRead, DependencyKind::ReadWrite))
    } else {
        let (seen, next) = matching_neighbours(order, position);
        (seen, next, (DependencyKind::PredicateWriteRead, DependencyKind::PredicateReadWrite))
    };
    if let Some(version) = seen.checked_sub(1).map(|index| order[index])
        && version.writer != INITIAL
        && version.writer != reader
    {
        each(Edge { from: version.writer, to: reader, kind: kinds.0, key });
    }
    if let Some(version) = order.get(next)
        && version.writer != INITIAL
        && version.writer != reader
    {
        each(Edge { from: reader, to: version.writer, kind: kinds.1, key });
    }
}

/// Returns the position of the first of the absences around `position`, and the index of the first row after them.
fn matching_neighbours(order: &[Version], position: usize) -> (usize, usize) {
    let mut seen = position;
    while seen > 1 && order[seen - 2].absent {
        seen -= 1;
    }
    let mut next = position;
    while order.get(next).is_some_and(|version| version.absent) {
        next += 1;
    }
    (seen, next)
}

/// Calls `each` for the edges between the writers of consecutive versions.
pub(crate) fn for_each_version_edge(versions: &Versions<'_>, mut each: impl FnMut(Edge)) {
    for key in versions.ids() {
        for pair in versions.of_key(key).windows(2) {
            let (from, to) = (pair[0].writer, pair[1].writer);
            if from != INITIAL && to != INITIAL && from != to {
                each(Edge { from, to, kind: DependencyKind::WriteWrite, key });
            }
        }
    }
}

/// Calls `each` for the edges between consecutive ordinary transactions of one worker.
///
/// A snapshot transaction reads the past: it has no place in the order of its worker's transactions.
pub(crate) fn for_each_program_edge(history: &History, mut each: impl FnMut(Edge)) {
    let transactions = &history.transactions;
    let mut order: Vec<u32> = (0..transactions.len() as u32)
        .filter(|index| transactions[*index as usize].snapshot.is_none())
        .collect();
    order.sort_unstable_by_key(|index| transactions[*index as usize].id);
    for pair in order.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        if transactions[from as usize].id.worker == transactions[to as usize].id.worker {
            each(Edge { from, to, kind: DependencyKind::ProgramOrder, key: 0 });
        }
    }
}
