//! Snapshots of one instance that belong to a consistent point of all instances.
//!
//! A point is consistent when no transaction has happened at one instance before it and at another one behind it. So all sites
//! [pause](crate::commit::Site::pause): decisions that several take part in are carried out by all, and none is made. Then each instance begins a
//! snapshot, and the sites go on. Transactions that stay within an instance need no pause: they have a place before or behind the point, and whatever
//! two of them at two instances have to do with each other goes by way of transactions that do not happen meanwhile.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use ensilo::{Database, Error, Result, Ticket};
use serde::{Deserialize, Serialize};

use super::program::Program;
use super::submission::Answer;

/// Names a point of all instances, and the snapshots that belong to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct PointId(pub(crate) u64);

/// A part that is to be read, and who gets what it returns.
type Reading = (Vec<u8>, Answer<Result<Vec<u8>>>);

/// The snapshots that a worker has begun. Each has a thread of its own: the worker goes on.
#[derive(Default)]
pub(super) struct Snapshots(BTreeMap<PointId, Sender<Reading>>);

impl Snapshots {
    /// Begins a snapshot, and calls `begun` then: nothing that commits after this belongs to it.
    pub(super) fn begin<P: Program>(
        &mut self,
        (db, program): (&Database, &Arc<P>),
        id: PointId,
        begun: Answer<()>,
    ) {
        let (sender, readings) = mpsc::channel();
        self.0.insert(id, sender);
        let (db, program) = (db.clone(), Arc::clone(program));
        // Where there is no thread for it, or it cannot begin, whoever waits finds out that nobody answers.
        let _ = thread::Builder::new()
            .name("island-snapshot".to_owned())
            .spawn(move || serve(&db, &*program, begun, &readings));
    }

    /// Has a part be read in a snapshot.
    pub(super) fn read(&self, id: PointId, part: Vec<u8>, answer: Answer<Result<Vec<u8>>>) {
        // Where it has ended whoever waits finds out that nobody answers.
        if let Some(snapshot) = self.0.get(&id) {
            let _ = snapshot.send((part, answer));
        }
    }

    /// Ends a snapshot.
    pub(super) fn end(&mut self, id: PointId) {
        self.0.remove(&id);
    }
}

/// Reads until nobody can ask for anything any more. What is read is stored before it is answered, where anything is.
fn serve<P: Program>(db: &Database, program: &P, begun: Answer<()>, readings: &Receiver<Reading>) {
    let all_until_now = db.request().max_staleness(Duration::ZERO);
    let _ = all_until_now.read_stale(|snapshot| {
        let ticket = db.group_member().map(|member| member.ticket()).ok();
        begun(());
        while let Ok((part, answer)) = readings.recv() {
            let read = panic::catch_unwind(AssertUnwindSafe(|| program.read(snapshot, &part)));
            let read = read.unwrap_or_else(|_| Err(Error::rollback("the program has panicked")));
            let stored = ticket.as_ref().map_or(Ok(()), Ticket::wait);
            answer(stored.and(read));
        }
        Ok(())
    });
}
