//! The consistency of a YCSB database after a run: no record lost, torn or miscounted.

use std::ops::Range;

use ensilo::Result;

use super::options::VALUE_BYTES_MAX;
use super::record::Record;
use super::value::{self, BLIND};
use super::workload::YcsbTable;
use crate::database;
use crate::driver::{Check, Division, Failure, Interrupt, View, parallel};

/// Records that one task looks at.
const TASK_RECORDS: u64 = 100_000;
const _: () = assert!(VALUE_BYTES_MAX < u32::MAX as usize);

/// What one task found.
#[derive(Debug)]
struct Found {
    records: u64,
    counted: u64,
    has_blind: bool,
    whole: Check,
}

/// Reads every record from snapshots, several ranges at a time, once they show all that was committed.
pub(super) fn check<R: Record>(
    table: &YcsbTable<R>,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Vec<Check>, Failure> {
    database::wait_for_fresh_snapshot(&table.database)?;
    let tally = table.tally();
    let expected = table.options.records + tally.inserts;
    let ranges = expected.div_ceil(TASK_RECORDS);
    let division = Division {
        workers: table.options.workers,
        // The last task looks at what lies behind the last key that can be there but for workers of unequal speed.
        tasks: ranges + 1,
        stage: "checking consistency",
        total: expected,
        unit: "records",
    };
    let parts = parallel(division, view, interrupt, |task, reporter| {
        let end = if task == ranges { u64::MAX } else { (task + 1) * TASK_RECORDS };
        let found = check_range(table, task * TASK_RECORDS..end)?;
        reporter.advance(found.records)?;
        Ok(found)
    })?;
    let mut whole = content_check();
    let (mut records, mut counted, mut has_blind) = (0, 0, false);
    for part in parts {
        records += part.records;
        counted += part.counted;
        has_blind |= part.has_blind;
        whole.add(part.whole);
    }
    let mut checks = vec![count_check(records, expected), whole];
    if !has_blind {
        checks.push(sum_check(counted, tally.rmws));
    }
    Ok(checks)
}

fn check_range<R: Record>(table: &YcsbTable<R>, keys: Range<u64>) -> Result<Found> {
    table.database.snapshot(|tx| {
        let mut found = Found { records: 0, counted: 0, has_blind: false, whole: content_check() };
        table.table.range(keys.clone()).columns::<R::Value>().for_each(tx, |key, columns| {
            let bytes = columns.as_ref();
            let counter = value::counter(bytes);
            found.records += 1;
            found.has_blind |= counter & BLIND != 0;
            found.counted = found.counted.wrapping_add(counter);
            let is_whole = bytes.len() == table.options.value_bytes && value::is_whole(bytes, key);
            found
                .whole
                .expect(is_whole, || format!("record {key}: counter {counter}, {} bytes", bytes.len()));
        })?;
        Ok(found)
    })
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
