//! Truncations as transactions of a history.
//!
//! A truncated table goes on in other stores, which know nothing of the rows of before. For the checker a truncation is a transaction that deletes
//! every row, and every entry of an index, that the stores ever had: the keys of the new stores are those of the old ones.
//!
//! Its place is behind everything that has used the old stores. So whoever uses the new ones has to come in a later epoch, or the checker finds a
//! row that was overlooked; and who uses an old store late moves the truncation behind what others have seen of it.
//! Of ERMIA's engine, which records no epochs, the stores are looked at one by one.

use std::collections::{BTreeMap, BTreeSet};

use ensilo_check::{Epoch, TableId, Tid, Transaction, TransactionId};

/// The stores of a table before and after it was truncated: its rows, and its index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Truncation {
    pub(crate) before: Stores,
    pub(crate) after: Stores,
}

/// The stores of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stores {
    pub(crate) rows: TableId,
    pub(crate) entries: TableId,
}

/// Adds the truncations, in their order, and makes the stores of one table one. Epochs have to tell what a transaction saw that found nothing.
pub(crate) fn add(transactions: &mut Vec<Transaction>, truncations: &[Truncation]) {
    let mut first: BTreeMap<TableId, TableId> = BTreeMap::new();
    for (number, Truncation { before, after }) in (0..).zip(truncations) {
        let known = |table: TableId| first.get(&table).copied().unwrap_or(table);
        let before = Stores { rows: known(before.rows), entries: known(before.entries) };
        let truncation = of(number, before, transactions);
        for (old, new) in [(before.rows, after.rows), (before.entries, after.entries)] {
            transactions.iter_mut().for_each(|transaction| rename(transaction, new, old));
            first.insert(new, old);
        }
        transactions.push(truncation);
    }
}

/// The truncation of these stores, behind all transactions that have used them. It deletes all keys that they ever had.
fn of(number: u32, stores: Stores, transactions: &[Transaction]) -> Transaction {
    let is_of = |table: TableId| table == stores.rows || table == stores.entries;
    let mut keys = BTreeSet::new();
    let (mut epoch, mut tid) = (Epoch(0), Tid(0));
    for transaction in transactions.iter().filter(|transaction| tables(transaction).into_iter().any(is_of)) {
        epoch = epoch.max(transaction.snapshot.unwrap_or(transaction.epoch));
        for write in transaction.writes.iter().filter(|write| is_of(write.key.table)) {
            tid = tid.max(transaction.tid);
            keys.insert(&write.key);
        }
    }
    let id = TransactionId { worker: u32::MAX - number, sequence: 0 };
    let truncation = Transaction::new(id, epoch, Tid(tid.0 + 1));
    keys.into_iter().fold(truncation, |truncation, key| truncation.deletes(key.clone()))
}

/// Takes one store for another.
fn rename(transaction: &mut Transaction, new: TableId, old: TableId) {
    let reads = transaction.reads.iter_mut().map(|read| &mut read.key.table);
    let missing = transaction.missing.iter_mut().map(|key| &mut key.table);
    let ranges = transaction.ranges.iter_mut().map(|range| &mut range.table);
    let writes = transaction.writes.iter_mut().map(|write| &mut write.key.table);
    let tables = reads.chain(missing).chain(ranges).chain(writes);
    tables.filter(|table| **table == new).for_each(|table| *table = old);
}

/// The stores that a transaction has used.
fn tables(transaction: &Transaction) -> BTreeSet<TableId> {
    let reads = transaction.reads.iter().map(|read| read.key.table);
    let missing = transaction.missing.iter().map(|key| key.table);
    let ranges = transaction.ranges.iter().map(|range| range.table);
    let writes = transaction.writes.iter().map(|write| write.key.table);
    reads.chain(missing).chain(ranges).chain(writes).collect()
}
