//! What stops a commit before its install.

use ensilo_engine::Abort;
use ensilo_epoch::Epoch;

/// Why a commit stopped before it installed anything. The locks are free again.
pub(super) enum CommitStop {
    Abort(Abort),
    /// The log has no buffer to spare.
    LogFull,
    /// The epoch has no TID left that is larger than all that this transaction saw.
    EpochExhausted(Epoch),
}

impl From<Abort> for CommitStop {
    fn from(abort: Abort) -> Self {
        CommitStop::Abort(abort)
    }
}
