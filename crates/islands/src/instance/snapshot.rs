//! Reads of one instance that belong to a consistent point of all instances.
//!
//! A point is consistent when no transaction has happened at one instance before it and at another one behind it. So all sites
//! [pause](crate::commit::Site::pause): decisions that several take part in are carried out by all, and none is made. Then each instance begins a
//! snapshot, and the sites go on. Transactions that stay within an instance need no pause: they have a place before or behind the point, and whatever
//! two of them at two instances have to do with each other goes by way of transactions that do not happen meanwhile.

use std::sync::Arc;
use std::time::Duration;

use ensilo::{Database, Result};

use super::aside;
use super::program::Program;
use super::submission::Answer;

/// Who waits for a snapshot to begin, and for what was read.
pub(crate) struct SnapshotRead {
    pub(crate) part: Vec<u8>,
    /// Called when the snapshot has begun: nothing that commits after this belongs to it.
    pub(crate) begun: Answer<()>,
    pub(crate) ended: Answer<Result<Vec<u8>>>,
}

/// Reads in a thread of its own: the worker goes on.
pub(super) fn read<P: Program>(db: &Database, program: &Arc<P>, read: SnapshotRead) {
    let (db, program) = (db.clone(), Arc::clone(program));
    let SnapshotRead { part, begun, ended } = read;
    aside::run(ended, move || {
        let all_until_now = db.request().max_staleness(Duration::ZERO);
        all_until_now.read_stale(|snapshot| {
            begun(());
            program.read(snapshot, &part)
        })
    });
}
