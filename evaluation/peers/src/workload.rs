//! The workloads: YCSB on any [`Peer`](ensilo_bench::peer::Peer), TPC-C on any [`TpccPeer`]. Transfers are those of `ensilo-bench`.

mod tpcc;
mod ycsb;

pub use tpcc::{
    LoadedRows, OrderedTpcc, OrderedTpccClient, OwnTpcc, OwnTpccSession, PeerTpcc, PeerTpccSession,
    RelationalClient, RelationalTpcc, TpccClient, TpccPeer,
};
pub use ycsb::{RecordSession, Records};
