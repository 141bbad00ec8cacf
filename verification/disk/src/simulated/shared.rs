//! What a disk and the files opened through it have in common.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::faults::io_error;
use super::state::DiskState;

/// What a disk and the files opened through it have in common.
pub(super) struct SharedState {
    state: Mutex<DiskState>,
}

impl SharedState {
    pub(super) fn new(state: DiskState) -> SharedState {
        SharedState { state: Mutex::new(state) }
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, DiskState> {
        // A panic elsewhere is a failed test already; each change of the state is whole before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One sync of a file or a directory: counted, held up by a pause, then failed or done by the caller's functions.
    pub(super) fn sync(
        &self,
        is_of_dir: bool,
        fail: impl FnOnce(&mut DiskState),
        store: impl FnOnce(&mut DiskState, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let begun = self.lock_state().begin_sync(is_of_dir)?;
        if let Some(pause) = begun.pause {
            pause.pass(|| self.lock_state().is_dead());
        }
        let mut state = self.lock_state();
        state.check_alive()?;
        if begun.fails {
            fail(&mut state);
            return Err(io_error());
        }
        store(&mut state, begun.moment)
    }
}
