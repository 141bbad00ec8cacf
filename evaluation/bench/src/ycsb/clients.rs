//! By whom a worker's transactions are asked for: by its thread alone, or by sessions that take turns on it, as the clients of a server do
//! whose threads are fewer than its connections.

use ensilo::generic::{Database, Request, Session};
use ensilo::{Engine, NoHook, Result};

use super::options::YcsbOptions;

/// The clients of one worker.
#[derive(Debug)]
pub(super) struct Clients<E: Engine> {
    /// None where the thread itself asks.
    sessions: Vec<Session<E>>,
    /// Sessions that are not made yet.
    missing: usize,
    /// Whose turn was the last one.
    last: usize,
}

impl<E: Engine> Clients<E> {
    /// Those of the worker of this number: its share of all sessions.
    pub(super) fn of_worker(options: &YcsbOptions, worker: usize) -> Self {
        let all = options.sessions.unwrap_or(0);
        let share = all / options.workers + usize::from(worker < all % options.workers);
        Self { sessions: Vec::with_capacity(share), missing: share, last: 0 }
    }

    /// Makes the sessions, if they are not there yet.
    ///
    /// # Errors
    /// [`ensilo::Error::Closed`].
    #[inline]
    pub(super) fn open(&mut self, database: &Database<E>) -> Result<()> {
        while self.missing > 0 {
            self.sessions.push(database.session()?);
            self.missing -= 1;
        }
        Ok(())
    }

    /// A request of the client whose turn it is.
    #[inline]
    pub(super) fn request<'r>(&'r mut self, database: &'r Database<E>) -> Request<'r, NoHook, E> {
        let count = self.sessions.len();
        if count == 0 {
            return database.request();
        }
        self.last = if self.last + 1 < count { self.last + 1 } else { 0 };
        self.sessions[self.last].request()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ensilo::Silo;

    #[test]
    fn workers_share_all_sessions_and_each_takes_its_turn() {
        let database = Database::<Silo>::clone(&crate::tests::database());
        let options = YcsbOptions { sessions: Some(8), ..YcsbOptions::new(3) };
        let mut counts = Vec::new();
        for worker in 0..3 {
            let mut clients = Clients::of_worker(&options, worker);
            clients.open(&database).unwrap();
            let turns = (0..4).map(|_| {
                clients.request(&database).transact(|_| Ok(())).unwrap();
                clients.last
            });
            let turns: std::collections::BTreeSet<usize> = turns.collect();
            counts.push((clients.sessions.len(), turns.len()));
        }
        assert_eq!(counts, [(3, 3), (3, 3), (2, 2)]);
    }
}
