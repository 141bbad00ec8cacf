//! The ring, with the test in the place of the loggers.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use ensilo_epoch::Epoch;

use super::place::{Part, SEGMENTS};
use super::space::CHUNK_UNITS;
use super::{Place, RECORD_BYTES_MAX, Ring, RingReader, UNIT_BYTES, UNITS_PER_EPOCH, take_place};
use crate::runtime::error::LogError;

/// A ring with a clock that counts units, and a frontier that the test moves.
struct Bench {
    ring: Arc<Ring>,
    clock: AtomicU64,
    frontier: Arc<AtomicU64>,
}

impl Bench {
    fn new(loggers: usize, bytes: usize) -> Bench {
        let frontier = Arc::new(AtomicU64::new(0));
        let complete = Arc::clone(&frontier);
        let complete = move || Epoch::new(complete.load(Ordering::SeqCst));
        let ring = Arc::new(Ring::new(loggers, bytes, complete, || ()));
        Bench { ring, clock: AtomicU64::new(0), frontier }
    }

    fn reader(&self, logger: usize) -> RingReader {
        RingReader::new(Arc::clone(&self.ring), logger)
    }

    fn take(&self, epoch: u64, units: u64) -> Place {
        let first = take_place(&self.clock, epoch * UNITS_PER_EPOCH + 1, units, Ordering::AcqRel);
        Place::new(first << 3, units)
    }

    /// Logs an entry in this epoch. Returns whether its place lay there.
    fn log(&self, epoch: u64, entry: &[u8]) -> bool {
        let place = self.take(epoch, Place::units_for(entry.len()));
        let lies_there = place.lies_in(Epoch::new(epoch));
        if lies_there {
            self.ring.fill(place, entry, |_| ());
        } else {
            self.ring.skip(place, &[], |_| ());
        }
        lies_there
    }

    /// Returns what a logger takes at this frontier: the bytes, and how many transactions.
    fn drain(&self, reader: &mut RingReader, frontier: u64) -> (Vec<u8>, u64) {
        self.frontier.store(frontier, Ordering::SeqCst);
        let (mut bytes, mut transactions) = (Vec::new(), 0);
        for piece in reader.gather(Epoch::new(frontier)) {
            bytes.extend_from_slice(piece.payload());
            transactions += piece.transactions;
        }
        reader.finish(Epoch::new(frontier));
        (bytes, transactions)
    }
}

#[test]
fn records_come_back_without_those_that_were_skipped() {
    let bench = Bench::new(1, 1 << 20);
    let mut reader = bench.reader(0);
    assert!(bench.log(5, b"first"));
    bench.ring.skip(bench.take(5, 3), b"an operation", |_| ());
    assert!(bench.log(5, &[b'x'; 1000]));
    assert!(bench.log(6, b"later"));
    assert_eq!(bench.drain(&mut reader, 5), (vec![], 0), "the epoch goes on");
    assert_eq!(bench.drain(&mut reader, 6), ([&b"first"[..], &[b'x'; 1000]].concat(), 2));
    assert!(bench.ring.is_pending());
    assert_eq!(bench.drain(&mut reader, 7), (b"later".to_vec(), 1));
    assert_eq!(bench.drain(&mut reader, 8), (vec![], 0), "nothing is taken twice");
    assert!(!bench.ring.is_pending());
}

#[test]
fn what_a_segment_held_before_is_not_read_again() {
    let bench = Bench::new(1, 1 << 20);
    let mut reader = bench.reader(0);
    for epoch in 1..4 * SEGMENTS {
        // Fewer each time, at the same places, and full of numbers of places to come.
        let entries = 1 + (4 * SEGMENTS - epoch) % 7;
        let number = (epoch + 1) * UNITS_PER_EPOCH + 1 + entries;
        let entry = number.to_le_bytes().repeat(30);
        assert!((0..entries).all(|_| bench.log(epoch, &entry)));
        assert_eq!(bench.drain(&mut reader, epoch + 1), (entry.repeat(entries as usize), entries));
    }
}

#[test]
fn a_place_across_the_end_of_an_epoch_is_skipped_on_both_sides() {
    let bench = Bench::new(1, 1 << 30);
    let mut reader = bench.reader(0);
    assert!(bench.log(3, b"in time"));
    let before_end = bench.take(3, UNITS_PER_EPOCH - 4);
    bench.ring.skip(before_end, &[], |_| ());
    // Two units are left.
    let mut moved = Vec::new();
    let across = bench.take(3, 5);
    assert!(!across.lies_in(Epoch::new(3)) && !across.lies_in(Epoch::new(4)));
    let parts: Vec<_> = across.parts().collect();
    let part = |epoch, unit, units| Part { epoch: Epoch::new(epoch), unit, units };
    // The first unit of an epoch is nobody's.
    assert_eq!(parts, [part(3, UNITS_PER_EPOCH - 2, 2), part(4, 1, 2)]);
    let noted = std::cell::RefCell::new(&mut moved);
    bench.ring.skip(across, &[], |epoch| noted.borrow_mut().push(epoch));
    assert_eq!(moved, [Epoch::new(4)], "the commit is in the way of no earlier epoch");
    assert!(!bench.log(3, b"too late"));
    assert!(bench.log(4, b"next"));
    assert_eq!(bench.drain(&mut reader, 4), (b"in time".to_vec(), 1));
    assert_eq!(bench.drain(&mut reader, 5), (b"next".to_vec(), 1));
}

#[test]
fn the_place_that_begins_with_the_end_of_an_epoch_has_no_part_there() {
    for units in 1..4 {
        let place = Place::new((9 * UNITS_PER_EPOCH) << 3, units);
        assert!(!place.lies_in(Epoch::new(8)) && !place.lies_in(Epoch::new(9)));
        let parts: Vec<_> = place.parts().collect();
        let part = Part { epoch: Epoch::new(9), unit: 1, units: units - 1 };
        assert_eq!(parts, [part][..usize::from(units > 1)]);
    }
}

#[test]
fn an_entry_takes_as_many_units_as_it_fills() {
    assert_eq!(Place::units_for(0), 1);
    assert_eq!(Place::units_for(UNIT_BYTES - 16), 1);
    assert_eq!(Place::units_for(UNIT_BYTES - 15), 2);
    assert_eq!(Place::units_for(RECORD_BYTES_MAX) as usize, RECORD_BYTES_MAX / UNIT_BYTES + 1);
    assert_eq!(Place::units_for(RECORD_BYTES_MAX + 1), 1, "logged aside");
}

#[test]
fn loggers_take_each_record_once() {
    let bench = Bench::new(3, 1 << 30);
    let mut readers = [0, 1, 2].map(|logger| bench.reader(logger));
    for epoch in 1..20 {
        let entries = 5 * CHUNK_UNITS / 16;
        for number in 0..entries {
            let entry = (epoch << 32 | number).to_le_bytes().repeat(100);
            assert!(bench.log(epoch, &entry));
        }
        let drained: Vec<_> = readers.iter_mut().map(|reader| bench.drain(reader, epoch + 1)).collect();
        assert!(drained.iter().all(|(_, transactions)| *transactions > 0));
        let mut numbers: Vec<_> = drained
            .iter()
            .flat_map(|(bytes, _)| bytes.chunks(800).map(|entry| entry[0..8].to_vec()))
            .collect();
        numbers.sort_unstable_by_key(|number| u64::from_le_bytes(number[..].try_into().unwrap()));
        let expected = (0..entries).map(|number| (epoch << 32 | number).to_le_bytes().to_vec());
        assert_eq!(numbers, expected.collect::<Vec<_>>());
        assert!(!bench.ring.is_pending());
    }
}

#[test]
fn who_has_a_place_waits_until_the_epoch_before_at_its_entry_is_drained() {
    let bench = Bench::new(1, 1 << 30);
    let mut reader = bench.reader(0);
    assert!(bench.log(1, b"old"));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.log(1 + SEGMENTS, b"new"));
        while !bench.ring.is_waited_for() {
            thread::yield_now();
        }
        assert!(!waiting.is_finished());
        assert_eq!(bench.drain(&mut reader, 2), (b"old".to_vec(), 1));
        assert!(waiting.join().unwrap());
    });
    assert_eq!(bench.drain(&mut reader, 2 + SEGMENTS), (b"new".to_vec(), 1));
    assert_eq!(bench.ring.pressure().waits, 1);
}

#[test]
fn all_who_wait_for_an_entry_go_on_when_one_of_them_has_opened_it() {
    for _ in 0..20 {
        let bench = Bench::new(1, 1 << 30);
        let mut reader = bench.reader(0);
        assert!(bench.log(1, b"old"));
        thread::scope(|scope| {
            let waiting = [(); 4].map(|()| scope.spawn(|| bench.log(1 + SEGMENTS, b"new")));
            while bench.ring.pressure().waits < 4 {
                thread::yield_now();
            }
            assert_eq!(bench.drain(&mut reader, 2), (b"old".to_vec(), 1));
            assert!(waiting.into_iter().all(|waiting| waiting.join().unwrap()));
        });
        assert_eq!(bench.drain(&mut reader, 2 + SEGMENTS), (b"new".repeat(4), 4));
    }
}

#[test]
fn a_free_entry_is_left_to_those_who_may_have_an_earlier_place_there() {
    let bench = Bench::new(1, 1 << 30);
    let mut reader = bench.reader(0);
    // It has taken its place and not come to fill it.
    let early = bench.take(1, 1);
    thread::scope(|scope| {
        let late = scope.spawn(|| bench.log(1 + SEGMENTS, b"late"));
        for _ in 0..1000 {
            thread::yield_now();
        }
        bench.ring.fill(early, b"early", |_| ());
        assert_eq!(bench.drain(&mut reader, 2), (b"early".to_vec(), 1));
        assert!(late.join().unwrap());
    });
    assert_eq!(bench.drain(&mut reader, 2 + SEGMENTS), (b"late".to_vec(), 1));
}

#[test]
fn the_end_of_the_log_ends_every_wait() {
    let bench = Bench::new(1, 1);
    let chunk = CHUNK_UNITS * 2;
    bench.ring.skip(bench.take(1, chunk), &[], |_| ());
    assert!(!bench.ring.has_room());
    thread::scope(|scope| {
        let for_segment = scope.spawn(|| bench.log(1 + SEGMENTS, b"never stored"));
        let for_room = scope.spawn(|| bench.ring.wait_for_room());
        while !bench.ring.is_waited_for() {
            thread::yield_now();
        }
        bench.ring.fail(&LogError::Closed);
        assert!(matches!(for_room.join().unwrap(), Err(LogError::Closed)));
        assert!(!for_segment.is_finished(), "the log is still being drained");
        bench.ring.end(&LogError::Closed);
        for_segment.join().unwrap();
    });
    // Now and later.
    assert!(bench.ring.wait_for_room().is_err());
    bench.log(1 + 2 * SEGMENTS, b"nor this");
}

#[test]
fn room_comes_back_when_segments_are_drained() {
    let bench = Bench::new(1, (8 * CHUNK_UNITS) as usize * UNIT_BYTES);
    let mut reader = bench.reader(0);
    for epoch in 1..100 {
        let mut entries = 0;
        while bench.ring.has_room() {
            bench.log(epoch, &[7; 5000]);
            entries += 1;
        }
        assert_eq!(entries, (8 * CHUNK_UNITS as usize).div_ceil(79), "all of it each time");
        thread::scope(|scope| {
            let waiting = scope.spawn(|| bench.ring.wait_for_room());
            while !bench.ring.is_waited_for() {
                thread::yield_now();
            }
            bench.drain(&mut reader, epoch + 1);
            waiting.join().unwrap().unwrap();
        });
    }
}
