//! The table of transactions: what is said of a transaction whose id was met, while its place goes on to the next one.

use std::sync::Arc;

use ensilo_sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::fails_without;
use super::records::explore;
use crate::planted::Step;
use crate::stamp::{Author, Clock, Stamp, TransactionId};
use crate::transaction_table::{Entry, Outcome, TransactionTable};

const SLOT: u16 = 0;

/// What the first transaction of the model has written, before its outcome is known.
const WRITTEN: u64 = 7;

/// What two threads of the model share.
struct Shared {
    clock: Clock,
    table: TransactionTable,
    /// As in a version: the first transaction's id, and later its stamp.
    created: AtomicU64,
    /// As in a version's row.
    written: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Shared> {
        let table = TransactionTable::new();
        assert_eq!(table.claim(), Some(SLOT));
        let (created, written) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Shared { clock: Clock::new(), table, created, written })
    }

    fn entry(&self) -> &Entry {
        self.table.entry(SLOT)
    }

    fn author(&self) -> Author {
        Author::from_word(self.created.load(Ordering::Acquire))
    }

    /// Goes through a commit; its stamp is what it says in `created` afterwards.
    fn commit(&self) -> Stamp {
        self.entry().announce();
        let stamp = self.clock.take();
        self.entry().set_stamp(stamp);
        self.entry().set_committed(stamp, successor_of(stamp));
        stamp
    }

    /// Two transactions at one place: the first commits or aborts, the other one does the opposite.
    fn run_two(&self, first: TransactionId, is_committed: bool) {
        if is_committed {
            self.written.store(WRITTEN, Ordering::Relaxed);
            let stamp = self.commit();
            self.created.store(stamp.get(), Ordering::Release);
            self.entry().end();
            assert_ne!(self.entry().begin(SLOT), first);
            self.entry().set_aborted();
        } else {
            self.entry().set_aborted();
            self.created.store(Stamp::NEVER.get(), Ordering::Release);
            self.entry().end();
            assert_ne!(self.entry().begin(SLOT), first);
            self.commit();
        }
        self.entry().end();
    }

    /// Asks for the first transaction, if its id is met. `stamp` is the one that it takes.
    fn ask(&self, first: TransactionId, stamp: Option<Stamp>) {
        let begin = self.clock.now();
        let Author::By(id) = self.author() else { return };
        assert_eq!(id, first);
        match self.table.ask(id) {
            Outcome::Active => {
                assert!(stamp.is_none_or(|stamp| stamp >= begin), "active, though its stamp was taken");
            }
            Outcome::Committing(of) => assert!(of.is_none() || of == stamp, "somebody else's stamp"),
            Outcome::Committed { stamp: of, successor } => {
                assert!(Some(of) == stamp && successor == successor_of(of), "somebody else's stamps");
                assert_eq!(self.written.load(Ordering::Relaxed), WRITTEN, "committed, but not written");
            }
            Outcome::Aborted => assert_eq!(stamp, None, "somebody else's abort"),
            Outcome::Gone => assert!(self.author() != Author::By(id), "gone, but its id is there"),
        }
    }
}

/// Any that is not the stamp itself.
fn successor_of(stamp: Stamp) -> Stamp {
    stamp.before()
}

/// One thread runs two transactions at one place, another one asks for the first.
fn a_place_is_reused_under_a_question(is_committed: bool) {
    let shared = Shared::new();
    let first = shared.entry().begin(SLOT);
    shared.created.store(first.to_word(), Ordering::Release);
    let stamp = is_committed.then(|| shared.clock.now());
    let owner = Arc::clone(&shared);
    let two = thread::spawn(move || owner.run_two(first, is_committed));
    shared.ask(first, stamp);
    two.join().unwrap();
}

fn explored(is_committed: bool) {
    explore(4, move || a_place_is_reused_under_a_question(is_committed));
}

#[test]
fn who_asks_for_a_committed_transaction_learns_of_it_or_finds_its_stamp() {
    explored(true);
}

#[test]
fn who_asks_for_an_aborted_transaction_learns_of_it_or_finds_it_out_of_the_way() {
    explored(false);
}

#[test]
fn the_model_notices_an_id_that_is_not_looked_at_again() {
    assert!(fails_without(Step::SecondLookAtId, || explored(true)));
    assert!(fails_without(Step::SecondLookAtId, || explored(false)));
}

#[test]
fn the_model_notices_an_outcome_before_the_old_id_is_gone() {
    assert!(fails_without(Step::FenceAtBegin, || explored(true)));
}

#[test]
fn the_model_notices_a_stamp_without_an_announcement() {
    assert!(fails_without(Step::Announcement, || explored(true)));
}

#[test]
fn the_model_notices_a_stamp_that_orders_nothing() {
    assert!(fails_without(Step::OrderOfStamps, || explored(true)));
}

#[test]
fn the_model_notices_an_outcome_that_orders_nothing() {
    assert!(fails_without(Step::OrderOfOutcome, || explored(true)));
}

#[test]
fn the_model_notices_an_end_that_orders_nothing() {
    assert!(fails_without(Step::OrderOfEnd, || explored(true)));
    assert!(fails_without(Step::OrderOfEnd, || explored(false)));
}

/// One transaction only reads, and leaves its stamp where another one looks for it that has written.
fn a_reader_and_a_writer_commit_side_by_side() {
    let shared = Shared::new();
    assert_ne!(shared.table.claim(), Some(SLOT));
    shared.entry().begin(SLOT);
    let other = Arc::clone(&shared);
    let reader = thread::spawn(move || {
        other.entry().announce();
        let stamp = other.clock.reader_stamp();
        other.entry().set_stamp(stamp);
        other.written.store(stamp.get(), Ordering::Relaxed);
        other.entry().set_committed(stamp, stamp);
        other.entry().end();
        other.entry().begin(SLOT);
        stamp
    });
    let stamp = shared.clock.take();
    shared.table.wait_for_commits_before(stamp, SLOT + 1);
    let found = shared.written.load(Ordering::Relaxed);
    let of_reader = reader.join().unwrap();
    assert!(of_reader > stamp || found == of_reader.get(), "a reader before it is not waited for");
}

#[test]
fn who_has_written_finds_the_stamps_of_all_readers_before_it() {
    explore(4, a_reader_and_a_writer_commit_side_by_side);
}

#[test]
fn the_model_notices_a_reader_without_a_fence() {
    assert!(fails_without(Step::FenceOfReader, || explore(4, a_reader_and_a_writer_commit_side_by_side)));
}

#[test]
fn the_model_notices_a_writer_without_a_fence() {
    assert!(fails_without(Step::FenceOfWriter, || explore(4, a_reader_and_a_writer_commit_side_by_side)));
}

#[test]
fn the_model_notices_a_reader_whose_end_orders_nothing() {
    assert!(fails_without(Step::OrderOfEnd, || explore(4, a_reader_and_a_writer_commit_side_by_side)));
}
