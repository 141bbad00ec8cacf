//! How records are read and overwritten, under loom: every interleaving of a writer and a reader, or of two writers.
//!
//! The tree is left out: records are looked at directly.

use std::sync::Arc;

use ensilo_engine::{RowRef, TableId};
use ensilo_epoch::{Advance, EpochOptions, Epochs};
use ensilo_slab::Pool;
use loom::thread;

use super::SingleKeys;
use crate::record::{Record, new_record};
use crate::transaction::Protocol;
use crate::version::Version;

const ROW_BYTES: usize = 16;

/// Returns a record with a row of two words that are 0.
fn record() -> (Arc<Epochs>, Record) {
    let options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
    let epochs = Epochs::new(options, Pool::new(None));
    let participant = epochs.participant();
    let row = (&[0, 0][..], ROW_BYTES);
    let record = new_record(&participant.pin(), TableId(1), b"", row, Version::FIRST.raw()).unwrap();
    (epochs, record)
}

/// Adds 1 to both words.
fn write(record: Record) {
    let version = loop {
        let version = Version::of(record);
        if version.try_lock(record) {
            break version;
        }
    };
    let word = record.row().word(0) + 1;
    record.store_word(0, word);
    record.store_word(1, word);
    version.next().publish(record);
}

fn both(row: RowRef<'_>) -> [u64; 2] {
    [row.word(0), row.word(1)]
}

/// Lets a reader and a writer meet.
fn meet(read: fn(Record) -> [u64; 2]) {
    loom::model(move || {
        let (_epochs, record) = record();
        let writer = thread::spawn(move || write(record));
        let [first, second] = read(record);
        assert_eq!(first, second, "a torn row");
        writer.join().unwrap();
        assert_eq!(SingleKeys::read_row(record, both), [1, 1]);
    });
}

#[test]
fn a_reader_sees_a_row_before_or_after_an_overwrite_never_between() {
    meet(|record| SingleKeys::read_row(record, both));
}

#[test]
#[should_panic(expected = "a torn row")]
fn the_model_finds_a_reader_that_looks_at_the_version_only_before() {
    meet(|record| {
        let _ = Version::of(record);
        both(record.row().uncommitted())
    });
}

#[test]
fn of_two_writers_none_is_lost() {
    loom::model(|| {
        let (_epochs, record) = record();
        let other = thread::spawn(move || write(record));
        write(record);
        other.join().unwrap();
        assert_eq!(SingleKeys::read_row(record, both), [2, 2]);
    });
}
