//! The one answer of every decoder to bytes that no encoder wrote.

use std::fmt;

/// The bytes are no row or key of this type.
///
/// A decoder may be shown a row while a writer overwrites it, so every decoder answers any words whatever with a value
/// or with this; the engine throws the answer away when the row turns out to have been torn. From an untorn row it means
/// that the row belongs to another schema or that memory was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the stored bytes are no row or key of this table's schema")
    }
}

impl std::error::Error for Malformed {}
