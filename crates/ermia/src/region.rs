//! The parts of the engine that ERMIA's figure 11 tells apart: see [`ensilo_sync::region`]. Each is left when what it returns is dropped.

use ensilo_sync::region::{InRegion, Region, enter};

/// Enters what is in none of the others.
#[inline(always)]
pub(crate) fn engine() -> InRegion {
    enter(Region::Engine)
}

/// Enters what goes through an indirection array: its slots, the versions behind them, and new ones.
#[inline(always)]
pub(crate) fn indirection() -> InRegion {
    enter(Region::Indirection)
}

/// Enters what makes log entries.
#[inline(always)]
pub(crate) fn log() -> InRegion {
    enter(Region::Log)
}

/// Enters what keeps the horizon, and frees what is before it.
#[inline(always)]
pub(crate) fn epochs() -> InRegion {
    enter(Region::Epochs)
}
