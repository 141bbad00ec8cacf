//! Mistakes that are built in on purpose.

/// Mistakes that a checker has to find before it is believed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Phase 2 does not look at the read set.
    SkipReadValidation,
    /// Phase 2 does not look at the node set.
    SkipNodeValidation,
    /// The epoch is read when the transaction begins, not between locking and validating.
    EarlyEpoch,
    /// The write set is locked in the order in which it was written.
    UnorderedLocks,
    /// A deleted record is read as if it still existed.
    IgnoreAbsent,
    /// Recovery forgets a deletion when it has not seen the row yet.
    ForgetTombstones,
    /// Recovery replays what was written and is not known to be durable.
    ReplayPastDurableEpoch,
    /// What a prepared transaction has read is not protected until its decision.
    UnprotectedPreparedReads,
    /// A protected transaction does not look at a record again once it has registered it.
    RegisteredWithoutLook,
    /// A snapshot does not look for deleted records that have left their tree.
    ForgetDeleted,
    /// A commit makes copies of older versions copies of newer ones, also those that snapshots need.
    RenewNeededCopies,
    /// A commit does not know of deletions that have left the nodes that it relies on.
    ForgetRemovals,
    /// A range that is read is not locked.
    SkipRangeLocks,
    /// A row that leaves a unique index takes out the entry under its key, also that of another row.
    RemoveEntriesOfOthers,
    /// What is added to a number is added to it as it was when the statement was made.
    EarlyAddition,
    /// A table is truncated while others use it, and without a snapshot before.
    TruncateUsedTables,
}
