//! Instances: databases of their own, each with its workers, that carry out parts of transactions for each other.
//!
//! A worker serves its channels and its submissions by turns, and never waits while it serves one: two workers that need each other's votes both go
//! on. Transactions that stay within an instance need no worker: they run on its [`Database`](ensilo::Database) by whatever
//! thread.

mod aside;
mod carry_out;
mod client;
mod clock;
mod cluster_id;
mod idle;
mod links;
mod load;
mod maintenance;
mod notes;
mod open;
mod pause;
mod program;
mod rejected;
mod snapshot;
mod store;
mod submission;
mod term;
mod wake;
mod worker;

pub(crate) use carry_out::message_of;
pub use load::{LoadReport, LoadTime, RequestSource};
pub use notes::{StoredInstance, stored_instance};
pub use program::{InstanceNumber, Program};
pub use store::InstanceError;

pub(crate) use client::{ClientEnd, OpenPart, Order, Reply};
pub(crate) use clock::machine_nanos;
pub(crate) use cluster_id::{ClusterId, ClusterMember, ClusterStage};
pub(crate) use idle::Idle;
pub(crate) use load::Load;
pub(crate) use maintenance::{Copied, Maintenance};
pub(crate) use notes::{Found, Notes, check_cluster, join_cluster, stored_cluster};
pub(crate) use open::OpenTransactions;
pub(crate) use pause::pause_before_attempt;
pub(crate) use snapshot::PointId;
pub(crate) use store::{InstanceStore, Keeping, Recovered};
pub(crate) use submission::{Answer, Submission, Submitter};
pub(crate) use term::{Term, Terms, TermsOf, check_term, stored_term};
pub(crate) use wake::Wake;
pub(crate) use worker::Worker;
