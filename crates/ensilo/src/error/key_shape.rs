//! What the encoded keys in errors stand for.

use std::fmt;
use std::sync::Arc;

use ensilo_row::{IndexSchema, Schema};

use crate::long_values::row_key_of;

/// What the keys of a table, or of one of its indexes, consist of.
#[derive(Clone)]
pub(crate) struct KeyShape {
    schema: Arc<Schema>,
    index: Option<IndexSchema>,
    /// Whether they are keys of pieces of long values, which are shown as those of their rows.
    is_of_pieces: bool,
}

impl KeyShape {
    /// Returns the shape of the table's primary keys, or of the keys in an index.
    pub(crate) fn new(schema: &Arc<Schema>, index: Option<&IndexSchema>) -> Self {
        KeyShape { schema: Arc::clone(schema), index: index.cloned(), is_of_pieces: false }
    }

    /// Returns the shape of the keys that pieces of long values have, of a table with primary keys of this one.
    pub(crate) fn of_pieces(self) -> Self {
        KeyShape { is_of_pieces: true, ..self }
    }

    /// Returns the key by the values of its columns; as hexadecimal digits if it is no key of this shape.
    pub(crate) fn show(&self, key: &[u8]) -> String {
        let of_row = if self.is_of_pieces { row_key_of(key) } else { None };
        self.schema
            .shown_key(self.index.as_ref(), of_row.unwrap_or(key))
            .unwrap_or_else(|_| format!("key {}", hexadecimal(key)))
    }
}

/// The columns, not the whole schema: errors are shown so by `unwrap`, and by a `main` that returns one.
impl fmt::Debug for KeyShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.index {
            Some(index) => write!(f, "KeyShape({}.{})", self.schema.name(), index.name()),
            None => write!(f, "KeyShape({})", self.schema.name()),
        }
    }
}

/// An encoded key of a shape, which is shown by the values of its columns.
#[derive(Clone)]
pub(super) struct ShapedKey {
    shape: KeyShape,
    pub(super) bytes: Box<[u8]>,
}

impl ShapedKey {
    pub(super) fn new(shape: KeyShape, key: &[u8]) -> Self {
        ShapedKey { shape, bytes: key.into() }
    }
}

impl fmt::Display for ShapedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shape.show(&self.bytes))
    }
}

impl fmt::Debug for ShapedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
