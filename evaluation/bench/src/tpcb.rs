//! TPC-B: a bank whose customers change their accounts, on one database.
//!
//! A transaction changes an account, a teller and the teller's branch by one amount, writes a row of history, and returns the new balance of the
//! account. Every transaction of a branch changes the one row of the branch: where there are few branches, everybody meets there.
//!
//! # Source
//! TPC Benchmark B, revision 2.0: the four tables, the transaction, its inputs, and the conditions of consistency. There are as many branches as are asked
//! for, whatever the throughput is. The same on several databases that share the branches is `ensilo bench tpcb-islands` (`evaluation/islands`).

mod bank;
mod check;
mod options;
mod schema;
mod session;
#[cfg(test)]
mod tests;

pub use bank::Tpcb;
pub use options::{TRANSACTION_TYPES, TpcbOptions};
pub use session::TpcbSession;
