//! Models of the table of locks: waiting, waking and giving way, in every order.

use std::ops::Bound;

use ensilo_engine::{AbortReason, TableId};
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::Arc;
use loom::thread;

use crate::key::LockKey;
use crate::lock_table::{Grant, LockTable, Mode, Owner, Requester};
use crate::range::LockRange;

const TABLE: TableId = TableId(1);

/// A table of locks, and a word that its locks guard, so that an update that is lost shows.
struct Guarded {
    locks: LockTable,
    word: AtomicU64,
}

impl Guarded {
    fn new() -> Arc<Self> {
        Arc::new(Guarded { locks: LockTable::new(), word: AtomicU64::new(0) })
    }

    /// Adds 1 to the word under the lock of a key, by way of a shared lock if asked for, and says whether it has.
    fn update(&self, began_ns: u64, key: &[u8], reads_first: bool) -> bool {
        let (requester, key) = (requester(began_ns), LockKey::new(TABLE, key));
        let lock = |mode| self.locks.lock_key(requester, &key, mode);
        let is_read = reads_first && lock(Mode::Shared).is_ok();
        let is_locked = is_read == reads_first && lock(Mode::Exclusive).is_ok();
        if is_locked {
            self.word.store(self.word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        if is_read || is_locked {
            self.locks.unlock_key(requester.owner, &key);
        }
        is_locked
    }
}

fn requester(began_ns: u64) -> Requester {
    Requester { owner: Owner { began_ns, session: began_ns as u32 }, waits: true }
}

/// Two that write the same key: the older one always gets through, and no update is lost.
#[test]
fn an_older_transaction_gets_the_lock_whenever_the_younger_one_comes() {
    for reads_first in [false, true] {
        loom::model(move || {
            let guarded = Guarded::new();
            let younger = {
                let guarded = Arc::clone(&guarded);
                thread::spawn(move || guarded.update(2, b"a", reads_first))
            };
            assert!(guarded.update(1, b"a", reads_first), "the older one has given way");
            let updates = 1 + u64::from(younger.join().unwrap());
            assert_eq!(guarded.word.load(Ordering::Relaxed), updates);
            assert!(guarded.locks.is_empty());
        });
    }
}

/// Two that lock two keys in opposite orders: both end, and the older one gets both.
#[test]
fn locks_that_are_taken_in_opposite_orders_do_not_wait_in_a_circle() {
    loom::model(|| {
        let table = Arc::new(LockTable::new());
        let lock_both = |table: &LockTable, began_ns, keys: [&[u8]; 2]| {
            let requester = requester(began_ns);
            let keys = keys.map(|key| LockKey::new(TABLE, key));
            let held: Vec<_> = keys
                .iter()
                .take_while(|key| table.lock_key(requester, key, Mode::Exclusive) == Ok(Grant::New))
                .collect();
            held.iter().for_each(|key| table.unlock_key(requester.owner, key));
            held.len() == 2
        };
        let younger = {
            let table = Arc::clone(&table);
            thread::spawn(move || lock_both(&table, 2, [b"b", b"a"]))
        };
        assert!(lock_both(&table, 1, [b"a", b"b"]), "the older one has given way");
        younger.join().unwrap();
        assert!(table.is_empty());
    });
}

/// One that locks a range, and one that locks a key in it: at most one holds its lock at a time.
#[test]
fn a_range_and_a_key_in_it_are_not_locked_at_once() {
    for range_is_older in [false, true] {
        loom::model(move || {
            let guarded = Guarded::new();
            let writer = {
                let guarded = Arc::clone(&guarded);
                thread::spawn(move || guarded.update(2, b"b", false))
            };
            let reader = requester(if range_is_older { 1 } else { 3 });
            let range = LockRange::new(TABLE, (Bound::Included(b"a"), Bound::Included(b"c")));
            let locked = guarded.locks.lock_range(reader, 0, &range);
            if locked.is_ok() {
                let seen = guarded.word.load(Ordering::Relaxed);
                thread::yield_now();
                assert_eq!(guarded.word.load(Ordering::Relaxed), seen, "a key in the range was written");
            }
            guarded.locks.unlock_ranges(reader.owner, TABLE);
            let is_written = writer.join().unwrap();
            let older_has_its_lock = if range_is_older { locked.is_ok() } else { is_written };
            assert!(older_has_its_lock, "the older one has given way");
            assert!(matches!(locked, Ok(()) | Err(AbortReason::LockHeld)));
            assert!(guarded.locks.is_empty());
        });
    }
}
