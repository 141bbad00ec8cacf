//! What the workers of one logger share with it.

use std::sync::Arc;

use super::buffer::{Draining, Taken};
use super::monitor::Monitor;
use super::pool::Pool;

/// The way from some workers to their logger: buffers go over when they are opened, and come back through the pool.
///
/// A worker takes the lock of the inbox once per buffer, a logger once per look. What is in a buffer passes no lock.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) pool: Pool,
    /// Buffers that were opened since the logger looked last, each from its first byte on.
    inbox: Monitor<Vec<Draining>>,
}

impl Lane {
    pub(crate) fn new(pool: Pool) -> Lane {
        Lane { pool, inbox: Monitor::new(Vec::new()) }
    }

    /// Tells the logger of a buffer. Before anything is published in it: so whoever sees a commit's end sees its buffer here.
    pub(crate) fn deliver(&self, opened: Draining) {
        self.inbox.lock().push(opened);
    }

    /// A worker has sealed a buffer.
    pub(crate) fn announce_sealed(&self) {}
}

/// The logger's end of a lane.
#[derive(Debug)]
pub(crate) struct Intake {
    lane: Arc<Lane>,
    open: Vec<Draining>,
}

impl Intake {
    pub(crate) fn new(lane: Arc<Lane>) -> Intake {
        Intake { lane, open: Vec::new() }
    }

    /// Gives to `write` what was published and not taken yet, at least all that was published before the call as far as the caller
    /// knows ([frontier]). Then gives the buffers back that are done with. After an error the rest stays where it is.
    pub(crate) fn drain<E>(&mut self, mut write: impl FnMut(Taken<'_>) -> Result<(), E>) -> Result<(), E> {
        // The inbox first: a buffer that was delivered before a commit ended is then among the open ones.
        self.open.append(&mut self.lane.inbox.lock());
        for draining in &mut self.open {
            if let Some(taken) = draining.take() {
                write(taken)?;
            }
        }
        self.give_back();
        Ok(())
    }

    fn give_back(&mut self) {
        for draining in std::mem::take(&mut self.open) {
            match draining.into_buffer() {
                Ok(buffer) => self.lane.pool.give_back(buffer),
                Err(draining) => self.open.push(draining),
            }
        }
    }
}
