//! Looks at rows that nothing is concluded from: the newest committed ones, and the transaction's own. A row that was inserted or changed since the
//! transaction began is told apart: it would not be found as it was looked at, and to write it would fail.

use std::ops::ControlFlow;

use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, RowRef};
use ensilo_index::{NodeStamp, ScanVisitor};

use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::read::SeenRow;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;
use crate::version::{Sight, Version};

impl<'s, I: Isolation> Transaction<'s, I> {
    pub(crate) fn peek_range<R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        (decode, each, later): (
            impl FnMut(&[u8], RowRef<'_>) -> R,
            impl FnMut(R) -> ControlFlow<()>,
            impl FnMut(R),
        ),
    ) -> Result<(), Abort> {
        self.use_store(store)?;
        let mut peek = Peek { transaction: self, store, decode, each, later, failed: None };
        store.scan(bounds, direction, &self.guard, &mut peek);
        let failed = peek.failed;
        failed.map_or(Ok(()), |reason| Err(self.doom_at(reason, store, &[])))
    }

    /// Returns the newest version of a record that is committed or this transaction's own, if it is a row.
    pub(crate) fn newest_row(&self, store: &ErmiaStore, oid: Oid) -> Result<Option<SeenRow<I>>, AbortReason> {
        let _indirection = crate::region::indirection();
        loop {
            let newest = store.newest::<I>(oid, self.shared, &self.guard)?;
            let in_force = self.in_force_from(newest);
            // One that was not committed may be by now: what lies behind it was overwritten then, and may have been taken out of the chain.
            let is_newest = in_force.map(|(version, _)| version) == newest;
            if is_newest || newest.is_some_and(|version| self.sight_in_force(version) == Sight::Invisible) {
                let row = in_force.filter(|(version, _)| !version.is_deletion());
                return Ok(row.map(|(version, stamp)| SeenRow { oid, version, stamp }));
            }
        }
    }

    /// Returns the first version from `newest` on that is committed, with its stamp, or this transaction's own.
    fn in_force_from(&self, newest: Option<Version<I>>) -> Option<(Version<I>, Option<Stamp>)> {
        let mut next = newest;
        while let Some(version) = next {
            match self.sight_in_force(version) {
                Sight::Own => return Some((version, None)),
                Sight::Visible(stamp) => return Some((version, Some(stamp))),
                Sight::Invisible => next = version.older(),
            }
        }
        None
    }

    /// Returns whether a version was committed before this transaction began, or is its own.
    fn sees(&self, version: Version<I>) -> bool {
        version.sight(&self.shared.table, self.begin, Some(self.id)) != Sight::Invisible
    }

    /// Returns what a version is to this transaction as if it began now.
    fn sight_in_force(&self, version: Version<I>) -> Sight {
        version.sight(&self.shared.table, Stamp::NEVER, Some(self.id))
    }
}

/// Visits entries on behalf of a transaction that does not rely on them.
struct Peek<'a, 's, I: Isolation, D, E, L> {
    transaction: &'a Transaction<'s, I>,
    store: &'a ErmiaStore,
    decode: D,
    each: E,
    /// Is passed rows that were inserted or changed since the transaction began.
    later: L,
    failed: Option<AbortReason>,
}

impl<I, R, D, E, L> ScanVisitor for Peek<'_, '_, I, D, E, L>
where
    I: Isolation,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(R) -> ControlFlow<()>,
    L: FnMut(R),
{
    fn node(&mut self, _: NodeStamp) {}

    #[inline]
    fn approach(&mut self, value: u64) {
        // SAFETY: the value was read from the store's index, under a pin.
        self.store.load_header::<I>(unsafe { Oid::from_index_value(value) });
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        // SAFETY: the value was read from the store's index, under a pin.
        match self.transaction.newest_row(self.store, unsafe { Oid::from_index_value(value) }) {
            Ok(Some(row)) => {
                let value = (self.decode)(key, row.row());
                if self.transaction.sees(row.version) {
                    return (self.each)(value);
                }
                (self.later)(value);
                ControlFlow::Continue(())
            }
            Ok(None) => ControlFlow::Continue(()),
            Err(reason) => {
                self.failed = Some(reason);
                ControlFlow::Break(())
            }
        }
    }
}
