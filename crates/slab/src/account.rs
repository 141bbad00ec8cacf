//! Who holds how much memory.
//!
//! Each heap counts what its owner allocated and freed, per account, in counters that only the owner writes. A heap
//! may free more of an account than it allocated, so that a counter alone may be negative (it wraps); the sum over all
//! heaps is what the account holds.
//!
//! # Layout
//! The counters of accounts 0 to 63 lie in the heap. Further ones lie in segments that are made when an account of
//! theirs is first used: segment `i` has `64 << i` counters.

/// On whose behalf memory is held: one account per table or index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

impl AccountId {
    /// The engine itself.
    pub const SYSTEM: AccountId = AccountId(0);
}

/// What a pool holds at some moment. While others allocate and free, the parts may be off by what they do meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes that the pool has taken from the system: what the limit bounds.
    pub mapped_bytes: u64,
    /// Bytes in live blocks, each counted with the size of its class.
    pub live_bytes: u64,
    /// The live bytes of each account that holds any, in order of the accounts.
    pub by_account: Vec<(AccountId, u64)>,
}

impl Usage {
    /// The live bytes of one account.
    #[must_use]
    pub fn of(&self, account: AccountId) -> u64 {
        self.by_account
            .binary_search_by_key(&account, |&(id, _)| id)
            .map_or(0, |place| self.by_account[place].1)
    }
}
