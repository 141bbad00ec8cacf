//! What waits to be stored, in the order in which it will be.

use std::collections::VecDeque;

use super::id::DistributedId;
use super::store::{Failed, PartStore};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Unstored<T>(VecDeque<(T, DistributedId)>);

impl<T> Unstored<T> {
    pub(super) fn new() -> Self {
        Unstored(VecDeque::new())
    }

    pub(super) fn add(&mut self, ticket: T, id: DistributedId) {
        self.0.push_back((ticket, id));
    }

    /// Takes out the transaction that the first ticket is of, if that is stored.
    pub(super) fn next<S: PartStore<Ticket = T>>(
        &mut self,
        store: &mut S,
    ) -> Result<Option<DistributedId>, Failed> {
        let Some((ticket, _)) = self.0.front_mut() else { return Ok(None) };
        let is_stored = store.is_stored(ticket)?;
        Ok(self.0.pop_front_if(|_| is_stored).map(|(_, id)| id))
    }
}
