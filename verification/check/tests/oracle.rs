//! The checker agrees with trying all serial orders, on small arbitrary histories.
#![allow(clippy::unwrap_used, reason = "tests")]

use ensilo_check::{
    Anomaly, Epoch, History, IsolationLevel, Key, Options, Read, TableId, Tid, Transaction, TransactionId,
    Verdict, Write, check,
};
use proptest::prelude::*;
use proptest::sample::Index;

const TABLE: TableId = TableId(1);
const KEYS: u8 = 3;
/// The row that every key has at the beginning, and the delete that it has if it has none.
const INITIAL: Tid = Tid(1);

fn key(number: u8) -> Key {
    Key::new(TABLE, &[number])
}

/// What a generated transaction does with each key.
#[derive(Clone, Debug)]
struct Sketch {
    worker: u32,
    epoch: u64,
    is_snapshot: bool,
    /// The order of the TIDs within an epoch.
    rank: u64,
    /// A read of any of the versions.
    reads: [Option<Index>; KEYS as usize],
    is_missed: [bool; KEYS as usize],
    /// A write: whether it is a delete.
    writes: [Option<bool>; KEYS as usize],
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let reads = prop::array::uniform3(prop::option::weighted(0.45, any::<Index>()));
    let is_missed = prop::array::uniform3(prop::bool::weighted(0.15));
    let writes = prop::array::uniform3(prop::option::weighted(0.35, prop::bool::weighted(0.4)));
    let place = (0u32..3, 1u64..3, prop::bool::weighted(0.1), any::<u64>());
    (place, reads, is_missed, writes).prop_map(
        |((worker, epoch, is_snapshot, rank), reads, is_missed, writes)| Sketch {
            worker,
            epoch,
            is_snapshot,
            rank: rank >> 16,
            reads,
            is_missed,
            writes,
        },
    )
}

/// Key 0 has a row at the beginning, key 1 has a deleted record, key 2 has nothing.
fn history(sketches: &[Sketch]) -> History {
    let mut ranks: Vec<u64> = sketches.iter().map(|sketch| sketch.rank).collect();
    ranks.sort_unstable();
    let tid_of = |sketch: &Sketch| {
        Tid(sketch.epoch << 16 | (ranks.iter().position(|rank| *rank == sketch.rank).unwrap() as u64 + 1))
    };
    let mut history = History::default().with_initial(key(0), INITIAL).with_initial(key(1), INITIAL);
    history.initial[1].absent = true;
    for (sequence, sketch) in (0..).zip(sketches) {
        let id = TransactionId { worker: sketch.worker, sequence };
        let mut transaction = if sketch.is_snapshot {
            Transaction::snapshot(id, Epoch(sketch.epoch))
        } else {
            Transaction::new(id, Epoch(sketch.epoch), tid_of(sketch))
        };
        for number in 0..KEYS {
            if let Some(absent) = sketch.writes[usize::from(number)]
                && !sketch.is_snapshot
            {
                transaction.writes.push(Write { key: key(number), absent });
            }
            if sketch.is_missed[usize::from(number)] {
                transaction.missing.push(key(number));
            }
        }
        history.transactions.push(transaction);
    }
    for (index, sketch) in sketches.iter().enumerate() {
        for number in 0..KEYS {
            if let Some(selector) = &sketch.reads[usize::from(number)] {
                let versions = versions(&history, number);
                let foreign: Vec<_> =
                    versions.iter().filter(|version| version.writer != Some(index)).collect();
                if !foreign.is_empty() {
                    let version = selector.get(&foreign);
                    let read = Read { key: key(number), version: version.tid, absent: version.absent };
                    history.transactions[index].reads.push(read);
                }
            }
        }
    }
    history
}

struct Version {
    tid: Tid,
    epoch: Epoch,
    absent: bool,
    writer: Option<usize>,
}

/// The versions of a key by TID.
fn versions(history: &History, number: u8) -> Vec<Version> {
    let mut versions = Vec::new();
    for initial in history.initial.iter().filter(|initial| initial.key == key(number)) {
        versions.push(Version { tid: initial.tid, epoch: Epoch(0), absent: initial.absent, writer: None });
    }
    for (writer, transaction) in history.transactions.iter().enumerate() {
        for write in transaction.writes.iter().filter(|write| write.key == key(number)) {
            let Transaction { tid, epoch, .. } = *transaction;
            versions.push(Version { tid, epoch, absent: write.absent, writer: Some(writer) });
        }
    }
    versions.sort_by_key(|version| version.tid);
    versions
}

/// Whether some order of all transactions explains the history, by the definition.
fn is_serializable(history: &History) -> bool {
    let orders: Vec<Vec<Version>> = (0..KEYS).map(|number| versions(history, number)).collect();
    let mut order: Vec<usize> = (0..history.transactions.len()).collect();
    permutations(&mut order, 0, &mut |order| explains(order, history, &orders))
}

fn permutations(order: &mut Vec<usize>, fixed: usize, is_right: &mut impl FnMut(&[usize]) -> bool) -> bool {
    if fixed == order.len() {
        return is_right(order);
    }
    for chosen in fixed..order.len() {
        order.swap(fixed, chosen);
        if permutations(order, fixed + 1, is_right) {
            return true;
        }
        order.swap(fixed, chosen);
    }
    false
}

/// Executes the transactions in this order and compares.
fn explains(order: &[usize], history: &History, orders: &[Vec<Version>]) -> bool {
    let level = |index: usize| {
        let transaction = &history.transactions[index];
        (transaction.snapshot.unwrap_or(transaction.epoch), transaction.snapshot.is_none())
    };
    let is_program_order = |before: usize, after: usize| {
        let [before, after] = [before, after].map(|index| &history.transactions[index]);
        before.id.worker != after.id.worker
            || before.snapshot.is_some()
            || after.snapshot.is_some()
            || before.id.sequence < after.id.sequence
    };
    let agrees = order.iter().enumerate().all(|(place, before)| {
        order[place + 1..]
            .iter()
            .all(|after| level(*before) <= level(*after) && is_program_order(*before, *after))
    });
    // How many versions of each key there are so far.
    let mut positions: Vec<usize> = orders
        .iter()
        .map(|versions| versions.iter().filter(|version| version.writer.is_none()).count())
        .collect();
    agrees
        && order.iter().all(|index| {
            let sees = (0..KEYS).all(|number| {
                let versions = &orders[usize::from(number)];
                sees_rightly(&history.transactions[*index], number, versions, positions[usize::from(number)])
            });
            let writes_next = history.transactions[*index].writes.iter().all(|write| {
                let number = usize::from(write.key.bytes[0]);
                positions[number] += 1;
                orders[number][positions[number] - 1].writer == Some(*index)
            });
            sees && writes_next
        })
}

/// Whether a transaction that runs when a key has `position` versions sees what it recorded.
fn sees_rightly(transaction: &Transaction, number: u8, versions: &[Version], position: usize) -> bool {
    let newest = position.checked_sub(1).map(|index| &versions[index]);
    let item = transaction
        .reads
        .iter()
        .filter(|read| read.key == key(number))
        .all(|read| newest.is_some_and(|newest| newest.tid == read.version));
    // The state that was missed is the newest before the transaction's epoch, an absence, or differs from it by absences.
    let horizon = transaction.snapshot.unwrap_or(transaction.epoch);
    let missed = versions.iter().filter(|version| version.epoch < horizon).count();
    let is_absence = missed == 0 || versions[missed - 1].absent;
    let is_same = missed.min(position) == missed.max(position)
        || versions[missed.min(position)..missed.max(position)].iter().all(|version| version.absent);
    let is_missed = transaction.missing.contains(&key(number));
    item && (!is_missed || is_absence && is_same)
}

/// Whether the transactions, in some order of their beginnings and their commits, give the history by the rules of snapshot isolation.
fn is_snapshot_isolated(history: &History) -> bool {
    let orders: Vec<Vec<Version>> = (0..KEYS).map(|number| versions(history, number)).collect();
    let is_initial = |version: &&Version| version.writer.is_none();
    let positions = orders.iter().map(|versions| versions.iter().filter(is_initial).count()).collect();
    go_on(history, &orders, &mut vec![Phase::Waits; history.transactions.len()], positions)
}

/// Of a transaction: how many versions of each key there were when it began.
#[derive(Clone, PartialEq)]
enum Phase {
    Waits,
    Begun(Vec<usize>),
    Done,
}

/// Tries every next beginning or commit.
fn go_on(history: &History, orders: &[Vec<Version>], phases: &mut Vec<Phase>, positions: Vec<usize>) -> bool {
    if phases.iter().all(|phase| *phase == Phase::Done) {
        return true;
    }
    (0..phases.len()).any(|index| {
        let transaction = &history.transactions[index];
        let phase = phases[index].clone();
        let after = match &phase {
            Phase::Done => None,
            Phase::Waits => {
                let sees = transaction.reads.iter().all(|read| {
                    let number = usize::from(read.key.bytes[0]);
                    let newest = positions[number].checked_sub(1).map(|at| &orders[number][at]);
                    newest.is_some_and(|newest| newest.tid == read.version)
                });
                sees.then(|| (Phase::Begun(positions.clone()), positions.clone()))
            }
            Phase::Begun(at_begin) => {
                let mut next = positions.clone();
                let is_first = transaction.writes.iter().all(|write| {
                    let number = usize::from(write.key.bytes[0]);
                    next[number] += 1;
                    positions[number] == at_begin[number]
                        && orders[number][positions[number]].writer == Some(index)
                });
                is_first.then_some((Phase::Done, next))
            }
        };
        let Some((next_phase, next)) = after else { return false };
        phases[index] = next_phase;
        let is_right = go_on(history, orders, phases, next);
        phases[index] = phase;
        is_right
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    /// Of one epoch, and without what is said of missing records.
    #[test]
    fn the_checker_agrees_with_all_orders_of_beginnings_and_commits(
        mut sketches in prop::collection::vec(sketch(), 2..5)
    ) {
        let mut ranks: Vec<u64> = sketches.iter().map(|sketch| sketch.rank).collect();
        ranks.sort_unstable();
        prop_assume!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
        for sketch in &mut sketches {
            (sketch.epoch, sketch.is_snapshot, sketch.is_missed) = (1, false, [false; KEYS as usize]);
        }
        let history = history(&sketches);
        let options = Options {
            isolation: IsolationLevel::SnapshotIsolation,
            program_order: false,
            transactions_min: 0,
            dependencies_min: 0,
            ..Options::default()
        };
        let verdict = check(&history, &options);
        let is_explained = match &verdict {
            Verdict::Violated(report) => report.anomalies().iter().all(|anomaly| *anomaly == Anomaly::TidOrder),
            _ => true,
        };
        prop_assert_eq!(is_explained, is_snapshot_isolated(&history), "{}\n{:#?}", verdict, history);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn the_checker_agrees_with_all_serial_orders(sketches in prop::collection::vec(sketch(), 2..6)) {
        let mut ranks: Vec<u64> = sketches.iter().map(|sketch| sketch.rank).collect();
        ranks.sort_unstable();
        prop_assume!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
        let history = history(&sketches);
        let options = Options { transactions_min: 0, dependencies_min: 0, ..Options::default() };
        let verdict = check(&history, &options);
        let is_explained = match &verdict {
            // The order of TIDs is an invariant of its own, which arbitrary histories do not keep.
            Verdict::Violated(report) => report.anomalies().iter().all(|anomaly| *anomaly == Anomaly::TidOrder),
            _ => true,
        };
        prop_assert_eq!(is_explained, is_serializable(&history), "{}\n{:#?}", verdict, history);
    }
}
