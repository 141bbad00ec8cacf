//! The way of log entries from workers to a logger, in every order of its steps:
//! `RUSTFLAGS="--cfg loom" cargo test -p ensilo-log --lib --profile quick`.
//!
//! The checker sees every access to a byte of a buffer: one that is not ordered with the other half's, or
//! with the next user's after the buffer was given back, is a failure of the model.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::partition::{LogPartition, Which};
use super::pool::Pool;
use super::writer::LogWriter;
use super::writer_state::WriterState;
use crate::format::{Transactions, delete_bytes, transaction_bytes};

/// What is wrong in a model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The worker publishes without Release.
    RelaxedPublish,
    /// The logger takes what there is and then asks which commits have ended.
    FrontierReadLate,
}

const ENTRY_BYTES: usize = transaction_bytes(1) + delete_bytes(0, 0);

fn explore(fault: Fault, model: fn(Fault)) {
    let check = || {
        let mut builder = Builder::new();
        // LOOM_MAX_PREEMPTIONS explores further.
        builder.preemption_bound = builder.preemption_bound.or(Some(3));
        builder.check(move || model(fault));
    };
    if fault == Fault::None {
        return check();
    }
    let found = catch_unwind(AssertUnwindSafe(check));
    assert!(found.is_err(), "the model does not notice {fault:?}");
}

struct Logger {
    partition: Arc<LogPartition>,
    tids: Vec<u64>,
}

impl Logger {
    fn drain(&mut self) {
        let tids = &mut self.tids;
        let drained = self.partition.drain(Which::All, |taken| {
            for piece in taken {
                let mut transactions = Transactions::new(piece.payload());
                while let Some(write) = transactions.next_write().unwrap() {
                    tids.push(write.tid);
                }
            }
            Ok::<_, ()>(())
        });
        drained.unwrap();
    }

    /// What was committed before the call is drained after it.
    fn round(&mut self, ended: &AtomicU64, fault: Fault) {
        if fault == Fault::FrontierReadLate {
            self.drain();
        }
        let frontier = ended.load(Ordering::Acquire);
        if fault != Fault::FrontierReadLate {
            self.drain();
        }
        assert!((1..=frontier).all(|tid| self.tids.contains(&tid)), "{frontier}: {:?}", self.tids);
    }
}

/// Returns a partition with buffers that hold `entries` entries each.
fn partition(entries: usize) -> (Arc<LogPartition>, Arc<WriterState>, Logger) {
    let partition = Arc::new(LogPartition::new(Pool::new(entries * ENTRY_BYTES, 1)));
    let logger = Logger { partition: Arc::clone(&partition), tids: Vec::new() };
    (partition, Arc::new(WriterState::new()), logger)
}

/// Logs a transaction; `false` if there was no buffer.
fn log(writer: &mut LogWriter, tid: u64, fault: Fault) -> bool {
    if writer.reserve(ENTRY_BYTES).is_err() {
        return false;
    }
    writer.plant_relaxed_publish(fault == Fault::RelaxedPublish);
    writer.begin(tid, 1);
    writer.delete(0, &[]);
    writer.publish();
    true
}

/// A worker fills buffers of `ENTRIES` entries while the logger makes its rounds.
fn one_worker<const ENTRIES: usize>(fault: Fault) {
    let (partition, writer_state, mut logger) = partition(ENTRIES);
    let ended = Arc::new(AtomicU64::new(0));
    let working = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            let mut writer = LogWriter::new(partition, writer_state);
            // There may be two buffers.
            let logged = (1..=3).take_while(|&tid| {
                let logged = log(&mut writer, tid, fault);
                if logged {
                    ended.store(tid, Ordering::Release);
                }
                logged
            });
            let logged = logged.count() as u64;
            assert!(logged >= 2);
            logged
        }
    });
    logger.round(&ended, fault);
    logger.round(&ended, fault);
    let logged = working.join().unwrap();
    logger.drain();
    logger.tids.sort_unstable();
    assert_eq!(logger.tids, (1..=logged).collect::<Vec<_>>(), "each once");
}

/// A worker goes, another one comes and may get its buffer.
fn workers_come_and_go(fault: Fault) {
    let (partition, writer_state, mut logger) = partition(1);
    let ended = Arc::new(AtomicU64::new(0));
    let working = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            for tid in 1..=2 {
                let mut writer = LogWriter::new(Arc::clone(&partition), Arc::clone(&writer_state));
                assert!(log(&mut writer, tid, fault));
                ended.store(tid, Ordering::Release);
            }
        }
    });
    logger.round(&ended, fault);
    logger.round(&ended, fault);
    working.join().unwrap();
    logger.drain();
    assert_eq!(logger.tids, [1, 2]);
}

#[test]
fn what_was_committed_before_a_round_is_drained_in_it() {
    explore(Fault::None, one_worker::<1>);
    explore(Fault::None, one_worker::<2>);
}

#[test]
fn what_departed_workers_published_is_drained() {
    explore(Fault::None, workers_come_and_go);
}

#[test]
fn planted_faults_are_found() {
    for fault in [Fault::RelaxedPublish, Fault::FrontierReadLate] {
        explore(fault, one_worker::<1>);
        explore(fault, one_worker::<2>);
        explore(fault, workers_come_and_go);
    }
}
