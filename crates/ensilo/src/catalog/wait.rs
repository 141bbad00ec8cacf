//! Waiting until the transactions that began before now have ended.

use std::sync::atomic::{Ordering, fence};
use std::thread;
use std::time::{Duration, Instant};

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;

use crate::{Error, Result};

const FIRST_WAIT: Duration = Duration::from_micros(100);
const WAIT_MAX: Duration = Duration::from_millis(10);

/// Returns when every transaction that was under way at the call has ended. What the caller published before,
/// every later transaction sees.
///
/// The epochs say so: what is pinned now is pinned at an epoch not after the present one, and memory that is
/// retired in the present one would be free to go. The epochs are advanced by hand to find out soon; a few
/// more of them do no harm. A prepared transaction is not pinned: the engine says whether there is one.
///
/// # Errors
/// [`Error::Closed`] when `is_closed` says so meanwhile.
pub(super) fn for_older_transactions<E: Engine>(engine: &E, is_closed: impl Fn() -> bool) -> Result<()> {
    for_older_transactions_until(engine, is_closed, None).map(drop)
}

/// Like [`for_older_transactions`]; returns `false` if some are under way at the deadline.
///
/// # Errors
/// [`Error::Closed`] when `is_closed` says so meanwhile.
pub(super) fn for_older_transactions_until<E: Engine>(
    engine: &E,
    is_closed: impl Fn() -> bool,
    deadline: Option<Instant>,
) -> Result<bool> {
    let epochs = engine.epochs();
    // What was published must be visible before the epoch is read (a store, then a load).
    fence(Ordering::SeqCst);
    let now = epochs.global_epoch();
    // A transaction that begins in the second epoch from now sees what was published, and holds the horizon
    // back no more.
    epochs.advance();
    let mut wait = FIRST_WAIT;
    loop {
        epochs.advance();
        // In this order: a transaction is registered as prepared before its pin ends.
        if epochs.memory_horizon() > now && !engine.has_prepared_begun_by(now) {
            return Ok(true);
        }
        if is_closed() {
            return Err(Error::Closed);
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(false);
        }
        thread::sleep(wait);
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Returns an epoch that has begun, and in which no transaction has committed before the call.
///
/// # Errors
/// [`Error::Closed`] when `is_closed` says so meanwhile.
pub(super) fn for_next_epoch<E: Engine>(engine: &E, is_closed: impl Fn() -> bool) -> Result<Epoch> {
    let epochs = engine.epochs();
    let before = epochs.global_epoch();
    loop {
        epochs.advance();
        let now = epochs.global_epoch();
        if now > before {
            return Ok(now);
        }
        if is_closed() {
            return Err(Error::Closed);
        }
        thread::sleep(FIRST_WAIT);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use ensilo_engine::{EngineOptions, Prepared, Session, TableId, Write};
    use ensilo_txn::Silo;

    use super::*;

    #[test]
    fn a_prepared_transaction_is_waited_for() {
        let engine = <Silo as Engine>::start(EngineOptions::default()).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let mut session = Engine::session(&engine);
        let mut transaction = session.begin();
        assert!(transaction.insert(&store, b"key", &[1], 8).unwrap());
        let prepared = RefCell::new(Some(transaction.prepare().unwrap()));
        let rounds = Cell::new(0);
        for_older_transactions(&*engine, || {
            rounds.set(rounds.get() + 1);
            if rounds.get() == 5 {
                prepared.take().unwrap().commit().unwrap();
            }
            false
        })
        .unwrap();
        assert!(prepared.take().is_none(), "the wait was over before the decision");
    }
}
