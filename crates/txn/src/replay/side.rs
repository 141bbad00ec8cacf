//! What the link of a record leads to during a replay (R3), in one word.
//!
//! # Layout
//! ```text
//! 0             nothing, and no worker remembers the record
//! address       a list of pending words
//! 1             nothing, but a worker remembers the record
//! address | 1   the first entry of a chain
//! ```

use std::ptr::{self, NonNull};

use super::chain::ChainEntry;
use super::list_memory::PendingList;
use crate::record::RecordPtr;

const IS_CHAIN: usize = 1;
const _: () = assert!(align_of::<PendingList>() > IS_CHAIN && align_of::<ChainEntry>() > IS_CHAIN);

/// What a record's link leads to. Where it is not [`Side::Unknown`], a worker [remembers](super::touched) the record.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Side {
    /// Nothing: no worker remembers the record.
    Unknown,
    /// Words that are not part of the base.
    List(NonNull<PendingList>),
    /// Patches that are part of the base, if there are any that older writes could meet.
    Chain(Option<NonNull<ChainEntry>>),
}

impl Side {
    /// Returns that of a record. The caller has locked it, or nobody else knows it.
    #[inline]
    pub(super) fn of(record: RecordPtr) -> Side {
        let link = record.side();
        if link.addr() & IS_CHAIN != 0 {
            return Side::Chain(NonNull::new(link.map_addr(|address| address & !IS_CHAIN).cast()));
        }
        NonNull::new(link.cast()).map_or(Side::Unknown, Side::List)
    }

    /// Makes it that of a record. The caller has locked it, or nobody else knows it.
    #[inline]
    pub(super) fn put(self, record: RecordPtr) {
        record.set_side(match self {
            Side::Unknown => ptr::null_mut(),
            Side::List(list) => list.as_ptr().cast(),
            Side::Chain(entry) => {
                let address: *mut () = entry.map_or(ptr::null_mut(), |entry| entry.as_ptr().cast());
                address.map_addr(|address| address | IS_CHAIN)
            }
        });
    }
}
