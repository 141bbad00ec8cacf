//! A transaction that was undone by a conflict: the reason, and where it showed.

use std::fmt;
use std::sync::Arc;

pub use ensilo_engine::AbortReason;
use ensilo_engine::TableId;

/// Why and where a transaction was undone.
#[derive(Clone, Debug)]
pub struct Abort(Box<Place>);

#[derive(Clone, Debug)]
struct Place {
    raw: ensilo_engine::Abort,
    table: Option<Arc<str>>,
}

impl Abort {
    #[cold]
    pub(crate) fn new(raw: ensilo_engine::Abort) -> Self {
        Abort(Box::new(Place { raw, table: None }))
    }

    /// Puts the table's name in, which takes a look into the catalog and so is left until somebody will read it.
    pub(crate) fn name_table(&mut self, name_of: impl FnOnce(TableId) -> Option<Arc<str>>) {
        if self.0.table.is_none() {
            self.0.table = name_of(self.store());
        }
    }

    /// The store in which the reason showed.
    pub(crate) fn store(&self) -> TableId {
        self.0.raw.table()
    }

    /// Why the transaction was undone.
    #[must_use]
    pub fn reason(&self) -> AbortReason {
        self.0.raw.reason()
    }

    /// The table in which the reason showed, or `table.index` for an index.
    ///
    /// Known once the error has left the request; `None` inside the closure, and when the reason concerns no table.
    #[must_use]
    pub fn table(&self) -> Option<&str> {
        self.0.table.as_deref()
    }

    /// The encoded key at which the reason showed; empty when it concerns a range, a row that a scan has read, or no key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.0.raw.key()
    }

    /// Whether the same transaction may succeed when it is run again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.raw.is_retryable()
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction aborted: {}", self.reason())?;
        if let Some(table) = self.table() {
            write!(f, " in {table}")?;
        }
        if !self.key().is_empty() {
            write!(f, " at key {}", super::details::Hex(self.key()))?;
        }
        f.write_str(if self.is_retryable() { "; a retry may succeed" } else { "" })
    }
}
