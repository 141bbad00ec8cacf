//! Random transactions on a few keys, and databases that log them.

use std::sync::Arc;

use ensilo_epoch::Epoch;
use ensilo_test_disk::SimulatedDisk;

use super::model::{OneWrite, Op, RowKey, Transaction, Versions, set_word};
use super::writer::TestLog;
use crate::format::{BlockEnd, epoch_of};

/// Numbers from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// SplitMix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A database with a history.
pub(crate) struct Run {
    pub(crate) log: TestLog,
    pub(crate) random: Random,
    pub(crate) history: Vec<Transaction>,
    /// By key: the TID that changed it last, and the row if it is there.
    rows: Versions<Option<Vec<u8>>>,
    epoch: u64,
    sequence: u64,
    full_rows_before: Epoch,
}

impl Run {
    pub(crate) fn new(disk: &Arc<SimulatedDisk>, loggers: usize, seed: u64) -> Run {
        let log = TestLog::open(disk, loggers);
        let epoch = log.first_epoch.get();
        Run {
            log,
            random: Random::new(seed),
            history: Vec::new(),
            rows: Versions::new(),
            epoch,
            sequence: 0,
            full_rows_before: Epoch::default(),
        }
    }

    /// Goes on with a database that was opened again.
    pub(crate) fn reopen(&mut self, disk: &Arc<SimulatedDisk>, loggers: usize, durable_epoch: Epoch) {
        self.history.retain(|transaction| epoch_of(transaction.tid) <= durable_epoch);
        self.rows.clear();
        for transaction in &self.history {
            for write in &transaction.writes {
                note(&mut self.rows, transaction.tid, write);
            }
        }
        self.log = TestLog::open(disk, loggers);
        self.epoch = self.log.first_epoch.get();
        self.sequence = 0;
    }

    /// Some transactions of the current epoch.
    pub(crate) fn transactions(&mut self, count: u64) -> Vec<Transaction> {
        let transactions: Vec<Transaction> = (0..count).map(|_| self.transaction()).collect();
        self.history.extend(transactions.iter().cloned());
        transactions
    }

    fn transaction(&mut self) -> Transaction {
        self.sequence += 1;
        let tid = self.epoch << 20 | self.sequence << 3;
        let mut writes: Vec<OneWrite> = Vec::new();
        for _ in 0..=self.random.below(3) {
            let key = (
                self.random.below(2) as u32 * 300,
                vec![self.random.below(12) as u8; self.random.below(2) as usize * 70 + 1],
            );
            if writes.iter().all(|write| (write.table, &write.key) != (key.0, &key.1)) {
                let op = self.op(&key);
                let write = OneWrite { table: key.0, key: key.1, op };
                note(&mut self.rows, tid, &write);
                writes.push(write);
            }
        }
        Transaction { tid, writes }
    }

    fn op(&mut self, key: &RowKey) -> Op {
        let random = self.random.next();
        match self.rows.get(key) {
            Some((tid, Some(row))) if random % 4 < 2 && epoch_of(*tid) >= self.full_rows_before => {
                let words = row.len().div_ceil(8) as u64;
                if words == 0 {
                    return Op::Delete;
                }
                Op::Patch(vec![((random >> 8) as u32 % words as u32, random)])
            }
            Some((_, Some(_))) if random % 4 == 2 => Op::Delete,
            _ => Op::Put((0..random >> 60).map(|byte| (random >> (byte % 8)) as u8).collect()),
        }
    }

    /// A round of every logger. The epoch is over by then, and some transactions of the next one are in it
    /// already.
    pub(crate) fn round(&mut self) {
        let loggers = self.log.loggers.len();
        let mut transactions = vec![Vec::new(); loggers];
        for is_next in [false, true] {
            if is_next {
                self.next_epoch();
            }
            for own in &mut transactions {
                let count = self.random.below(3);
                own.extend(self.transactions(count));
            }
        }
        self.log.round(&transactions, Epoch::new(self.epoch));
    }

    /// The same without syncs; nothing of it may be acknowledged.
    pub(crate) fn unsynced_round(&mut self) {
        for logger in 0..self.log.loggers.len() {
            for _ in 0..self.random.below(3) {
                let transactions = self.transactions(2);
                self.log.append(logger, &transactions, None, BlockEnd::None);
            }
        }
        self.next_epoch();
        for logger in 0..self.log.loggers.len() {
            let transactions = self.transactions(0);
            self.log.append(logger, &transactions, Some(Epoch::new(self.epoch)), BlockEnd::None);
        }
    }

    pub(crate) fn next_epoch(&mut self) {
        self.epoch += 1 + self.random.below(2);
        self.sequence = 0;
    }

    /// Rotates one logger, in a round of its own.
    pub(crate) fn rotate(&mut self, logger: usize) {
        self.log.rotate(logger, Epoch::new(self.epoch));
    }

    /// Takes a checkpoint while rounds go on.
    pub(crate) fn checkpoint(&mut self, parts: u32) {
        let (begin, rows) = self.begin_checkpoint();
        self.log.checkpoint(begin, &rows, parts);
    }

    /// Returns the rounds while a checkpoint is made, the epoch that it begins in, and the rows that it has.
    pub(crate) fn begin_checkpoint(&mut self) -> (Epoch, Versions<Vec<u8>>) {
        self.next_epoch();
        let begin = Epoch::new(self.epoch);
        self.full_rows_before = begin;
        self.round();
        let rows = self
            .rows
            .iter()
            .filter(|(_, (tid, _))| epoch_of(*tid) < begin)
            .filter_map(|(key, (tid, row))| Some((key.clone(), (*tid, row.clone()?))))
            .collect();
        self.round();
        (begin, rows)
    }

    /// Any of the above.
    pub(crate) fn anything(&mut self) {
        match self.random.below(12) {
            0 | 1 => {
                let logger = self.random.below(self.log.loggers.len() as u64) as usize;
                self.rotate(logger);
            }
            2 => {
                let parts = 1 + self.random.below(3) as u32;
                self.checkpoint(parts);
            }
            _ => self.round(),
        }
    }
}

fn note(rows: &mut Versions<Option<Vec<u8>>>, tid: u64, write: &OneWrite) {
    let slot = rows.entry((write.table, write.key.clone())).or_default();
    slot.0 = tid;
    match &write.op {
        Op::Put(row) => slot.1 = Some(row.clone()),
        Op::Delete => slot.1 = None,
        Op::Patch(words) => {
            let row = slot.1.as_mut().expect("a row to patch");
            words.iter().for_each(|&(index, word)| set_word(row, index, word));
        }
    }
}
