//! Statements that insert several rows: all of them, or none.

use ensilo_engine::{Store as _, Write};
use ensilo_row::KeyBuf;

use crate::catalog::table_core::TableCore;
use crate::maintain;
use crate::transaction::Inner;
use crate::{Error, Result};

/// Calls `insert` for each of the rows, and returns their keys as it does; it is to add the encoded key of each to those it is given. When one
/// is refused the others are taken back.
pub(crate) fn insert_all<Raw: Write, R, K>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    rows: Vec<R>,
    mut insert: impl FnMut(&mut Inner<'_, Raw>, R) -> Result<(K, KeyBuf)>,
) -> Result<Vec<K>> {
    table.check(inner.local)?;
    let mut inserted = Vec::with_capacity(rows.len());
    for row in rows {
        match insert(inner, row) {
            Ok(key) => inserted.push(key),
            Err(error) => {
                take_back(inner, table, &inserted)?;
                return Err(error);
            }
        }
    }
    Ok(inserted.into_iter().map(|(key, _)| key).collect())
}

/// Deletes the rows that were inserted, unless the transaction can only be undone.
fn take_back<Raw: Write, K>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    inserted: &[(K, KeyBuf)],
) -> Result<()> {
    if inner.is_doomed() {
        return Ok(());
    }
    let delete = |(_, key): &(K, KeyBuf)| maintain::delete_row_if_there(inner, table, key).map(drop);
    let taken_back: Result<(), Error> = inserted.iter().try_for_each(delete);
    if taken_back.is_err() && !inner.is_doomed() {
        // The table takes no writes any more, since a moment ago.
        return Err(inner.inconsistent(table.store.id(), &[]));
    }
    taken_back
}
