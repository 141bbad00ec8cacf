//! Rows with values that the program's types do not have, such as a number that no variant of an enum has.
//!
//! They are sound: the schema decodes them. So they are errors of the statements that read them, while a row that does not fit
//! its schema ends the program ([`whole`](crate::row_words::whole)).

use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_row::{Malformed, Schema};

use crate::catalog::table_core::TableCore;
use crate::error::{KeyShape, UnknownValue};
use crate::{Error, Result};

/// What a scan makes of a row in the program's types: the primary key of the row where that fails.
pub(crate) type Decoded<R> = std::result::Result<R, Box<[u8]>>;

/// Keeps the primary key of a row that was not decoded.
#[inline(always)]
pub(crate) fn or_key<R>(decoded: Result<R, Malformed>, key: &[u8]) -> Decoded<R> {
    decoded.map_err(|Malformed| key.into())
}

impl<S> TableCore<S> {
    /// Returns what was decoded in the program's types from the whole row with this primary key.
    ///
    /// # Errors
    /// [`Error::UnknownValue`].
    #[inline(always)]
    pub(crate) fn known<R>(&self, decoded: Result<R, Malformed>, key: &[u8]) -> Result<R> {
        decoded.map_err(|Malformed| self.unknown_value(key))
    }

    pub(crate) fn unknown_value(&self, key: &[u8]) -> Error {
        unknown_value(&self.name, &self.schema, key)
    }
}

/// Makes the error of the row with this primary key.
#[cold]
pub(crate) fn unknown_value(table: &Arc<str>, schema: &Arc<Schema>, key: &[u8]) -> Error {
    Error::UnknownValue(UnknownValue::new(Arc::clone(table), KeyShape::new(schema, None), key))
}

/// Passes decoded rows on, up to the first one that has an unknown value.
#[derive(Default)]
pub(crate) struct KnownRows {
    /// The primary key of that one.
    unknown: Option<Box<[u8]>>,
}

impl KnownRows {
    /// Gives a row to `each`, or ends the scan.
    #[inline(always)]
    pub(crate) fn pass<R>(
        &mut self,
        decoded: Decoded<R>,
        each: impl FnOnce(R) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match decoded {
            Ok(row) => each(row),
            Err(key) => {
                self.unknown = Some(key);
                ControlFlow::Break(())
            }
        }
    }

    /// # Errors
    /// [`Error::UnknownValue`] where that has ended the scan.
    #[inline(always)]
    pub(crate) fn end<S>(self, table: &TableCore<S>) -> Result<()> {
        self.unknown.map_or(Ok(()), |key| Err(table.unknown_value(&key)))
    }
}
