//! A transaction that was undone by a conflict: the reason, and where it showed.

use std::fmt;
use std::sync::Arc;

pub use ensilo_engine::AbortReason;
use ensilo_engine::TableId;

use super::key_shape::{NamedStore, hexadecimal};

/// Why and where a transaction was undone.
#[derive(Clone, Debug)]
pub struct Abort(Box<AbortDetails>);

#[derive(Clone, Debug)]
struct AbortDetails {
    raw: ensilo_engine::Abort,
    store: Option<NamedStore>,
    shortage: MemoryShortage,
    attempts: u32,
}

/// What is known of a memory limit that was reached.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryShortage {
    pub(crate) limit_bytes: Option<u64>,
    /// Why rows do not leave memory although they should.
    pub(crate) eviction_failure: Option<Arc<str>>,
}

impl Abort {
    #[cold]
    pub(crate) fn new(raw: ensilo_engine::Abort) -> Self {
        Abort(Box::new(AbortDetails { raw, store: None, shortage: MemoryShortage::default(), attempts: 0 }))
    }

    pub(crate) fn explain_shortage(&mut self, shortage: MemoryShortage) {
        self.0.shortage = shortage;
    }

    /// Says that the request is not tried again after so many attempts.
    pub(crate) fn give_up_after(&mut self, attempts: u32) {
        self.0.attempts = attempts;
    }

    /// Puts the table's name in, which takes a look into the catalog and so is left until somebody will read
    /// it.
    pub(crate) fn name_store(&mut self, name_of: impl FnOnce(TableId) -> Option<NamedStore>) {
        if self.0.store.is_none() {
            self.0.store = name_of(self.store());
        }
    }

    /// Returns the store in which the reason showed.
    pub(crate) fn store(&self) -> TableId {
        self.0.raw.table()
    }

    /// Returns why the transaction was undone.
    #[must_use]
    pub fn reason(&self) -> AbortReason {
        self.0.raw.reason()
    }

    /// Returns the table in which the conflict was found, or `table.index` for an index.
    ///
    /// It is known once the error has left the request: it is `None` inside the closure, and when the reason
    /// concerns no table.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.0.store.as_ref().map(|store| &*store.name)
    }

    /// Returns the encoded key at which the conflict was found. It is empty when the reason concerns a range,
    /// a row that a scan has read, or no key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.0.raw.key()
    }

    /// Returns how often a request was run that has used up its retries, and 0 for any other abort.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns whether the same transaction may succeed when it is run again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.raw.is_retryable()
    }
}

/// The reason and the place of an abort, without what can be done.
pub(crate) struct Conflict<'a>(pub(crate) &'a Abort);

impl fmt::Display for Conflict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict(abort) = self;
        write!(f, "{}", abort.reason())?;
        if let Some(table) = abort.table() {
            write!(f, " in {table}")?;
        }
        if abort.key().is_empty() {
            return Ok(());
        }
        let keys = abort.0.store.as_ref().and_then(|store| store.keys.as_ref());
        match keys {
            Some(keys) => write!(f, " at {}", keys.show(abort.key())),
            None => write!(f, " at key {}", hexadecimal(abort.key())),
        }
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction aborted: {}", Conflict(self))?;
        let MemoryShortage { limit_bytes, eviction_failure } = &self.0.shortage;
        if let Some(limit) = limit_bytes {
            write!(f, ", with a memory limit of {limit} bytes")?;
        }
        if let Some(why) = eviction_failure {
            write!(f, "; rows cannot leave memory: {why}")?;
        }
        match self.attempts() {
            0 if self.is_retryable() => f.write_str("; a retry may succeed"),
            0 => Ok(()),
            attempts => write!(
                f,
                "; given up after {attempts} attempts: let it touch fewer rows that others write, allow more retries \
                 (Options::retries), or, where it only reads, use Database::read"
            ),
        }
    }
}
