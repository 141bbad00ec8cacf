//! The sum of balances under concurrent transfers never changes, seen from ordinary and from snapshot transactions.
#![allow(clippy::unwrap_used, reason = "tests")]

mod engine;

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine::random::Random;
use engine::{Recording, transaction_of};
use ensilo_check::{History, Options, Transaction, TransactionId, check};
use ensilo_txn::{
    Abort, Addition, Direction, Engine, EngineOptions, Epoch, EpochOptions, Read, Session, Silo, Store,
    TableId, Worker, Write,
};

const ACCOUNTS: u32 = 60;
const BALANCE: u64 = 1000;
const TRANSFERS_PER_THREAD: usize = 1000;

type Recorder = Worker<Recording>;

/// Account numbers move when accounts are renumbered: half of the keys are free.
fn key(account: u32) -> [u8; 4] {
    account.to_be_bytes()
}

fn sum(
    transaction: &mut impl Read<Store = Store>,
    store: &Store,
    direction: Direction,
) -> Result<(u32, u64), Abort> {
    let mut sum = (0, 0);
    let bounds = (Bound::Unbounded, Bound::Unbounded);
    transaction.scan(
        store,
        bounds,
        direction,
        |_, row| row.word(0),
        |_, balance| {
            sum = (sum.0 + 1, sum.1 + balance);
            ControlFlow::Continue(())
        },
    )?;
    Ok(sum)
}

/// Moves money between two accounts that it does not look at.
fn transfer_unread(worker: &mut Recorder, store: &Store, random: &mut Random) -> Result<(), Abort> {
    let [from, to] = [(); 2].map(|()| key(random.within(0..2 * ACCOUNTS as usize) as u32));
    let amount = random.within(0..20) as u64;
    let take = Addition { word: 0, shift: 0, bits: 64, is_signed: false, is_subtraction: true, amount };
    let mut transaction = worker.begin();
    let is_taken = transaction.add(store, &from, Epoch::new(0), &[take])?;
    if random.one_in(4) {
        std::thread::yield_now();
    }
    let give = Addition { is_subtraction: false, ..take };
    if !is_taken || !transaction.add(store, &to, Epoch::new(0), &[give])? {
        // There is no such account.
        return Ok(());
    }
    if random.one_in(4) {
        let _ = transaction.get(store, &to, |row| row.word(0))?;
    }
    transaction.commit()?;
    Ok(())
}

/// Moves money between two accounts, or an account with its money to a free number.
fn transfer(worker: &mut Recorder, store: &Store, random: &mut Random) -> Result<(), Abort> {
    let [from, to] = [(); 2].map(|()| key(random.within(0..2 * ACCOUNTS as usize) as u32));
    let mut transaction = worker.begin();
    let source = transaction.find(store, &from)?;
    let target = transaction.find(store, &to)?;
    if random.one_in(4) {
        std::thread::yield_now();
    }
    match (source, target) {
        (Some(source), Some(target)) if from != to => {
            let balances =
                [transaction.read(source, |row| row.word(0))?, transaction.read(target, |row| row.word(0))?];
            let amount = random.within(0..balances[0] as usize + 1) as u64;
            transaction.patch(source, &[(0, balances[0] - amount)])?;
            transaction.patch(target, &[(0, balances[1] + amount)])?;
        }
        (Some(source), None) => {
            let balance = transaction.read(source, |row| row.word(0))?;
            transaction.delete(source)?;
            if !transaction.insert(store, &to, &[balance], 8)? {
                // Somebody has inserted it since it was missing: this transaction could not commit.
                return Ok(());
            }
        }
        _ => {}
    }
    transaction.commit()?;
    Ok(())
}

fn load(worker: &mut Recorder, store: &Store) {
    let mut transaction = worker.begin();
    for account in 0..ACCOUNTS {
        assert!(transaction.insert(store, &key(2 * account), &[BALANCE], 8).unwrap());
    }
    transaction.commit().unwrap();
}

/// Sums up until it is to stop, and once each at least; returns how many sums of either kind were taken.
fn audit(worker: &mut Recorder, store: &Store, is_over: &AtomicBool) -> [u64; 2] {
    let expected = (ACCOUNTS, u64::from(ACCOUNTS) * BALANCE);
    let mut counts = [0, 0];
    // Relaxed: a hint to stop.
    while !is_over.load(Ordering::Relaxed) || counts.contains(&0) {
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut snapshot = worker.begin_snapshot();
            let seen = sum(&mut snapshot, store, direction).unwrap();
            // A snapshot from before the load shows nothing at all.
            assert!(seen == expected || seen == (0, 0), "a snapshot shows {seen:?}");
            counts[0] += u64::from(seen == expected);
            drop(snapshot);
            let mut transaction = worker.begin();
            let Ok(seen) = sum(&mut transaction, store, direction) else { continue };
            if transaction.commit().is_ok() {
                assert_eq!(seen, expected, "a transaction committed a wrong sum");
                counts[1] += 1;
            }
        }
    }
    counts
}

fn take_history(worker: &mut Recorder, number: u32) -> Vec<Transaction> {
    (0..)
        .zip(worker.take_history())
        .map(|(sequence, record)| transaction_of(TransactionId { worker: number, sequence }, &record))
        .collect()
}

#[test]
fn the_sum_of_balances_never_changes() {
    let mut options = EngineOptions::default();
    options.epochs = EpochOptions {
        epoch_interval: Duration::from_millis(1),
        epochs_per_snapshot: 2,
        ..EpochOptions::default()
    };
    let engine = Silo::<Recording>::start(options).unwrap();
    let store: Arc<Store> = engine.new_store(TableId(1)).unwrap();
    let mut loader = engine.session();
    load(&mut loader, &store);
    let mut history = History::of(take_history(&mut loader, 0));
    let is_over = AtomicBool::new(false);
    let (engine, store, is_over) = (&engine, &*store, &is_over);
    let counts = std::thread::scope(|scope| {
        let transfers: Vec<_> = (1..5)
            .map(|number| {
                scope.spawn(move || {
                    let mut worker = engine.session();
                    let mut random = Random::new(u64::from(number));
                    for _ in 0..TRANSFERS_PER_THREAD {
                        // An abort is as good as a transfer: nothing has changed.
                        let _ = match random.one_in(2) {
                            true => transfer_unread(&mut worker, store, &mut random),
                            false => transfer(&mut worker, store, &mut random),
                        };
                    }
                    take_history(&mut worker, number)
                })
            })
            .collect();
        let audits: Vec<_> = (5..7)
            .map(|number| {
                scope.spawn(move || {
                    let mut worker = engine.session();
                    let counts = audit(&mut worker, store, is_over);
                    (counts, take_history(&mut worker, number))
                })
            })
            .collect();
        let transfers: Vec<_> = transfers.into_iter().map(|transfer| transfer.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        history.transactions.extend(transfers.into_iter().flat_map(|transactions| transactions.unwrap()));
        audits
            .into_iter()
            .map(|audit| {
                let (counts, transactions) = audit.join().unwrap();
                history.transactions.extend(transactions);
                counts
            })
            .fold([0, 0], |sum: [u64; 2], counts| [sum[0] + counts[0], sum[1] + counts[1]])
    });
    assert!(counts[0] > 0 && counts[1] > 0, "sums taken: {counts:?}");
    let mut last = loader.begin();
    assert_eq!(sum(&mut last, store, Direction::Forward).unwrap(), (ACCOUNTS, u64::from(ACCOUNTS) * BALANCE));
    last.commit().unwrap();
    let verdict =
        check(&history, &Options { transactions_min: 1000, dependencies_min: 1000, ..Options::default() });
    assert!(verdict.is_serializable(), "{verdict}");
}
