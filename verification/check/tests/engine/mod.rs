//! What the tests over the engine share: recording variants, and the way from the engine's records to a history.
#![allow(dead_code, reason = "no test uses all of it")]

mod attempt;
mod driver;
pub(crate) mod levels;
pub(crate) mod plan;
pub(crate) mod random;
pub(crate) mod stress;

use std::marker::PhantomData;

use ensilo_check::{Epoch, Key, KeyRange, Read, TableId, Tid, Transaction, TransactionId, Write};
use ensilo_txn::history::{RecordKey, TransactionRecord};
use ensilo_txn::{Fault, LogRecords, Variant};

/// Declares a variant that records its history.
macro_rules! recording {
    ($name:ident, $fault:expr, $docs:literal) => {
        #[doc = $docs]
        #[derive(Copy, Clone, Debug)]
        pub(crate) struct $name;

        impl Variant for $name {
            const RECORDS_HISTORY: bool = true;
            const FAULT: Option<Fault> = $fault;
        }
    };
}

/// A variant that records its history.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Recorded<V>(PhantomData<V>);

impl<V: Variant> Variant for Recorded<V> {
    const SNAPSHOTS: bool = V::SNAPSHOTS;
    const SLABS: bool = V::SLABS;
    const OVERWRITES: bool = V::OVERWRITES;
    const COLLECTS: bool = V::COLLECTS;
    const GLOBAL_TID: bool = V::GLOBAL_TID;
    const LOGGED: LogRecords = V::LOGGED;
    const RECORDS_HISTORY: bool = true;
    const FAULT: Option<Fault> = V::FAULT;
}

recording!(Recording, None, "The product, recording.");
recording!(NoReadValidation, Some(Fault::SkipReadValidation), "Commits without validating the read set.");
recording!(NoNodeValidation, Some(Fault::SkipNodeValidation), "Commits without validating the node set.");
recording!(EarlyEpoch, Some(Fault::EarlyEpoch), "Reads the epoch when the transaction begins.");
recording!(UnorderedLocks, Some(Fault::UnorderedLocks), "Locks in the order of the writes.");
recording!(
    UnprotectedReads,
    Some(Fault::UnprotectedPreparedReads),
    "Prepares without protecting what was read."
);
recording!(ForgetDeleted, Some(Fault::ForgetDeleted), "Snapshots miss what was deleted since.");
recording!(
    RenewNeededCopies,
    Some(Fault::RenewNeededCopies),
    "Overwrites older versions that snapshots need by newer ones, and may then look at one that is freed."
);
recording!(ForgetRemovals, Some(Fault::ForgetRemovals), "Chooses TIDs before those of deletions.");
recording!(IgnoreAbsent, Some(Fault::IgnoreAbsent), "Takes deleted records for rows.");

/// The engine's record of a transaction as the checker wants it.
pub(crate) fn transaction_of(id: TransactionId, record: &TransactionRecord) -> Transaction {
    let mut transaction = if record.is_snapshot {
        Transaction::snapshot(id, Epoch(record.epoch.get()))
    } else {
        Transaction::new(id, Epoch(record.epoch.get()), Tid(record.tid.get()))
    };
    transaction.reads = record
        .reads
        .iter()
        .map(|read| Read { key: key_of(&read.key), version: Tid(read.version.get()), absent: read.is_absent })
        .collect();
    transaction.missing = record.missing.iter().map(key_of).collect();
    transaction.ranges = record
        .ranges
        .iter()
        .map(|range| KeyRange {
            table: TableId(range.table.0),
            low: range.low.clone(),
            high: range.high.clone(),
        })
        .collect();
    transaction.writes = record
        .writes
        .iter()
        .map(|write| Write { key: key_of(&write.key), absent: write.is_absent })
        .collect();
    transaction
}

fn key_of((table, bytes): &RecordKey) -> Key {
    Key::new(TableId(table.0), bytes)
}
