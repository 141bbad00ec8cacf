//! Instances that run, in threads or processes.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use ensilo::Options;

use super::local::{InstanceOptions, LocalInstance};
use super::processes::Processes;
use crate::commit::SiteId;
use crate::instance::{Answer, InstanceError, Program, Submission};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Running<P: Program> {
    kind: Kind<P>,
    instances: usize,
    workers: u16,
    /// Held while all instances pause.
    pauses: Mutex<()>,
}

#[derive(Debug)]
enum Kind<P: Program> {
    Threads(Threads<P>),
    Processes(Processes),
}

impl<P: Program> Running<P> {
    /// Opens instances in threads of this process.
    pub(super) fn in_threads(
        options: &[InstanceOptions],
        database: &dyn Fn() -> Options,
    ) -> Result<Self, InstanceError> {
        Ok(Running::new(options, Kind::Threads(open_in_threads(options, database)?)))
    }

    /// Takes over instances in processes of their own.
    pub(super) fn in_processes(options: &[InstanceOptions], processes: Processes) -> Self {
        Running::new(options, Kind::Processes(processes))
    }

    fn new(options: &[InstanceOptions], kind: Kind<P>) -> Self {
        let workers = options.iter().map(|instance| instance.workers).max().unwrap_or(1);
        Running { kind, instances: options.len(), workers, pauses: Mutex::new(()) }
    }

    pub(super) fn instances(&self) -> usize {
        self.instances
    }

    /// Returns how many workers each instance has.
    pub(super) fn workers(&self) -> u16 {
        self.workers
    }

    /// Returns the instances, where they are in this process.
    pub(super) fn local(&self) -> Option<&[LocalInstance<P>]> {
        match &self.kind {
            Kind::Threads(Threads(instances)) => Some(instances),
            Kind::Processes(_) => None,
        }
    }

    /// Returns the processes of the instances, where they have some.
    pub(super) fn processes(&self) -> Option<&Processes> {
        match &self.kind {
            Kind::Threads(_) => None,
            Kind::Processes(processes) => Some(processes),
        }
    }

    /// Has a worker do something.
    pub(super) fn submit(&self, site: SiteId, submission: Submission) {
        match &self.kind {
            Kind::Threads(Threads(instances)) => {
                instances[usize::from(site.instance)].submit(site.worker, submission);
            }
            Kind::Processes(processes) => processes.submit(site, submission),
        }
    }

    /// Returns how often each instance was started.
    pub(super) fn starts(&self) -> Vec<u32> {
        self.processes().map(Processes::starts).unwrap_or_default()
    }

    pub(super) fn sites(&self) -> impl Iterator<Item = SiteId> {
        let workers = self.workers;
        (0..self.instances as u16)
            .flat_map(move |instance| (0..workers).map(move |worker| SiteId { instance, worker }))
    }

    /// Returns the first site of each instance.
    pub(super) fn first_sites(&self) -> impl Iterator<Item = SiteId> {
        (0..self.instances as u16).map(|instance| SiteId { instance, worker: 0 })
    }

    /// Asks these sites for something; their answers come in any order, with the instance that each is of.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        sites: impl Iterator<Item = SiteId>,
        question: impl Fn(SiteId, Answer<T>) -> Submission,
    ) -> Answers<T> {
        let (sender, receiver) = mpsc::channel();
        let mut missing = 0;
        for site in sites {
            let sender = sender.clone();
            let answer = Box::new(move |answer| _ = sender.send((site.instance, answer)));
            self.submit(site, question(site, answer));
            missing += 1;
        }
        Answers { receiver, missing }
    }

    /// Lets nobody else have the instances pause as long as the guard lives.
    pub(super) fn lock_pauses(&self) -> MutexGuard<'_, ()> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all sites make no decision that others take part in until the guard is dropped, and waits until those that were made are carried out;
    /// `None` if that takes
    /// too long, or one has ended.
    pub(super) fn pause(&self, deadline: Instant) -> Option<Paused<'_, P>> {
        let paused = Paused(self);
        self.ask(self.sites(), |_, answer| Submission::Pause(answer)).wait_until(deadline).map(|_| paused)
    }

    /// Ends an epoch at all instances, while nothing is half decided. Returns the last epoch of each; `None` if that takes too long, or one has ended.
    pub(super) fn end_epochs(&self, deadline: Instant) -> Option<Vec<u64>> {
        let _one_at_a_time = self.lock_pauses();
        let _paused = self.pause(deadline)?;
        let mut ends =
            self.ask(self.first_sites(), |_, ended| Submission::EndEpoch(ended)).wait_until(deadline)?;
        ends.sort_unstable();
        Some(ends.into_iter().map(|(_, end)| end).collect())
    }

    /// Waits until each instance has stored everything up to an epoch of its own; `None` if one never will.
    pub(super) fn wait_until_stored(&self, ends: &[u64]) -> Option<()> {
        let when = |site: SiteId, stored| Submission::WhenStored(ends[usize::from(site.instance)], stored);
        self.ask(self.first_sites(), when).wait().map(drop)
    }
}

/// What sites answer.
pub(super) struct Answers<T> {
    receiver: Receiver<(u16, T)>,
    missing: usize,
}

impl<T> Answers<T> {
    /// Waits for all, and returns them with their instances; `None` at the deadline, or when one answers nothing.
    pub(super) fn wait_until(self, deadline: Instant) -> Option<Vec<(u16, T)>> {
        let left = || deadline.saturating_duration_since(Instant::now());
        (0..self.missing).map(|_| self.receiver.recv_timeout(left()).ok()).collect()
    }

    /// Waits for all without a limit; `None` when one answers nothing.
    pub(super) fn wait(self) -> Option<Vec<(u16, T)>> {
        (0..self.missing).map(|_| self.receiver.recv().ok()).collect()
    }
}

/// As long as this exists no site makes a decision that others take part in.
pub(super) struct Paused<'a, P: Program>(&'a Running<P>);

impl<P: Program> Drop for Paused<'_, P> {
    fn drop(&mut self) {
        self.0.sites().for_each(|site| self.0.submit(site, Submission::Resume));
    }
}

/// Instances in threads of this process.
#[derive(Debug)]
struct Threads<P: Program>(Vec<LocalInstance<P>>);

fn open_in_threads<P: Program>(
    options: &[InstanceOptions],
    database: &dyn Fn() -> Options,
) -> Result<Threads<P>, InstanceError> {
    let mut threads = Threads(Vec::new());
    for options in options {
        threads.0.push(LocalInstance::open(options, database(), |_| ())?);
    }
    for (first, first_options) in options.iter().enumerate() {
        for (second, second_options) in options.iter().enumerate().skip(first + 1) {
            for worker in 0..first_options.workers.min(second_options.workers) {
                link(&threads.0, (first, second), worker).map_err(InstanceError::Io)?;
            }
        }
    }
    Ok(threads)
}

/// Links the workers of this number of two instances.
fn link<P: Program>(
    instances: &[LocalInstance<P>],
    (first, second): (usize, usize),
    worker: u16,
) -> io::Result<()> {
    let (here, there) = UnixStream::pair()?;
    let site = |instance: usize| SiteId { instance: instance as u16, worker };
    thread::scope(|scope| {
        let other = scope.spawn(|| instances[second].link(worker, site(first), there));
        instances[first].link(worker, site(second), here)?;
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl<P: Program> Drop for Threads<P> {
    fn drop(&mut self) {
        self.0.iter().for_each(LocalInstance::stop);
        self.0.iter_mut().for_each(LocalInstance::join);
    }
}
