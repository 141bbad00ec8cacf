//! The rules that a single record of the history, or two neighbours, can break: no graph is needed to see it.

use std::collections::BTreeMap;

use crate::history::{History, Key, Read, Tid, Transaction};
use crate::observation::Observation;
use crate::report::{Anomaly, TransactionName, Violation};
use crate::versions::{Version, Versions, position_before};

/// The violations found so far: the first few of each kind, and how many there are.
pub(crate) struct Findings {
    pub(crate) violations: Vec<Violation>,
    pub(crate) counts: BTreeMap<Anomaly, u64>,
    kept_max: u64,
}

impl Findings {
    /// No findings; of each kind the first `kept_max` will be kept.
    pub(crate) fn new(kept_max: usize) -> Findings {
        Findings { violations: Vec::new(), counts: BTreeMap::new(), kept_max: kept_max as u64 }
    }

    /// Adds a finding.
    pub(crate) fn add(&mut self, violation: Violation) {
        let count = self.counts.entry(violation.anomaly()).or_default();
        *count += 1;
        if *count <= self.kept_max {
            self.violations.push(violation);
        }
    }
}

/// Each version has a TID of its own.
pub(crate) fn check_versions(versions: &Versions<'_>, findings: &mut Findings) {
    for id in versions.ids() {
        for pair in versions.of_key(id).windows(2) {
            if pair[0].tid == pair[1].tid {
                findings
                    .add(Violation::DuplicateVersion { key: versions.key(id).clone(), version: pair[0].tid });
            }
        }
    }
}

/// Each worker's transactions have different names, and the TIDs of those that wrote grow.
pub(crate) fn check_workers(history: &History, findings: &mut Findings) {
    let mut order: Vec<&Transaction> = history.transactions.iter().collect();
    order.sort_by_key(|transaction| transaction.id);
    for pair in order.windows(2) {
        if pair[0].id == pair[1].id {
            findings.add(Violation::DuplicateTransaction { name: TransactionName::of(pair[1]) });
        }
    }
    order.retain(|transaction| !transaction.writes.is_empty());
    for pair in order.windows(2) {
        if pair[0].id.worker == pair[1].id.worker && pair[0].tid >= pair[1].tid {
            let [earlier, later] = [pair[0], pair[1]].map(TransactionName::of);
            findings.add(Violation::TidsOfWorkerNotGrowing { earlier, later });
        }
    }
}

/// The TID of a transaction that wrote is above all that it read.
pub(crate) fn check_tids(history: &History, findings: &mut Findings) {
    for transaction in history.transactions.iter().filter(|transaction| !transaction.writes.is_empty()) {
        for read in transaction.reads.iter().filter(|read| read.version >= transaction.tid) {
            let writer = TransactionName::of(transaction);
            let (key, version) = (read.key.clone(), read.version);
            findings.add(Violation::TidNotAboveRead { writer, key, version });
        }
    }
}

/// A version that was read was committed in the state in which it was read; no row was overlooked; a snapshot transaction
/// saw the newest version before its epoch.
pub(crate) fn check_observation(
    observation: &Observation<'_>,
    history: &History,
    versions: &Versions<'_>,
    findings: &mut Findings,
) {
    let reader = &history.transactions[observation.reader as usize];
    let order = observation.id.map_or(&[][..], |id| versions.of_key(id));
    let violation = observation
        .item
        .and_then(|item| wrong_item(item, observation.position, reader, order))
        .or_else(|| wrong_state(observation, observation.key(versions)?, reader, order));
    if let Some(violation) = violation {
        findings.add(violation);
    }
}

/// Returns what is wrong with an item read by itself.
fn wrong_item(
    read: &Read,
    position: Option<usize>,
    reader: &Transaction,
    order: &[Version],
) -> Option<Violation> {
    let (name, key, version) = (TransactionName::of(reader), &read.key, read.version);
    let is_absence = match position {
        _ if version == Tid::NEVER_WRITTEN => true,
        Some(position) => order[position - 1].absent,
        None => return Some(Violation::UncommittedRead { reader: name, key: key.clone(), version }),
    };
    let (key, seen_absent) = (key.clone(), read.absent);
    (seen_absent != is_absence).then_some(Violation::WrongState { reader: name, key, version, seen_absent })
}

/// Returns what is wrong with the state seen in view of the epochs.
fn wrong_state(
    observation: &Observation<'_>,
    key: &Key,
    reader: &Transaction,
    order: &[Version],
) -> Option<Violation> {
    let newest = position_before(order, reader.horizon()).checked_sub(1).map(|index| order[index]);
    let seen = observation.version();
    let is_right = match seen {
        Some(version) => reader.snapshot.is_none() || newest.is_some_and(|newest| newest.tid == version),
        None => newest.is_none_or(|newest| newest.absent),
    };
    if is_right {
        return None;
    }
    let (name, key, newest) = (TransactionName::of(reader), key.clone(), newest.map(|newest| newest.tid));
    match newest {
        Some(newest) if reader.snapshot.is_none() => {
            Some(Violation::OverlookedRow { reader: name, key, newest })
        }
        newest => Some(Violation::SnapshotRead { reader: name, key, seen, newest }),
    }
}
