//! What sessions have committed that can be counted, held against what the rows show.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ensilo_bench::driver::{Check, Failure, Workload};
use ensilo_bench::tpcc::{TRANSACTION_TYPES, Tpcc};

/// A count for each type of transaction.
pub(super) type Counts = [u64; TRANSACTION_TYPES.len()];

/// By type, what committed since the load has done.
#[derive(Debug, Default)]
pub(super) struct Effects([AtomicU64; TRANSACTION_TYPES.len()]);

impl Effects {
    /// Adds what one session has counted.
    pub(super) fn add(&self, of_session: Counts) {
        for (all, count) in self.0.iter().zip(of_session) {
            // Relaxed: read after the session's thread has been joined.
            all.fetch_add(count, Relaxed);
        }
    }

    /// That the rows, brought back into Ensilo, show these effects.
    pub(super) fn check(&self, rows: &Tpcc) -> Result<Check, Failure> {
        let mut check = Check::new("effects", "the rows show what was committed, and no more");
        // Relaxed: the workers' threads have been joined.
        let committed = self.0.iter().map(|count| count.load(Relaxed));
        for ((name, shown), committed) in TRANSACTION_TYPES.iter().zip(rows.count_effects()?).zip(committed) {
            check.expect(shown == committed, || format!("{name}: {shown} shown, {committed} committed"));
        }
        Ok(check)
    }
}
