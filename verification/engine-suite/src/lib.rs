//! The tests that every engine under Ensilo's tables passes, to be called for any engine.
//!
//! An engine implements the traits of [`ensilo_engine`], whose documentation says how. [`engine_tests!`] makes a
//! `#[test]` of each function of this crate for one engine, in an integration test of the crate that the engine
//! comes from:
//!
//! ```
//! use ensilo_engine_suite::{conflicts, engine_tests};
//! use ensilo_map_engine::MapEngine;
//!
//! engine_tests!(MapEngine);
//!
//! // Each test is a function too.
//! conflicts::write_skew_is_rejected::<MapEngine>();
//! ```
//!
//! The functions lie in groups, and the macro takes the names of those that are wanted, as in
//! `engine_tests!(PartitionedStore: contract, tables, model)`:
//! - [`contract`] calls the engine itself, for what tests of tables do not see, and with it go [`epochs`], for the
//!   epochs of rows, and [`replay`], for what is made of a log;
//! - [`tables`] runs statements of every kind through tables and indexes, by one client;
//! - [`model`] runs random statements beside a `BTreeMap`, and rolls some of them back. The engine has to be
//!   [transactional](ensilo_engine::Engine::IS_TRANSACTIONAL);
//! - [`conflicts`] has sessions and requests that meet. The engine has to be serializable.
//!
//! # What is assumed of an engine
//! Which one of two transactions in conflict gives way, and when, is left to the engine: it may abort the one that
//! came later or the one that came first, at the statement that meets the other one or at the commit. Two bounds
//! remain:
//! - A thread may have several transactions open that touch the same row. An engine whose transactions wait for each
//!   other must abort one that would wait for a transaction of its own thread, since nobody else would end that one. As
//!   a session may go on in another thread, the simplest engine of this kind aborts at once instead of waiting.
//! - A transaction that nobody gets in the way of commits, and of a request and a session that write the same row one
//!   commits.
//!
//! The suite opens its databases in memory ([`Options::in_memory_with`](ensilo::Options::in_memory_with)). What an
//! engine that logs has to show beyond that, it shows on files
//! ([`Options::open_with`](ensilo::Options::open_with)), in tests of its own.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "tests")]

pub mod conflicts;
pub mod contract;
mod engine_tests;
pub mod epochs;
pub mod model;
pub mod replay;
mod rows;
pub mod tables;
