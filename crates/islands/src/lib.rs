//! Several instances as one database, placed by the machine's topology: *islands* are instances whose cores are close to each other.
//!
//! What is here so far is the ground that they will stand on: the [`Topology`] of a machine, where instances and their workers [go](Plan) on
//! it, and the [channels](Channel) by which they talk to each other.
//!
//! # Source
//! D. Porobic et al., "Characterization of the Impact of Hardware Islands on OLTP" (VLDB Journal): §4 on why the place matters, §5 on islands.

#[cfg(not(target_os = "linux"))]
compile_error!("islands run on Linux only: they need its topology, affinity and shared memory");

mod affinity;
mod binding;
mod channel;
pub mod commit;
#[cfg(not(loom))]
mod instance;
#[cfg(not(loom))]
mod islands;
mod placement;
#[cfg(not(loom))]
mod round_trips;
mod topology;

pub use binding::{BindError, bind_this_thread};
#[cfg(not(loom))]
pub use channel::connect;
pub use channel::{Channel, ChannelError, ChannelKind, MESSAGE_BYTES_MAX};
#[cfg(not(loom))]
pub use instance::{InstanceError, LoadReport, LoadTime, Place, Program, RequestSource};
#[cfg(not(loom))]
pub use islands::{Islands, IslandsOptions, run_if_instance};
pub use placement::{InstancePlace, Instances, Placement, Plan};
#[cfg(not(loom))]
pub use round_trips::{RoundTrips, answer_all, measure_round_trips};
pub use topology::{Core, CpuId, NodeId, Regular, Topology, TopologyError};
