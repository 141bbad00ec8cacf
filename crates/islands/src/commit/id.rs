//! Names of sites and of transactions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A worker of an instance.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SiteId {
    /// Which instance, from 0 on.
    pub instance: u16,
    /// Which of its workers, from 0 on.
    pub worker: u16,
}

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.instance, self.worker)
    }
}

/// Names an open transaction: one whose parts are carried out one after the other, before it is to commit. Whoever has begun it chooses the number,
/// which no other open transaction at the same instances has.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OpenId(pub u64);

/// Names a transaction among all that were ever distributed over instances.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DistributedId {
    /// The site that coordinates it.
    pub coordinator: SiteId,
    /// The incarnation of the coordinator's instance.
    pub incarnation: u32,
    /// Which one of this site and incarnation.
    pub sequence: u64,
}

impl fmt::Display for DistributedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.coordinator, self.incarnation, self.sequence)
    }
}
