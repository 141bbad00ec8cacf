//! What one statement does to the entries of a row: the keys that it adds to indexes and takes out of them.
//!
//! All keys are made before the first entry changes. So the trees are descended to all of them side by side, and a key that is too long is
//! refused while nothing has changed.

use ensilo_engine::{KeyChange, Store};
use ensilo_row::KeyBuf;

use crate::Result;
use crate::catalog::index_core::{IndexCore, check_key_len};

/// The changes of one statement, in the order in which they are made. It belongs to the worker, and its memory is used again.
#[derive(Debug, Default)]
pub(crate) struct EntryChanges {
    /// Behind the first `len` what earlier statements have left.
    changes: Vec<EntryChange>,
    len: usize,
}

/// The change of one entry.
#[derive(Debug)]
pub(crate) struct EntryChange {
    /// The place of the index among those of the table.
    pub(crate) index: usize,
    pub(crate) change: KeyChange,
    pub(crate) key: KeyBuf,
}

impl EntryChanges {
    /// Forgets the changes of the statement before.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds a change in the index at this place, and returns its key, which is to be made.
    pub(crate) fn add(&mut self, index: usize, change: KeyChange) -> &mut KeyBuf {
        if self.len == self.changes.len() {
            self.changes.push(EntryChange { index, change, key: KeyBuf::new() });
        }
        let added = &mut self.changes[self.len];
        self.len += 1;
        (added.index, added.change) = (index, change);
        &mut added.key
    }

    pub(crate) fn as_slice(&self) -> &[EntryChange] {
        &self.changes[..self.len]
    }

    /// Checks that the trees take the keys. Where one does not, all are forgotten, with the memory of the long one.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`](crate::Error::KeyTooLong).
    pub(crate) fn check_lengths<S: Store, I: AsRef<IndexCore<S>>>(&mut self, indexes: &[I]) -> Result<()> {
        let mut checks = self.as_slice().iter();
        let checked =
            checks.try_for_each(|made| check_key_len(&indexes[made.index].as_ref().name, &made.key));
        if checked.is_err() {
            *self = EntryChanges::default();
        }
        checked
    }
}
