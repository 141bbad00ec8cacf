//! Batches of requests: one thread runs them one after the other, and loads in advance what the next ones look up first.

use ensilo_engine::{Engine, Session as _};

use crate::attempt::{self, RetryPolicy};
use crate::local::ThreadWorker;
use crate::outcome::Outcome;
use crate::prefetch::Prefetch;
use crate::shared::DatabaseShared;
use crate::transaction::Transaction;
use crate::{Abort, Error, Result};

/// Requests are loaded for until they have named so many keys, and are then run: few enough that all stays in the first level
/// of the cache, and enough for the processor to wait for as much at once as it can.
const GROUP_KEYS: usize = 32;

/// A batch: the requests, what names their first keys, and what each of them does.
pub(crate) struct Batch<'q, Q, F, B> {
    pub(crate) requests: &'q [Q],
    pub(crate) first_keys: F,
    pub(crate) body: B,
}

impl<Q, F, B> Batch<'_, Q, F, B> {
    /// Runs the requests on this worker, each as a transaction of its own, in their order.
    pub(crate) fn run_on<E: Engine, R>(
        mut self,
        shared: &DatabaseShared<E>,
        worker: &mut ThreadWorker<E>,
        policy: RetryPolicy,
        on_abort: &mut impl FnMut(&Abort),
    ) -> Vec<Outcome<R>>
    where
        F: FnMut(&Q, &mut Prefetch<E>),
        B: FnMut(&mut Transaction<'_, E>, &Q) -> Result<R>,
    {
        let policy = policy.labelled_by(&self.body);
        let mut outcomes = Vec::with_capacity(self.requests.len());
        let mut prefetch = Prefetch::new(&mut worker.local);
        while !self.requests.is_empty() {
            let (group, others) = self.requests.split_at(self.name_keys(&mut prefetch));
            prefetch.start(worker);
            for request in group {
                outcomes.push(if shared.is_closed() {
                    Err(Error::Closed.into())
                } else {
                    attempt::run_on(shared, worker, policy, on_abort, |tx| (self.body)(tx, request))
                });
            }
            self.requests = others;
        }
        prefetch.end(&mut worker.local);
        outcomes
    }

    /// Collects the first keys of as many requests as are run next, and returns how many these are: all, where nothing is loaded.
    fn name_keys<E: Engine>(&mut self, prefetch: &mut Prefetch<E>) -> usize
    where
        F: FnMut(&Q, &mut Prefetch<E>),
    {
        if E::Session::PREFETCHES {
            for (at, request) in self.requests.iter().enumerate() {
                (self.first_keys)(request, prefetch);
                if prefetch.len() >= GROUP_KEYS {
                    return at + 1;
                }
            }
        }
        self.requests.len()
    }
}
