//! The workloads, on any [`Peer`](crate::Peer).

mod accounts;
mod session;
mod transfer;
mod ycsb;

pub use accounts::Skew;
pub use transfer::{TransferSession, Transfers};
pub use ycsb::{RecordSession, Records};
