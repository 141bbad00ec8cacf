//! The engine's protocols under model checkers: `cargo xtask models`.
//!
//! Under loom (`RUSTFLAGS="--cfg loom" cargo test --profile quick -p ensilo-ermia --lib models`) every order of the steps of two or three
//! threads is run, with what weak memory allows, on records that are found without an index. Under shuttle random orders of longer
//! transactions are run, with the index. The code is the product's; each model first finds steps that were left out on purpose.

/// Declares a serializable level whose rows leave memory as soon as they may, where they may, with a mistake or without.
macro_rules! level {
    ($name:ident, $fault:expr, $docs:literal) => {
        #[doc = $docs]
        #[derive(Copy, Clone, Debug)]
        struct $name;

        impl Isolation for $name {
            type Dependencies = crate::isolation::Certificates;
            const SERIALIZABLE: bool = true;
            const IS_HASTY: bool = true;
            const FAULT: Option<Fault> = $fault;
        }
    };
}

#[cfg(loom)]
mod cold;
#[cfg(shuttle)]
mod keys;
#[cfg(loom)]
mod long_readers;
#[cfg(loom)]
mod records;
mod serial_order;
#[cfg(loom)]
mod serializable;
#[cfg(loom)]
mod table;
#[cfg(loom)]
mod versions;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

#[cfg(loom)]
use std::path::PathBuf;

use ensilo_engine::{ColdPlace, TableId};
use ensilo_epoch::{Advance, EpochOptions, Epochs, Participant};
use ensilo_slab::Pool;
#[cfg(loom)]
use ensilo_test_disk::SimulatedDisk;

use crate::context::Context;
use crate::garbage::Garbage;
use crate::isolation::Isolation;
use crate::planted::{Step, leave_out};
use crate::session::collect_garbage;
use crate::shared::ErmiaShared;
use crate::snapshot::Snapshot;
use crate::store::{ErmiaStore, lock};
use crate::transaction::Transaction;

/// An engine's shared part, and one store.
#[derive(Clone)]
struct Stage {
    shared: Arc<ErmiaShared>,
    store: Arc<ErmiaStore>,
}

impl Stage {
    fn new() -> Stage {
        Stage::with(None, false)
    }

    /// The same, where versions leave the middle of chains as soon as they may.
    #[cfg(loom)]
    fn hasty() -> Stage {
        Stage::with(None, true)
    }

    /// The same, with rows that may leave memory.
    #[cfg(loom)]
    fn with_cold_rows() -> Stage {
        let place = ColdPlace::new(Arc::new(SimulatedDisk::new()), PathBuf::from("/cold"));
        Stage::with(Some(place), false)
    }

    fn with(cold_place: Option<ColdPlace>, is_hasty: bool) -> Stage {
        let options = EpochOptions {
            epoch_interval: Duration::from_millis(1),
            epochs_per_snapshot: 2,
            advance: Advance::Manual,
            ..EpochOptions::default()
        };
        let epochs = Epochs::new(options, Pool::new(None));
        let shared = Arc::new(ErmiaShared::new(epochs, 100, cold_place, is_hasty));
        let participant = shared.epochs.participant();
        let store = ErmiaStore::new(TableId(1), &shared.epochs, &participant.pin());
        drop(participant);
        let store = Arc::new(store.unwrap());
        lock(&shared.stores).insert(TableId(1), Arc::clone(&store));
        Stage { store, shared }
    }

    /// Returns what a thread of the model runs transactions with.
    fn session<I: Isolation>(&self) -> ModelSession<I> {
        ModelSession {
            stage: self.clone(),
            participant: self.shared.epochs.participant(),
            context: Context::new(Pool::new(None)),
            garbage: Garbage::new(),
            slot: self.shared.table.claim().unwrap(),
        }
    }
}

/// A session without what it does between transactions.
struct ModelSession<I: Isolation> {
    stage: Stage,
    participant: Participant,
    context: Context<I>,
    garbage: Garbage<I>,
    slot: u16,
}

impl<I: Isolation> ModelSession<I> {
    fn begin(&mut self) -> Transaction<'_, I> {
        let ModelSession { stage, participant, context, garbage, slot } = self;
        let entry = stage.shared.table.entry(*slot);
        collect_garbage(&stage.shared, entry, participant, garbage, &context.counters);
        Transaction::open(&stage.shared, participant, context, garbage, *slot)
    }

    fn begin_snapshot(&mut self) -> Snapshot<'_, I> {
        let ModelSession { stage, participant, context, slot, .. } = self;
        Snapshot::open(&stage.shared, participant, context, *slot)
    }
}

/// Returns whether the model fails.
fn fails(model: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(model)).is_err()
}

/// Returns whether the model fails when it leaves the step out.
fn fails_without(step: Step, model: impl FnOnce()) -> bool {
    leave_out(Some(step));
    let fails = fails(model);
    leave_out(None);
    fails
}
