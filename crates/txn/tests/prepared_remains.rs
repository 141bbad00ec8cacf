//! What prepared transactions leave behind, and what stays behind beside them: nothing, in the end.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::*;
use ensilo_txn::{AccountId, Engine, Prepared, Session, Write};

/// The memory that a table takes after so many rounds of keys that come and go, each with a prefix of its own. Where a transaction is
/// prepared meanwhile, it relies on the border node that leads to their layer.
fn bytes_after(rounds: u64, is_beside_a_prepared_one: bool) -> u64 {
    let (engine, store) = engine_and_store();
    let (mut one, mut other) = (engine.session(), engine.session());
    commit(&mut other, |tx| assert!(insert(tx, &store, "~", &[1])));
    for round in 0..rounds {
        let keys = ["a", "b"].map(|end| format!("{round:08}{end}-and more"));
        commit(&mut other, |tx| keys.iter().for_each(|key| assert!(insert(tx, &store, key, &[9]))));
        commit(&mut other, |tx| keys.iter().for_each(|key| delete(tx, &store, key)));
        let prepared = is_beside_a_prepared_one.then(|| {
            let mut tx = one.begin();
            assert_eq!(read(&mut tx, &store, &format!("{round:08}")), None);
            tx.prepare().unwrap()
        });
        for _ in 0..3 {
            pass_snapshot(&engine);
            other.collect();
        }
        if let Some(prepared) = prepared {
            prepared.commit().unwrap();
        }
    }
    for _ in 0..6 {
        pass_snapshot(&engine);
        one.collect();
        other.collect();
        engine.collect_orphaned();
    }
    let statistics = engine.statistics();
    assert_eq!((statistics.transactions.deleted_records, statistics.epochs.retired_objects), (0, 0));
    statistics.memory.of(AccountId(1))
}

#[test]
fn layers_that_became_empty_beside_a_prepared_transaction_leave_in_the_end() {
    assert_eq!(bytes_after(200, true), bytes_after(200, false));
}
