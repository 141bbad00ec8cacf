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
    /// The coordinator does not record its decision.
    DecisionUnrecorded,
    /// The note of what was prepared outlives the commit of it.
    NoteStays,
    /// Whether a part has come before is not asked.
    PartsTwice,
    /// A part is carried out by whatever incarnation of the participant it reaches.
    AnyIncarnation,
}

impl Fault {
    /// Returns those that a random run meets.
    #[must_use]
    pub const fn all() -> [Fault; 10] {
        [
            Fault::UnprotectedReads,
            Fault::ReadersOut,
            Fault::OwnReadsUnvalidated,
            Fault::VoteUnstored,
            Fault::DecisionUnstored,
            Fault::DoneUnstored,
            Fault::DecisionUnrecorded,
            Fault::NoteStays,
            Fault::PartsTwice,
            Fault::AnyIncarnation,
        ]
    }
}
