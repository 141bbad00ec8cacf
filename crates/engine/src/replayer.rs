//! The replay of a log and a checkpoint into an engine that was just started.

use ensilo_log::{Replay, ReplayError};

use crate::store::TableId;

/// Puts a log and a checkpoint back into an engine.
pub trait Replayer: Replay {
    /// Ends the replay: all writes were applied and their workers dropped.
    ///
    /// # Errors
    /// [`ReplayError::Refused`] when words of a row were logged and the row was not.
    fn finish(self) -> Result<Recovered, ReplayError>;
}

/// The replay of an engine that does not [log](crate::Engine::LOGS): it takes nothing.
#[derive(Debug)]
pub struct NoReplay;

impl Replay for NoReplay {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), _: &[ensilo_log::Write<'_>]) -> Result<(), ReplayError> {
        Err(ReplayError::Refused("this engine has no log".into()))
    }
}

impl Replayer for NoReplay {
    fn finish(self) -> Result<Recovered, ReplayError> {
        Ok(Recovered::default())
    }
}

/// What a replay has put into an engine.
#[derive(Debug, Default)]
pub struct Recovered {
    /// The stores that there are now, by id.
    pub stores: Vec<RecoveredStore>,
    /// Keys that were deleted, and may have come back or been deleted again: none of them has an older row.
    pub deleted: Vec<(TableId, Box<[u8]>)>,
}

/// A store that a replay has filled.
#[derive(Debug, Copy, Clone)]
pub struct RecoveredStore {
    /// Its id.
    pub id: TableId,
    /// How many rows it has.
    pub rows: u64,
}
