//! Two-phase commit: how a transaction with parts at several instances commits at all of them, or at none.
//!
//! What is here is the protocol by itself. It is handed messages and the time, and asks a [`PartStore`] for everything that has to do with rows. So
//! the code that runs between instances is the code that the simulation (`verification/islands`) runs through losses and crashes.
//!
//! # Source
//! Islands (VLDB Journal) §3.1 and §6.4; presumed abort after C. Mohan, B. Lindsay and R. Obermarck, "Transaction Management in the R* Distributed
//! Database Management System" (1986). Differences from both:
//! - One message to each participant carries out its part, prepares it and asks for its vote.
//! - The coordinator does not prepare its own part. It carries it out when all votes are there, with what the others have returned, and commits it
//!   together with a record of the decision: *that* commit is the decision. So nothing at the coordinator waits for votes.
//! - A participant that has only read is not out after its vote. See below.
//!
//! # Terms
//! - *site*: a worker of an instance, with a protocol of its own; it coordinates what it begins, and takes part in what others send it.
//! - *part*: what a transaction does at one instance; bytes, to the protocol.
//! - *incarnation*: how often an instance was opened. A part that is not prepared ends with the incarnation that has carried it out.
//! - *in doubt*: said of a part that is prepared and has no decision.
//!
//! # Messages
//! ```text
//! coordinator                               participant
//!   Execute ─────────────────────────────────▶ carries out, prepares, stores what was prepared
//!   ◀───────────────────────────────────── Vote    prepared
//!   carries its own part out,
//!   commits it with the decision,
//!   stores both                            (answers the caller)
//!   Decide commit ───────────────────────────▶ commits, stores
//!   ◀───────────────────────────────────── Done
//!   forgets
//! ```
//! Before that each says which incarnation it is in, when it is reached (`Hello`). If that is lost, or late, a part is refused, and with the refusal
//! comes the incarnation.
//!
//! A coordinator that does not know a transaction has aborted it (*presumed abort*), or knows from everybody that it is done. So an abort is stored
//! nowhere and acknowledged by nobody.
//!
//! # Why it is serializable
//! A prepared part has locked what it writes, and keeps others from changing what it has read, until its decision. The decision is a commit at the
//! coordinator, behind all votes. At this moment all parts are protected at once: let it be the transaction's *point*. A transaction within one
//! instance has its point where it commits. Any two transactions in conflict have it at some instance, and there the protection of the first one has
//! ended before that of the second begins, or neither could have been prepared or committed. So whatever the instance, the conflict has the order of
//! the points.
//!
//! That needs *all* parts to be protected at the point, also those that have only read. If a participant let go of what it has read when it votes: T1
//! reads x at A, votes, and is out; T2 overwrites x at A; T3 reads that, and at B the y that T1 is about to overwrite, but has not prepared there
//! yet. Now T1 is before T2 before T3 before T1. Since every part is carried out by the message that asks for its vote, votes come at different
//! times, and there is no round in which all that is needed has been locked. So a participant that has only read stays protected until it is
//! released; it stores nothing and acknowledges nothing.
//!
//! The coordinator's own part is validated at the point, also where it has only read.
//!
//! What a participant has only read is protected in memory; and so is what an open transaction has read at one before it has written there, which is
//! not carried out again after a crash. If it dies between its vote and the decision, and comes back, somebody may change that. So every coordinator
//! is told that it has [ended](Site::ended) before it comes back, and aborts what it has not decided.
//!
//! A snapshot of one instance (`read_stale`, and `read` where others write all the time) is no part of such a transaction: it may show one
//! transaction and not another one before it that has not been decided there yet. Snapshots of all instances wait until none is half decided
//! ([`Site::pause`]).
//!
//! # Waiting
//! Where something prepared is in the way, a part waits until that has ended, for a bounded time (`queue`); of those who wait for the same the oldest
//! goes first. A participant's part, if it is the only one beside the coordinator's, is waited for by nobody meanwhile: nothing of its transaction is
//! prepared yet, since the coordinator carries its own part out last. All others, the coordinator's own one among them, wait longer than a moment
//! only for younger ones: a deadlock is none for longer (`ages`).
//!
//! Where many transactions want a few rows of several instances, each holds some elsewhere while it waits, and gives up for older ones again and
//! again. So a coordinator has no more of them under way than commit (`admission`).
//!
//! # By epochs
//! What is above has a transaction as the unit that is stored. With an [epoch](crate::CommitUnit::Epoch) as the unit neither votes nor decisions are
//! stored, and no one waits for the disk in between; the messages are the same. A decision is told when it is made, and the caller is answered when
//! all instances have stored the epoch that it was made in ([`PartStore::commits_by_epoch`]; how epochs end is in `islands/epochs.rs`). The argument
//! above says nothing of what is stored, so it holds for both. A crash then leaves nothing in doubt: all instances begin again behind the last epoch
//! that all had stored.
//!
//! # Crash
//! With a transaction as the unit:
//! - A participant votes when what it has prepared is stored. After a crash it prepares that again, before it serves, and asks the coordinator.
//! - The coordinator tells the decision to commit when it is stored. After a crash it tells it again, to all that have not acknowledged it.
//! - The commit of a part says in the same transaction that the part was carried out: its note counts no more, and it commits once.
//! - What a part is refused for is stored before anybody hears of it: where it was refused as a participant's before that votes, and where as the
//!   coordinator's own before the caller is answered. So a caller is not told of a row that a crash takes away. With epochs the others are told at
//!   once, and the caller with its epoch.
//! - A coordinator that hears no vote in time aborts. A participant that has voted never decides: it asks again and again.
//! - A message may be lost, late, or come twice. A part is carried out once: its message has a number, of which the participant remembers the last
//!   [`WINDOW`] for each coordinator's incarnation, and is meant for one incarnation of the participant.

mod admission;
mod ages;
mod coordinated;
mod coordinator;
mod id;
mod message;
mod participant;
mod patience;
mod queue;
mod request;
mod site;
mod store;
mod unstored;
mod voted;
mod window;

pub use ages::Ages;
pub use id::{DistributedId, OpenId, SiteId};
pub use message::{Decision, Message, Refusal, RefusalReason, Vote};
pub use request::{Outcome, Request};
pub use site::{Io, Outbox, PART_BYTES_MAX, Site};
pub use store::{Decided, Failed, OwnPart, PartStore, Participants, Refused, RefusedOf, Voting};
pub use window::WINDOW;
