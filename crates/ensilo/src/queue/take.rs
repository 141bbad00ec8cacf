//! Takes the first row that no other transaction is about to take.
//!
//! The walk to it is a look that nothing depends on. The row that it ends at is claimed, looked at once more,
//! since the consumer before may have committed meanwhile, and others may have moved it in an index. Then it is
//! read and deleted by the statements that everybody uses. So the transaction depends on the row that it has
//! taken and on no other.
//!
//! Where a transaction reads as of its begin, rows that have come since are none to it. If there are no others, it
//! has met a conflict: a consumer that waited for rows inside a transaction would never see one.

use std::ops::ControlFlow;

use ensilo_engine::{Direction, RowRef, Store, Write};
use ensilo_row::{KeyBuf, Malformed};
use ensilo_sync::region::{self, Region};

use super::HeldClaims;
use super::claims::ClaimOutcome;
use crate::catalog::index_core::IndexCore;
use crate::catalog::table_core::TableCore;
use crate::loading::Pieces;
use crate::local::Local;
use crate::long_values::{Wanted, Wants};
use crate::maintain;
use crate::older_rows::{LONG_ROW_BYTES, in_schema};
use crate::row_words::{RowWords, key_of_bytes, primary_key_of, whole};
use crate::table::{Bounds, Flow, ScanRange};
use crate::transaction::Inner;
use crate::{Error, Result};

/// A row that this transaction has claimed.
struct Claimed {
    /// Where it was found: its primary key, or the key of its entry in an index.
    at: KeyBuf,
    /// The primary key in the entry; `None` for a row that was found by it.
    key_in_entry: Option<KeyBuf>,
    /// Whether the transaction has claimed it before.
    was_own: bool,
}

impl Claimed {
    /// Returns the row's primary key.
    fn key(&self) -> &KeyBuf {
        self.key_in_entry.as_ref().unwrap_or(&self.at)
    }
}

/// Takes the first row with a primary key in the range, and returns what `decode` makes of it.
///
/// # Errors
/// Those of every statement.
pub(crate) fn take_first<Raw: Write, R>(
    inner: &mut Inner<'_, Raw>,
    (table, wanted): (&TableCore<Raw::Store>, impl Wants),
    mut range: ScanRange,
    decode: impl Fn(&KeyBuf, &RowWords<'_>) -> Result<R, Malformed>,
) -> Result<Option<R>> {
    table.check(inner.local)?;
    inner.load_to_write(table)?;
    let row_at = |key: &[u8], _: RowRef<'_>| (key_of_bytes(key), None);
    let mut has_later = false;
    let later = &mut has_later;
    while let Some(claimed) = claim_next(inner, table, &table.store, &mut range, row_at, |_, _| true, later)?
    {
        if is_still_there(inner, table, &claimed, later)?
            && let Some(found) = inner.find_to_write(&table.store, claimed.key())?
        {
            return take(inner, (table, wanted), &claimed, found, &decode).map(Some);
        }
        pass_over(inner, &mut range, claimed);
    }
    none_left(inner, table, has_later)
}

/// Takes the row of the first entry in the range that `is_wanted`, given its key and the primary key in it,
/// says yes to.
///
/// The transaction depends on a row that it has not taken only where that was moved to another entry between
/// the last look at it and the read.
///
/// # Errors
/// Those of every statement on an index.
pub(crate) fn take_first_by_index<Raw: Write, R>(
    inner: &mut Inner<'_, Raw>,
    (table, index, wanted): (&TableCore<Raw::Store>, &IndexCore<Raw::Store>, impl Wants),
    mut range: ScanRange,
    is_wanted: impl Fn(&KeyBuf, &KeyBuf) -> bool,
    decode: impl Fn(&KeyBuf, &RowWords<'_>) -> Result<R, Malformed>,
) -> Result<Option<R>> {
    table.check(inner.local)?;
    inner.check_index(table, index)?;
    let entry_at = |key: &[u8], entry: RowRef<'_>| (key_of_bytes(key), Some(primary_key_of(entry)));
    let mut has_later = false;
    let later = &mut has_later;
    while let Some(claimed) = claim_next(inner, table, &index.store, &mut range, entry_at, &is_wanted, later)?
    {
        if is_still_there(inner, table, &claimed, later)?
            && has_its_entry(inner, (table, index), &claimed)
            && let Some(found) = inner.find_to_write(&table.store, claimed.key())?
        {
            // The row has joined the read set. It may have been moved to another entry since that look.
            maintain::copy_row(inner, table, found)?;
            if has_its_entry(inner, (table, index), &claimed) {
                return take(inner, (table, wanted), &claimed, found, &decode).map(Some);
            }
        }
        pass_over(inner, &mut range, claimed);
    }
    none_left(inner, table, has_later)
}

/// Returns what `row_at` makes of the first rows in a range of the table, or of their entries in the index, by a look that nothing depends on.
///
/// # Errors
/// Those of every statement on an index.
pub(crate) fn look_ahead<Raw: Write, R>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    index: Option<&IndexCore<Raw::Store>>,
    range: &ScanRange,
    row_at: impl Fn(&[u8], RowRef<'_>) -> R,
) -> Result<Vec<R>> {
    table.check(inner.local)?;
    match index {
        Some(index) => inner.check_index(table, index)?,
        None => inner.load_to_write(table)?,
    }
    let mut rows = Vec::new();
    if range.limit == 0 {
        return Ok(rows);
    }
    let walked = index.map_or(&*table.store, |index| &*index.store);
    let mut flow = Flow::new(range.limit, inner.local);
    let note = |row| {
        rows.push(row);
        flow.after(ControlFlow::Continue(()))
    };
    walk_pieces(inner, (table, walked), range, row_at, note, |_| ())?;
    flow.end().map(|()| rows)
}

/// Says that there is no row to take, unless some have come since the transaction began.
fn none_left<Raw: Write, R>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    has_later: bool,
) -> Result<Option<R>> {
    if has_later { Err(inner.inconsistent(table.store.id(), &[])) } else { Ok(None) }
}

/// Claims the first row in the range that others have not claimed; notes whether there are later ones.
fn claim_next<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    walked: &Raw::Store,
    range: &mut ScanRange,
    row_at: impl Fn(&[u8], RowRef<'_>) -> (KeyBuf, Option<KeyBuf>),
    is_wanted: impl Fn(&KeyBuf, &KeyBuf) -> bool,
    has_later: &mut bool,
) -> Result<Option<Claimed>> {
    if range.limit == 0 {
        return Ok(None);
    }
    let mut flow = Flow::new(range.limit, inner.local);
    let mut claims = inner.claims.take().unwrap_or_else(|| {
        let local = &*inner.local;
        Box::new(HeldClaims::new(&local.queues, local.number))
    });
    let (mut claimed, mut looked_at) = (None, 0);
    let engine = region::enter(Region::Engine);
    let caller = engine.caller();
    let mut look = |(at, key_in_entry): (KeyBuf, Option<KeyBuf>)| {
        let _caller = caller.enter();
        looked_at += 1;
        let key = key_in_entry.as_ref().unwrap_or(&at);
        if is_wanted(&at, key) {
            let outcome = claims.try_claim((table.store.id(), &table.queue), key.as_bytes());
            if outcome != ClaimOutcome::Taken {
                claimed = Some(Claimed { at, key_in_entry, was_own: outcome == ClaimOutcome::Own });
                return ControlFlow::Break(());
            }
        }
        flow.after(ControlFlow::Continue(()))
    };
    let note_later = |(at, key_in_entry): (KeyBuf, Option<KeyBuf>)| {
        let _caller = caller.enter();
        *has_later |= is_wanted(&at, key_in_entry.as_ref().unwrap_or(&at));
    };
    let walk = walk_pieces(inner, (table, walked), range, &row_at, &mut look, note_later);
    engine.leave();
    inner.claims = Some(claims);
    walk?;
    range.limit -= looked_at;
    flow.end()?;
    Ok(claimed)
}

/// Looks at what is in the range of a store of the table, until `look` has enough. Rows are loaded as it comes to
/// them; an index is read once all are.
fn walk_pieces<Raw: Write, R>(
    inner: &mut Inner<'_, Raw>,
    (table, walked): (&TableCore<Raw::Store>, &Raw::Store),
    range: &ScanRange,
    row_at: impl Fn(&[u8], RowRef<'_>) -> R,
    mut look: impl FnMut(R) -> ControlFlow<()>,
    mut later: impl FnMut(R),
) -> Result<()> {
    let mut is_over = false;
    let mut pieces = Pieces::new(&range.bounds, range.direction);
    while !is_over && let Some(bounds) = pieces.next(inner, table)? {
        let look = |row| {
            let flow = look(row);
            is_over = flow.is_break();
            flow
        };
        let walk = inner.raw.peek(walked, bounds, range.direction, &row_at, look, &mut later);
        walk.map_err(|abort| inner.lost(abort))?;
    }
    Ok(())
}

/// Returns whether the row is there after it was claimed. As Q1 says, it is gone if the transaction that had
/// claimed it before has committed. One that was found by an entry is copied to the scratch `local.before`.
fn is_still_there<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    claimed: &Claimed,
    has_later: &mut bool,
) -> Result<bool> {
    let only = Bounds::only(claimed.key().clone());
    let Some(bounds) = only.as_slices() else { unreachable!("a single key is a range") };
    let mut is_there = false;
    let Local { before, converted, .. } = &mut *inner.local;
    let older = table.older.as_deref();
    let copy = |_: &[u8], row: RowRef<'_>| {
        if claimed.key_in_entry.is_some() {
            before.set_words(&RowWords(in_schema(older, row, converted)));
        }
    };
    let _engine = region::enter(Region::Engine);
    let note = |()| {
        is_there = true;
        ControlFlow::Break(())
    };
    let look = inner.raw.peek(&table.store, bounds, Direction::Forward, copy, note, |()| *has_later = true);
    if inner.local.before.len_bytes() > LONG_ROW_BYTES {
        inner.local.note_long_row();
    }
    look.map_err(|abort| inner.lost(abort))?;
    Ok(is_there)
}

/// Returns whether the row in the scratch `local.before` belongs to the entry that it was found by.
fn has_its_entry<Raw: Write>(
    inner: &Inner<'_, Raw>,
    (table, index): (&TableCore<Raw::Store>, &IndexCore<Raw::Store>),
    claimed: &Claimed,
) -> bool {
    let mut entry_key = KeyBuf::new();
    maintain::stored_index_key(table, index, claimed.key(), &inner.local.before, &mut entry_key);
    entry_key == claimed.at
}

/// Goes on after a row that turned out not to be there any more.
fn pass_over<Raw: Write>(inner: &mut Inner<'_, Raw>, range: &mut ScanRange, claimed: Claimed) {
    give_up(inner, &claimed);
    range.continue_after(claimed.at);
}

/// Leaves a row to others.
fn give_up<Raw: Write>(inner: &mut Inner<'_, Raw>, claimed: &Claimed) {
    if let Some(claims) = inner.claims.as_mut().filter(|_| !claimed.was_own) {
        claims.give_up_last();
    }
}

/// Returns the error for a row that was not decoded.
#[cold]
fn unknown_value<Raw: Write>(
    inner: &mut Inner<'_, Raw>,
    table: &TableCore<Raw::Store>,
    key: &KeyBuf,
    found: Raw::Found,
) -> Error {
    let by_schema =
        |row: RowRef<'_>| table.schema.decode_row(key.as_bytes(), &RowWords(row), &mut Vec::new());
    match inner.read(table.form(Wanted::All), found, || Ok(key.clone()), by_schema) {
        Ok(decoded) => {
            whole(decoded);
            table.unknown_value(key.as_bytes())
        }
        Err(error) => error,
    }
}

/// Reads and deletes a row that this transaction has claimed and found.
fn take<Raw: Write, R>(
    inner: &mut Inner<'_, Raw>,
    (table, wanted): (&TableCore<Raw::Store>, impl Wants),
    claimed: &Claimed,
    found: Raw::Found,
    decode: impl Fn(&KeyBuf, &RowWords<'_>) -> Result<R, Malformed>,
) -> Result<R> {
    let key = claimed.key();
    let decode = |row: RowRef<'_>| decode(key, &RowWords(row));
    let row = inner.read(table.form(wanted), found, || Ok(key.clone()), decode)?;
    let Ok(row) = row else {
        give_up(inner, claimed);
        return Err(unknown_value(inner, table, key, found));
    };
    maintain::delete_row(inner, table, key, found)?;
    Ok(row)
}
