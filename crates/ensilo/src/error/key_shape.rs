//! What the encoded keys in errors stand for.

use std::sync::Arc;

use ensilo_row::{IndexSchema, Schema};

/// What the keys of a table, or of one of its indexes, consist of.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    schema: Arc<Schema>,
    index: Option<IndexSchema>,
}

impl KeyShape {
    /// Returns the shape of the table's primary keys, or of the keys in an index.
    pub(crate) fn new(schema: &Arc<Schema>, index: Option<&IndexSchema>) -> Self {
        KeyShape { schema: Arc::clone(schema), index: index.cloned() }
    }

    /// Returns the key by the values of its columns; as hexadecimal digits if it is no key of this shape.
    pub(crate) fn show(&self, key: &[u8]) -> String {
        self.schema.shown_key(self.index.as_ref(), key).unwrap_or_else(|_| hexadecimal(key))
    }
}

/// Returns the bytes of a key whose shape is not known.
pub(crate) fn hexadecimal(key: &[u8]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A table, or an index as `table.index`, that an error names.
#[derive(Clone, Debug)]
pub(crate) struct NamedStore {
    pub(crate) name: Arc<str>,
    /// `None` where it was dropped.
    pub(crate) keys: Option<KeyShape>,
}
