//! The part of a heap that others see: extents lead to it.

use ensilo_sync::CachePadded;

use crate::account::Accounts;
use crate::remote::RemoteStack;

/// The part of a heap that others see.
#[derive(Debug)]
pub(crate) struct HeapShared {
    pub(crate) accounts: Accounts,
    /// Written by others: on cache lines of its own.
    pub(crate) remote: CachePadded<RemoteStack>,
}

impl HeapShared {
    pub(crate) fn new() -> Self {
        HeapShared { accounts: Accounts::new(), remote: CachePadded::new(RemoteStack::new()) }
    }
}
