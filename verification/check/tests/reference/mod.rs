//! A reference interpreter: runs transactions one at a time over maps and records them as the engine would.
//!
//! It keeps what matters for the recording: epochs with snapshots every few of them, placeholders that an aborted insert
//! leaves behind, deleted records that stay in the tree until no snapshot needs them, and all versions for the snapshots.

use std::collections::BTreeMap;

use ensilo_check::{Epoch, History, Key, TableId, Tid, Transaction, TransactionId, check};
use ensilo_check::{Options, Verdict};

const EPOCHS_PER_SNAPSHOT: u64 = 3;
const EPOCH_SHIFT: u32 = 20;
const WORKERS: usize = 4;

/// One operation of a transaction.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Operation {
    /// Reads a key.
    Get(u8),
    /// Reads and overwrites a key if there is a row.
    Put(u8),
    /// Inserts a row if there is none.
    Insert(u8),
    /// Deletes a row if there is one.
    Delete(u8),
    /// Reads all rows of a range, both ends included.
    Scan(u8, u8),
}

/// One step of a run.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// A committed transaction of a worker.
    Transaction(u8, Vec<Operation>),
    /// A snapshot transaction of a worker; its writes are left out.
    Snapshot(u8, Vec<Operation>),
    /// An insert that aborts and leaves a placeholder in the tree.
    AbortedInsert(u8),
    /// The next epoch begins.
    Advance,
}

#[derive(Copy, Clone)]
struct Record {
    tid: Tid,
    absent: bool,
}

/// The state of the database and the history so far.
pub(crate) struct Interpreter {
    tree: BTreeMap<u8, Record>,
    versions: BTreeMap<u8, Vec<Record>>,
    epoch: u64,
    last_tids: [Tid; WORKERS],
    sequences: [u64; WORKERS],
    transactions: Vec<Transaction>,
}

/// The key of a number.
pub(crate) fn key(number: u8) -> Key {
    Key::new(TableId(7), &[b'k', number])
}

pub(crate) fn epoch_of(tid: Tid) -> Epoch {
    Epoch(tid.0 >> EPOCH_SHIFT)
}

impl Interpreter {
    /// The history of a run over an empty database.
    pub(crate) fn run(steps: &[Step]) -> History {
        let mut interpreter = Interpreter {
            tree: BTreeMap::new(),
            versions: BTreeMap::new(),
            epoch: EPOCHS_PER_SNAPSHOT,
            last_tids: [Tid(0); WORKERS],
            sequences: [0; WORKERS],
            transactions: Vec::new(),
        };
        for step in steps {
            match step {
                Step::Transaction(worker, operations) => interpreter.transact(*worker, operations),
                Step::Snapshot(worker, operations) => interpreter.read_snapshot(*worker, operations),
                Step::AbortedInsert(number) => {
                    interpreter.tree.entry(*number).or_insert(Record { tid: Tid(0), absent: true });
                }
                Step::Advance => interpreter.advance(),
            }
        }
        History::of(interpreter.transactions)
    }

    fn snapshot_epoch(&self) -> u64 {
        self.epoch / EPOCHS_PER_SNAPSHOT * EPOCHS_PER_SNAPSHOT
    }

    /// Begins an epoch and unhooks what no snapshot needs any more.
    fn advance(&mut self) {
        self.epoch += 1;
        let horizon = self.snapshot_epoch();
        self.tree.retain(|_, record| !record.absent || epoch_of(record.tid).0 >= horizon);
    }

    fn next_id(&mut self, worker: u8) -> TransactionId {
        let worker = usize::from(worker) % WORKERS;
        self.sequences[worker] += 1;
        TransactionId { worker: worker as u32, sequence: self.sequences[worker] }
    }

    fn transact(&mut self, worker: u8, operations: &[Operation]) {
        let id = self.next_id(worker);
        let mut running = Running {
            tree: &mut self.tree,
            own: BTreeMap::new(),
            record: Transaction::new(id, Epoch(self.epoch), Tid(0)),
        };
        for operation in operations {
            running.apply(*operation);
        }
        let Running { own, mut record, .. } = running;
        if !own.is_empty() {
            let last = &mut self.last_tids[id.worker as usize];
            let read = record.reads.iter().map(|read| read.version.0).max().unwrap_or(0);
            *last = Tid(read.max(last.0).max(self.epoch << EPOCH_SHIFT) + 1);
            record.tid = *last;
        }
        for (number, absent) in own {
            record = if absent { record.deletes(key(number)) } else { record.writes(key(number)) };
            let version = Record { tid: record.tid, absent };
            self.tree.insert(number, version);
            self.versions.entry(number).or_default().push(version);
        }
        self.transactions.push(record);
    }

    fn read_snapshot(&mut self, worker: u8, operations: &[Operation]) {
        let snapshot = Epoch(self.snapshot_epoch());
        let mut record = Transaction::snapshot(self.next_id(worker), snapshot);
        let newest = |number: u8| {
            let versions = self.versions.get(&number)?;
            versions.iter().rfind(|version| epoch_of(version.tid) < snapshot).copied()
        };
        for operation in operations {
            match *operation {
                Operation::Scan(low, high) => {
                    record = record.scans(TableId(7), &[b'k', low][..]..=&[b'k', high][..]);
                    for number in low..=high {
                        if let Some(Record { tid, absent: false }) = newest(number) {
                            record = record.reads(key(number), tid);
                        }
                    }
                }
                Operation::Get(number)
                | Operation::Put(number)
                | Operation::Insert(number)
                | Operation::Delete(number) => {
                    record = match newest(number) {
                        Some(Record { tid, absent: false }) => record.reads(key(number), tid),
                        Some(Record { tid, absent: true }) => record.reads_absent(key(number), tid),
                        None => record.misses(key(number)),
                    }
                }
            }
        }
        self.transactions.push(record);
    }
}

/// A transaction at work.
struct Running<'t> {
    tree: &'t mut BTreeMap<u8, Record>,
    /// What it has written: whether each key is absent.
    own: BTreeMap<u8, bool>,
    record: Transaction,
}

impl Running<'_> {
    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Get(number) => {
                self.find(number);
            }
            Operation::Put(number) => {
                if self.find(number) {
                    self.own.insert(number, false);
                }
            }
            Operation::Delete(number) => {
                if self.find(number) {
                    self.own.insert(number, true);
                }
            }
            Operation::Insert(number) => {
                if !self.own.contains_key(&number) {
                    self.tree.entry(number).or_insert(Record { tid: Tid(0), absent: true });
                }
                if !self.find(number) {
                    self.own.insert(number, false);
                }
            }
            Operation::Scan(low, high) => {
                self.record.ranges.extend(
                    Transaction::new(self.record.id, self.record.epoch, Tid(0))
                        .scans(TableId(7), &[b'k', low][..]..=&[b'k', high][..])
                        .ranges,
                );
                let found: Vec<u8> = if low <= high {
                    self.tree.range(low..=high).map(|(number, _)| *number).collect()
                } else {
                    vec![]
                };
                for number in found {
                    self.find(number);
                }
            }
        }
    }

    /// Whether there is a row, as the transaction sees it; what it saw is recorded.
    fn find(&mut self, number: u8) -> bool {
        if let Some(absent) = self.own.get(&number) {
            return !absent;
        }
        match self.tree.get(&number) {
            Some(Record { tid, absent }) => {
                let (version, absent) = (*tid, *absent);
                self.record.reads.push(ensilo_check::Read { key: key(number), version, absent });
                !absent
            }
            None => {
                self.record.missing.push(key(number));
                false
            }
        }
    }
}

/// The verdict on a history of any size.
pub(crate) fn judge(history: &History) -> Verdict {
    check(history, &Options { transactions_min: 0, dependencies_min: 0, ..Options::default() })
}
