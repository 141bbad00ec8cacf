//! Code of the program that is called back: callbacks, hooks and wakers.
//!
//! It may panic, and it may call whatever it likes. So a thread that calls it catches the panic, and says that it does: who would wait for
//! such a thread, or for others that wait for it, asks first.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Calls code of the program. One that panics has printed its message, and takes nobody with it.
pub fn call_foreign(code: impl FnOnce()) {
    let before = IS_CALLED.replace(true);
    let _ = catch_unwind(AssertUnwindSafe(code));
    IS_CALLED.set(before);
}

/// Whether the calling thread has come here from [`call_foreign`], of whichever log or database.
#[must_use]
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
}
