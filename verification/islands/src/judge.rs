//! Whether a run that has come to rest kept what two-phase commit promises.

use std::collections::{BTreeMap, BTreeSet};

use ensilo_check::{Epoch, History, Key, Options, TableId, Tid, Transaction, TransactionId, Verdict, check};
use ensilo_islands::commit::{DistributedId, Outcome, RefusalReason, Request};

use crate::node::Node;
use crate::store::{Entry, from_bytes};
use crate::world::Failure;

/// How often a part of each transaction was committed, by instance.
type Commits = BTreeMap<DistributedId, BTreeMap<u16, usize>>;

/// Returns how many transactions have committed, and how many of these have parts at several instances.
pub(crate) fn judge(
    nodes: &[Node],
    begun: &BTreeMap<DistributedId, Request>,
    told: &BTreeMap<DistributedId, Outcome>,
) -> Result<(u64, u64), Failure> {
    let commits = commits(nodes);
    for (id, request) in begun {
        judge_one(*id, request, commits.get(id), told.get(id))?;
    }
    told.iter().try_for_each(|(id, outcome)| judge_rejection(*id, outcome, &commits))?;
    judge_order(nodes, begun, &commits)?;
    let distributed = commits.keys().filter(|id| !begun[id].remote.is_empty()).count();
    Ok((commits.len() as u64, distributed as u64))
}

fn commits(nodes: &[Node]) -> Commits {
    let mut commits = Commits::new();
    for node in nodes {
        for entry in node.store.log() {
            if let Entry::Committed { id, .. } = entry {
                *commits.entry(*id).or_default().entry(node.id().instance).or_default() += 1;
            }
        }
    }
    commits
}

/// Judges whether a transaction has happened everywhere or nowhere, and as its caller was told.
fn judge_one(
    id: DistributedId,
    request: &Request,
    commits: Option<&BTreeMap<u16, usize>>,
    told: Option<&Outcome>,
) -> Result<(), Failure> {
    let not_atomic =
        |what: &str| Err(Failure::NotAtomic(format!("{id} {what}: {request:?}, {commits:?}, {told:?}")));
    match (commits, told) {
        (Some(_), Some(Outcome::Aborted(_))) => return not_atomic("is said to be aborted"),
        (None, Some(Outcome::Committed { .. })) => return not_atomic("is said to have committed"),
        (None, _) => return Ok(()),
        (Some(_), _) => {}
    }
    let commits_at = |instance| commits.and_then(|commits| commits.get(&instance)).copied().unwrap_or(0);
    if commits_at(id.coordinator.instance) != 1 {
        return not_atomic("was not decided once");
    }
    for (site, part) in &request.remote {
        let writes = from_bytes(part).iter().any(|step| step.writes);
        if commits_at(site.instance) != usize::from(writes) {
            return not_atomic("has a part that was not committed once");
        }
    }
    Ok(())
}

/// Judges whether a transaction was rejected for what has happened: of the row that it is rejected for the writer is named.
fn judge_rejection(id: DistributedId, outcome: &Outcome, commits: &Commits) -> Result<(), Failure> {
    match outcome {
        Outcome::Aborted(refusal)
            if refusal.reason == RefusalReason::Rejected
                && commits.keys().all(|writer| writer.to_string() != refusal.message) =>
        {
            Err(Failure::NotAtomic(format!("{id} is rejected for what {} has not done", refusal.message)))
        }
        _ => Ok(()),
    }
}

/// Judges whether all that has committed could have happened one after the other.
fn judge_order(
    nodes: &[Node],
    begun: &BTreeMap<DistributedId, Request>,
    commits: &Commits,
) -> Result<(), Failure> {
    let tids = order(nodes, commits)?;
    let key = |node: &Node, key: u8| Key::new(TableId(u32::from(node.id().instance)), &[key]);
    let mut transactions = Vec::new();
    for (worker, id) in (0..).zip(commits.keys()) {
        // Each as one of its own worker: two of one worker could be reordered as any two.
        let transaction_id = TransactionId { worker, sequence: 0 };
        let mut transaction = Transaction::new(transaction_id, Epoch(1), tid(&tids, *id));
        for node in nodes {
            let instance = node.id().instance;
            let takes_part = instance == id.coordinator.instance
                || begun[id].remote.iter().any(|(site, _)| site.instance == instance);
            let seen = node.store.seen.get(id).filter(|_| takes_part);
            for (read, version) in seen.into_iter().flatten() {
                let version = version.map_or(INITIAL, |version| tid(&tids, version));
                transaction = transaction.reads(key(node, *read), version);
            }
            for entry in node.store.log() {
                if let Entry::Committed { id: of, writes, .. } = entry
                    && of == id
                {
                    transaction = writes
                        .iter()
                        .fold(transaction, |transaction, write| transaction.writes(key(node, *write)));
                }
            }
        }
        transactions.push(transaction);
    }
    let mut history = History::of(transactions);
    for node in nodes {
        for row in 0..=u8::MAX {
            history = history.with_initial(key(node, row), INITIAL);
        }
    }
    match check(&history, &Options::default()) {
        Verdict::Violated(report) => Err(Failure::NotSerializable(report.to_string())),
        _ => Ok(()),
    }
}

/// What the rows say before anything has happened.
const INITIAL: Tid = Tid(1);

/// Numbers the transactions so that each comes after those whose rows it has read or overwritten.
fn order(nodes: &[Node], commits: &Commits) -> Result<BTreeMap<DistributedId, Tid>, Failure> {
    let mut later: BTreeMap<DistributedId, BTreeSet<DistributedId>> = BTreeMap::new();
    let mut earlier_count: BTreeMap<DistributedId, usize> = commits.keys().map(|id| (*id, 0)).collect();
    for (previous, next) in nodes.iter().flat_map(dependencies) {
        if commits.contains_key(&next) && later.entry(previous).or_default().insert(next) {
            *earlier_count.entry(next).or_default() += 1;
        }
    }
    let mut tids = BTreeMap::new();
    while let Some(id) = earlier_count.iter().find(|(_, count)| **count == 0).map(|(id, _)| *id) {
        earlier_count.remove(&id);
        tids.insert(id, Tid(INITIAL.0 + 1 + tids.len() as u64));
        for later in later.remove(&id).into_iter().flatten() {
            earlier_count.entry(later).and_modify(|count| *count -= 1);
        }
    }
    if earlier_count.is_empty() {
        Ok(tids)
    } else {
        let written = earlier_count.keys().map(DistributedId::to_string).collect::<Vec<_>>().join(", ");
        Err(Failure::NotSerializable(format!("{written} have seen each other")))
    }
}

/// Returns pairs of transactions of which the second one has read or overwritten what the first one has written here.
fn dependencies(node: &Node) -> Vec<(DistributedId, DistributedId)> {
    let (mut last, mut pairs) = (BTreeMap::new(), Vec::new());
    for entry in node.store.log() {
        let Entry::Committed { id, writes, .. } = entry else { continue };
        pairs.extend(writes.iter().filter_map(|key| Some((last.insert(*key, *id)?, *id))));
    }
    for (id, seen) in &node.store.seen {
        pairs.extend(seen.iter().filter_map(|(_, version)| Some(((*version)?, *id))));
    }
    pairs
}

fn tid(tids: &BTreeMap<DistributedId, Tid>, id: DistributedId) -> Tid {
    tids.get(&id).copied().unwrap_or(Tid(u64::MAX))
}
