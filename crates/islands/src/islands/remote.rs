//! An instance that has a process of its own, seen from the process that has started it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ensilo::Error;

use super::control::{self, Control};
use super::local::InstanceOptions;
use super::process::VARIABLE;
use super::started::{StartedProcess, spawn};
use crate::channel::{ChannelError, connect_to_wait, wait_for_any};
use crate::commit::{DistributedId, Outcome, Refusal, RefusalReason, SiteId};
use crate::instance::{Answer, ClientEnd, Idle, InstanceError, LoadReport, Order, Reply, Submission, Wake};

/// How long a process may take to take in what it is told.
const ANSWER_PATIENCE: Duration = Duration::from_secs(3);

/// How long a client waits for replies when nobody can order anything any more.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How long it takes at most to find out that a process that was to end has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// The process of an instance.
#[derive(Debug)]
pub(crate) struct InstanceProcess {
    child: Child,
    _started: StartedProcess,
    control: UnixStream,
    /// How often the instance was opened by now.
    incarnation: u32,
}

impl InstanceProcess {
    /// Starts the process of an instance, and waits until the instance is open.
    pub(crate) fn start(mut command: Command, options: &InstanceOptions) -> Result<Self, InstanceError> {
        let (control, theirs) = UnixStream::pair().map_err(InstanceError::Io)?;
        command.env(VARIABLE, options.number.instance.to_string()).stdin(OwnedFd::from(theirs));
        // Ctrl-C in a terminal is for the process that starts it: the instance ends after that.
        command.process_group(0);
        let (child, started) = spawn(&mut command).map_err(InstanceError::Io)?;
        // The command has the other end as well.
        drop(command);
        let mut process = InstanceProcess { child, _started: started, control, incarnation: 0 };
        match process.open(options) {
            Ok(incarnation) => {
                process.incarnation = incarnation;
                Ok(process)
            }
            Err(error) => {
                process.end();
                Err(error)
            }
        }
    }

    fn open(&self, options: &InstanceOptions) -> Result<u32, InstanceError> {
        control::send(&self.control, &Control::Open(Box::new(options.clone())), None)
            .map_err(InstanceError::Io)?;
        match control::receive(&self.control).map_err(InstanceError::Io)? {
            (Control::Opened(incarnation), _) => Ok(incarnation),
            (Control::Refused(message), _) => Err(InstanceError::Process(message)),
            _ => Err(InstanceError::Process("it has not said whether it is open".to_owned())),
        }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns how often the instance was opened by now.
    pub(crate) fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Tells the instance that another one has ended, and comes back with this incarnation, and waits until it knows. A process that is dead by now
    /// knows nothing that it could be wrong about.
    ///
    /// # Errors
    /// It lives and does not answer.
    pub(crate) fn end_other(&self, instance: u16, next_incarnation: u32) -> io::Result<()> {
        self.control.set_read_timeout(Some(ANSWER_PATIENCE))?;
        let ended = Control::Ended { instance, next_incarnation };
        let answer =
            control::send(&self.control, &ended, None).and_then(|()| control::receive(&self.control));
        self.control.set_read_timeout(None)?;
        match answer {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Has a worker reach another site over a socket.
    pub(crate) fn link(&self, worker: u16, site: SiteId, end: &UnixStream) -> io::Result<()> {
        control::send(&self.control, &Control::Link { worker, site }, Some(end.as_fd()))
    }

    /// Has a worker serve a client over a socket.
    pub(crate) fn serve(&self, worker: u16, end: &UnixStream) -> io::Result<()> {
        control::send(&self.control, &Control::Client { worker }, Some(end.as_fd()))
    }

    /// Returns whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks the process to end when nothing is under way.
    pub(crate) fn stop(&self) {
        // One that is gone has stopped.
        let _ = control::send(&self.control, &Control::Stop, None);
    }

    /// Waits until the process has ended, or until the deadline, and ends it then.
    pub(crate) fn wait(&mut self, deadline: Instant) {
        while !self.has_ended() && Instant::now() < deadline {
            std::thread::sleep(LOOK_INTERVAL);
        }
        self.end();
    }

    /// Ends the process, if it has not ended.
    pub(crate) fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for InstanceProcess {
    fn drop(&mut self) {
        self.end();
    }
}

/// Talks to one worker of an instance that has a process of its own.
pub(crate) struct Client {
    end: Option<ClientEnd>,
    waiting: BTreeMap<u64, Waiting>,
    next_number: u64,
    wake: Arc<Wake>,
    /// Whether something waits for room in the channel.
    has_unsent: bool,
    /// Since when nobody can order anything any more.
    stopped: Option<Instant>,
}

enum Waiting {
    Transaction(Answer<Outcome>),
    Execute(Answer<Result<Vec<u8>, Refusal>>),
    Validate(Answer<Result<(), Refusal>>),
    Load(Answer<ensilo::Result<LoadReport>>),
    Pause(Answer<()>),
    Administer(Answer<Result<Vec<u8>, Refusal>>),
    InDoubt(Answer<Vec<DistributedId>>),
    Resolve(Answer<bool>),
    EpochEnd(Answer<u64>),
    Stored(Answer<()>),
    Release(Answer<()>),
    Snapshot(Answer<()>),
    Read(Answer<ensilo::Result<Vec<u8>>>),
    Nothing,
}

/// Why a client has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ClientEnded {
    /// Nobody can submit anything any more, and everything is answered.
    Stopped,
    /// The instance is gone. What was under way has an unknown outcome.
    InstanceIsGone,
}

impl Client {
    pub(crate) fn new(wake: Arc<Wake>) -> Self {
        Client { end: None, waiting: BTreeMap::new(), next_number: 0, wake, has_unsent: false, stopped: None }
    }

    /// Talks to a worker through this channel from now on.
    pub(crate) fn connect(&mut self, options: &InstanceOptions, end: UnixStream) -> Result<(), ChannelError> {
        self.end = Some(ClientEnd::new(connect_to_wait(options.channel, end)?));
        Ok(())
    }

    /// Passes on what is submitted, and what comes back.
    pub(crate) fn run(&mut self, submissions: &Receiver<Submission>) -> ClientEnded {
        let mut idle = Idle::default();
        loop {
            match self.turn(submissions) {
                Ok(Turn::SomethingHasCome) => idle.end(),
                Ok(Turn::Nothing) => {
                    if idle.is_long() {
                        self.sleep();
                    }
                }
                Ok(Turn::Stopped) => {
                    self.give_up();
                    return ClientEnded::Stopped;
                }
                Err(_) => {
                    self.end = None;
                    self.give_up();
                    return ClientEnded::InstanceIsGone;
                }
            }
        }
    }

    /// Nobody answers any more what is under way.
    fn give_up(&mut self) {
        std::mem::take(&mut self.waiting).into_values().for_each(Waiting::give_up);
    }

    fn sleep(&mut self) {
        let Some(end) = &mut self.end else { return };
        let most = Idle::sleep_max(self.has_unsent);
        let is_ready = wait_for_any(&mut [end.channel()], self.wake.begin_sleep(), most);
        self.wake.end_sleep(is_ready);
    }

    fn turn(&mut self, submissions: &Receiver<Submission>) -> Result<Turn, ChannelError> {
        self.wake.take();
        let Some(end) = &mut self.end else { return Err(ChannelError::Closed) };
        let mut has_come = false;
        let is_open = loop {
            match submissions.try_recv() {
                Ok(submission) => {
                    has_come = true;
                    if let Some((order, waiting)) = order_of(submission) {
                        end.send(self.next_number, &order);
                        if !matches!(waiting, Waiting::Nothing) {
                            self.waiting.insert(self.next_number, waiting);
                        }
                        self.next_number += 1;
                    }
                }
                Err(TryRecvError::Empty) => break true,
                Err(TryRecvError::Disconnected) => break false,
            }
        };
        self.has_unsent = !end.flush()?;
        while let Some((number, reply)) = end.receive::<Reply>()? {
            has_come = true;
            if let Some(waiting) = self.waiting.remove(&number) {
                waiting.answer(reply);
            }
        }
        let is_late = !is_open && self.stopped.get_or_insert_with(Instant::now).elapsed() > STOP_PATIENCE;
        let is_over = !is_open && self.waiting.is_empty() || is_late;
        Ok(if is_over {
            Turn::Stopped
        } else if has_come {
            Turn::SomethingHasCome
        } else {
            Turn::Nothing
        })
    }
}

enum Turn {
    SomethingHasCome,
    Nothing,
    Stopped,
}

/// Returns what a submission orders, and who waits for that. What has to do with other instances goes by other ways.
fn order_of(submission: Submission) -> Option<(Order, Waiting)> {
    match submission {
        Submission::Transaction(request, since, answer) => {
            Some((Order::Begin(request, since), Waiting::Transaction(answer)))
        }
        Submission::Execute(part, answer) => Some((Order::Execute(part), Waiting::Execute(answer))),
        Submission::Validate(id, answer) => Some((Order::Validate(id), Waiting::Validate(answer))),
        Submission::RollBack(id) => Some((Order::RollBack(id), Waiting::Nothing)),
        Submission::Load(load, answer) => Some((Order::Load(load), Waiting::Load(answer))),
        Submission::Pause(answer) => Some((Order::Pause, Waiting::Pause(answer))),
        Submission::Resume => Some((Order::Resume, Waiting::Nothing)),
        Submission::EndEpoch(answer) => Some((Order::EndEpoch, Waiting::EpochEnd(answer))),
        Submission::WhenStored(epoch, answer) => Some((Order::WhenStored(epoch), Waiting::Stored(answer))),
        Submission::Release(epoch, answer) => Some((Order::Release(epoch), Waiting::Release(answer))),
        Submission::GiveUp => Some((Order::GiveUp, Waiting::Nothing)),
        Submission::Fail(message) => Some((Order::Fail(message), Waiting::Nothing)),
        Submission::BeginSnapshot(id, begun) => Some((Order::BeginSnapshot(id), Waiting::Snapshot(begun))),
        Submission::Read(id, part, answer) => Some((Order::Read(id, part), Waiting::Read(answer))),
        Submission::EndSnapshot(id) => Some((Order::EndSnapshot(id), Waiting::Nothing)),
        Submission::Administer(request, answer) => {
            Some((Order::Administer(request), Waiting::Administer(answer)))
        }
        Submission::Maintain(maintenance, answer) => {
            Some((Order::Maintain(maintenance), Waiting::Administer(answer)))
        }
        Submission::InDoubt(answer) => Some((Order::InDoubt, Waiting::InDoubt(answer))),
        Submission::Resolve(id, decision, answer) => {
            Some((Order::Resolve(id, decision), Waiting::Resolve(answer)))
        }
        Submission::Ended(..) | Submission::Link(..) | Submission::Client(..) => None,
    }
}

impl Waiting {
    fn answer(self, reply: Reply) {
        match (self, reply) {
            (Waiting::Transaction(answer), Reply::Ended(outcome)) => answer(outcome),
            (Waiting::Execute(answer), Reply::Executed(executed)) => answer(executed),
            (Waiting::Validate(answer), Reply::Validated(validated)) => answer(validated),
            (Waiting::Load(answer), Reply::Made(counts)) => answer(Ok(LoadReport::from_counts(&counts))),
            (Waiting::Load(answer), Reply::Refused(message)) => answer(Err(Error::rollback(message))),
            (Waiting::Pause(answer), Reply::Paused) => answer(()),
            (Waiting::Administer(answer), Reply::Administered(done)) => answer(done),
            (Waiting::InDoubt(answer), Reply::InDoubt(in_doubt)) => answer(in_doubt),
            (Waiting::Resolve(answer), Reply::Resolved(is_resolved)) => answer(is_resolved),
            (Waiting::EpochEnd(answer), Reply::EpochEnded(epoch)) => answer(epoch),
            (Waiting::Stored(answer), Reply::Stored) => answer(()),
            (Waiting::Release(answer), Reply::Released) => answer(()),
            (Waiting::Snapshot(begun), Reply::SnapshotBegun) => begun(()),
            (Waiting::Read(answer), Reply::Read(read)) => answer(read.map_err(Error::rollback)),
            // A reply of another kind is none.
            (waiting, _) => waiting.give_up(),
        }
    }

    fn give_up(self) {
        let message = "the instance has ended before it answered";
        match self {
            Waiting::Transaction(answer) => answer(Outcome::Unknown(message.to_owned())),
            Waiting::Execute(answer) => answer(Err(Refusal::new(RefusalReason::NoVote, message))),
            Waiting::Load(answer) => answer(Err(Error::rollback(message))),
            // Whoever waits for these finds out that nobody answers.
            Waiting::EpochEnd(_)
            | Waiting::Stored(_)
            | Waiting::Release(_)
            | Waiting::Snapshot(_)
            | Waiting::Read(_)
            | Waiting::Pause(_)
            | Waiting::Administer(_)
            | Waiting::Validate(_)
            | Waiting::InDoubt(_)
            | Waiting::Resolve(_)
            | Waiting::Nothing => {}
        }
    }
}
