//! How two transactions are made to meet, over an engine that validates what was read and over one that locks it.

use std::thread;

use ensilo::{AbortReason, Error, Result, generic};

use super::opened::*;
pub(crate) use super::{Engine, LOCKS};
use crate::*;

pub(crate) type Session = generic::Session<Engine>;
pub(crate) type Transaction<'t> = generic::Transaction<'t, Engine>;
pub(crate) type Found<'h, 't, T> = generic::Found<'h, 't, T, Engine>;

/// Why a transaction ends that another one has [interfered](interfere) with.
pub(crate) const CONFLICT: AbortReason =
    if LOCKS { AbortReason::LockHeld } else { AbortReason::ReadValidation };

fn visit_first<'t>(
    accounts: &Table<Account>,
    tx: &mut impl generic::WriteTransaction<'t, Engine>,
) -> Result<()> {
    accounts.update(tx, 0, |row: &mut Visits| row.visits += 1)
}

/// Has a transaction look at row 0, and another one change that row once, so that the first cannot commit any more. It has not looked at the row
/// before. Where transactions lock what they read, the other one comes first, and its lock is in the way of the look.
///
/// # Errors
/// What the look has met.
pub(crate) fn interfere<'h, 't>(
    db: &Database,
    accounts: &'h Table<Account>,
    tx: &mut Transaction<'t>,
) -> Result<Found<'h, 't, Account>> {
    if LOCKS {
        let mut holder = db.begin()?;
        visit_first(accounts, &mut holder)?;
        let looked = accounts.find(tx, 0);
        holder.commit()?;
        return looked.map(|found| found.expect("exists"));
    }
    let found = accounts.find(tx, 0)?.expect("exists");
    thread::scope(|scope| {
        scope.spawn(|| db.transact(|tx| visit_first(accounts, tx))).join().unwrap().unwrap();
    });
    Ok(found)
}

/// Returns whether a request has met the lock of another transaction, however often it was run.
pub(crate) fn is_refused<R>(outcome: &Result<R>) -> bool {
    matches!(outcome, Err(Error::Aborted(abort)) if abort.reason() == AbortReason::LockHeld)
}

/// Runs a request on a thread of its own that changes what the transaction of this thread has read. Where transactions lock what they read it is
/// refused.
pub(crate) fn change_what_was_read(change: impl FnOnce() -> Result<()> + Send) {
    let outcome = thread::scope(|scope| scope.spawn(change).join().unwrap());
    assert!(if LOCKS { is_refused(&outcome) } else { outcome.is_ok() }, "{outcome:?}");
}
