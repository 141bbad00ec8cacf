//! The workloads: YCSB and transfers on any [`Peer`](crate::Peer), TPC-C on any [`TpccPeer`].

mod accounts;
mod session;
mod tpcc;
mod transfer;
mod ycsb;

pub use accounts::Skew;
pub use tpcc::{
    LoadedRows, OrderedTpcc, OrderedTpccClient, OwnTpcc, OwnTpccSession, PeerTpcc, PeerTpccSession,
    RelationalClient, RelationalTpcc, TpccClient, TpccPeer,
};
pub use transfer::{TransferSession, Transfers};
pub use ycsb::{RecordSession, Records};
