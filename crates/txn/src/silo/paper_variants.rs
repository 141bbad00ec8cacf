//! The configurations of Silo that its paper measures it by.
//!
//! # Source
//! Silo (SOSP 2013) §5.2 (one counter for all TIDs), §5.5 (no snapshots) and §5.7, figure 11: the factors are added one by one, first
//! `Simple`, then the allocator, overwriting in place (which makes the product), then without snapshots, then without the collector;
//! and in the log TIDs alone, then whole rows.

use super::variant::{LogRecords, Variant};

/// Declares a variant by what differs from the product.
macro_rules! variant {
    ($name:ident: $docs:literal, $($constant:ident: $type:ty = $value:expr),+) => {
        #[doc = $docs]
        #[derive(Copy, Clone, Debug)]
        pub struct $name;

        impl Variant for $name {
            $(const $constant: $type = $value;)+
        }
    };
}

variant!(GlobalTid: "MemSilo+GlobalTID: TIDs from one counter that all workers share.", GLOBAL_TID: bool = true);

variant!(
    NoSnapshots: "MemSilo+NoSS, and figure 11's +NoSnapshots: no version is kept for snapshots, and there are none.",
    SNAPSHOTS: bool = false
);

variant!(
    Simple: "Figure 11's Simple: records from the general-purpose allocator, and a new one for each write.",
    SLABS: bool = false,
    OVERWRITES: bool = false
);

variant!(
    Allocator: "Figure 11's +Allocator: records in slabs, and a new one for each write.",
    OVERWRITES: bool = false
);

variant!(
    NoGc: "Figure 11's +NoGC: no snapshots, and nothing that transactions have left behind is ever freed.",
    SNAPSHOTS: bool = false,
    COLLECTS: bool = false
);

variant!(
    RowLog: "Figure 11's +FullRecs: whole rows are logged.",
    LOGGED: LogRecords = LogRecords::Rows
);

variant!(
    TidLog: "Figure 11's +SmallRecs: TIDs alone are logged. Nothing can be recovered.",
    LOGGED: LogRecords = LogRecords::Tids
);
