//! The sequences of a database that handles are for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::sequence_core::{SequenceCore, SequenceKey};
use crate::mutex::lock;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    known: Mutex<KnownSequences>,
}

pub(super) type KnownSequences = HashMap<SequenceKey, Arc<SequenceCore>>;

impl Sequences {
    /// Locks them: while one is looked up on the disk, made or dropped. Nobody who has the lock changes the catalog.
    pub(super) fn lock(&self) -> MutexGuard<'_, KnownSequences> {
        lock(&self.known)
    }
}
