//! Ranges of encoded keys, scans of them, and when a scan ends.

use std::ops::{Bound, ControlFlow, RangeBounds as _};
use std::sync::Arc;

use ensilo_engine::{Direction, KeyBounds, Read, RowRef};
use ensilo_row::{AsKeyRange, Key, KeyBuf};

use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::loading::Pieces;
use crate::local::Local;
use crate::long_values::{RowForm, Wants};
use crate::session::control::SessionControl;
use crate::transaction::Inner;

/// A range of encoded keys.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    low: Bound<KeyBuf>,
    high: Bound<KeyBuf>,
}

impl Bounds {
    /// Every key.
    pub(crate) const ALL: Bounds = Bounds { low: Bound::Unbounded, high: Bound::Unbounded };

    pub(crate) const fn new(low: Bound<KeyBuf>, high: Bound<KeyBuf>) -> Self {
        Bounds { low, high }
    }

    /// Returns the keys that begin with `prefix`.
    #[inline]
    pub(crate) fn prefix(prefix: KeyBuf) -> Self {
        let high = after_prefix(prefix.clone());
        Bounds { low: Bound::Included(prefix), high }
    }

    /// Returns this key alone.
    pub(crate) fn only(key: KeyBuf) -> Self {
        Bounds { low: Bound::Included(key.clone()), high: Bound::Included(key) }
    }

    /// Returns whether the key lies in the range.
    pub(crate) fn contains(&self, key: &KeyBuf) -> bool {
        self.contains_bytes(key.as_bytes())
    }

    /// Returns whether the key with these bytes lies in the range.
    pub(crate) fn contains_bytes(&self, key: &[u8]) -> bool {
        self.as_slices().is_some_and(|range| range.contains(key))
    }

    /// Returns the keys in `range`.
    #[inline]
    pub(crate) fn range<K: Key>(range: &impl AsKeyRange<K>) -> Self {
        let (low, high) = range.key_bounds();
        Bounds { low, high }
    }

    /// Returns the keys with a prefix in this range: the range's ends stand for all keys that begin with
    /// them.
    pub(crate) fn of_prefixes(self) -> Self {
        let low = match self.low {
            Bound::Excluded(prefix) => match after_prefix(prefix) {
                Bound::Excluded(end) => Bound::Included(end),
                // No key lies after this prefix.
                _ => {
                    return Bounds {
                        low: Bound::Excluded(KeyBuf::new()),
                        high: Bound::Excluded(KeyBuf::new()),
                    };
                }
            },
            low => low,
        };
        let high = match self.high {
            Bound::Included(prefix) => after_prefix(prefix),
            high => high,
        };
        Bounds { low, high }
    }

    /// The same range without what lies before `key` and `key` itself, as a scan sees it that goes up, or
    /// down if `is_reverse`.
    fn continue_after(&mut self, key: KeyBuf, is_reverse: bool) {
        let end = if is_reverse { &mut self.high } else { &mut self.low };
        *end = Bound::Excluded(key);
    }

    /// Returns what of the range lies before `key`, and the rest.
    pub(crate) fn split_at(self, key: &KeyBuf) -> (Bounds, Bounds) {
        let at = key.as_bytes();
        let high = match &self.high {
            Bound::Included(high) if high.as_bytes() < at => self.high.clone(),
            Bound::Excluded(high) if high.as_bytes() <= at => self.high.clone(),
            _ => Bound::Excluded(key.clone()),
        };
        let low = match &self.low {
            Bound::Included(low) | Bound::Excluded(low) if low.as_bytes() >= at => self.low.clone(),
            _ => Bound::Included(key.clone()),
        };
        (Bounds::new(self.low, high), Bounds::new(low, self.high))
    }

    /// Returns the range as the engine takes it; `None` when it has no keys because it is upside down.
    #[inline]
    pub(crate) fn as_slices(&self) -> Option<KeyBounds<'_>> {
        let (low, high) = (self.low.as_ref().map(KeyBuf::as_bytes), self.high.as_ref().map(KeyBuf::as_bytes));
        let is_empty = match (low, high) {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
                low >= high
            }
            _ => false,
        };
        (!is_empty).then_some((low, high))
    }
}

/// Which keys a scan goes through, in which direction, and how many rows it gives at most.
#[derive(Clone, Debug)]
pub(crate) struct ScanRange {
    pub(crate) bounds: Bounds,
    pub(crate) direction: Direction,
    pub(crate) limit: usize,
}

impl ScanRange {
    /// Returns all keys within `bounds`, from the first to the last.
    #[inline(always)]
    pub(crate) const fn new(bounds: Bounds) -> Self {
        ScanRange { bounds, direction: Direction::Forward, limit: usize::MAX }
    }

    /// Returns the keys, if it has neither a limit nor the other direction.
    pub(crate) fn into_bounds(self) -> Option<Bounds> {
        let is_plain = self.limit == usize::MAX && self.direction == Direction::Forward;
        is_plain.then_some(self.bounds)
    }

    /// Returns the first `len` rows of it.
    pub(crate) fn limited(&self, len: usize) -> Self {
        ScanRange { limit: len.min(self.limit), ..self.clone() }
    }

    /// Goes on behind this key.
    pub(crate) fn continue_after(&mut self, key: KeyBuf) {
        self.bounds.continue_after(key, self.direction == Direction::Reverse);
    }

    /// Goes on behind the row with this key, the last of so many that were given.
    pub(crate) fn pass(&mut self, key: KeyBuf, rows: usize) {
        self.continue_after(key);
        self.limit -= rows;
    }

    /// Turns the direction.
    pub(crate) fn turn(&mut self) {
        self.direction = match self.direction {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
    }

    /// Passes what `decode` makes of the rows of a store to `each`.
    #[inline(always)]
    pub(crate) fn run<Raw: Read, R>(
        &self,
        inner: &mut Inner<'_, Raw>,
        store: &Raw::Store,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        let Some(bounds) = self.bounds.as_slices().filter(|_| self.limit > 0) else { return Ok(()) };
        let mut flow = Flow::new(self.limit, inner.local);
        inner.scan_to_read(store, RowForm::STORED, bounds, self.direction, decode, |row| {
            flow.after(each(row))
        })?;
        flow.end()
    }

    /// Like [`ScanRange::run`], for the rows of a table, which are loaded as the scan comes to them, with the columns that are wanted.
    #[inline(always)]
    pub(crate) fn run_rows<Raw: Read, R>(
        &self,
        inner: &mut Inner<'_, Raw>,
        (table, wanted): (&TableCore<Raw::Store>, impl Wants),
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<()> {
        self.run_pieces(inner, table, |inner, bounds, flow| {
            let each = |row| flow.after(each(row));
            inner.scan_to_read(&table.store, table.form(wanted), bounds, self.direction, &mut decode, each)
        })
    }

    /// Like [`ScanRange::run_rows`], with handles that are good for reading and writing.
    #[inline(always)]
    pub(crate) fn run_found_rows<Raw: Read, R>(
        &self,
        inner: &mut Inner<'_, Raw>,
        (table, wanted): (&TableCore<Raw::Store>, impl Wants),
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(Raw::Found, R) -> ControlFlow<()>,
    ) -> Result<()> {
        self.run_pieces(inner, table, |inner, bounds, flow| {
            let each = |found, row| flow.after(each(found, row));
            inner.scan(&table.store, table.form(wanted), bounds, self.direction, &mut decode, each)
        })
    }

    /// Calls `scan` for one part of the range after the other, each of which is loaded by then.
    #[inline(always)]
    fn run_pieces<Raw: Read>(
        &self,
        inner: &mut Inner<'_, Raw>,
        table: &TableCore<Raw::Store>,
        mut scan: impl FnMut(&mut Inner<'_, Raw>, KeyBounds<'_>, &mut Flow) -> Result<()>,
    ) -> Result<()> {
        if self.limit == 0 {
            return Ok(());
        }
        let mut flow = Flow::new(self.limit, inner.local);
        let mut pieces = Pieces::new(&self.bounds, self.direction);
        while !flow.is_over
            && let Some(bounds) = pieces.next(inner, table)?
        {
            scan(inner, bounds, &mut flow)?;
        }
        flow.end()
    }
}

#[inline]
fn after_prefix(mut prefix: KeyBuf) -> Bound<KeyBuf> {
    if prefix.make_prefix_end() { Bound::Excluded(prefix) } else { Bound::Unbounded }
}

/// What the closure of a scan may return: nothing, to see all rows, or a [`ControlFlow`], to stop early.
pub trait ScanFlow {
    /// Returns whether the scan goes on.
    fn into_flow(self) -> ControlFlow<()>;
}

impl ScanFlow for () {
    #[inline(always)]
    fn into_flow(self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl ScanFlow for ControlFlow<()> {
    #[inline(always)]
    fn into_flow(self) -> ControlFlow<()> {
        self
    }
}

/// Ends a scan after a number of rows, or when its session is to stop.
pub(crate) struct Flow {
    left: usize,
    /// Whether the scan has ended before its range did.
    is_over: bool,
    control: Option<Arc<SessionControl>>,
    /// Why the scan was stopped, if it was.
    stopped: Result<()>,
}

/// A scan looks after so many rows whether it is to stop.
pub(crate) const ROWS_PER_LOOK: usize = 256;

impl Flow {
    /// Lets `limit` rows through; at least one.
    #[inline(always)]
    pub(crate) fn new<F>(limit: usize, local: &Local<F>) -> Self {
        Flow { left: limit, is_over: false, control: local.control.clone(), stopped: Ok(()) }
    }

    /// Counts a row.
    #[inline(always)]
    pub(crate) fn after(&mut self, flow: ControlFlow<()>) -> ControlFlow<()> {
        self.left -= 1;
        if let Some(control) = &self.control
            && self.left.is_multiple_of(ROWS_PER_LOOK)
        {
            self.stopped = control.check();
        }
        self.is_over = self.left == 0 || flow.is_break() || self.stopped.is_err();
        if self.is_over { ControlFlow::Break(()) } else { flow }
    }

    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled) or
    /// [`Error::DeadlineExceeded`](crate::Error::DeadlineExceeded) when that has ended the scan.
    #[inline(always)]
    pub(crate) fn end(self) -> Result<()> {
        self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: &[u8]) -> KeyBuf {
        let mut key = KeyBuf::new();
        key.set(bytes);
        key
    }

    #[test]
    fn a_range_that_is_upside_down_or_shut_is_empty() {
        let bounds = |low, high| Bounds::new(low, high);
        assert!(bounds(Bound::Included(key(b"b")), Bound::Included(key(b"a"))).as_slices().is_none());
        assert!(bounds(Bound::Excluded(key(b"a")), Bound::Included(key(b"a"))).as_slices().is_none());
        assert!(bounds(Bound::Included(key(b"a")), Bound::Included(key(b"a"))).as_slices().is_some());
        assert!(Bounds::ALL.as_slices().is_some());
    }

    #[test]
    fn prefixes_cover_all_that_begins_with_them() {
        let bounds = Bounds::new(Bound::Excluded(key(b"a")), Bound::Included(key(b"c"))).of_prefixes();
        assert_eq!(bounds.as_slices(), Some((Bound::Included(&b"b"[..]), Bound::Excluded(&b"d"[..]))));
        let after_all = Bounds::new(Bound::Excluded(key(&[0xff])), Bound::Unbounded).of_prefixes();
        assert!(after_all.as_slices().is_none());
    }
}
