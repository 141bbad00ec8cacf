//! The list under loom: every interleaving of workers that leave work with one that does it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use loom::thread;

use super::*;

const ITEMS: usize = 2;

type Visit = fn(&WorkList<u32>, &mut dyn FnMut(&mut Vec<u32>) -> Remains);

/// Does all the work that is there; returns whether some is left, which is none.
fn empty(items: &mut Vec<u32>, done: &mut usize) -> Remains {
    *done += items.len();
    items.clear();
    Remains::Nothing
}

/// Threads leave work while another one does what it finds. When they have ended, one more visit has to find the rest.
fn work_is_left_while_others_do_it(visit: Visit) {
    let list = Arc::new(WorkList::new());
    let threads: Vec<_> = (0..ITEMS as u32)
        .map(|item| {
            let list = Arc::clone(&list);
            thread::spawn(move || list.push(item))
        })
        .collect();
    let mut done = 0;
    visit(&list, &mut |items| empty(items, &mut done));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    visit(&list, &mut |items| empty(items, &mut done));
    assert_eq!(done, ITEMS, "work that nobody will ever look for");
}

#[test]
fn work_that_is_left_during_a_visit_is_found_by_the_next_one() {
    loom::model(|| work_is_left_while_others_do_it(|list, work| _ = list.visit(work)));
}

/// Returns a visit as it must not be: it writes down, at its end, what it found under the lock.
fn visit_that_overwrites_the_hint(list: &WorkList<u32>, work: &mut dyn FnMut(&mut Vec<u32>) -> Remains) {
    if list.has_work.load(Ordering::Relaxed) {
        let remains = work(&mut lock(&list.items));
        list.has_work.store(remains != Remains::Nothing, Ordering::Relaxed);
    }
}

#[test]
fn the_model_finds_a_hint_that_is_overwritten_with_an_older_count() {
    let lost = || work_is_left_while_others_do_it(visit_that_overwrites_the_hint);
    let found = catch_unwind(AssertUnwindSafe(|| loom::model(lost)));
    assert!(found.is_err());
}
