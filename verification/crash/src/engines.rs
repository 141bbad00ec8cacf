//! The engines that are tested.

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::two_phase_locking::TwoPhaseLocking;
use ensilo::{Engine, Silo};

use crate::environment::is_long;

/// An engine that is tested.
pub trait TestedEngine: Engine {
    /// Its name, as an argument of a program.
    const NAME: &'static str;
    /// In a short run it gets one of so many samples.
    const ONE_SAMPLE_IN: u64;
}

impl TestedEngine for Silo {
    const NAME: &'static str = "silo";
    const ONE_SAMPLE_IN: u64 = 1;
}

impl TestedEngine for Ermia {
    const NAME: &'static str = "ermia";
    const ONE_SAMPLE_IN: u64 = 4;
}

impl TestedEngine for Ermia<SnapshotIsolation> {
    const NAME: &'static str = "ermia-snapshot-isolation";
    const ONE_SAMPLE_IN: u64 = 8;
}

/// Its log, its checkpoints and its recovery are Silo's.
impl TestedEngine for TwoPhaseLocking {
    const NAME: &'static str = "2pl";
    const ONE_SAMPLE_IN: u64 = 8;
}

/// Returns how many of so many samples this engine gets: all of them in a long run, and at least one.
#[must_use]
pub fn share<E: TestedEngine>(count: u64) -> u64 {
    if is_long() { count } else { count.div_ceil(E::ONE_SAMPLE_IN) }
}
