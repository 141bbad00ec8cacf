//! Which thread has used the open transaction of a session last.
//!
//! A change of the catalog waits until all transactions have ended. On the thread that goes on with an open
//! one afterwards it would wait for ever, so it is refused there.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Error, Result};

/// No thread has this number.
const NO_THREAD: u64 = 0;

static NEXT_THREAD: AtomicU64 = AtomicU64::new(NO_THREAD + 1);

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(NO_THREAD) };
    static NOTES: RefCell<Notes> = const { RefCell::new(Notes { notes: Vec::new(), len_max: NOTES_MIN }) };
}

const NOTES_MIN: usize = 16;

/// The notes that name this thread, and others that did once.
struct Notes {
    notes: Vec<Arc<UseNote>>,
    /// At this length those that name it no more are taken out.
    len_max: usize,
}

/// A session's note.
// Relaxed throughout: each change is by the session's owner, so that the thread which it names knows of it.
// Others that ask, because their lists still have it, find themselves named at most where they were a moment
// ago.
#[derive(Debug)]
pub(crate) struct UseNote {
    database: u64,
    thread: AtomicU64,
    is_open: AtomicBool,
}

impl UseNote {
    pub(crate) fn new(database: u64) -> Self {
        UseNote { database, thread: AtomicU64::new(NO_THREAD), is_open: AtomicBool::new(false) }
    }

    /// Notes that the calling thread uses the session's open transaction.
    #[inline]
    pub(crate) fn note_use(self: &Arc<Self>) {
        self.is_open.store(true, Ordering::Relaxed);
        let own = thread_number();
        if self.thread.load(Ordering::Relaxed) != own {
            self.thread.store(own, Ordering::Relaxed);
            // A thread whose variables are gone already is refused all changes of the catalog.
            let _ = NOTES.try_with(|notes| notes.borrow_mut().add(Arc::clone(self), own));
        }
    }

    /// Notes that the transaction has ended.
    pub(crate) fn note_end(&self) {
        self.is_open.store(false, Ordering::Relaxed);
    }

    fn names(&self, thread: u64) -> bool {
        self.thread.load(Ordering::Relaxed) == thread
    }
}

impl Notes {
    fn add(&mut self, note: Arc<UseNote>, own: u64) {
        if self.notes.len() >= self.len_max {
            // A session that came back to this thread has a second place in the list.
            self.notes.sort_unstable_by_key(Arc::as_ptr);
            self.notes.dedup_by(|one, other| Arc::ptr_eq(one, other));
            self.notes.retain(|note| note.names(own) && Arc::strong_count(note) > 1);
            self.len_max = (2 * self.notes.len()).max(NOTES_MIN);
        }
        self.notes.push(note);
    }
}

/// Returns whether the calling thread has used an open transaction of the database last.
///
/// # Errors
/// [`Error::ThreadEnding`] when its notes are gone.
pub(super) fn has_used_open_transaction(database: u64) -> Result<bool> {
    let own = thread_number();
    let is_open = |note: &Arc<UseNote>| {
        note.database == database && note.names(own) && note.is_open.load(Ordering::Relaxed)
    };
    NOTES.try_with(|notes| notes.borrow().notes.iter().any(is_open)).map_err(|_| Error::ThreadEnding)
}

/// Returns a number that no other thread has.
#[inline]
pub(super) fn thread_number() -> u64 {
    match NUMBER.get() {
        NO_THREAD => {
            // Relaxed: the numbers need only differ.
            NUMBER.set(NEXT_THREAD.fetch_add(1, Ordering::Relaxed));
            NUMBER.get()
        }
        number => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_used(database: u64) -> bool {
        has_used_open_transaction(database).is_ok_and(|has_used| has_used)
    }

    fn notes_len() -> usize {
        NOTES.with(|notes| notes.borrow().notes.len())
    }

    #[test]
    fn the_thread_that_used_it_last_is_named_until_the_end() {
        let note = Arc::new(UseNote::new(7));
        note.note_use();
        assert!(has_used(7) && !has_used(8));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(!has_used(7));
                note.note_use();
                assert!(has_used(7));
            });
        });
        assert!(!has_used(7));
        note.note_use();
        note.note_end();
        assert!(!has_used(7));
    }

    #[test]
    fn notes_of_sessions_that_are_gone_do_not_pile_up() {
        let lasting = Arc::new(UseNote::new(7));
        for _ in 0..1000 {
            let note = Arc::new(UseNote::new(7));
            note.note_use();
            note.note_end();
            std::thread::scope(|scope| drop(scope.spawn(|| lasting.note_use())));
            lasting.note_use();
        }
        assert!(notes_len() <= NOTES_MIN + 1, "{} notes", notes_len());
        assert!(has_used(7));
    }
}
