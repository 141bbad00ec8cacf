//! Prepared transactions that have read much: nobody waits until all of it is registered, or let go of.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use common::*;
use ensilo_txn::{
    Abort, AbortReason, Engine, Failpoint, Prepared, Read, Session, Silo, Store, TableId, Transaction,
    Variant, Worker, Write,
};

type Visit = Box<dyn FnMut(Failpoint)>;

std::thread_local! {
    static VISIT: RefCell<Option<Visit>> = const { RefCell::new(None) };
}

/// The product; this thread visits each failpoint.
#[derive(Debug)]
struct Visited;

impl Variant for Visited {
    fn reached(failpoint: Failpoint) {
        // Taken out meanwhile: what is done at a visit comes to failpoints itself.
        let visit = VISIT.take();
        if let Some(mut visit) = visit {
            visit(failpoint);
            VISIT.set(Some(visit));
        }
    }
}

type Tx<'w> = Transaction<'w, Visited>;

fn attempt(
    worker: &mut Worker<Visited>,
    body: impl FnOnce(&mut Tx<'_>) -> Result<(), Abort>,
) -> Result<(), Abort> {
    let mut tx = worker.begin();
    body(&mut tx)?;
    tx.commit().map(drop)
}

const ROWS: usize = 100;

fn name(number: usize) -> String {
    format!("row{number:03}")
}

/// Between any two records that a transaction registers or lets go of, others overwrite rows that nobody has read, insert, and are refused
/// where they would write over what is registered.
#[test]
fn others_commit_while_what_was_read_is_registered_and_let_go_of() {
    let engine = manual_engine::<Visited>();
    let [store, elsewhere] = [1, 3].map(|id| engine.new_store(TableId(id)).unwrap());
    let mut workers = [engine.session(), engine.session(), engine.session()];
    let [one, small, _] = &mut workers;
    attempt(one, |tx| {
        (0..ROWS).for_each(|number| assert!(insert(tx, &store, &name(number), &[1])));
        ["x", "y", "z"].iter().for_each(|key| assert!(insert(tx, &elsewhere, key, &[1])));
        Ok(())
    })
    .unwrap();
    // Somebody else is prepared all the time, so that everybody asks.
    let mut tx = small.begin();
    assert_eq!(read(&mut tx, &elsewhere, "z"), Some(vec![1]));
    let small = tx.prepare().unwrap();
    let mut tx = one.begin();
    (0..ROWS).for_each(|number| assert_eq!(read(&mut tx, &store, &name(number)), Some(vec![1])));
    put(&mut tx, &elsewhere, "x", &[2]);
    let visits = visit_with_commits(&engine, &store, &elsewhere);
    let prepared = tx.prepare().unwrap();
    prepared.commit().unwrap();
    VISIT.take();
    // "x" is in the read set as well.
    assert_eq!(visits.take(), [ROWS + 1, ROWS + 1]);
    small.commit().unwrap();
    attempt(&mut workers[2], |tx| {
        (0..ROWS).for_each(|number| put(tx, &store, &name(number), &[3]));
        Ok(())
    })
    .unwrap();
}

/// From now on this thread commits with a worker of its own at each failpoint. Returns how often it was at those of the vote and of the decision.
fn visit_with_commits(
    engine: &Arc<Silo<Visited>>,
    store: &Arc<Store>,
    elsewhere: &Arc<Store>,
) -> Rc<Cell<[usize; 2]>> {
    let mut worker = engine.session();
    let (store, elsewhere) = (store.clone(), elsewhere.clone());
    let visits = Rc::new(Cell::new([0; 2]));
    let counted = visits.clone();
    VISIT.set(Some(Box::new(move |failpoint| {
        let at = match failpoint {
            Failpoint::PreparedReadRegistered => 0,
            Failpoint::PreparedReadReleased => 1,
            _ => return,
        };
        let mut count = counted.get();
        // The one that was registered last, or goes next.
        let registered = count[at];
        count[at] += 1;
        counted.set(count);
        attempt(&mut worker, |tx| {
            put(tx, &elsewhere, "y", &[2]);
            assert!(insert(tx, &elsewhere, &format!("{failpoint:?}{registered}"), &[1]));
            Ok(())
        })
        .unwrap();
        if registered < ROWS {
            let overwrites = |tx: &mut Tx<'_>| {
                let found = tx.find(&store, name(registered).as_bytes())?.unwrap();
                tx.put(found, &[1], 8)
            };
            let refused = attempt(&mut worker, overwrites).unwrap_err();
            assert_eq!(refused.reason(), AbortReason::PreparedRead);
        }
    })));
    visits
}
