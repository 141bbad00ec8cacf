//! Buffers, pool and writer, with the test in the place of the logger.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::notifier::Sleep;
use super::partition::{LogPartition, Which};
use super::pool::Pool;
use super::writer_state::WriterState;
use super::{LogError, LogWriter, ReserveError};
use crate::format::{Change, Transactions, delete_bytes, patch_bytes_max, put_bytes, transaction_bytes};

/// TID, key, and the row or patch.
type Logged = (u64, Vec<u8>, Vec<u8>);

/// A partition with its two ends.
struct Bench {
    partition: Arc<LogPartition>,
    writer_state: Arc<WriterState>,
}

impl Bench {
    fn new(buffer_bytes: usize, circulating: usize) -> Bench {
        let partition = Arc::new(LogPartition::new(Pool::new(buffer_bytes, circulating)));
        Bench { partition, writer_state: Arc::new(WriterState::new()) }
    }

    fn writer(&self) -> LogWriter {
        LogWriter::new(Arc::clone(&self.partition), Arc::clone(&self.writer_state))
    }

    /// Returns what the logger would write now: TID, key and row or patch, and the number of transactions.
    fn drain(&mut self) -> (Vec<Logged>, u64) {
        let (mut writes, mut count) = (Vec::new(), 0);
        let drained = self.partition.drain(Which::All, |taken| {
            for piece in taken {
                count += piece.transactions;
                let mut transactions = Transactions::new(piece.payload());
                while let Some(write) = transactions.next_write().unwrap() {
                    let change = match write.change {
                        Change::Put(row) => row.to_vec(),
                        Change::Patch(pairs) => pairs.map(|(index, word)| index as u8 + word as u8).collect(),
                        Change::Delete => Vec::new(),
                    };
                    writes.push((write.tid, write.key.to_vec(), change));
                }
            }
            Ok::<_, ()>(())
        });
        drained.unwrap();
        (writes, count)
    }
}

fn log_put(writer: &mut LogWriter, tid: u64, key: &[u8], row: &[u8]) -> Result<(), ReserveError> {
    writer.reserve(transaction_bytes(1) + put_bytes(1, key.len(), row.len()))?;
    writer.begin(tid, 1);
    let words = row.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    writer.put(1, key, row.len(), words);
    writer.publish();
    Ok(())
}

#[test]
fn a_transaction_arrives_as_it_was_logged() {
    let mut bench = Bench::new(1 << 16, 2);
    let mut writer = bench.writer();
    let bytes = transaction_bytes(3) + put_bytes(1, 3, 10) + patch_bytes_max(2, 3, 2) + delete_bytes(3, 3);
    writer.reserve(bytes).unwrap();
    writer.begin(7, 3);
    writer.put(1, b"put", 10, [u64::from_le_bytes(*b"abcdefgh"), u64::from_le_bytes(*b"ij??????")]);
    writer.patch(2, b"two", [(1, 10), (2, 20)].into_iter());
    writer.delete(3, b"del");
    assert!(bench.drain().0.is_empty(), "nothing is taken before it is published");
    writer.publish();
    let expected = [
        (7, b"put".to_vec(), b"abcdefghij".to_vec()),
        (7, b"two".to_vec(), vec![11, 22]),
        (7, b"del".to_vec(), vec![]),
    ];
    assert_eq!(bench.drain(), (expected.to_vec(), 1));
    assert_eq!(bench.drain(), (vec![], 0), "nothing is taken twice");
}

#[test]
fn a_transaction_that_was_given_up_leaves_nothing() {
    let mut bench = Bench::new(1 << 10, 1);
    let mut writer = bench.writer();
    writer.reserve(100).unwrap();
    writer.begin(1, 2);
    writer.delete(1, b"lost");
    log_put(&mut writer, 2, b"kept", b"").unwrap();
    writer.reserve(100).unwrap();
    writer.begin(3, 0);
    writer.publish();
    assert_eq!(bench.drain(), (vec![(2, b"kept".to_vec(), vec![])], 1));
}

#[test]
fn workers_feel_that_the_buffers_are_bounded() {
    let mut bench = Bench::new(64, 2);
    let mut writer = bench.writer();
    let mut tid = 0;
    while log_put(&mut writer, tid, b"k", &[1; 40]).is_ok() {
        tid += 1;
    }
    assert_eq!(tid, 3, "one per writer and two more");
    assert_eq!(writer.reserve(10), Err(ReserveError::Full));
    assert_eq!(bench.drain().1, 3);
    writer.wait_for_buffer().unwrap();
    log_put(&mut writer, tid, b"k", &[2; 40]).unwrap();
    assert_eq!(bench.drain().1, 1);
    assert_eq!(bench.partition.pool.pressure().waits, 0);
}

#[test]
fn idle_writers_do_not_keep_the_others_from_their_buffers() {
    let mut bench = Bench::new(64, 1);
    let idle: Vec<_> = (0..10)
        .map(|tid| {
            let mut writer = bench.writer();
            log_put(&mut writer, tid, b"k", b"").unwrap();
            writer
        })
        .collect();
    let mut writer = bench.writer();
    for tid in 10..20 {
        log_put(&mut writer, tid, b"k", &[1; 40]).unwrap();
        bench.drain();
    }
    drop((idle, writer));
    assert_eq!(bench.partition.pool.writers(), 0);
}

#[test]
fn a_large_transaction_gets_a_buffer_of_its_own() {
    let mut bench = Bench::new(64, 1);
    let mut writer = bench.writer();
    log_put(&mut writer, 1, b"small", b"").unwrap();
    let row = vec![7; 100_000];
    log_put(&mut writer, 2, b"large", &row).unwrap();
    let (writes, _) = bench.drain();
    assert_eq!(writes, [(1, b"small".to_vec(), vec![]), (2, b"large".to_vec(), row)]);
    log_put(&mut writer, 3, b"small", b"").unwrap();
    assert_eq!(bench.drain().1, 1);
    assert_eq!(writer.reserve((1 << 30) + 1), Err(ReserveError::TooLarge));
}

#[test]
fn a_large_buffer_goes_with_its_transaction_and_those_that_wait_are_bounded() {
    let mut bench = Bench::new(64, 8);
    let mut writer = bench.writer();
    log_put(&mut writer, 1, b"large", &[1; 200]).unwrap();
    let (out, large_bytes) = bench.partition.pool.out();
    assert!(out == 1 && large_bytes > 200, "it waits for the logger alone");
    log_put(&mut writer, 2, b"large", &[2; 200]).unwrap();
    assert_eq!(writer.reserve(200), Err(ReserveError::Full), "eight usual buffers have no more");
    log_put(&mut writer, 3, b"small", &[3; 40]).unwrap();
    assert_eq!(writer.reserve(200), Err(ReserveError::Full));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut writer = writer;
            writer.wait_for_buffer().map(|()| log_put(&mut writer, 4, b"large", &[4; 200])).unwrap()
        });
        while bench.partition.pool.waiting() == 0 {
            thread::yield_now();
        }
        assert_eq!(bench.drain().1, 3);
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(bench.drain().1, 1);
    assert_eq!(bench.partition.pool.out(), (0, 0), "nothing is kept of it");
}

#[test]
fn a_buffer_that_is_larger_than_all_waits_alone() {
    let mut bench = Bench::new(64, 2);
    let mut writer = bench.writer();
    for tid in 0..4 {
        log_put(&mut writer, tid, b"large", &[1; 10_000]).unwrap();
        assert_eq!(writer.reserve(100), Err(ReserveError::Full));
        assert_eq!(bench.drain().1, 1);
    }
    writer.reserve(10_000).unwrap();
    writer.give_up();
    assert!(bench.drain().0.is_empty());
    assert_eq!(bench.partition.pool.out(), (0, 0), "what was given up is not kept either");
}

#[test]
fn a_buffer_that_is_given_up_while_somebody_waits_wakes_the_logger() {
    let mut bench = Bench::new(64, 64);
    let (mut first, mut second) = (bench.writer(), bench.writer());
    first.reserve(200).unwrap();
    assert_eq!(second.reserve(64 * 64), Err(ReserveError::Full));
    let has_signal = |bench: &Bench| {
        let soon = Instant::now() + Duration::from_secs(60);
        bench.partition.notifier.wait(Some((soon, Sleep::Short))).write
    };
    thread::scope(|scope| {
        let waiting = scope.spawn(move || second.wait_for_buffer());
        while bench.partition.pool.waiting() == 0 {
            thread::yield_now();
        }
        assert!(has_signal(&bench) && bench.drain().0.is_empty(), "nothing is sealed yet");
        first.give_up();
        assert!(has_signal(&bench) && bench.drain().0.is_empty(), "nothing is in it");
        waiting.join().unwrap().unwrap();
    });
}

#[test]
fn large_buffers_count_from_when_they_are_taken_unless_they_are_set_aside() {
    let mut bench = Bench::new(64, 2);
    let (mut first, mut second) = (bench.writer(), bench.writer());
    first.reserve(10_000).unwrap();
    assert_eq!(second.reserve(10_000), Err(ReserveError::Full), "there is one");
    first.give_up();
    assert_eq!(second.reserve(10_000), Err(ReserveError::Full), "until the logger was there");
    bench.drain();
    second.reserve(10_000).unwrap();
    second.set_aside();
    log_put(&mut first, 1, b"large", &[1; 10_000]).unwrap();
    bench.drain();
    log_put(&mut second, 2, b"large", &[2; 9_000]).unwrap();
    assert_eq!(first.reserve(10_000), Err(ReserveError::Full), "what was set aside waits for the logger");
    assert_eq!(bench.drain().1, 1);
    assert_eq!(bench.partition.pool.out(), (0, 0));
}

#[test]
fn who_waits_for_a_buffer_gets_one_or_the_failure() {
    let mut bench = Bench::new(64, 1);
    let mut writer = bench.writer();
    let mut tid = 0;
    while log_put(&mut writer, tid, b"k", &[1; 40]).is_ok() {
        tid += 1;
    }
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut writer = writer;
            let failure = loop {
                while log_put(&mut writer, tid, b"k", &[1; 40]).is_ok() {}
                if let Err(failure) = writer.wait_for_buffer() {
                    break failure;
                }
            };
            (failure, writer.reserve(1))
        });
        while bench.partition.pool.waiting() == 0 {
            thread::yield_now();
        }
        bench.drain();
        // The writer has filled all buffers again.
        while bench.partition.pool.pressure().waits == 0 || bench.partition.pool.waiting() == 0 {
            thread::yield_now();
        }
        bench.writer_state.stop();
        bench.partition.pool.fail(&LogError::Closed);
        let (waited, reserved) = waiting.join().unwrap();
        assert!(matches!(waited, LogError::Closed), "{waited:?}");
        assert_eq!(reserved, Err(ReserveError::Failed));
    });
    let pressure = bench.partition.pool.pressure();
    assert!(pressure.waits >= 2);
    assert!(!pressure.waited.is_zero());
}

#[test]
fn what_a_departed_worker_published_is_taken() {
    let mut bench = Bench::new(64, 1);
    for tid in 0..50 {
        log_put(&mut bench.writer(), tid, b"k", &[1; 20]).unwrap();
        if tid % 2 == 1 {
            let (writes, count) = bench.drain();
            assert_eq!((writes[0].0, count), (tid - 1, 2));
        }
    }
}

#[test]
fn a_logger_drains_while_workers_fill() {
    const TRANSACTIONS: u64 = 20_000;
    let mut bench = Bench::new(4096, 2);
    let writers = [bench.writer(), bench.writer()];
    thread::scope(|scope| {
        let working = writers.map(|mut writer| {
            scope.spawn(move || {
                for tid in 0..TRANSACTIONS {
                    let row = [tid as u8; 33];
                    while let Err(error) = log_put(&mut writer, tid, &tid.to_be_bytes(), &row) {
                        assert_eq!(error, ReserveError::Full);
                        writer.wait_for_buffer().unwrap();
                    }
                }
            })
        });
        let mut sum = 0;
        let mut count = 0;
        while count < 2 * TRANSACTIONS {
            let (writes, transactions) = bench.drain();
            count += transactions;
            for (tid, key, row) in writes {
                assert_eq!((key, row), (tid.to_be_bytes().to_vec(), vec![tid as u8; 33]));
                sum += tid;
            }
        }
        assert_eq!(sum, TRANSACTIONS * (TRANSACTIONS - 1));
        working.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

proptest! {
    #[test]
    fn any_mix_of_sizes_arrives(rows in proptest::collection::vec((0usize..200, any::<bool>()), 1..60)) {
        let mut bench = Bench::new(128, 1);
        let mut writer = bench.writer();
        let (mut logged, mut arrived) = (Vec::new(), Vec::new());
        for (tid, &(len, drain)) in (0u64..).zip(&rows) {
            let row = vec![tid as u8; len];
            while log_put(&mut writer, tid, b"key", &row).is_err() {
                arrived.extend(bench.drain().0);
            }
            logged.push((tid, b"key".to_vec(), row));
            if drain {
                arrived.extend(bench.drain().0);
            }
        }
        arrived.extend(bench.drain().0);
        prop_assert_eq!(arrived, logged);
    }
}
