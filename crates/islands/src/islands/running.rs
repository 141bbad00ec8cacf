//! Instances that run, in threads or processes.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::Options;

use super::local::{InstanceOptions, LocalInstance};
use super::open_files;
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

    /// Has all sites make no decision that others take part in until the guard is dropped, and waits until those that were made are carried out.
    ///
    /// # Errors
    /// Why some have not answered by then.
    pub(super) fn pause(&self, deadline: Instant) -> Result<Paused<'_, P>, NoAnswer> {
        let paused = Paused(self);
        let ask = self.ask(self.sites(), |_, answer| Submission::Pause(answer));
        ask.wait_while(|| Instant::now() < deadline).map(|_| paused)
    }

    /// Ends an epoch at all instances, while nothing is half decided, and returns the last epoch of each. It waits as long as `patience` for that.
    ///
    /// # Errors
    /// Why some have not answered by then.
    pub(super) fn end_epochs(&self, patience: Duration) -> Result<Vec<u64>, NoAnswer> {
        let _one_at_a_time = self.lock_pauses();
        let deadline = Instant::now() + patience;
        let _paused = self.pause(deadline)?;
        let ask = self.ask(self.first_sites(), |_, ended| Submission::EndEpoch(ended));
        let mut ends = ask.wait_while(|| Instant::now() < deadline)?;
        ends.sort_unstable();
        Ok(ends.into_iter().map(|(_, end)| end).collect())
    }

    /// Waits until each instance has stored everything up to an epoch of its own, as long as `goes_on` says so.
    ///
    /// # Errors
    /// Why some have not answered.
    pub(super) fn wait_until_stored(
        &self,
        ends: &[u64],
        goes_on: impl FnMut() -> bool,
    ) -> Result<(), NoAnswer> {
        let when = |site: SiteId, stored| Submission::WhenStored(ends[usize::from(site.instance)], stored);
        self.ask(self.first_sites(), when).wait_while(goes_on).map(drop)
    }
}

/// How often it is asked whether answers are waited for still.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What sites answer.
pub(super) struct Answers<T> {
    receiver: Receiver<(u16, T)>,
    missing: usize,
}

/// Why sites have not answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// Nobody will answer: an instance has ended, or does not do such things.
    Ended,
    /// They were not waited for any more.
    Late,
}

impl<T> Answers<T> {
    /// Waits for all as long as `goes_on` says so, and returns them with their instances.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub(super) fn wait_while(self, mut goes_on: impl FnMut() -> bool) -> Result<Vec<(u16, T)>, NoAnswer> {
        let mut answers = Vec::new();
        while answers.len() < self.missing {
            match self.receiver.recv_timeout(LOOK_INTERVAL) {
                Ok(answer) => answers.push(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(NoAnswer::Ended),
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                Err(RecvTimeoutError::Timeout) => return Err(NoAnswer::Late),
            }
        }
        Ok(answers)
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
    open_files::raise_limit();
    let mut threads = Threads(Vec::new());
    for options in options {
        threads.0.push(LocalInstance::open(options, database(), |_| ())?);
    }
    for (first, first_options) in options.iter().enumerate() {
        for (second, second_options) in options.iter().enumerate().skip(first + 1) {
            for worker in 0..first_options.workers.min(second_options.workers) {
                let linked = link(&threads.0, (first, second), worker);
                linked.map_err(|error| InstanceError::Io(open_files::explained(error)))?;
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
        let thread = thread::Builder::new().name("ensilo-link".to_owned());
        let other = thread.spawn_scoped(scope, || instances[second].link(worker, site(first), there))?;
        let first = instances[first].link(worker, site(second), here);
        let second = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (first, second) {
            // The other one says why it has closed its end.
            (Err(closed), Err(cause)) if closed.kind() == io::ErrorKind::BrokenPipe => Err(cause),
            (first, second) => first.and(second),
        }
    })
}

impl<P: Program> Drop for Threads<P> {
    fn drop(&mut self) {
        self.0.iter().for_each(LocalInstance::stop);
        self.0.iter_mut().for_each(LocalInstance::join);
    }
}
