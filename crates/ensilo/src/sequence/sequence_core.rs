//! A sequence as all handles to it share it.

use std::sync::{Arc, Mutex, MutexGuard};

use super::definition::Definition;
use super::state::{End, State};
use crate::error::Name;
use crate::mutex::{lock, try_lock};
use crate::{Error, Result};

/// Which sequence it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SequenceKey {
    /// The store of the table whose keys it gives, or 0.
    pub(crate) table: u32,
    /// Of one that a program has named; of a table, the place in its key of the column that the numbers are of, or nothing for the first one.
    pub(crate) name: Arc<str>,
}

/// A sequence.
#[derive(Debug)]
pub(crate) struct SequenceCore {
    pub(super) key: SequenceKey,
    /// For messages.
    pub(crate) name: Arc<str>,
    state: Mutex<State>,
}

impl SequenceKey {
    pub(crate) fn named(name: &str) -> Self {
        SequenceKey { table: 0, name: name.into() }
    }

    /// Returns the key of the sequence whose numbers are at this place of a table's key.
    pub(crate) fn of_table(table: u32, place: usize) -> Self {
        let name = if place == 0 { "".into() } else { place.to_string().into() };
        SequenceKey { table, name }
    }

    /// Returns the place in the table's key; `None` if no sequence of a table can be called so.
    pub(super) fn place(&self) -> Option<usize> {
        if self.name.is_empty() { Some(0) } else { self.name.parse().ok().filter(|place| *place > 0) }
    }
}

impl SequenceCore {
    pub(super) fn new(
        key: SequenceKey,
        name: Arc<str>,
        definition: Definition,
        reserved: Option<i128>,
    ) -> Arc<Self> {
        Arc::new(SequenceCore { key, name, state: Mutex::new(State::opened(definition, reserved)) })
    }

    pub(crate) fn definition(&self) -> Definition {
        lock(&self.state).definition.clone()
    }

    pub(crate) fn position(&self) -> Option<i128> {
        lock(&self.state).position()
    }

    /// Locks the state of a sequence that is there. The lock is held while numbers are reserved: others that want some wait for it.
    ///
    /// # Errors
    /// [`Error::UnknownSequence`], [`Error::Closed`].
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, State>> {
        let state = lock(&self.state);
        match state.end {
            None => Ok(state),
            Some(End::Dropped) => Err(Error::UnknownSequence(Name::new(&*self.name))),
            Some(End::Closed) => Err(Error::Closed),
        }
    }

    /// Notes that the sequence was dropped.
    pub(super) fn mark_dropped(&self) {
        lock(&self.state).end = Some(End::Dropped);
    }

    /// Ends the sequence because the database is closed, and returns what is to be written down as reserved where numbers are left. One that is about to
    /// reserve some is left alone.
    pub(super) fn close(&self) -> Option<Option<i128>> {
        let mut state = try_lock(&self.state)?;
        match state.end {
            None => state.close(),
            Some(_) => None,
        }
    }

    #[cold]
    pub(super) fn exhausted(&self) -> Error {
        Error::SequenceExhausted(Name::new(&*self.name))
    }
}
