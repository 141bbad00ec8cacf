//! The consistency of a YCSB database after a run: no record lost, torn or miscounted.

use std::ops::Range;

use ensilo::generic::ReadTransaction;
use ensilo::{Engine, Result};

use super::options::{INSERT, READ_WRITE, RMW, VALUE_BYTES_MAX};
use super::record::{INDEXES, Record};
use super::table::YcsbTable;
use super::value::{self, BLIND};
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// Records that one task looks at: under a memory limit what a snapshot remembers of them is little.
const TASK_RECORDS: u64 = 10_000;
const _: () = assert!(VALUE_BYTES_MAX < u32::MAX as usize);

/// What one task found, or all.
#[derive(Debug)]
struct CheckedRecords {
    records: u64,
    counted: u64,
    has_blind: bool,
    whole: Check,
}

/// Checks every record.
pub(super) fn check<R: Record, E: Engine>(
    table: &YcsbTable<R, E>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, Failure> {
    let CheckedRecords { records, counted, has_blind, whole } = read_all(table, view, interrupt)?;
    let loaded = table.options.records;
    let of_indexes = index_check(table, records)?;
    let Some(tally) = table.tally() else {
        // How many there should be is not known here: after a crash the effects show it.
        let mut loaded_check = Check::new("loaded_records", "every loaded record is there");
        loaded_check.expect(records >= loaded, || format!("{records} records, {loaded} loaded"));
        return Ok([loaded_check, whole].into_iter().chain(of_indexes).collect());
    };
    let mut checks = vec![count_check(records, loaded + tally.inserts), whole];
    if !has_blind {
        let check = if E::IS_TRANSACTIONAL { sum_check } else { bound_check };
        checks.push(check(counted, tally.rmws));
    }
    checks.extend(of_indexes);
    Ok(checks)
}

/// By transaction type, what the records show of the transactions since the load.
pub(super) fn count_effects<R: Record, E: Engine>(table: &YcsbTable<R, E>) -> Result<Vec<u64>, Failure> {
    let found = read_all(table, &mut View::silent(), &Interrupt::new())?;
    let rmws = if table.counts_rmws() { found.counted } else { 0 };
    let inserts = found.records.saturating_sub(table.options.records);
    let mut effects = vec![0; table.transaction_types().len()];
    if table.options.operations == 1 {
        (effects[RMW], effects[INSERT]) = (rmws, inserts);
    } else {
        effects[READ_WRITE] = rmws + inserts;
    }
    Ok(effects)
}

/// Reads every record from snapshots, several ranges at a time, once they show all that was committed.
fn read_all<R: Record, E: Engine>(
    table: &YcsbTable<R, E>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<CheckedRecords, Failure> {
    database::make_fresh_snapshot(&table.database)?;
    let rows: u64 = table.database.statistics()?.tables.iter().map(|table| table.records).sum();
    let ranges = rows.div_ceil(TASK_RECORDS);
    let division = Division {
        workers: table.options.workers,
        // The last task looks at what lies behind the last key that can be there but for workers of unequal speed.
        tasks: ranges + 1,
        stage: "checking consistency",
        total: rows,
        unit: "records",
    };
    let parts = parallel(division, view, interrupt, |task, reporter| {
        let end = if task == ranges { u64::MAX } else { (task + 1) * TASK_RECORDS };
        let found = check_range(table, task * TASK_RECORDS..end)?;
        reporter.advance(found.records)?;
        Ok(found)
    })?;
    let mut all = CheckedRecords { records: 0, counted: 0, has_blind: false, whole: content_check() };
    for part in parts {
        all.records += part.records;
        all.counted = all.counted.wrapping_add(part.counted);
        all.has_blind |= part.has_blind;
        all.whole.add(part.whole);
    }
    Ok(all)
}

fn check_range<R: Record, E: Engine>(table: &YcsbTable<R, E>, keys: Range<u64>) -> Result<CheckedRecords> {
    if E::SNAPSHOTS {
        table.database.read_stale(|tx| check_range_in(table, keys, tx))
    } else {
        table.database.transact(|tx| check_range_in(table, keys.clone(), tx))
    }
}

fn check_range_in<'t, R: Record, E: Engine>(
    table: &YcsbTable<R, E>,
    keys: Range<u64>,
    tx: &mut impl ReadTransaction<'t, E>,
) -> Result<CheckedRecords> {
    let mut found = CheckedRecords { records: 0, counted: 0, has_blind: false, whole: content_check() };
    let mut look = |key: u64, columns: R::Value| {
        let bytes = columns.as_ref();
        let counter = value::counter(bytes);
        found.records += 1;
        found.has_blind |= counter & BLIND != 0;
        found.counted = found.counted.wrapping_add(counter);
        let is_whole = bytes.len() == table.options.value_bytes && value::is_whole(bytes, key);
        let is_whole = is_whole && R::is_settled(&columns);
        found.whole.expect(is_whole, || format!("record {key}: counter {counter}, {} bytes", bytes.len()));
    };
    for table in &table.tables {
        table.range(keys.clone()).columns::<R::Value>().for_each(tx, &mut look)?;
    }
    Ok(found)
}

/// Checks that each index has an entry for each record, by its own order.
pub(super) fn index_check<R: Record, E: Engine>(
    table: &YcsbTable<R, E>,
    records: u64,
) -> Result<Option<Check>> {
    let indexes = &INDEXES[..table.options.indexes.unwrap_or(0)];
    if indexes.is_empty() {
        return Ok(None);
    }
    let mut check = Check::new("index_entries", "every index leads to every record once");
    for (name, _) in indexes {
        let mut found = 0;
        for table_of in &table.tables {
            let index = table_of.index::<u64>(name)?;
            found += if E::SNAPSHOTS {
                table.database.read_stale(|tx| index.scan().count(tx))?
            } else {
                table.database.transact(|tx| index.scan().count(tx))?
            } as u64;
        }
        check.expect(found == records, || format!("{name}: {found} entries, {records} records"));
    }
    Ok(Some(check))
}

fn content_check() -> Check {
    Check::new("record_contents", "every value is one that was written for its key, whole")
}

fn count_check(records: u64, expected: u64) -> Check {
    let mut check = Check::new("record_count", "there are as many records as were loaded and inserted");
    check.expect(records == expected, || format!("{records} records, {expected} loaded and inserted"));
    check
}

fn sum_check(counted: u64, committed: u64) -> Check {
    let mut check = Check::new("counter_sum", "the counters add up to the committed read-modify-writes");
    check.expect(counted == committed, || format!("the counters add up to {counted}, {committed} committed"));
    check
}

/// Where a put may overwrite what came between it and its get, counts are lost. None is made up.
fn bound_check(counted: u64, committed: u64) -> Check {
    let mut check = Check::new("counter_bound", "the counters add up to at most the read-modify-writes");
    check.expect(counted <= committed, || format!("the counters add up to {counted}, {committed} made"));
    check
}
