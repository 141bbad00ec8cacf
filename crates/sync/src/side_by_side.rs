//! Work in shares, each on a thread of its own where the system gives one.

use std::panic::resume_unwind;
use std::thread::{self, ScopedJoinHandle};

/// Does `share(0)`, `share(1)` and so on up to `share(count - 1)`, and returns their results in order. The first is done on this thread, the others
/// on threads with this name and their number; those for which the system gives no thread follow on this one.
///
/// # Panics
/// When a share does, once all threads have ended.
pub fn side_by_side<R: Send>(name: &str, count: usize, share: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let share = &share;
    thread::scope(|scope| {
        let start = |number| {
            let thread = thread::Builder::new().name(format!("{name}-{number}"));
            (number, thread.spawn_scoped(scope, move || share(number)).ok())
        };
        let others: Vec<_> = (1..count).map(start).collect();
        let first = (count > 0).then(|| share(0));
        let end = |(number, thread): (usize, Option<ScopedJoinHandle<'_, R>>)| match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => share(number),
        };
        first.into_iter().chain(others.into_iter().map(end)).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn shares_are_done_side_by_side_and_have_their_results_in_order() {
        for count in [0, 1, 5] {
            let barrier = Barrier::new(count);
            let squares = side_by_side("square", count, |number| {
                barrier.wait();
                number * number
            });
            assert_eq!(squares, (0..count).map(|number| number * number).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_of_any_share_is_that_of_all() {
        for panicking in 0..3 {
            let panic = catch_unwind(|| side_by_side("share", 3, |number| assert_ne!(number, panicking)));
            assert!(panic.is_err());
        }
    }
}
