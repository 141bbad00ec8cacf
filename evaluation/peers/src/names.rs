//! The names by which databases and workloads are asked for, and what is printed beside their figures.

use std::fmt;
use std::str::FromStr;

/// A database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are the names of databases")]
pub enum PeerName {
    /// Ensilo with its default engine.
    Ensilo,
    /// Ensilo with ERMIA's engine.
    EnsiloErmia,
    /// The same under snapshot isolation.
    EnsiloErmiaSnapshot,
    /// Ensilo with two-phase locking, older transactions waiting for younger ones.
    EnsiloTwoPhaseLocking,
    /// The same, nobody waiting.
    EnsiloTwoPhaseLockingNoWait,
    Sqlite,
    Lmdb,
    Redb,
    Fjall,
    Rocksdb,
    Postgresql,
}

impl PeerName {
    /// Every database that can be asked for by its name. Ensilo's engines are asked for apart from that.
    pub const ALL: [Self; 7] =
        [Self::Ensilo, Self::Sqlite, Self::Lmdb, Self::Redb, Self::Fjall, Self::Rocksdb, Self::Postgresql];

    /// Whether this program was built with RocksDB.
    pub const HAS_ROCKSDB: bool = cfg!(feature = "rocksdb");

    /// Those that can be compared without being asked for: PostgreSQL only if its address is known, RocksDB if it was built.
    pub fn at_hand(has_postgres_address: bool) -> Vec<Self> {
        let is_at_hand = |peer: &Self| match peer {
            Self::Postgresql => has_postgres_address,
            Self::Rocksdb => Self::HAS_ROCKSDB,
            _ => true,
        };
        Self::ALL.into_iter().filter(is_at_hand).collect()
    }

    /// The name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ensilo => "ensilo",
            Self::EnsiloErmia => "Ensilo (ERMIA, serializable)",
            Self::EnsiloErmiaSnapshot => "Ensilo (ERMIA, snapshot)",
            Self::EnsiloTwoPhaseLocking => "Ensilo (2PL, WAIT_DIE)",
            Self::EnsiloTwoPhaseLockingNoWait => "Ensilo (2PL, NO_WAIT)",
            Self::Sqlite => "sqlite",
            Self::Lmdb => "lmdb",
            Self::Redb => "redb",
            Self::Fjall => "fjall",
            Self::Rocksdb => "rocksdb",
            Self::Postgresql => "postgresql",
        }
    }

    /// What its transactions are isolated from as they are used here.
    pub fn isolation(self, workload: WorkloadName) -> &'static str {
        match self {
            // Keys that were read are validated, ranges are not. Only TPC-C has ranges.
            Self::Rocksdb if workload == WorkloadName::Tpcc => "optimistic, without ranges",
            Self::Ensilo
            | Self::EnsiloErmia
            | Self::EnsiloTwoPhaseLocking
            | Self::EnsiloTwoPhaseLockingNoWait => "serializable",
            Self::EnsiloErmiaSnapshot => "snapshot",
            Self::Sqlite | Self::Lmdb | Self::Redb => "serializable, one writer at a time",
            Self::Fjall | Self::Rocksdb => "serializable, optimistic",
            Self::Postgresql => "serializable, on snapshots",
        }
    }
}

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadName {
    /// YCSB's B: 95 % reads and 5 % updates of Zipfian keys.
    YcsbB,
    /// YCSB's F: half reads, half read-modify-writes of Zipfian keys.
    YcsbF,
    /// Silo's variant: 80 % reads and 20 % read-modify-writes of uniform keys.
    YcsbSilo,
    /// TPC-C with its standard mix.
    Tpcc,
    /// Transfers between accounts that are chosen uniformly.
    TransferUniform,
    /// Transfers between accounts that are chosen by Zipf's law with exponent 1.5.
    TransferZipf,
}

impl WorkloadName {
    /// Every workload.
    pub const ALL: [Self; 6] =
        [Self::YcsbB, Self::YcsbF, Self::YcsbSilo, Self::Tpcc, Self::TransferUniform, Self::TransferZipf];

    /// The name in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::YcsbB => "ycsb-b",
            Self::YcsbF => "ycsb-f",
            Self::YcsbSilo => "ycsb-silo",
            Self::Tpcc => "tpcc",
            Self::TransferUniform => "transfer-uniform",
            Self::TransferZipf => "transfer-zipf",
        }
    }
}

/// Names in text, both ways, for a type that has `ALL` and `name`.
macro_rules! named {
    ($($type:ident is $what:literal),+) => {
        $(
            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.name())
                }
            }

            impl FromStr for $type {
                type Err = String;

                fn from_str(text: &str) -> Result<Self, String> {
                    let found = Self::ALL.into_iter().find(|known| known.name() == text);
                    let names = Self::ALL.map(Self::name).join(", ");
                    found.ok_or_else(|| format!("{text} is no {}; there are {names}", $what))
                }
            }
        )+
    };
}

named!(PeerName is "database", WorkloadName is "workload");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read() {
        for peer in PeerName::ALL {
            assert_eq!(peer.to_string().parse(), Ok(peer));
        }
        for workload in WorkloadName::ALL {
            assert_eq!(workload.to_string().parse(), Ok(workload));
        }
        assert!("oracle".parse::<PeerName>().unwrap_err().contains("redb"));
    }
}
