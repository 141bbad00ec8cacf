//! Work that is left for others: a list behind a lock, and a hint that spares them the lock.
//!
//! # Memory ordering
//! The hint is Relaxed throughout: what it announces is read under the lock. [`WorkList::push`] puts the item in and then sets the
//! hint; [`WorkList::visit`] clears the hint and then takes the lock. A visit that clears the hint of a push finds its item: had the
//! visit locked first, its clearing would happen before the push and could not have read what the push set. And a push
//! that sets the hint after a visit has cleared it leaves it set. A visit never writes down what it has counted: a push may have come
//! meanwhile.

use std::sync::TryLockError;

use ensilo_engine::Remains;
use ensilo_sync::atomic::{AtomicBool, Ordering};
use ensilo_sync::sync::Mutex;

use crate::registry::lock;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct WorkList<T> {
    items: Mutex<Vec<T>>,
    /// Whether a visit may find something to do.
    has_work: AtomicBool,
}

impl<T> WorkList<T> {
    pub(crate) fn new() -> Self {
        WorkList { items: Mutex::new(Vec::new()), has_work: AtomicBool::new(false) }
    }

    /// Puts an item in.
    pub(crate) fn push(&self, item: T) {
        lock(&self.items).push(item);
        self.has_work.store(true, Ordering::Relaxed);
    }

    /// Takes the item out that came last.
    pub(crate) fn pop(&self) -> Option<T> {
        lock(&self.items).pop()
    }

    /// Takes the item out that came first.
    pub(crate) fn pop_oldest(&self) -> Option<T> {
        let mut items = lock(&self.items);
        if items.is_empty() { None } else { Some(items.remove(0)) }
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.items).len()
    }

    /// Takes out all items.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *lock(&self.items))
    }

    /// Gives the items to `work`, and returns what that has left. Does nothing where there is no work, and while another thread is at it.
    pub(crate) fn visit(&self, work: impl FnOnce(&mut Vec<T>) -> Remains) -> Remains {
        // The load first: a swap would take the cache line from all others who look.
        if !self.has_work.load(Ordering::Relaxed) || !self.has_work.swap(false, Ordering::Relaxed) {
            return Remains::Nothing;
        }
        let mut left = Left { hint: &self.has_work, remains: Remains::Later };
        let mut items = match self.items.try_lock() {
            Ok(items) => items,
            // The list itself is whole: what panicked was the work on an item.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Remains::Later,
        };
        left.remains = work(&mut items);
        left.remains
    }
}

/// Sets the hint again where a visit leaves work, also when it panics.
struct Left<'a> {
    hint: &'a AtomicBool,
    remains: Remains,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if self.remains != Remains::Nothing {
            self.hint.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, loom))]
mod model;

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_visit_that_leaves_work_is_followed_by_another_one_and_a_last_one_by_none() {
        let list = WorkList::new();
        list.push(2);
        let mut visits = 0;
        for _ in 0..5 {
            list.visit(|items| {
                visits += 1;
                items[0] -= 1;
                if items[0] > 0 { Remains::Now } else { Remains::Nothing }
            });
        }
        assert_eq!(visits, 2);
    }

    #[test]
    fn work_that_panics_stays_in_the_list_and_is_taken_up_again() {
        let list = WorkList::new();
        list.push(());
        let panicked = catch_unwind(AssertUnwindSafe(|| list.visit(|_| panic!("on purpose"))));
        assert!(panicked.is_err());
        let mut is_visited = false;
        list.visit(|items| {
            is_visited = items.len() == 1;
            Remains::Nothing
        });
        assert!(is_visited);
    }
}
