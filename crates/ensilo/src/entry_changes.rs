//! What one statement does to the entries of a row: the keys that it adds to indexes and takes out of them.
//!
//! All keys are made before the first entry changes. So the trees are descended to all of them side by side, and a key that is too long is
//! refused while no entry has changed.

use ensilo_engine::{KeyChange, Store};
use ensilo_row::KeyBuf;

use crate::Result;
use crate::catalog::index_core::{IndexCore, check_key_len};

/// The changes of one statement, in the order in which they are made. It belongs to the worker, and its memory is used again: at most two keys
/// of an entry's length for each index of a table.
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

    /// Adds a change in `index`, which stands at the place `at`, under the key that `make_key` makes. A deletion under a key that is too long for an entry
    /// is left out: there is none, and a row with such a key can be there as long as the index is built.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`](crate::Error::KeyTooLong) for an entry that is to be inserted; all changes are forgotten then, with the memory of the key.
    pub(crate) fn add<S: Store>(
        &mut self,
        at: usize,
        index: &IndexCore<S>,
        change: KeyChange,
        make_key: impl FnOnce(&mut KeyBuf),
    ) -> Result<()> {
        if self.len == self.changes.len() {
            self.changes.push(EntryChange { index: at, change, key: KeyBuf::new() });
        }
        let added = &mut self.changes[self.len];
        (added.index, added.change) = (at, change);
        make_key(&mut added.key);
        match check_key_len(&index.name, &added.key) {
            Ok(()) => self.len += 1,
            Err(_) if change == KeyChange::Delete => added.key = KeyBuf::new(),
            Err(refusal) => {
                *self = EntryChanges::default();
                return Err(refusal);
            }
        }
        Ok(())
    }

    pub(crate) fn as_slice(&self) -> &[EntryChange] {
        &self.changes[..self.len]
    }
}
