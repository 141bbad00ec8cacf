//! How an engine is set up.

use ensilo_epoch::EpochOptions;

use crate::cold_place::ColdPlace;

/// How an engine is set up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Epochs and snapshots.
    pub epochs: EpochOptions,
    /// The most bytes that records and nodes may take; `None` for no limit. The pool of the engine's epochs enforces
    /// it, on what is taken from there. While a database is opened it is raised for a time.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes to take from the system when the engine starts, so that tables which grow do not wait for it.
    pub prefault_bytes: u64,
    /// How many snapshot epochs a snapshot transaction may fall behind before its next operation aborts it.
    pub snapshot_age_max: u64,
    /// Where rows go that leave memory under the limit, in an engine that [does this](crate::Engine::EVICTS).
    pub cold_place: Option<ColdPlace>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            epochs: EpochOptions::default(),
            memory_limit_bytes: None,
            prefault_bytes: 0,
            snapshot_age_max: 60,
            cold_place: None,
        }
    }
}
