//! The commit protocol and the record's read protocol under loom: every interleaving of two workers.
//!
//! The code that is run is the product's; only the tree is left out, since records are looked at directly.

use std::sync::Arc;
use std::time::Duration;

use ensilo_engine::{AbortReason, Addition, Fault, Prepared as _, TableId, Write};
use ensilo_epoch::{Advance, Epoch, EpochOptions, Epochs, Participant};
use ensilo_slab::Pool;
use loom::thread;

use super::context::Context;
use super::read::{ReadOutcome, read_record};
use super::snapshot::{Snapshot, version_at};
use super::transaction::Transaction;
use super::variant::{Standard, Variant};
use crate::handle::RecordHandle;
use crate::record::RecordPtr;
use crate::shared::SiloShared;
use crate::tid::TidWord;

const ROW_BYTES: usize = 16;

fn shared() -> Arc<SiloShared> {
    let options = EpochOptions {
        epoch_interval: Duration::from_millis(1),
        epochs_per_snapshot: 2,
        advance: Advance::Manual,
        ..EpochOptions::default()
    };
    Arc::new(SiloShared::new(Epochs::new(options, Pool::new(None)), 100))
}

/// Returns a record with a committed row of two equal words.
fn committed_record(shared: &SiloShared, participant: &Participant, word: u64) -> RecordPtr {
    let tid = ensilo_engine::Tid::ZERO.next_in(shared.epochs.global_epoch()).unwrap();
    let record = RecordPtr::allocate(&participant.pin(), TableId(1), ROW_BYTES, TidWord::live(tid)).unwrap();
    record.store_row([word, word].into_iter(), ROW_BYTES);
    record
}

/// Reads both words of a record within a transaction, unless a prepared one holds it locked.
fn look<V: Variant>(tx: &mut Transaction<'_, V>, record: RecordPtr) -> Option<(RecordHandle, [u64; 2])> {
    let outcome = read_record::<V, true, _>(tx.shared, tx.context, record, b"", &tx.guard, |row| {
        [row.word(0), row.word(1)]
    });
    match outcome {
        Ok(ReadOutcome::Present(found, words)) => Some((found, words)),
        Err(abort) if abort.reason() == AbortReason::PreparedLock => None,
        _ => panic!("the record exists, and nobody holds its lock for long"),
    }
}

#[derive(Copy, Clone)]
struct Pair(RecordPtr, RecordPtr);

/// Write skew: each of two transactions reads one record and, if it is 0, sets the other to 1. Returns whether both committed.
fn write_skew<V: Variant>() -> bool {
    let shared = shared();
    let participant = shared.epochs.participant();
    let pair = Pair(committed_record(&shared, &participant, 0), committed_record(&shared, &participant, 0));
    let run = |shared: Arc<SiloShared>, read: RecordPtr, written: RecordPtr| {
        let mut participant = shared.epochs.participant();
        let mut context = Context::new(Pool::new(None));
        let mut tx = Transaction::<V>::begin(&shared, &mut participant, &mut context);
        let (_, seen) = look(&mut tx, read).unwrap();
        let (found, _) = look(&mut tx, written).unwrap();
        tx.patch(found, &[(0, 1), (1, 1)]).unwrap();
        tx.commit().is_ok() && seen[0] == 0
    };
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || run(shared, pair.1, pair.0)
    });
    let first = run(Arc::clone(&shared), pair.0, pair.1);
    let second = other.join().unwrap();
    first && second
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = None;
    builder.max_branches = 20_000;
    builder.check(check);
}

#[test]
fn of_two_transactions_that_read_what_the_other_writes_one_aborts() {
    model(|| assert!(!write_skew::<Standard>(), "write skew"));
}

#[derive(Debug)]

struct Unvalidated;

impl Variant for Unvalidated {
    const FAULT: Option<Fault> = Some(Fault::SkipReadValidation);
}

#[test]
#[should_panic(expected = "write skew")]
fn the_model_finds_a_commit_without_read_validation() {
    model(|| assert!(!write_skew::<Unvalidated>(), "write skew"));
}

/// One transaction reads a record, writes another and is prepared; an epoch goes by before the decision. Another one overwrites what it has
/// read. Returns the epochs of both if both have committed and the prepared one did not see the other.
fn overwritten_while_prepared<V: Variant>() -> Option<(Epoch, Epoch)> {
    let shared = shared();
    let mut participant = shared.epochs.participant();
    let pair = Pair(committed_record(&shared, &participant, 0), committed_record(&shared, &participant, 0));
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            let mut participant = shared.epochs.participant();
            let mut context = Context::new(Pool::new(None));
            let mut tx = Transaction::<V>::begin(&shared, &mut participant, &mut context);
            let (found, _) = look(&mut tx, pair.0)?;
            tx.patch(found, &[(0, 1), (1, 1)]).ok()?;
            tx.commit().ok().map(|committed| committed.epoch)
        }
    });
    let mut context = Context::new(Pool::new(None));
    let mut tx = Transaction::<V>::begin(&shared, &mut participant, &mut context);
    let decided = look(&mut tx, pair.0).and_then(|(_, seen)| {
        let (found, _) = look(&mut tx, pair.1)?;
        tx.patch(found, &[(0, 1), (1, 1)]).ok()?;
        let prepared = tx.prepare().ok()?;
        shared.epochs.advance();
        let epoch = prepared.commit().ok()?.epoch;
        (seen[0] == 0).then_some(epoch)
    });
    Some((decided?, other.join().unwrap()?))
}

/// Otherwise a snapshot between the two epochs shows the later of two transactions and not the earlier.
#[test]
fn what_a_prepared_transaction_has_read_changes_in_no_earlier_epoch_than_its_decision() {
    model(|| {
        if let Some((decided, overwritten)) = overwritten_while_prepared::<Standard>() {
            assert!(decided <= overwritten, "overwritten in an earlier epoch");
        }
    });
}

#[derive(Debug)]
struct Unprotected;

impl Variant for Unprotected {
    const FAULT: Option<Fault> = Some(Fault::UnprotectedPreparedReads);
}

#[test]
#[should_panic(expected = "overwritten in an earlier epoch")]
fn the_model_finds_prepared_reads_that_are_not_protected() {
    model(|| {
        if let Some((decided, overwritten)) = overwritten_while_prepared::<Unprotected>() {
            assert!(decided <= overwritten, "overwritten in an earlier epoch");
        }
    });
}

/// Write skew, where one transaction is protected: the other one may have locked what it reads before it has registered that, and may ask
/// for it when it has ended. Returns whether the protected one has committed, and whether both have though neither has seen the other.
fn protected_write_skew<V: Variant>() -> (bool, bool) {
    let shared = shared();
    let mut participant = shared.epochs.participant();
    let pair = Pair(committed_record(&shared, &participant, 0), committed_record(&shared, &participant, 0));
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            let mut participant = shared.epochs.participant();
            let mut context = Context::new(Pool::new(None));
            let mut tx = Transaction::<V>::begin(&shared, &mut participant, &mut context);
            let (_, seen) = look(&mut tx, pair.1).unwrap();
            let (found, _) = look(&mut tx, pair.0).unwrap();
            tx.patch(found, &[(0, 1), (1, 1)]).unwrap();
            tx.commit().is_ok() && seen[0] == 0
        }
    });
    let mut context = Context::new(Pool::new(None));
    assert!(context.protect_next(&shared));
    let mut tx = Transaction::<V>::begin(&shared, &mut participant, &mut context);
    let (_, seen) = look(&mut tx, pair.0).unwrap();
    let (found, _) = look(&mut tx, pair.1).unwrap();
    tx.patch(found, &[(0, 1), (1, 1)]).unwrap();
    let has_committed = tx.commit().is_ok();
    let has_other_committed = other.join().unwrap();
    assert!(shared.prepared.is_empty(), "what was registered is released");
    (has_committed, has_committed && has_other_committed && seen[0] == 0)
}

#[test]
fn a_protected_transaction_commits_and_the_other_one_is_refused_or_comes_before_or_after_it() {
    model(|| {
        let (has_committed, is_skewed) = protected_write_skew::<Standard>();
        assert!(has_committed, "what a protected transaction has read has changed");
        assert!(!is_skewed, "write skew");
    });
}

#[derive(Debug)]
struct WithoutSecondLook;

impl Variant for WithoutSecondLook {
    const FAULT: Option<Fault> = Some(Fault::RegisteredWithoutLook);
}

#[test]
#[should_panic(expected = "write skew")]
fn the_model_finds_a_record_that_is_registered_and_not_looked_at_again() {
    model(|| assert!(!protected_write_skew::<WithoutSecondLook>().1, "write skew"));
}

/// Two transactions add to a number of one record, whatever it is. Returns the number, and how many have committed.
fn additions<V: Variant>() -> (u64, u64) {
    let shared = shared();
    let mut participant = shared.epochs.participant();
    let record = committed_record(&shared, &participant, 0);
    let one = Addition { word: 0, shift: 0, bits: 64, is_signed: false, is_subtraction: false, amount: 1 };
    let add = move |shared: &SiloShared, participant: &mut Participant| {
        let mut context = Context::new(Pool::new(None));
        let mut tx = Transaction::<V>::begin(shared, participant, &mut context);
        tx.add_to_record(record, b"", Epoch::new(0), &[one]).unwrap();
        u64::from(tx.commit().is_ok())
    };
    let other = thread::spawn({
        let shared = Arc::clone(&shared);
        move || add(&shared, &mut shared.epochs.participant())
    });
    let committed = add(&shared, &mut participant);
    let committed = committed + other.join().unwrap();
    let mut context = Context::new(Pool::new(None));
    let mut tx = Transaction::<V>::begin(&shared, &mut participant, &mut context);
    (look(&mut tx, record).unwrap().1[0], committed)
}

#[test]
fn transactions_that_add_to_one_number_all_commit_and_all_count() {
    model(|| assert_eq!(additions::<Standard>(), (2, 2)));
}

#[derive(Debug)]
struct AddsEarly;

impl Variant for AddsEarly {
    const FAULT: Option<Fault> = Some(Fault::EarlyAddition);
}

#[test]
#[should_panic(expected = "an addition is lost")]
fn the_model_finds_an_addition_to_a_number_as_it_was_before_the_lock() {
    model(|| {
        let (number, committed) = additions::<AddsEarly>();
        assert_eq!(number, committed, "an addition is lost");
    });
}

/// A row of a record that a prepared transaction holds locked is read in place while the decision comes, as a snapshot and a checkpoint do.
#[test]
fn a_row_that_is_read_in_place_is_the_old_one_or_is_read_again() {
    // Of all runs: not one of the atomics that the model explores.
    static SEEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    model(|| {
        let shared = shared();
        let mut participant = shared.epochs.participant();
        let record = committed_record(&shared, &participant, 1);
        let reader = thread::spawn(move || {
            let word = record.tid();
            if !word.is_prepared() {
                return;
            }
            let row = record.row();
            let words = [row.word(0), row.word(1)];
            if record.is_still(word) {
                SEEN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                assert_eq!(words, [1, 1], "a row that its prepared holder has begun to overwrite");
            }
        });
        let mut context = Context::new(Pool::new(None));
        let mut tx = Transaction::<Standard>::begin(&shared, &mut participant, &mut context);
        let (found, _) = look(&mut tx, record).unwrap();
        tx.patch(found, &[(0, 2), (1, 2)]).unwrap();
        tx.prepare().unwrap().commit().unwrap();
        reader.join().unwrap();
    });
    assert!(SEEN.load(std::sync::atomic::Ordering::Relaxed) > 0, "no run has come upon a prepared word");
}

#[test]
fn a_reader_sees_a_row_before_or_after_an_overwrite_never_between() {
    model(|| {
        let shared = shared();
        let mut participant = shared.epochs.participant();
        let record = committed_record(&shared, &participant, 1);
        let writer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let mut participant = shared.epochs.participant();
                let mut context = Context::new(Pool::new(None));
                let mut tx = Transaction::<Standard>::begin(&shared, &mut participant, &mut context);
                let (found, _) = look(&mut tx, record).unwrap();
                tx.put(found, &[2, 2], ROW_BYTES).unwrap();
                tx.commit().unwrap();
            }
        });
        let mut context = Context::new(Pool::new(None));
        let mut tx = Transaction::<Standard>::begin(&shared, &mut participant, &mut context);
        let (_, words) = look(&mut tx, record).unwrap();
        assert_eq!(words[0], words[1], "a torn row");
        tx.commit().unwrap();
        writer.join().unwrap();
    });
}

/// Writes a record in a transaction of its own.
fn write<V: Variant>(
    shared: &SiloShared,
    participant: &mut Participant,
    context: &mut Context,
    record: RecordPtr,
    word: u64,
) {
    let mut tx = Transaction::<V>::begin(shared, participant, context);
    let (found, _) = look(&mut tx, record).unwrap();
    tx.patch(found, &[(0, word), (1, word)]).unwrap();
    tx.commit().unwrap();
}

/// What a snapshot shows of a record.
fn shown<V: Variant>(snapshot: &Snapshot<'_, V>, record: RecordPtr) -> Option<[u64; 2]> {
    version_at(record, snapshot.epoch(), |row| [row.word(0), row.word(1)]).1
}

/// A snapshot is read that others have overtaken, and one that begins, while a commit keeps the version that it supersedes in the place of
/// one that neither needs, of the record that was written with these words before. Returns what they have shown.
fn renewed_copy<V: Variant>(words: &[u64]) -> [Option<[u64; 2]>; 2] {
    let shared = shared();
    let [oldest, mut writer, mut long, mut short] = std::array::from_fn(|_| shared.epochs.participant());
    let [mut context, mut long_context, mut short_context] =
        std::array::from_fn(|_| Context::new(Pool::new(None)));
    let pass_snapshots = || (0..5).for_each(|_| shared.epochs.advance());
    // What it needs is never looked at.
    let _oldest = oldest.pin_snapshot();
    let record = committed_record(&shared, &writer, 1);
    pass_snapshots();
    let snapshot = Snapshot::<V>::begin(&shared, &mut long, &mut long_context);
    for &word in words {
        write::<V>(&shared, &mut writer, &mut context, record, word);
        pass_snapshots();
    }
    let writing = thread::spawn({
        let shared = Arc::clone(&shared);
        move || {
            write::<V>(&shared, &mut writer, &mut context, record, 4);
            (writer, context)
        }
    });
    let reading = thread::spawn({
        let shared = Arc::clone(&shared);
        move || shown(&Snapshot::<V>::begin(&shared, &mut short, &mut short_context), record)
    });
    let by_long = shown(&snapshot, record);
    let by_short = reading.join().unwrap();
    drop(writing.join().unwrap());
    [by_long, by_short]
}

#[test]
fn a_copy_is_renewed_while_snapshots_walk_over_it() {
    model(|| assert_eq!(renewed_copy::<Standard>(&[2, 3]), [Some([1, 1]), Some([3, 3])]));
}

#[derive(Debug)]
struct RenewNeededCopies;

impl Variant for RenewNeededCopies {
    const FAULT: Option<Fault> = Some(Fault::RenewNeededCopies);
}

#[test]
#[should_panic(expected = "left == right")]
fn the_model_finds_a_copy_that_is_renewed_although_it_is_needed() {
    model(|| assert_eq!(renewed_copy::<RenewNeededCopies>(&[2]), [Some([1, 1]), Some([2, 2])]));
}
