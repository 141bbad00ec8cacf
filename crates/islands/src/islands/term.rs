//! What begins a [term](Term) of all instances: their opening, a copy of all, and their closing.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::roster::Cluster;
use super::{Islands, refused};
use crate::commit::Refusal;
use crate::instance::{Maintenance, Program, Term};

/// How often instances that have ended meanwhile are asked once more to note a term.
const ATTEMPTS_MAX: u32 = 5;

/// How long instances in processes may take to note the term that begins when they are closed: a process may be stopped.
const CLOSING_PATIENCE: Duration = Duration::from_secs(3);

/// The same for instances in threads, which only a slow disk holds up, or a caller that keeps their log from going on.
const CLOSING_PATIENCE_IN_THREADS: Duration = Duration::from_secs(15);

/// Lets nobody else begin a term as long as it lives.
pub(super) type ClusterGuard<'a> = MutexGuard<'a, Cluster>;

impl<P: Program> Islands<P> {
    /// Returns the cluster that the instances are; `None` in memory.
    pub(super) fn lock_cluster(&self) -> Option<ClusterGuard<'_>> {
        Some(self.cluster.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a term, and returns it when all instances are stored to be in it.
    ///
    /// # Errors
    /// An instance has ended again and again, or the disk fails. Some may be in it.
    pub(super) fn begin_term(&self, cluster: &mut Cluster) -> Result<Term, Refusal> {
        let mut attempts = 1;
        loop {
            match self.try_to_begin_term(cluster, || true) {
                Err(_) if attempts < ATTEMPTS_MAX => attempts += 1,
                begun => return begun,
            }
        }
    }

    /// Begins the term of instances that are closed, if they can note it: a copy that was taken while they were open is not taken for what they are.
    pub(super) fn begin_last_term(&self) {
        if let Some(mut cluster) = self.lock_cluster() {
            let patience = match self.running.processes() {
                Some(_) => CLOSING_PATIENCE,
                None => CLOSING_PATIENCE_IN_THREADS,
            };
            let deadline = Instant::now() + patience;
            // Otherwise they are opened as after a crash.
            let _ = self.try_to_begin_term(&mut cluster, || Instant::now() < deadline);
        }
    }

    fn try_to_begin_term(
        &self,
        cluster: &mut Cluster,
        goes_on: impl FnMut() -> bool,
    ) -> Result<Term, Refusal> {
        let of_file = |error: std::io::Error| refused(&format!("the file instances: {error}"));
        let term = cluster.begin_term().map_err(of_file)?;
        self.maintain_while(|_| Maintenance::NoteTerm(term), goes_on)?;
        cluster.end_term(term).map_err(of_file)?;
        Ok(term)
    }
}
