//! The rules that a single record of the history, or two neighbours, can break: no graph is needed to see it.

use std::collections::BTreeMap;

use crate::history::{History, Key, Tid, Transaction};
use crate::observation::Observation;
use crate::report::{Anomaly, TransactionName, Violation};
use crate::versions::{Versions, position_before};

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

/// A version that was read was committed in the state in which it was read, and is the right one for a snapshot.
pub(crate) fn check_observation(
    observation: &Observation<'_>,
    history: &History,
    versions: &Versions<'_>,
    findings: &mut Findings,
) {
    let reader = &history.transactions[observation.reader as usize];
    if let Some(read) = observation.item {
        let (key, version) = (read.key.clone(), read.version);
        let Some(position) = observation.position else {
            findings.add(Violation::UncommittedRead { reader: TransactionName::of(reader), key, version });
            return;
        };
        if read.absent != is_absence(observation, versions, position) {
            let reader = TransactionName::of(reader);
            findings.add(Violation::WrongState { reader, key, version, seen_absent: read.absent });
            return;
        }
    }
    if let (Some(_), Some(key)) = (reader.snapshot, observation.key(versions)) {
        check_snapshot(observation, key, reader, versions, findings);
    }
}

/// Whether the state at a position of an observed key is an absence.
fn is_absence(observation: &Observation<'_>, versions: &Versions<'_>, position: usize) -> bool {
    match (observation.id, position.checked_sub(1)) {
        (Some(id), Some(index)) => versions.of_key(id)[index].absent,
        _ => true,
    }
}

/// A snapshot transaction saw the newest version before its snapshot epoch.
fn check_snapshot(
    observation: &Observation<'_>,
    key: &Key,
    reader: &Transaction,
    versions: &Versions<'_>,
    findings: &mut Findings,
) {
    let order = observation.id.map_or(&[][..], |id| versions.of_key(id));
    let newest = position_before(order, reader.horizon()).checked_sub(1).map(|index| order[index]);
    let seen = observation.item.map(|read| read.version).filter(|version| *version != Tid::NEVER_WRITTEN);
    let is_right = match seen {
        Some(version) => newest.is_some_and(|newest| newest.tid == version),
        None => newest.is_none_or(|newest| newest.absent),
    };
    if !is_right {
        let (reader, key) = (TransactionName::of(reader), key.clone());
        findings.add(Violation::SnapshotRead { reader, key, seen, newest: newest.map(|newest| newest.tid) });
    }
}
