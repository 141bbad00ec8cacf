//! Code of the program that is called back: callbacks, hooks and wakers, and the destructors of what it has
//! put into a thread's variables.
//!
//! It may panic, and it may call whatever it likes. So a thread that calls it catches the panic, and is
//! marked meanwhile: code that would wait for such a thread, or for others that wait for it, looks at the
//! mark first.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Calls code of the program. One that panics has printed its message, and takes nobody with it.
pub fn call_foreign(code: impl FnOnce()) {
    let before = IS_CALLED.replace(true);
    survive(code);
    IS_CALLED.set(before);
}

/// Calls code that may panic, also in the destructor of what it panics with.
pub fn survive(code: impl FnOnce()) {
    let mut outcome = catch_unwind(AssertUnwindSafe(code));
    while let Err(payload) = outcome {
        outcome = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }
}

/// Held by a thread of a log or a database as long as it works. What comes after it is foreign code until the
/// thread's end: destructors of its variables, for which a join of the thread waits.
#[derive(Debug, Default)]
pub struct ForeignAfter(());

impl Drop for ForeignAfter {
    fn drop(&mut self) {
        IS_CALLED.set(true);
    }
}

/// Returns whether the calling thread has come here from [`call_foreign`], of whichever log or database.
#[must_use]
#[inline]
pub fn is_in_foreign_code() -> bool {
    IS_CALLED.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_called_knows_it_until_its_end_also_by_a_panic() {
        call_foreign(|| {
            call_foreign(|| panic!("on purpose"));
            assert!(is_in_foreign_code());
            call_foreign(|| assert!(is_in_foreign_code()));
        });
        assert!(!is_in_foreign_code());
    }

    #[test]
    fn what_comes_after_a_threads_work_is_foreign() {
        let thread = std::thread::spawn(|| {
            let working = ForeignAfter::default();
            assert!(!is_in_foreign_code());
            drop(working);
            is_in_foreign_code()
        });
        assert!(thread.join().is_ok_and(|is_foreign| is_foreign));
    }

    #[test]
    fn a_panic_whose_payload_panics_is_survived() {
        struct PanicsWhenDropped;
        impl Drop for PanicsWhenDropped {
            fn drop(&mut self) {
                panic!("on purpose, again");
            }
        }
        call_foreign(|| std::panic::panic_any(PanicsWhenDropped));
        assert!(!is_in_foreign_code());
    }
}
