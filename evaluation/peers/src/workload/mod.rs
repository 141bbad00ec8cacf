//! The workloads: YCSB and transfers on any [`Peer`](crate::Peer), TPC-C on any [`OrderedStore`](crate::engine::OrderedStore) and
//! on PostgreSQL.

mod accounts;
mod session;
mod tpcc;
mod transfer;
mod ycsb;

pub use accounts::Skew;
pub use tpcc::{
    LoadedRows, OrderedTpcc, OrderedTpccSession, OwnTpcc, OwnTpccSession, RelationalTpcc,
    RelationalTpccSession,
};
pub use transfer::{TransferSession, Transfers};
pub use ycsb::{RecordSession, Records};
