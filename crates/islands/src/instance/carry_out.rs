//! Parts carried out in the transaction of a session.

use std::panic::{self, AssertUnwindSafe};

use ensilo::{AbortReason, Error, Result, Session, Ticket, Transaction};

use crate::commit::{Refusal, RefusalReason, Refused};

/// Carries a part out in the open transaction of a session, and returns what it returns.
///
/// # Errors
/// Why it is refused: the transaction has ended. There is a ticket where the database is stored.
pub(super) fn carry_out(
    session: &mut Session,
    execute: impl FnOnce(&mut Transaction<'_>) -> Result<Vec<u8>>,
) -> std::result::Result<Vec<u8>, Refused<Ticket>> {
    let executed = session.with(|tx| {
        // A panic is an error that nobody has said anything about.
        let executed = panic::catch_unwind(AssertUnwindSafe(|| execute(tx)));
        executed.unwrap_or_else(|_| Err(Error::rollback("the part has panicked")))
    });
    executed.map_err(|error| {
        let refused = refused_by_part(&error, session);
        // Where it has not ended by now.
        let _ = session.rollback();
        refused
    })
}

/// Returns what is said of the error of a part: that of the part, if what it has read belongs together; otherwise a conflict, or why that is not
/// known.
fn refused_by_part(error: &Error, session: &mut Session) -> Refused<Ticket> {
    match session.prepare() {
        Err(conflict @ Error::Aborted(_)) => refusal(&conflict).into(),
        Ok(validated) => Refused { refusal: refusal(error), ticket: validated.ticket_of_reads().ok() },
        // It has ended before it could be validated.
        Err(Error::NoTransaction) => refusal(error).into(),
        Err(unvalidated) => refusal(&unvalidated).into(),
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
