//! Parts carried out in the transaction of a session.

use std::panic::{self, AssertUnwindSafe};

use ensilo::{AbortReason, Error, Result, Session, Transaction};

use crate::commit::{Refusal, RefusalReason};

/// Carries a part out in the open transaction of a session, and returns what it returns.
///
/// # Errors
/// Why it is refused: the transaction has ended.
pub(super) fn carry_out(
    session: &mut Session,
    execute: impl FnOnce(&mut Transaction<'_>) -> Result<Vec<u8>>,
) -> std::result::Result<Vec<u8>, Refusal> {
    let executed = panic::catch_unwind(AssertUnwindSafe(|| session.with(execute)));
    // A panic is an error that nobody has said anything about.
    let executed = executed.unwrap_or_else(|_| Err(Error::rollback("the part has panicked")));
    executed.map_err(|error| {
        let refusal = refusal_by_part(&error, session);
        // Where it has not ended by now.
        let _ = session.rollback();
        refusal
    })
}

/// Returns what is said of the error of a part: that of the part, if what it has read belongs together, and a conflict otherwise.
fn refusal_by_part(error: &Error, session: &mut Session) -> Refusal {
    match session.prepare() {
        Err(conflict @ Error::Aborted(_)) => refusal(&conflict),
        // It was validated, or has ended before it could be.
        Ok(_) | Err(_) => refusal(error),
    }
}

/// Returns what is said of an error.
pub(super) fn refusal(error: &Error) -> Refusal {
    let reason = match error {
        Error::Aborted(abort)
            if matches!(abort.reason(), AbortReason::PreparedLock | AbortReason::PreparedRead) =>
        {
            RefusalReason::Held
        }
        Error::Aborted(abort) if abort.reason().is_retryable() => RefusalReason::Conflict,
        Error::OutOfMemory(_) | Error::TooManyTransactions => RefusalReason::Shortage,
        _ => RefusalReason::Rejected,
    };
    Refusal::new(reason, message_of(error))
}

/// Returns what an error says: of one that a program has made, its own words.
pub(crate) fn message_of(error: &Error) -> String {
    match error {
        Error::User(own) => own.to_string(),
        error => error.to_string(),
    }
}
