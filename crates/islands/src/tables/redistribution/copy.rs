//! The rows of a table on their way to where they belong.
//!
//! A thread for each old instance reads batches and divides them; one for each new instance writes what comes, in transactions of its own. Between
//! them is a queue for each new instance, which has room for few batches. A writer that fails drops its end, and so ends all readers; a reader that fails says
//! so to the others, which look before each batch.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, ScopedJoinHandle};

use ensilo::{Database, Durability, DynamicTable, Error};

use super::RedistributionError;
use super::batches::Batches;
use super::plan::PlannedTable;
use super::source::Source;
use super::target::Target;
use crate::tables::partitioning::Places;
use crate::tables::statement::EncodedRow;

/// How many batches wait for a writer.
const QUEUE_LEN: usize = 2;

/// Copies the rows of a table, and returns how many each new instance has. `progress` is called with the number of rows that were read since the last
/// call.
///
/// # Panics
/// When `progress` does, once all threads have ended.
pub(super) fn copy_table(
    source: &Source,
    target: &Target,
    table: &PlannedTable<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Vec<u64>, RedistributionError> {
    let written_to = target.make_table(table)?;
    let of_rows = RedistributionError::of_rows(table.name());
    let rows = source.rows_of(table.source).map_err(&of_rows)?;
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut queues = Vec::new();
        let mut writers = Vec::new();
        for at in &written_to {
            let (queue, batches) = mpsc::sync_channel(QUEUE_LEN);
            queues.push(queue);
            let started = new_thread().spawn_scoped(scope, move || write(at, &batches));
            writers.push(started.map_err(RedistributionError::no_thread)?);
        }
        let (read, progressed) = mpsc::channel();
        let has_failed = &has_failed;
        let start_reader = |rows| {
            let (queues, read) = (queues.clone(), read.clone());
            new_thread().spawn_scoped(scope, move || {
                let divided = divide(rows, table, &queues, |count| {
                    read.send(count).is_ok() && !has_failed.load(Ordering::Relaxed)
                });
                // Relaxed: a matter of when they end.
                has_failed.fetch_or(divided.is_err(), Ordering::Relaxed);
                divided
            })
        };
        let readers = rows.into_iter().map(start_reader).collect::<io::Result<Vec<_>>>();
        let readers = readers.map_err(RedistributionError::no_thread)?;
        drop((queues, read));
        // If this panics, readers find nobody to report to, and end.
        progressed.iter().for_each(&mut progress);
        join(readers).and_then(|_| join(writers)).map_err(&of_rows)
    })
}

fn new_thread() -> thread::Builder {
    thread::Builder::new().name("ensilo-copy".to_owned())
}

fn join<T>(threads: Vec<ScopedJoinHandle<'_, Result<T, Error>>>) -> Result<Vec<T>, Error> {
    let ended = |thread: ScopedJoinHandle<'_, _>| {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    };
    threads.into_iter().map(ended).collect()
}

/// Reads rows, and hands each of them to whoever writes it. `goes_on` is told how many were handed over, and says whether to go on. Ends early when
/// somebody else has ended.
fn divide(
    rows: Batches,
    table: &PlannedTable<'_>,
    queues: &[SyncSender<Vec<EncodedRow>>],
    goes_on: impl Fn(u64) -> bool,
) -> Result<(), Error> {
    for batch in rows {
        let batch = batch?;
        let count = batch.len() as u64;
        let divided = divided(batch, table, queues.len() as u16);
        let mut handed_over =
            queues.iter().zip(divided).map(|(queue, rows)| rows.is_empty() || queue.send(rows).is_ok());
        if !handed_over.all(|is_handed_over| is_handed_over) || !goes_on(count) {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns the rows that each instance gets.
fn divided(batch: Vec<EncodedRow>, table: &PlannedTable<'_>, instances: u16) -> Vec<Vec<EncodedRow>> {
    let mut divided = vec![Vec::new(); instances.into()];
    for row in batch {
        match table.partitioning.place_of(&table.source.parts, &row.0, instances) {
            Places::One(instance) => divided[usize::from(instance)].push(row),
            Places::Several(first, last) => add_to_all(&mut divided[first.into()..=last.into()], &row),
            Places::Everywhere => add_to_all(&mut divided, &row),
        }
    }
    divided
}

fn add_to_all(divided: &mut [Vec<EncodedRow>], row: &EncodedRow) {
    divided.iter_mut().for_each(|rows| rows.push(row.clone()));
}

/// Writes what comes, and returns how many rows that were. Nothing waits for the disk.
fn write((db, table): &(Database, DynamicTable), batches: &Receiver<Vec<EncodedRow>>) -> Result<u64, Error> {
    let mut count = 0;
    for rows in batches {
        db.request()
            .durability(Durability::Visible)
            .transact(|tx| rows.iter().try_for_each(|(key, row)| table.encoded().insert(tx, key, row)))?;
        count += rows.len() as u64;
    }
    Ok(count)
}
