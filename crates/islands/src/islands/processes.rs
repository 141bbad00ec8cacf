//! Instances that have a process each, and are started again when they die.

use std::fmt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use super::epoch_record::EpochRecord;
use super::local::{InstanceOptions, StoredUnit};
use super::remote::{Client, ClientEnded, InstanceProcess};
use crate::commit::{Outcome, Refusal, RefusalReason, SiteId};
use crate::instance::{InstanceError, Submission, Submitter, Wake};

/// How long instances may take to end what is under way.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// How often an instance that dies is started again at once, and the pause before each time.
const STARTS_MAX: u32 = 5;
const PAUSE_BEFORE_START: Duration = Duration::from_millis(100);

/// How long it is said to be dead before that is tried again.
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// Returns the command that starts an instance.
pub(crate) type MakeCommand = Box<dyn Fn() -> Command + Send + Sync>;

/// See the module's documentation.
pub(crate) struct Processes {
    shared: Arc<Shared>,
    /// By instance, by worker.
    submitters: Vec<Vec<Submitter>>,
    clients: Vec<JoinHandle<()>>,
}

struct Shared {
    options: Vec<InstanceOptions>,
    command: MakeCommand,
    /// Up to where instances count that commit by epochs: they end together.
    record: Option<Arc<Mutex<EpochRecord>>>,
    started: Mutex<Vec<Started>>,
    stops: AtomicBool,
}

struct Started {
    process: InstanceProcess,
    /// How often it was started.
    count: u32,
}

impl Processes {
    /// Starts all instances.
    pub(crate) fn start(
        options: Vec<InstanceOptions>,
        command: MakeCommand,
        record: Option<Arc<Mutex<EpochRecord>>>,
    ) -> Result<Self, InstanceError> {
        let mut started = Vec::new();
        for instance in &options {
            started.push(Started { process: InstanceProcess::start(command(), instance)?, count: 1 });
        }
        let shared = Arc::new(Shared {
            options,
            command,
            record,
            started: Mutex::new(started),
            stops: AtomicBool::new(false),
        });
        let mut processes =
            Processes { shared: Arc::clone(&shared), submitters: Vec::new(), clients: Vec::new() };
        shared.link_all(&shared.started()).map_err(InstanceError::Io)?;
        for instance in 0..shared.options.len() {
            processes.start_clients(instance).map_err(InstanceError::Io)?;
        }
        Ok(processes)
    }

    /// Has a worker of an instance do something.
    pub(crate) fn submit(&self, site: SiteId, submission: Submission) {
        self.submitters[usize::from(site.instance)][usize::from(site.worker)].submit(submission);
    }

    /// Returns how often each instance was started.
    pub(crate) fn starts(&self) -> Vec<u32> {
        self.shared.started().iter().map(|started| started.count).collect()
    }

    /// Does something unless an instance was started since [then](Self::starts), and before any is.
    pub(crate) fn if_none_has_ended<R>(&self, starts: &[u32], act: impl FnOnce() -> R) -> Option<R> {
        let started = self.shared.started();
        let is_same = started.iter().map(|started| started.count).eq(starts.iter().copied());
        is_same.then(act)
    }

    /// Returns the number of an instance's process.
    pub(crate) fn process_id(&self, instance: u16) -> u32 {
        self.shared.started()[usize::from(instance)].process.id()
    }

    fn start_clients(&mut self, instance: usize) -> io::Result<()> {
        let mut submitters = Vec::new();
        for worker in 0..self.shared.options[instance].workers {
            let (sender, submissions) = mpsc::channel();
            let wake = Arc::new(Wake::new()?);
            let client = Client::new(Arc::clone(&wake));
            let shared = Arc::clone(&self.shared);
            let run = move || run_client(&shared, (instance, worker), client, &submissions);
            let thread = thread::Builder::new().name(format!("client-{instance}.{worker}")).spawn(run)?;
            self.clients.push(thread);
            submitters.push(Submitter::new(sender, wake));
        }
        self.submitters.push(submitters);
        Ok(())
    }
}

/// Talks to a worker of an instance, in one process of it after the other.
fn run_client(
    shared: &Shared,
    (instance, worker): (usize, u16),
    mut client: Client,
    submissions: &Receiver<Submission>,
) {
    let mut dead = 0;
    loop {
        match shared.reach(instance, worker, dead, &mut client) {
            Ok(count) => {
                dead = count;
                if client.run(submissions) == ClientEnded::Stopped {
                    return;
                }
            }
            // It is tried again later: a disk may have room again.
            Err(error) if refuse_for_a_while(submissions, &error.to_string()) => {}
            Err(_) => return,
        }
    }
}

/// Answers for a while that an instance is dead. Returns whether somebody can ask for something still.
fn refuse_for_a_while(submissions: &Receiver<Submission>, reason: &str) -> bool {
    let end = Instant::now() + REFUSAL_TIME;
    loop {
        match submissions.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(submission) => refuse(submission, reason),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Answers that an instance is dead.
fn refuse(submission: Submission, reason: &str) {
    match submission {
        Submission::Transaction(_, _, answer) => answer(Outcome::Aborted(refusal_of_dead(reason))),
        Submission::Execute(_, answer) => answer(Err(refusal_of_dead(reason))),
        Submission::Load(_, answer) => answer(Err(ensilo::Error::rollback(reason))),
        Submission::Read(.., answer) => answer(Err(ensilo::Error::rollback(reason))),
        // Whoever waits for these finds out that nobody answers.
        Submission::EndEpoch(_)
        | Submission::WhenStored(..)
        | Submission::Release(..)
        | Submission::GiveUp
        | Submission::Fail(_)
        | Submission::BeginSnapshot(..)
        | Submission::EndSnapshot(_)
        | Submission::RollBack(_)
        | Submission::Administer(..)
        | Submission::Maintain(..)
        | Submission::Validate(..)
        | Submission::Pause(_)
        | Submission::InDoubt(_)
        | Submission::Resolve(..)
        | Submission::Resume
        | Submission::Ended(..)
        | Submission::Link(..)
        | Submission::Client(..) => {}
    }
}

fn refusal_of_dead(reason: &str) -> Refusal {
    Refusal::new(RefusalReason::Rejected, format!("the instance cannot be started again: {reason}"))
}

impl Shared {
    fn started(&self) -> MutexGuard<'_, Vec<Started>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects a client with an instance. `dead` counts the processes of the instance that the client knows to be dead: if there was no later one,
    /// the instance is started again. Returns how many processes of it there were by then.
    fn reach(
        &self,
        instance: usize,
        worker: u16,
        dead: u32,
        client: &mut Client,
    ) -> Result<u32, InstanceError> {
        let (end, count) = {
            let mut started = self.started();
            if started[instance].count <= dead {
                self.start_again(&mut started, instance)?;
            }
            let (end, theirs) = UnixStream::pair().map_err(InstanceError::Io)?;
            // One that is dead by now is found out about by the channel.
            let _ = started[instance].process.serve(worker, &theirs);
            (end, started[instance].count)
        };
        // One that is dead by now is found out about when it is used.
        let _ = client.connect(&self.options[instance], end);
        Ok(count)
    }

    fn start_again(&self, started: &mut [Started], instance: usize) -> Result<(), InstanceError> {
        if self.options[instance].directory.is_none() {
            // It does not come back: nobody has to know before.
            let _ = self.tell_of_end(started, instance, started[instance].process.incarnation() + 1);
            return Err(InstanceError::Process(
                "its rows were in memory, and are lost with its process".to_owned(),
            ));
        }
        if let Some(record) = &self.record {
            return self.start_all_again(started, &record.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.start_process(&mut started[instance], &self.options[instance].again())?;
        // All of them, before it can do anything. One that does not take that in has to be started again as well.
        for silent in self.tell_of_end(started, instance, started[instance].process.incarnation()) {
            started[silent].process.end();
        }
        for other in (0..self.options.len()).filter(|other| *other != instance) {
            // Where one is dead by now, it is linked when it comes back.
            let _ = self.link(started, instance, other);
        }
        Ok(())
    }

    /// Starts all instances again, without what they have stored since the last epoch that all had stored.
    fn start_all_again(&self, started: &mut [Started], record: &EpochRecord) -> Result<(), InstanceError> {
        if record.has_failed() {
            return Err(InstanceError::Process(
                "the end of an epoch could not be recorded: open the instances anew".to_owned(),
            ));
        }
        // All of them, before one comes back: none goes on with what is given up.
        started.iter_mut().for_each(|started| started.process.end());
        for (instance, (started, options)) in started.iter_mut().zip(&self.options).enumerate() {
            let unit = StoredUnit::Epoch { counts_to: record.end_of(instance) };
            self.start_process(started, &InstanceOptions { unit, ..options.again() })?;
        }
        // One that cannot be linked is not reached by others: all begin again.
        let linked = self.link_all(started).map_err(InstanceError::Io);
        if linked.is_err() {
            started.iter_mut().for_each(|started| started.process.end());
        }
        linked
    }

    /// Starts the process of an instance again.
    fn start_process(&self, started: &mut Started, options: &InstanceOptions) -> Result<(), InstanceError> {
        let mut attempts = 0;
        loop {
            // Acquire: what whoever stops has done before.
            if self.stops.load(Ordering::Acquire) {
                return Err(InstanceError::Process("the islands are closed".to_owned()));
            }
            thread::sleep(PAUSE_BEFORE_START);
            attempts += 1;
            started.process.end();
            match InstanceProcess::start((self.command)(), options) {
                Ok(process) => {
                    started.process = process;
                    started.count += 1;
                    return Ok(());
                }
                Err(error) if attempts == STARTS_MAX => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Tells all others that an instance has ended, and comes back with this incarnation, if it does. Returns those that live and do not answer.
    fn tell_of_end(&self, started: &[Started], instance: usize, next_incarnation: u32) -> Vec<usize> {
        let number = self.options[instance].number.instance;
        let is_silent = |other: &usize| {
            *other != instance && started[*other].process.end_other(number, next_incarnation).is_err()
        };
        (0..started.len()).filter(is_silent).collect()
    }

    /// Links the workers of all instances.
    fn link_all(&self, started: &[Started]) -> io::Result<()> {
        for first in 0..started.len() {
            for second in first + 1..started.len() {
                self.link(started, first, second)?;
            }
        }
        Ok(())
    }

    /// Links the workers of two instances.
    fn link(&self, started: &[Started], first: usize, second: usize) -> io::Result<()> {
        let site = |instance: usize, worker| SiteId { instance: instance as u16, worker };
        for worker in 0..self.options[first].workers.min(self.options[second].workers) {
            let (here, there) = UnixStream::pair()?;
            started[first].process.link(worker, site(second, worker), &here)?;
            started[second].process.link(worker, site(first, worker), &there)?;
        }
        Ok(())
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Release: what was done before.
        self.shared.stops.store(true, Ordering::Release);
        mem::take(&mut self.submitters).into_iter().flatten().for_each(Submitter::close);
        for client in self.clients.drain(..) {
            // One that has panicked has answered nobody, which they have found out.
            let _ = client.join();
        }
        let mut started = self.shared.started();
        started.iter().for_each(|started| started.process.stop());
        let deadline = Instant::now() + STOP_PATIENCE;
        started.iter_mut().for_each(|started| started.process.wait(deadline));
    }
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
