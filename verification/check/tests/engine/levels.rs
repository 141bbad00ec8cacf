//! ERMIA's isolation levels, recording, and with mistakes.

use ensilo_ermia::{Fault, Isolation, Serializable, SnapshotIsolation};

/// Declares a level that records its history, and whose rows may be told to leave memory at every opportunity.
macro_rules! recording {
    ($name:ident, $level:ident, $fault:expr, $docs:literal) => {
        #[doc = $docs]
        #[derive(Copy, Clone, Debug)]
        pub(crate) struct $name;

        impl Isolation for $name {
            type Dependencies = <$level as Isolation>::Dependencies;
            const SERIALIZABLE: bool = $level::SERIALIZABLE;
            const RECORDS_HISTORY: bool = true;
            const IS_HASTY: bool = true;
            const FAULT: Option<Fault> = $fault;
        }
    };
}

recording!(Recorded, Serializable, None, "The serial safety net.");
recording!(RecordedSnapshots, SnapshotIsolation, None, "Snapshot isolation.");
recording!(
    Overwriting,
    Serializable,
    Some(Fault::OverwriteUncommitted),
    "Versions go in front of uncommitted ones."
);
recording!(
    OverwritingSnapshots,
    SnapshotIsolation,
    Some(Fault::OverwriteUncommitted),
    "The same without the safety net."
);
recording!(
    NoWaitingSnapshots,
    SnapshotIsolation,
    Some(Fault::SkipCommitting),
    "Commits in the past are not waited for, without the safety net."
);
recording!(NoWindow, Serializable, Some(Fault::SkipWindow), "Without the exclusion window.");
recording!(NoReaders, Serializable, Some(Fault::ForgetReaders), "Without the stamps of readers.");
recording!(NoWaiting, Serializable, Some(Fault::SkipCommitting), "Commits in the past are not waited for.");
recording!(NoNodes, Serializable, Some(Fault::SkipNodes), "Without the node set.");
recording!(NoMisses, Serializable, Some(Fault::ForgetMisses), "Without the stamps of those who miss a key.");
recording!(
    NoPassedOver,
    Serializable,
    Some(Fault::ForgetPassedOver),
    "Without the inserts that were passed over."
);
recording!(
    NoTakenBack,
    Serializable,
    Some(Fault::ForgetTakenBack),
    "Without the stamps of those who have taken back what they inserted."
);
recording!(
    EvictingUsed,
    Serializable,
    Some(Fault::EvictUsed),
    "Rows leave memory while others have found them."
);
recording!(
    NoReadersOfCold,
    Serializable,
    Some(Fault::ForgetReadersOfCold),
    "Without the stamps of those who read a row before it left memory."
);
