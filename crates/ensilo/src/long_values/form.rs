//! How a statement reads the rows of a table.

use std::marker::PhantomData;

use ensilo_engine::RowRef;
use ensilo_row::{Columns, Row, RowBuf, Words};

use super::store::LongValues;
use crate::catalog::table_core::TableCore;
use crate::older_rows::{ConvertedRow, OlderRows, in_schema};
use crate::row_words::RowWords;

/// Which columns a statement asks for.
pub(crate) trait Wants: Copy {
    /// Whether one of them may have a long value, as far as is known when the program is compiled. Where none has, statements are compiled for
    /// rows that lie as a whole in their records alone: a closure with one caller is part of it.
    const MAY_BE_LONG: bool;

    /// Returns whether the column with this number is one of them.
    fn has(self, column: usize) -> bool;
}

/// No column that may have a long value.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Nothing;

impl Wants for Nothing {
    const MAY_BE_LONG: bool = false;

    fn has(self, _: usize) -> bool {
        false
    }
}

/// Columns that are known when the program runs.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Wanted<'c> {
    /// Those with these numbers.
    Columns(&'c [usize]),
    All,
}

impl Wants for Wanted<'_> {
    const MAY_BE_LONG: bool = true;

    fn has(self, column: usize) -> bool {
        match self {
            Wanted::Columns(columns) => columns.contains(&column),
            Wanted::All => true,
        }
    }
}

/// The columns of `C`.
pub(crate) struct WantedBy<T, C>(PhantomData<fn() -> (T, C)>);

impl<T, C> Copy for WantedBy<T, C> {}

impl<T, C> Clone for WantedBy<T, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Row, C: Columns<T>> Wants for WantedBy<T, C> {
    const MAY_BE_LONG: bool = may_be_long::<T, C>();

    fn has(self, column: usize) -> bool {
        C::COLUMNS.contains(&column)
    }
}

/// Returns the columns of `C`.
pub(crate) const fn wanted_by<T: Row, C: Columns<T>>() -> WantedBy<T, C> {
    WantedBy(PhantomData)
}

pub(crate) const fn may_be_long<T: Row, C: Columns<T>>() -> bool {
    let mut at = 0;
    while at < C::COLUMNS.len() {
        let column = T::DESCRIPTION.columns[C::COLUMNS[at]];
        if column.column_type.is_variable() && !column.in_key {
            return true;
        }
        at += 1;
    }
    false
}

/// What was decoded of a row, or the row where it lacks long values.
pub(crate) type Decoded<R> = Result<R, Box<RowBuf>>;

#[cold]
fn copy_of(row: RowRef<'_>) -> Box<RowBuf> {
    let mut copy = Box::new(RowBuf::new());
    copy.set_words(&RowWords(row));
    copy
}

/// What records of a store are: rows of a table as a statement asks for them, or what is decoded as it is stored.
pub(crate) struct RowForm<'t, S, W> {
    pub(crate) older: Option<&'t OlderRows>,
    pub(super) long: Option<&'t LongValues<S>>,
    pub(super) wanted: W,
}

impl<S, W: Copy> Copy for RowForm<'_, S, W> {}

impl<S, W: Copy> Clone for RowForm<'_, S, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> RowForm<'_, S, Nothing> {
    /// Records that are decoded as they are stored.
    pub(crate) const STORED: Self = RowForm { older: None, long: None, wanted: Nothing };
}

impl<S, W: Wants> RowForm<'_, S, W> {
    /// Returns whether no row can lack a long value that is asked for: then records are decoded where they lie.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.long.is_none()
    }

    /// Returns whether the row lacks a long value that is asked for.
    #[inline(always)]
    pub(crate) fn lacks_values(&self, row: &impl Words) -> bool {
        self.long.is_some_and(|long| long.are_in(row, self.wanted))
    }

    /// Returns what `decode` makes of a stored row, or a copy of the row if it lacks a long value that is asked for; `converted` is the room for one
    /// of an older schema.
    #[inline(always)]
    pub(crate) fn decode<R>(
        &self,
        row: RowRef<'_>,
        converted: &mut ConvertedRow,
        decode: impl FnOnce(RowRef<'_>) -> R,
    ) -> Decoded<R> {
        let row = in_schema(self.older, row, converted);
        if self.lacks_values(&RowWords(row)) {
            return Err(copy_of(row));
        }
        Ok(decode(row))
    }
}

impl<S> TableCore<S> {
    /// Returns the rows of the table as ones of its schema as it is, with these columns.
    #[inline(always)]
    pub(crate) fn form<W: Wants>(&self, wanted: W) -> RowForm<'_, S, W> {
        let long = if W::MAY_BE_LONG { self.long.as_ref() } else { None };
        RowForm { older: self.older.as_deref(), long, wanted }
    }
}
