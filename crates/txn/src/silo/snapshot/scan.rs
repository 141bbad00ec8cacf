//! Range scans of a snapshot: two trees, merged.
//!
//! The first tree has the keys of the present, the second those that were deleted and that snapshots still need. A record goes into the
//! second before it leaves the first. So what lies behind a position is looked up in the second tree after the node of the first that
//! the scan goes on with was copied: a key that the copy misses, and that the snapshot shows, is found there.

use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};

use ensilo_engine::{Abort, Direction, KeyBounds, RowRef};
use ensilo_epoch::Guard;
use ensilo_index::{Lookup, Masstree, NodeStamp, ScanVisitor};

use super::Snapshot;
use crate::handle::RecordHandle;
use crate::silo::variant::Variant;
use crate::store::{Store, scan_tree};

/// Visits the entries of the first tree on behalf of a snapshot, and between them those of the second.
pub(super) struct SnapshotScan<'a, 'w, V: Variant, D, E> {
    pub(super) snapshot: &'a mut Snapshot<'w, V>,
    pub(super) store: &'a Store,
    pub(super) decode: D,
    pub(super) each: E,
    pub(super) deleted: NextDeleted<'a>,
    /// The key at which `each` had enough, when histories are recorded.
    pub(super) stopped_at: Option<Vec<u8>>,
    /// Whether `each` had enough.
    pub(super) is_over: bool,
    pub(super) failed: Option<Abort>,
}

impl<V, R, D, E> SnapshotScan<'_, '_, V, D, E>
where
    V: Variant,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(RecordHandle, R) -> ControlFlow<()>,
{
    pub(super) fn run(&mut self, bounds: KeyBounds<'_>, direction: Direction) {
        // A guard beside that of the snapshot, which is used meanwhile.
        let participant = std::ptr::from_ref(self.snapshot.guard.participant());
        // SAFETY: the participant outlives the snapshot, which borrows it; the guard ends before the snapshot can move to another thread.
        let guard = unsafe { &*participant }.pin();
        self.store.scan(bounds, direction, &guard, self);
        drop(guard);
        // What lies behind the last key of the first tree.
        while self.failed.is_none() && !self.is_over {
            let Some((key, value)) = self.deleted.next.pop_front() else { break };
            // It has noted whether that was enough.
            let _ = self.deleted_entry(&key, value);
        }
    }

    fn deleted_entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        let decode = &mut self.decode;
        let shown = self.snapshot.resolve_deleted(key, value, |row| decode(key, row));
        self.deleted.pass(key);
        if self.deleted.next.is_empty() {
            self.note_age();
            self.deleted.look_further(self.store.deleted(), &self.snapshot.guard);
        }
        self.show(key, shown)
    }

    /// A long scan notices here that its snapshot has grown too old.
    fn note_age(&mut self) {
        if self.failed.is_none() {
            self.failed = self.snapshot.check(self.store).err();
        }
    }

    fn show(&mut self, key: &[u8], shown: Option<(RecordHandle, R)>) -> ControlFlow<()> {
        let Some((found, value)) = shown else { return ControlFlow::Continue(()) };
        let flow = (self.each)(found, value);
        self.is_over = flow.is_break();
        if V::RECORDS_HISTORY && self.is_over {
            self.stopped_at = Some(key.to_vec());
        }
        flow
    }
}

impl<V, R, D, E> ScanVisitor for SnapshotScan<'_, '_, V, D, E>
where
    V: Variant,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(RecordHandle, R) -> ControlFlow<()>,
{
    fn node(&mut self, stamp: NodeStamp) {
        self.snapshot.note_removal(stamp);
        self.note_age();
        self.deleted.look(self.store.deleted(), &self.snapshot.guard);
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        if self.failed.is_some() {
            return ControlFlow::Break(());
        }
        while let Some((before, value)) = self.deleted.take_before(key) {
            self.deleted_entry(&before, value)?;
        }
        let decode = &mut self.decode;
        // Looks into the second tree as well, where that is needed.
        let shown = self.snapshot.resolve(self.store, key, Lookup::Found(value), |row| decode(key, row));
        self.deleted.pass(key);
        if self.deleted.next.pop_front_if(|(next, _)| next == key).is_some() && self.deleted.next.is_empty() {
            self.deleted.look_further(self.store.deleted(), &self.snapshot.guard);
        }
        self.show(key, shown)
    }
}

/// So many entries of the second tree are looked up at once at most.
const LOOK_MAX: usize = 64;

/// The place of a scan in the tree of deleted records.
pub(super) struct NextDeleted<'b> {
    bounds: KeyBounds<'b>,
    direction: Direction,
    /// The key that was handed out or passed last.
    passed: Option<Vec<u8>>,
    /// The first entries behind it, as of the last look; none if there was none.
    next: VecDeque<(Vec<u8>, u64)>,
    /// How many entries the last look asked for.
    looked: usize,
}

impl<'b> NextDeleted<'b> {
    pub(super) fn new(bounds: KeyBounds<'b>, direction: Direction) -> Self {
        NextDeleted { bounds, direction, passed: None, next: VecDeque::new(), looked: 1 }
    }

    /// Looks for the first entry behind the place.
    fn look(&mut self, tree: &Masstree, guard: &Guard<'_>) {
        self.look_for(1, tree, guard);
    }

    /// Looks for more entries than the last time: one follows the other.
    fn look_further(&mut self, tree: &Masstree, guard: &Guard<'_>) {
        self.look_for((2 * self.looked).min(LOOK_MAX), tree, guard);
    }

    fn look_for(&mut self, count: usize, tree: &Masstree, guard: &Guard<'_>) {
        let passed = self.passed.as_deref().map(Bound::Excluded);
        let bounds = match self.direction {
            Direction::Forward => (passed.unwrap_or(self.bounds.0), self.bounds.1),
            Direction::Reverse => (self.bounds.0, passed.unwrap_or(self.bounds.1)),
        };
        self.next.clear();
        self.looked = count;
        let mut first = FirstEntries { entries: &mut self.next, count };
        scan_tree(tree, bounds, self.direction, guard, &mut first);
    }

    /// Takes the next entry if it comes before `key`.
    fn take_before(&mut self, key: &[u8]) -> Option<(Vec<u8>, u64)> {
        let direction = self.direction;
        self.next.pop_front_if(|(next, _)| match direction {
            Direction::Forward => &**next < key,
            Direction::Reverse => &**next > key,
        })
    }

    /// Moves the place behind `key`. The next entries stay what they were.
    fn pass(&mut self, key: &[u8]) {
        let passed = self.passed.get_or_insert_default();
        passed.clear();
        passed.extend_from_slice(key);
    }
}

/// The first entries that a scan comes to.
struct FirstEntries<'a> {
    entries: &'a mut VecDeque<(Vec<u8>, u64)>,
    count: usize,
}

impl ScanVisitor for FirstEntries<'_> {
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        self.entries.push_back((key.to_vec(), value));
        if self.entries.len() == self.count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
