//! The names of tables and indexes that were dropped, for the transactions that have used them.
//!
//! Such a transaction is undone, by a statement or by its commit, and the error names what was dropped; the
//! engine knows the id only. A name is needed as long as a transaction of the time before the drop is under
//! way, and a moment longer, until its error was made.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::mutex::lock;
use ensilo_engine::TableId;
use ensilo_epoch::{Epoch, Epochs};

/// So many names stay in any case: a transaction may make its error after its epoch is over.
const KEPT_MIN: usize = 256;

/// What a store was before it was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DroppedName {
    /// A table of this name, or an index that went with it.
    Table(Arc<str>),
    /// An index that was dropped by itself.
    Index { table: Arc<str>, index: Arc<str> },
}

impl DroppedName {
    /// Returns the name that an abort shows.
    pub(crate) fn in_abort(&self) -> Arc<str> {
        match self {
            DroppedName::Table(table) => Arc::clone(table),
            DroppedName::Index { table, index } => format!("{table}.{index}").into(),
        }
    }
}

/// Names by store. Ids of stores are never used again, so each stands for one table or index.
#[derive(Debug, Default)]
pub(crate) struct DroppedNames(Mutex<VecDeque<Dropped>>);

#[derive(Debug)]
struct Dropped {
    id: TableId,
    name: DroppedName,
    /// An epoch after the drop, once that has taken place: transactions that have used the store began in it
    /// or before.
    epoch: Option<Epoch>,
}

impl DroppedNames {
    /// Notes what a store is that is about to be dropped. [`DroppedNames::note_drop`] follows.
    pub(super) fn add(&self, id: TableId, name: DroppedName) {
        lock(&self.0).push_back(Dropped { id, name, epoch: None });
    }

    /// Says that all stores were dropped that were noted, and forgets names that no transaction needs any
    /// more. Changes of the catalog are made one at a time (G1).
    pub(super) fn note_drop(&self, epochs: &Epochs) {
        let mut names = lock(&self.0);
        let epoch = epochs.global_epoch();
        names.iter_mut().rev().map_while(|name| name.epoch.is_none().then_some(name)).for_each(|name| {
            name.epoch = Some(epoch);
        });
        let horizon = epochs.memory_horizon();
        let is_over = |oldest: &Dropped| oldest.epoch.is_some_and(|epoch| epoch < horizon);
        while names.len() > KEPT_MIN && names.front().is_some_and(is_over) {
            names.pop_front();
        }
    }

    /// Returns what a store was.
    pub(crate) fn get(&self, id: TableId) -> Option<DroppedName> {
        lock(&self.0).iter().find(|dropped| dropped.id == id).map(|dropped| dropped.name.clone())
    }
}

#[cfg(test)]
mod tests {
    use ensilo_engine::{Engine, EngineOptions};

    use super::*;
    use crate::Silo;

    fn drop_tables(names: &DroppedNames, numbers: std::ops::Range<u32>, epochs: &Epochs) {
        for number in numbers {
            names.add(TableId(2 * number + 1), DroppedName::Table(format!("{number}").into()));
            names.note_drop(epochs);
        }
    }

    fn is_known(names: &DroppedNames, number: u32) -> bool {
        names.get(TableId(2 * number + 1)).is_some()
    }

    #[test]
    fn a_dropped_name_stays_for_older_transactions() {
        let engine = Silo::start(EngineOptions::default()).unwrap();
        let epochs = engine.epochs();
        let names = DroppedNames::default();
        let many = 2 * KEPT_MIN as u32;
        let participant = epochs.participant();
        let guard = participant.pin();
        drop_tables(&names, 0..many, epochs);
        (0..5).for_each(|_| epochs.advance());
        drop_tables(&names, many..many + 1, epochs);
        assert!((0..=many).all(|number| is_known(&names, number)));
        drop(guard);
        (0..5).for_each(|_| epochs.advance());
        drop_tables(&names, many + 1..many + 2, epochs);
        assert!(!is_known(&names, 0) && is_known(&names, many));
        assert_eq!(lock(&names.0).len(), KEPT_MIN);
    }

    #[test]
    fn a_dropped_name_stays_for_a_transaction_begun_before_the_drop() {
        let engine = Silo::start(EngineOptions::default()).unwrap();
        let epochs = engine.epochs();
        let names = DroppedNames::default();
        let many = 2 * KEPT_MIN as u32;
        names.add(TableId(1), DroppedName::Table("0".into()));
        (0..5).for_each(|_| epochs.advance());
        let participant = epochs.participant();
        let guard = participant.pin();
        names.note_drop(epochs);
        (0..5).for_each(|_| epochs.advance());
        drop_tables(&names, 1..many, epochs);
        assert!(is_known(&names, 0));
        drop(guard);
        (0..5).for_each(|_| epochs.advance());
        drop_tables(&names, many..many + 1, epochs);
        assert!(!is_known(&names, 0));
    }
}
