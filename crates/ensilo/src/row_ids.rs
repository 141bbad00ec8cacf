//! Invented primary keys: ids that no other row of the database has, without a counter that all workers
//! share.
//!
//! A worker takes a block of ids from the database and hands them out one by one. Ids of one block lie in few nodes of
//! the table's tree, and two workers that insert much are in different ones.
//!
//! # Who has a block
//! A block belongs to whoever inserts one row after the other: a thread, or a session, wherever that runs
//! ([`SessionRowIds`]). What is left of it when its holder ends, or when a job of the pool ends, is given back and is the
//! first that others get. So a single client sees one id after the other, whichever threads it comes by. A holder gets no id
//! that is smaller than one that it had. Its first block is short, and each further one is twice as long, up to [`BLOCK_LEN_MAX`]: who
//! inserts little leaves small gaps.
//!
//! # Reopening
//! The rows with the largest ids may be gone when a database is opened again, so the ids that were handed out
//! cannot be found in the tables. They follow from the epochs: the ids of epoch `e` are the [`IDS_PER_EPOCH`] behind
//! `e * 2^16`, and an id is handed out only when the global epoch has come to its own.
//! Whoever commits a row with it then does so in this epoch or a later one; and an opening begins in an epoch
//! after every one on disk, and with that epoch's ids. Where ids go faster than epochs, the epoch is moved
//! on: by one while transactions run, and at once at an opening that finds rows with larger ids, as rows of another database
//! may have ([`DynamicTable::insert_with_row_id`](crate::DynamicTable)). A database in memory is not opened again, and does without.

use std::mem;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use ensilo_epoch::{Epoch, Epochs};
use ensilo_row::RowId;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

use crate::mutex::lock;

/// The length of a holder's first block.
const BLOCK_LEN_MIN: u64 = 32;
const BLOCK_LEN_MAX: u64 = 4096;

/// So many blocks are kept for others. What is left of more is never used.
const GIVEN_BACK_MAX: usize = 256;

/// Rows that come from elsewhere have smaller ids, so that those that follow leave half of all epochs to come.
pub(crate) const ROW_ID_END: RowId = RowId(1 << 59);

/// The ids that are of one epoch.
const IDS_PER_EPOCH: u64 = 1 << 16;

/// Ids that a program has chosen are passed over at once if they are of an epoch that is so close: epochs are moved on one by one for them.
const EPOCHS_PASSED_OVER_MAX: u64 = 1024;

/// Where the workers of a database take their blocks from.
#[derive(Debug, Default)]
pub(crate) struct RowIdSource {
    /// The largest id of all blocks.
    taken: AtomicU64,
    /// Of a database that may be opened again.
    epochs: OnceLock<Arc<Epochs>>,
    /// What holders have left of their blocks, the last one on top: [`GIVEN_BACK_MAX`] at most.
    given_back: Mutex<Vec<Range<u64>>>,
}

/// The ids that one worker has left.
#[derive(Debug)]
pub(crate) struct RowIds {
    source: Arc<RowIdSource>,
    block: Block,
}

/// The ids of a session while no worker has them: between its transactions.
#[derive(Debug)]
pub(crate) struct SessionRowIds {
    source: Arc<RowIdSource>,
    block: Mutex<Block>,
}

/// What is left of a block, and how long the holder's next one is. All ids that it has had are smaller than the end of `left`.
#[derive(Clone, Debug)]
struct Block {
    left: Range<u64>,
    next_len: u64,
}

impl Default for Block {
    fn default() -> Self {
        Block { left: 0..0, next_len: BLOCK_LEN_MIN }
    }
}

impl RowIdSource {
    /// Sees to it that all blocks from now on are behind `id`, which no row has been given: no id has been handed out yet.
    pub(crate) fn pass_over(&self, id: RowId) {
        // Relaxed: the ids need only differ.
        self.taken.fetch_max(id.0, Ordering::Relaxed);
    }

    /// Sees to it that blocks from now on are behind `id`, which a program has chosen, unless that is far ahead: then nobody comes to it
    /// before the next opening.
    pub(crate) fn pass_over_chosen(&self, id: RowId) {
        let is_near = |epochs: &Arc<Epochs>| {
            id.0 / IDS_PER_EPOCH <= epochs.global_epoch().get() + EPOCHS_PASSED_OVER_MAX
        };
        if self.taken.load(Ordering::Relaxed) < id.0 && self.epochs.get().is_none_or(is_near) {
            self.pass_over(id);
        }
    }

    /// Returns the largest id of all blocks, and of what was passed over.
    pub(crate) fn largest(&self) -> RowId {
        RowId(self.taken.load(Ordering::Relaxed))
    }

    /// Begins with the ids of the present epoch, which is later than every one on disk, and from now on keeps
    /// to the epochs. These begin with that of the ids that were passed over, if it is a later one: rows from another database may
    /// be years ahead. Nobody has pinned an epoch yet.
    pub(crate) fn follow(&self, epochs: &Arc<Epochs>) {
        let first = epochs.global_epoch().get() * IDS_PER_EPOCH;
        // Relaxed: no id has been handed out yet.
        let passed_over = self.taken.fetch_max(first, Ordering::Relaxed);
        epochs.skip_to(Epoch::new(passed_over / IDS_PER_EPOCH));
        let _ = self.epochs.set(Arc::clone(epochs));
    }

    /// Returns ids that nobody has: those that were given back last, if they are not before `floor`, or new ones.
    fn refill(&self, block: &mut Block) {
        let floor = block.left.end;
        let mut given_back = lock(&self.given_back);
        if let Some(at) = given_back.iter().rposition(|left| left.start >= floor) {
            block.left = given_back.remove(at);
            return;
        }
        drop(given_back);
        block.left = self.take(block.next_len);
        block.next_len = (2 * block.next_len).min(BLOCK_LEN_MAX);
    }

    /// Takes new ids.
    fn take(&self, len: u64) -> Range<u64> {
        // Relaxed: the ids need only differ.
        let last_before = self.taken.fetch_add(len, Ordering::Relaxed);
        if let Some(epochs) = self.epochs.get() {
            let epoch = (last_before + len - 1) / IDS_PER_EPOCH;
            let epoch_before = Epoch::new(epoch.saturating_sub(1));
            // At the last epoch it ends as well: nothing commits any more.
            while epochs.global_epoch() <= epoch_before && epochs.advance_past(epochs.global_epoch()) {}
        }
        last_before + 1..last_before + 1 + len
    }

    fn give_back(&self, left: Range<u64>) {
        if left.is_empty() {
            return;
        }
        let mut given_back = lock(&self.given_back);
        if given_back.len() < GIVEN_BACK_MAX {
            given_back.push(left);
        }
    }
}

/// Returns the largest id that may have been given before this epoch.
pub(crate) fn largest_before(epoch: Epoch) -> RowId {
    RowId(epoch.get() * IDS_PER_EPOCH)
}

impl RowIds {
    pub(crate) fn new(source: Arc<RowIdSource>) -> Self {
        RowIds { source, block: Block::default() }
    }

    /// Returns an id that was never returned before, as one of `session` if there is one. The first one of a database in memory is 1.
    #[inline]
    pub(crate) fn next(&mut self, session: Option<&SessionRowIds>) -> RowId {
        if self.block.left.is_empty() {
            self.refill(session);
        }
        let id = self.block.left.start;
        self.block.left.start += 1;
        RowId(id)
    }

    #[cold]
    fn refill(&mut self, session: Option<&SessionRowIds>) {
        match session {
            Some(session) => session.refill(&mut self.block),
            None => self.source.refill(&mut self.block),
        }
    }

    /// Leaves out what is left of the block: a program has chosen ids in it.
    pub(crate) fn skip_block(&mut self) {
        self.block.left.start = self.block.left.end;
    }

    /// Sees to it that no ids behind it are `id`: see [`RowIdSource::pass_over_chosen`].
    pub(crate) fn pass_over_chosen(&self, id: RowId) {
        self.source.pass_over_chosen(id);
    }

    /// Ends the use for a session or a job: what is left is the session's, or anybody's.
    pub(crate) fn end_use(&mut self, session: Option<&SessionRowIds>) {
        // None was used.
        if self.block.left.end == 0 {
            return;
        }
        match session {
            Some(session) => session.take_back(mem::take(&mut self.block)),
            None => self.source.give_back(mem::take(&mut self.block.left)),
        }
    }
}

impl Drop for RowIds {
    fn drop(&mut self) {
        self.source.give_back(mem::take(&mut self.block.left));
    }
}

impl SessionRowIds {
    pub(crate) fn new(source: Arc<RowIdSource>) -> Self {
        SessionRowIds { source, block: Mutex::default() }
    }

    /// Lets a worker have the session's ids, or new ones, which are larger than all that the session has had.
    fn refill(&self, to: &mut Block) {
        let mut block = lock(&self.block);
        if to.left.end == 0 {
            to.next_len = block.next_len;
        }
        if block.left.is_empty() {
            let floor = to.left.end.max(block.left.end);
            to.left = floor..floor;
            self.source.refill(to);
        } else {
            to.left = block.left.clone();
        }
        // If the transaction is prepared, the session's next one gets larger ids.
        *block = Block { left: to.left.end..to.left.end, next_len: to.next_len };
    }

    /// Takes back what a worker has left, unless the session has got larger ids meanwhile.
    fn take_back(&self, from: Block) {
        let mut block = lock(&self.block);
        let older = match from.left.end >= block.left.end {
            true => mem::replace(&mut *block, from),
            false => from,
        };
        drop(block);
        self.source.give_back(older.left);
    }
}

impl Drop for SessionRowIds {
    fn drop(&mut self) {
        self.source.give_back(mem::take(&mut lock(&self.block).left));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::Silo;
    use ensilo_engine::{Engine, EngineOptions};
    use ensilo_epoch::Advance;

    use super::*;

    /// Epochs that nobody else moves on.
    fn epochs_from(first_epoch: Epoch) -> Arc<Epochs> {
        let mut options = EngineOptions::default();
        options.epochs.first_epoch = first_epoch;
        options.epochs.advance = Advance::Manual;
        Arc::clone(<Silo>::start(options).unwrap().epochs())
    }

    #[test]
    fn two_workers_never_get_the_same_id() {
        let source = Arc::new(RowIdSource::default());
        let mut workers = [RowIds::new(Arc::clone(&source)), RowIds::new(source)];
        let mut seen = HashSet::new();
        for round in 0..20_000 {
            assert!(seen.insert(workers[round % 2].next(None).0));
        }
        assert_eq!(seen.iter().min(), Some(&1));
    }

    #[test]
    fn ids_follow_the_epochs() {
        let mut first_epoch = Epoch::new(1000);
        let mut last = 0;
        for ids in [1, 3 * IDS_PER_EPOCH, 10, 1] {
            let epochs = epochs_from(first_epoch);
            let source = Arc::new(RowIdSource::default());
            source.follow(&epochs);
            let mut worker = RowIds::new(source);
            for _ in 0..ids {
                let id = worker.next(None).0;
                assert!(id > last, "{id} after {last}");
                last = id;
            }
            // A commit of the present epoch is the latest on disk.
            first_epoch = Epoch::new(epochs.global_epoch().get() + 1);
        }
    }

    #[test]
    fn ids_that_are_ahead_of_the_epochs_move_them_on() {
        let epochs = epochs_from(Epoch::new(0));
        let source = Arc::new(RowIdSource::default());
        let known = RowId((1 << 42) * IDS_PER_EPOCH + 7);
        source.pass_over(known);
        source.follow(&epochs);
        let mut worker = RowIds::new(source);
        let mut last = known;
        for _ in 0..3 * IDS_PER_EPOCH {
            let id = worker.next(None);
            assert!(id > last, "{id:?} after {last:?}");
            last = id;
        }
        assert!(epochs.global_epoch() >= Epoch::new((1 << 42) + 2), "{}", epochs.global_epoch());
    }

    #[test]
    fn one_client_sees_no_gaps_whichever_holders_it_has() {
        let source = Arc::new(RowIdSource::default());
        let mut next = 1..;
        let mut expect = |ids: &mut RowIds, session: Option<&SessionRowIds>| {
            assert_eq!(ids.next(session).0, next.next().unwrap());
        };
        // Threads in turn.
        for _ in 0..100 {
            expect(&mut RowIds::new(Arc::clone(&source)), None);
        }
        // Jobs, on two threads.
        let mut workers = [RowIds::new(Arc::clone(&source)), RowIds::new(Arc::clone(&source))];
        for round in 0..10_000 {
            expect(&mut workers[round % 2], None);
            workers[round % 2].end_use(None);
        }
        // A session, by two workers.
        let session = SessionRowIds::new(Arc::clone(&source));
        for round in 0..10_000 {
            expect(&mut workers[round % 2], Some(&session));
            workers[round % 2].end_use(Some(&session));
        }
        // Sessions in turn.
        drop(session);
        for _ in 0..100 {
            let session = SessionRowIds::new(Arc::clone(&source));
            expect(&mut workers[0], Some(&session));
            workers[0].end_use(Some(&session));
        }
    }

    #[test]
    fn the_ids_of_a_session_rise_beside_others() {
        let source = Arc::new(RowIdSource::default());
        let sessions = [(); 3].map(|()| SessionRowIds::new(Arc::clone(&source)));
        let mut workers = [(); 2].map(|()| RowIds::new(Arc::clone(&source)));
        let (mut last, mut seen) = ([0; 3], HashSet::new());
        for round in 0..50_000 {
            // Workers go from session to session, and threads come and end.
            let (at, worker) = (round * 7 % 3, &mut workers[round * 5 / 3 % 2]);
            for _ in 0..round % 3 {
                let id = worker.next(Some(&sessions[at])).0;
                assert!(id > last[at] && seen.insert(id), "{id} after {}", last[at]);
                last[at] = id;
            }
            worker.end_use(Some(&sessions[at]));
            assert!(seen.insert(RowIds::new(Arc::clone(&source)).next(None).0));
        }
    }

    #[test]
    fn ids_rise_also_while_a_transaction_of_the_session_is_prepared() {
        let source = Arc::new(RowIdSource::default());
        let session = SessionRowIds::new(Arc::clone(&source));
        let [mut prepared, mut open] = [(); 2].map(|()| RowIds::new(Arc::clone(&source)));
        let first = prepared.next(Some(&session));
        let second = open.next(Some(&session));
        prepared.end_use(Some(&session));
        let third = open.next(Some(&session));
        open.end_use(Some(&session));
        let fourth = prepared.next(Some(&session));
        assert!(first < second && second < third && third < fourth, "{first} {second} {third} {fourth}");
        // What the first one has left is lost to the session, and not to others.
        assert_eq!(open.next(None).0, first.0 + 1);
    }

    #[test]
    fn what_is_left_of_blocks_is_kept_up_to_a_bound() {
        let source = Arc::new(RowIdSource::default());
        let session = SessionRowIds::new(Arc::clone(&source));
        let mut workers = [(); 2].map(|()| RowIds::new(Arc::clone(&source)));
        // One transaction is always prepared while the next one runs.
        for round in 0..3 * GIVEN_BACK_MAX {
            workers[round % 2].next(Some(&session));
            workers[(round + 1) % 2].end_use(Some(&session));
        }
        assert_eq!(lock(&source.given_back).len(), GIVEN_BACK_MAX);
    }

    #[test]
    fn ids_behind_chosen_ones_are_new_unless_those_are_far_ahead() {
        let epochs = epochs_from(Epoch::new(1000));
        let source = Arc::new(RowIdSource::default());
        source.follow(&epochs);
        let mut worker = RowIds::new(Arc::clone(&source));
        let near = RowId(1010 * IDS_PER_EPOCH);
        source.pass_over_chosen(near);
        assert_eq!(worker.next(None).0, near.0 + 1);
        assert_eq!(epochs.global_epoch(), Epoch::new(1010));
        source.pass_over_chosen(RowId(ROW_ID_END.0 - 1));
        worker.skip_block();
        assert!(worker.next(None) < RowId(1011 * IDS_PER_EPOCH));
    }
}
