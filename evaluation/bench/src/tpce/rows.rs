//! What all transactions do with rows: rows that must be there, and columns that only a client would look at.

use ensilo::{Error, Result};

/// The row, which every TPC-E database has.
#[inline]
pub(super) fn required<T>(row: Option<T>) -> Result<T> {
    row.ok_or_else(missing)
}

/// A row that the load has put there, or that belongs to another, is not there.
#[cold]
fn missing() -> Error {
    Error::rollback("a row that every TPC-E database has is missing")
}

/// Makes structs of columns that a transaction shows its client and does not look at itself.
macro_rules! shown_columns {
    ($($name:ident of $row:ident { $($column:ident: $type:ty),+ $(,)? })+) => {$(
        #[derive(ensilo::Columns)]
        #[columns(of = $row)]
        #[allow(dead_code, reason = "what a client would show; nobody looks at all of it here")]
        struct $name {
            $($column: $type,)+
        }
    )+};
}

pub(super) use shown_columns;
