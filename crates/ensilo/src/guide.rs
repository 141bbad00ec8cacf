//! A guide for those who build with Ensilo.
//!
//! 1. [First steps](first_steps)
//! 2. [Modelling keys and indexes](modelling)
//! 3. [Transactions, and what closures may do](transactions)
//! 4. [Durability: what survives what](durability)
//! 5. [Schema change](schema_change)
//! 6. [Queues and counters](queues_and_counters)
//! 7. [Rows that expire](expiry)
//! 8. [Change feed](change_feed)
//! 9. [Async services](async_services)
//! 10. [Limits](limits)
//! 11. [Operations: backup, restore, and what errors ask for](operations)
//! 12. [Coming from SQLite, redb, RocksDB or PostgreSQL](coming_from)

#[doc = include_str!("../guide/first-steps.md")]
pub mod first_steps {}

#[doc = include_str!("../guide/modelling.md")]
pub mod modelling {}

#[doc = include_str!("../guide/transactions.md")]
pub mod transactions {}

#[doc = include_str!("../guide/durability.md")]
pub mod durability {}

#[doc = include_str!("../guide/schema-change.md")]
pub mod schema_change {}

#[doc = include_str!("../guide/queues-and-counters.md")]
pub mod queues_and_counters {}

#[doc = include_str!("../guide/expiry.md")]
pub mod expiry {}

#[doc = include_str!("../guide/change-feed.md")]
pub mod change_feed {}

#[doc = include_str!("../guide/async-services.md")]
pub mod async_services {}

#[doc = include_str!("../guide/limits.md")]
pub mod limits {}

#[doc = include_str!("../guide/operations.md")]
pub mod operations {}

#[doc = include_str!("../guide/coming-from.md")]
pub mod coming_from {}
