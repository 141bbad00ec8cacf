//! Records of all lengths of rows.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::AtomicU64;

use ensilo_engine::{ROW_LEN_MAX, RawRecord, TableId};
use ensilo_epoch::{EpochOptions, Epochs, Guard};
use ensilo_slab::Pool;

type Record = RawRecord<AtomicU64>;

fn allocate(guard: &Guard<'_>, len_bytes: usize) -> Record {
    Record::allocate(guard, TableId(7), len_bytes, AtomicU64::new(1)).unwrap()
}

fn lengths() -> impl Iterator<Item = usize> {
    let around = |len: usize| len.saturating_sub(17)..=(len + 17).min(ROW_LEN_MAX);
    (0..2000).chain((11..=25).flat_map(move |bits| around(1 << bits).chain(around(3 << (bits - 1)))))
}

#[test]
fn every_row_fits_its_record_which_is_hardly_larger() {
    let epochs = Epochs::new(EpochOptions::default(), Pool::new(None));
    let participant = epochs.participant();
    let guard = participant.pin();
    for len_bytes in lengths().filter(|len| *len <= ROW_LEN_MAX) {
        let record = allocate(&guard, len_bytes);
        let block_bytes = record.block().1.size();
        assert!(
            record.fits(len_bytes) && record.row().len_bytes() == len_bytes && record.store() == TableId(7)
        );
        assert!(
            block_bytes >= len_bytes + 16 && block_bytes <= len_bytes + 16 + len_bytes / 8 + 32,
            "{len_bytes}"
        );
        assert!(!record.fits(block_bytes - 15), "what is behind the header is the room");
        // SAFETY: nobody else has its address.
        unsafe { record.free(&guard) };
    }
    assert_eq!(guard.participant().heap().pool().usage().live_bytes, 0, "all blocks went back as they came");
}

#[test]
fn the_longest_row_is_read_as_it_was_stored() {
    let epochs = Epochs::new(EpochOptions::default(), Pool::new(None));
    let participant = epochs.participant();
    let guard = participant.pin();
    let record = allocate(&guard, ROW_LEN_MAX);
    let words = ROW_LEN_MAX as u64 / 8;
    record.store_row((0..words as usize).map(|word| word as u64 * 3), ROW_LEN_MAX);
    record.store_word(words as usize - 1, 5);
    assert!(record.row().all_words().take(words as usize - 1).eq((0..words - 1).map(|word| word * 3)));
    assert_eq!(record.row().word(words as usize - 1), 5);
    // SAFETY: nobody else has its address.
    unsafe { record.free(&guard) };
}

#[test]
fn a_large_record_is_wasted_by_a_row_of_less_than_a_quarter() {
    let epochs = Epochs::new(EpochOptions::default(), Pool::new(None));
    let participant = epochs.participant();
    let guard = participant.pin();
    let (large, small) = (allocate(&guard, 1 << 20), allocate(&guard, 1 << 10));
    assert!(large.wastes_large(0) && large.wastes_large(200 << 10));
    assert!(!large.wastes_large(300 << 10) && !large.wastes_large(1 << 20));
    assert!(!small.wastes_large(0), "small blocks are found again by others of their class");
    // SAFETY: nobody else has its address.
    unsafe { large.free(&guard) };
    // SAFETY: as above.
    unsafe { small.free(&guard) };
}
