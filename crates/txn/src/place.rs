//! Named places in what runs beside transactions, for tests that delay it there.
//!
//! [`crate::Protocol::reached`] is called at each of them. It does nothing, and compiles to nothing, unless a variant of the protocol
//! defines it: then a test can let other transactions go first at just this point, or make threads wait at random.

/// A place in a job that runs beside transactions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// An index that is built is known to all transactions: those that did not know it have ended.
    IndexIntroduced,
    /// A transaction that fills an index has read its rows and has added no entry yet.
    IndexRowsRead,
    /// A transaction that fills an index has committed.
    IndexRowsDone,
    /// An index has all of its entries and is not ready yet.
    IndexFilled,
}
