//! Loading in the background, by all recovery threads, until everything is in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ensilo_engine::{Engine, Failpoint};

use super::cell::LoadRows;
use super::state::LoadState;
use super::table_load::{LoadShared, TableLoad};
use crate::Error;
use crate::catalog::table_core::TableCore;
use crate::closing::FirstPanic;
use crate::durable::{RecoveryHook, RecoveryProgress};
use crate::mutex::lock;

/// Where memory has ended, the background looks so often whether there is some.
const MEMORY_INTERVAL: Duration = Duration::from_millis(200);

/// So often the program is told of the progress.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The loading of a database, from its opening until it is closed.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    pub(crate) state: Arc<LoadState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Loading {
    pub(super) fn set_thread(&self, thread: Option<JoinHandle<()>>) {
        *lock(&self.thread) = thread;
    }

    /// Ends the loading where it is. What waits for it gets [`Error::Closed`].
    pub(crate) fn stop(&self, panics: &mut FirstPanic) {
        self.state.stop();
        let thread = lock(&self.thread).take();
        thread.map_or(Ok(()), JoinHandle::join).unwrap_or_else(|panic| panics.note(panic));
    }
}

/// A table and its load.
pub(super) type LoadedTable<E> = (Arc<TableCore<<E as Engine>::Store>>, Arc<TableLoad<E>>);

/// See the module's documentation.
pub(super) struct Background<E: Engine> {
    pub(super) shared: Arc<LoadShared<E>>,
    pub(super) tables: Vec<LoadedTable<E>>,
    pub(super) hook: Option<RecoveryHook>,
}

impl<E: Engine> Background<E> {
    /// Begins to load. Where the system gives no thread, rows are loaded when they are touched alone.
    pub(super) fn start(self) -> Option<JoinHandle<()>> {
        let state = Arc::clone(&self.shared.state);
        let thread = thread::Builder::new().name("ensilo-load".into());
        let started = thread.spawn(move || self.run());
        started.inspect_err(|_| state.abandon()).ok()
    }

    fn run(self) {
        // Also where a thread panics: nobody is to wait for ever.
        let _abandoned = Abandoned(&self.shared.state);
        self.shared.state.set_own_thread();
        self.load_side_by_side();
        while !self.shared.state.is_stopped() && !self.load_rest() {
            self.shared.state.pause(MEMORY_INTERVAL);
        }
        self.shared.let_hands_go();
    }

    /// Loads what there is, block by block, by as many threads as there are to be.
    fn load_side_by_side(&self) {
        let first = AtomicUsize::new(0);
        let work = || self.work(&first);
        thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            // A system that gives no threads gets by with this one.
            let spawn = |number| {
                let end = end.clone();
                let thread = thread::Builder::new().name(format!("ensilo-load-{number}"));
                let run = move || {
                    let _end = end;
                    work();
                };
                thread.spawn_scoped(scope, run).is_ok()
            };
            let started = (0..self.shared.threads).filter(|&number| spawn(number)).count();
            drop(end);
            if started == 0 {
                work();
            }
            self.report_until(&ended);
        });
    }

    /// Tells the program of the progress until all threads have ended.
    fn report_until(&self, ended: &std::sync::mpsc::Receiver<()>) {
        let Some(hook) = &self.hook else { return };
        let start = Instant::now();
        loop {
            let is_over = ended.recv_timeout(REPORT_INTERVAL) != Err(RecvTimeoutError::Timeout);
            hook.report(&RecoveryProgress::of_load(&self.shared.state.statistics(), start.elapsed()));
            if is_over {
                return;
            }
        }
    }

    /// Loads blocks that nobody has taken until there are none. `first` is the first table that may have any.
    fn work(&self, first: &AtomicUsize) {
        loop {
            E::reached(Failpoint::BackgroundBlockTaken);
            if self.shared.state.is_stopped() {
                return;
            }
            let Some((table, load)) = self.next_table(first) else { return };
            match load.load_next() {
                Ok(true) => _ = load.load_whole(table, false, &|| Ok(())),
                // Other blocks need memory too.
                Err(Error::OutOfMemory(_)) => return,
                // What has failed was noted.
                Ok(false) | Err(_) => {}
            }
        }
    }

    /// Returns the table to load a block of: one that somebody waits for, or the first one with blocks.
    fn next_table(&self, first: &AtomicUsize) -> Option<&LoadedTable<E>> {
        // Relaxed: a table that was passed over has none, and never gets any.
        let begin = first.load(Ordering::Relaxed);
        let mut next = None;
        for (number, table) in self.tables.iter().enumerate().skip(begin) {
            if !table.1.has_next() {
                continue;
            }
            if table.1.is_wanted() {
                return Some(table);
            }
            next.get_or_insert((number, table));
        }
        let (number, table) = next?;
        first.fetch_max(number, Ordering::Relaxed);
        Some(table)
    }

    /// Loads what is left of each table, and says whether that was all, but for what cannot be loaded.
    fn load_rest(&self) -> bool {
        let mut is_short = false;
        for (table, load) in &self.tables {
            if !table.load.is_over() {
                let loaded = load.load_whole(table, false, &|| Ok(()));
                if matches!(loaded, Err(Error::OutOfMemory(_))) {
                    is_short = true;
                    // Now, not behind all the other tables, which may take long.
                    self.shared.state.set_short_of_memory(true);
                }
            }
        }
        self.shared.state.set_short_of_memory(is_short);
        !is_short
    }
}

/// Says in the end that the background does nothing any more.
struct Abandoned<'s>(&'s LoadState);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
