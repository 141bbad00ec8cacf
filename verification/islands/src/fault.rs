//! Mistakes that the judge has to find.

/// A mistake that is built into a simulation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What a prepared part has read may be overwritten before its decision, whether the part writes or not.
    UnprotectedReads,
    /// The same for parts that only read: they are out when they have voted.
    ReadersOut,
    /// What the coordinator has only read is not validated at its decision.
    OwnReadsUnvalidated,
    /// Nobody is told that an instance has ended before it comes back.
    EndUntold,
    /// A participant votes before what it has prepared is stored.
    VoteUnstored,
    /// The coordinator tells its decision before that is stored.
    DecisionUnstored,
    /// A participant acknowledges a decision before it has stored what that changes.
    DoneUnstored,
    /// What a part is rejected for may not be stored yet when that is told.
    RefusalUnstored,
    /// The coordinator does not record its decision.
    DecisionUnrecorded,
    /// The note of what was prepared outlives the commit of it.
    NoteStays,
    /// Whether a part has come before is not asked.
    PartsTwice,
    /// A part is carried out by whatever incarnation of the participant it reaches.
    AnyIncarnation,
    /// An epoch ends while something is half decided.
    EpochUnpaused,
    /// The end of an epoch is recorded before all instances have stored it.
    EpochUnstored,
    /// A transaction is answered when its coordinator has stored it, before its epoch is recorded.
    EpochUnrecorded,
    /// Where one instance dies the others go on with what is given up there.
    OthersGoOn,
}

impl Fault {
    /// Returns those that a random run meets where a transaction is the unit of commit.
    #[must_use]
    pub const fn of_transactions() -> [Fault; 11] {
        [
            Fault::UnprotectedReads,
            Fault::ReadersOut,
            Fault::OwnReadsUnvalidated,
            Fault::VoteUnstored,
            Fault::DecisionUnstored,
            Fault::DoneUnstored,
            Fault::RefusalUnstored,
            Fault::DecisionUnrecorded,
            Fault::NoteStays,
            Fault::PartsTwice,
            Fault::AnyIncarnation,
        ]
    }

    /// Returns those that a random run meets where an epoch is the unit of commit.
    #[must_use]
    pub const fn of_epochs() -> [Fault; 8] {
        [
            Fault::UnprotectedReads,
            Fault::ReadersOut,
            Fault::OwnReadsUnvalidated,
            Fault::PartsTwice,
            Fault::EpochUnpaused,
            Fault::EpochUnstored,
            Fault::EpochUnrecorded,
            Fault::OthersGoOn,
        ]
    }
}
