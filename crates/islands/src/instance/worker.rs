//! The thread that serves an instance's channels, and the transactions that begin there.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use ensilo_sync::cpu_relax;

use super::client::{ClientEnd, Order, Reply};
use super::links::{Links, read_messages};
use super::load::{Load, LoadReport, RunningLoad};
use super::program::Program;
use super::snapshot::{self, SnapshotRead};
use super::store::{InstanceStore, Recovered};
use super::wake::Wake;
use crate::channel::{Waiting, wait_for_any};
use crate::commit::{Decision, DistributedId, Failed, Io, Outcome, Request, Site, SiteId};

/// How often a worker that finds nothing to do looks again before it sleeps.
const LOOKS: u32 = 2000;

/// How long it sleeps at most, since some things are to be done by time.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The same while transactions wait for another attempt, or messages for room.
const SLEEP_MAX_SOON: Duration = Duration::from_micros(100);

/// How long it waits for others to end what is under way, when it is to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How many frames of one channel are received before the next one's turn.
const FRAMES_AT_ONCE: usize = 16;

/// What is done with the outcome of a transaction.
pub(crate) type Answer = Box<dyn FnOnce(Outcome) + Send>;

/// What is done with the outcome of a load.
pub(crate) type LoadAnswer = Box<dyn FnOnce(ensilo::Result<LoadReport>) + Send>;

/// What a worker is to do.
pub(crate) enum Submission {
    /// Begin a transaction.
    Transaction(Request, Answer),
    /// Make transactions itself.
    Load(Load, LoadAnswer),
    /// Make no decisions that others take part in, and say when all are carried out.
    Pause(Box<dyn FnOnce() + Send>),
    /// Go on with those.
    Resume,
    /// Read at a consistent point.
    Read(SnapshotRead),
    /// Say which transactions wait for a decision.
    InDoubt(Box<dyn FnOnce(Vec<DistributedId>) + Send>),
    /// Carry out an operator's decision, and say whether the transaction waits for one.
    Resolve(DistributedId, Decision, Box<dyn FnOnce(bool) + Send>),
    /// This site has ended, and comes back with this incarnation. What is to be called then says that it is known.
    Ended(SiteId, u32, Box<dyn FnOnce() + Send>),
    /// Reach this site through this channel from now on.
    Link(SiteId, Box<dyn Waiting>),
    /// Serve a client outside of the process.
    Client(Box<dyn Waiting>),
}

/// Who gets the outcome of a transaction.
enum AnswerTo {
    Caller(Answer),
    /// One of the clients, and the number of its order.
    Client(usize, u64),
}

/// Who waits for a pause.
enum PauseAnswerTo {
    Caller(Box<dyn FnOnce() + Send>),
    Client(usize, u64),
}

/// What one of the clients gets as an answer to the order of this number.
type ReplyTo = (usize, u64, Reply);

/// Who gets the outcome of a load.
enum LoadAnswerTo {
    Caller(LoadAnswer),
    Client(usize, u64),
}

/// See the module's documentation.
pub(crate) struct Worker<P: Program> {
    site: Site<InstanceStore<P>>,
    store: InstanceStore<P>,
    own: SiteId,
    program: Arc<P>,
    links: Links,
    peers: Vec<SiteId>,
    clients: Vec<Option<ClientEnd>>,
    submissions: Receiver<Submission>,
    /// Who gets the outcomes of transactions that have not ended.
    answers: BTreeMap<DistributedId, AnswerTo>,
    load: Option<(RunningLoad, LoadAnswerTo)>,
    /// Who waits until all decisions are carried out.
    pauses: Vec<PauseAnswerTo>,
    /// What the threads that read at a consistent point have to say to clients.
    replies: (Sender<ReplyTo>, Receiver<ReplyTo>),
    wake: Arc<Wake>,
    messages: Vec<u8>,
    /// Whether something waits for room in a channel.
    has_unsent: bool,
}

impl<P: Program> Worker<P> {
    pub(crate) fn new(
        (own, program): (SiteId, Arc<P>),
        site: Site<InstanceStore<P>>,
        store: InstanceStore<P>,
        (submissions, wake): (Receiver<Submission>, Arc<Wake>),
    ) -> Self {
        Worker {
            site,
            store,
            own,
            program,
            links: Links::default(),
            peers: Vec::new(),
            clients: Vec::new(),
            submissions,
            answers: BTreeMap::new(),
            load: None,
            pauses: Vec::new(),
            replies: mpsc::channel(),
            wake,
            messages: Vec::new(),
            has_unsent: false,
        }
    }

    /// Serves until `stops`, and nothing is under way any more that began here.
    ///
    /// # Errors
    /// [`Failed`].
    pub(crate) fn run(&mut self, recovered: Recovered, stops: &AtomicBool) -> Result<(), Failed> {
        self.recover(recovered);
        let ended = panic::catch_unwind(AssertUnwindSafe(|| self.serve(stops)));
        let ended = ended.unwrap_or_else(|_| Err(Failed("a worker has panicked".to_owned())));
        if ended.is_err() {
            // What is prepared here must not be undone in memory, and others go on as if it had been. It closes unless it has been closed.
            let _ = self.store.db().close();
        }
        ended
    }

    fn serve(&mut self, stops: &AtomicBool) -> Result<(), Failed> {
        let (mut looks, mut stopped) = (0, None);
        loop {
            if self.turn()? {
                looks = 0;
                continue;
            }
            // Acquire: what whoever stops it has done before.
            if stops.load(Ordering::Acquire) {
                let is_late = stopped.get_or_insert_with(Instant::now).elapsed() > STOP_PATIENCE;
                // Where others have ended in the midst of something, it is found at the next opening.
                if is_late || self.site.is_idle() && self.links.flush() {
                    return Ok(());
                }
            }
            looks += 1;
            if looks < LOOKS {
                cpu_relax();
            } else {
                self.sleep();
            }
        }
    }

    /// Sleeps until something may have come.
    fn sleep(&mut self) {
        let has_attempts = self.load.as_ref().is_some_and(|(load, _)| load.has_attempts());
        // Nobody says that there is room again in a channel.
        let most = if has_attempts || self.has_unsent { SLEEP_MAX_SOON } else { SLEEP_MAX };
        let clients = self.clients.iter_mut().flatten().map(ClientEnd::channel);
        let mut channels: Vec<&mut (dyn Waiting + 'static)> = self.links.channels().chain(clients).collect();
        let is_ready = wait_for_any(&mut channels, self.wake.begin_sleep(), most);
        self.wake.end_sleep(is_ready);
    }

    fn recover(&mut self, recovered: Recovered) {
        let now = Instant::now();
        let Worker { site, store, links, .. } = self;
        for (id, participants) in recovered.decisions {
            site.recover_decision(Io { store, outbox: links, now }, id, participants);
        }
        for (id, prepared) in recovered.parts {
            site.recover_part(Io { store, outbox: links, now }, id, prepared);
        }
    }

    /// Looks once at everything that may have come. Returns whether something had.
    fn turn(&mut self) -> Result<bool, Failed> {
        if self.wake.take() {
            self.store.note_wake();
        }
        let now = Instant::now();
        let mut has_come = self.receive_all(now)?;
        has_come |= self.take_submissions(now)?;
        has_come |= self.serve_clients(now)?;
        self.go_on_with_load(now);
        self.site.poll(Io { store: &mut self.store, outbox: &mut self.links, now })?;
        while let Some((id, outcome)) = self.site.next_outcome() {
            has_come = true;
            self.answer(id, outcome);
        }
        self.answer_pauses();
        while let Ok((client, number, reply)) = self.replies.1.try_recv() {
            has_come = true;
            self.reply(client, number, &reply);
        }
        self.has_unsent = !self.links.flush();
        self.flush_clients();
        Ok(has_come)
    }

    fn answer_pauses(&mut self) {
        if self.pauses.is_empty() || !self.site.has_carried_out() {
            return;
        }
        for pause in mem::take(&mut self.pauses) {
            match pause {
                PauseAnswerTo::Caller(answer) => answer(),
                PauseAnswerTo::Client(client, number) => self.reply(client, number, &Reply::Paused),
            }
        }
    }

    fn pause(&mut self, answer: PauseAnswerTo) {
        self.site.pause();
        self.pauses.push(answer);
    }

    fn resume(&mut self, now: Instant) {
        for pause in mem::take(&mut self.pauses) {
            if let PauseAnswerTo::Client(client, number) = pause {
                self.reply(client, number, &Reply::Refused("nobody waits any more".to_owned()));
            }
        }
        self.site.resume(Io { store: &mut self.store, outbox: &mut self.links, now });
    }

    fn resolve(&mut self, id: DistributedId, decision: Decision, now: Instant) -> Result<bool, Failed> {
        self.site.resolve(Io { store: &mut self.store, outbox: &mut self.links, now }, id, decision)
    }

    /// Reads at a consistent point for a client.
    fn read_for(&self, client: usize, number: u64, part: Vec<u8>) {
        let (sender, wake) = (self.replies.0.clone(), Arc::clone(&self.wake));
        let reply = move |reply| {
            // A worker that has ended answers nobody.
            let _ = sender.send((client, number, reply));
            wake.wake();
        };
        let reply_begun = reply.clone();
        let begun = Box::new(move || reply_begun(Reply::ReadBegun));
        let ended = Box::new(move |read: ensilo::Result<Vec<u8>>| {
            reply(Reply::Read(read.map_err(|error| error.to_string())));
        });
        snapshot::read(self.store.db(), &self.program, SnapshotRead { part, begun, ended });
    }

    fn answer(&mut self, id: DistributedId, outcome: Outcome) {
        let outcome = match &mut self.load {
            Some((load, _)) => load.end(id, outcome, Instant::now()),
            None => Some(outcome),
        };
        let Some(outcome) = outcome else { return };
        match self.answers.remove(&id) {
            Some(AnswerTo::Caller(answer)) => answer(outcome),
            Some(AnswerTo::Client(client, number)) => self.reply(client, number, &Reply::Ended(outcome)),
            None => {}
        }
    }

    /// Replies to a client, if it is still there.
    fn reply(&mut self, client: usize, number: u64, reply: &Reply) {
        if let Some(client) = &mut self.clients[client] {
            client.send(number, reply);
        }
    }

    fn begin(&mut self, request: &Request, now: Instant, answer: AnswerTo) {
        let id = self.site.begin(Io { store: &mut self.store, outbox: &mut self.links, now }, request);
        self.answers.insert(id, answer);
    }

    fn begin_load(&mut self, load: &Load, now: Instant, answer: LoadAnswerTo) {
        if self.load.is_some() {
            return self
                .answer_load(answer, Err(ensilo::Error::rollback("the worker makes transactions already")));
        }
        match self.program.requests(self.own, &load.description) {
            Ok(source) => match RunningLoad::new(load, source, now) {
                Some(running) => self.load = Some((running, answer)),
                None => {
                    self.answer_load(answer, Err(ensilo::Error::rollback("no clock can tell when that ends")))
                }
            },
            Err(error) => self.answer_load(answer, Err(error)),
        }
    }

    fn answer_load(&mut self, answer: LoadAnswerTo, made: ensilo::Result<LoadReport>) {
        match (answer, made) {
            (LoadAnswerTo::Caller(answer), made) => answer(made),
            (LoadAnswerTo::Client(client, number), Ok(made)) => {
                self.reply(client, number, &Reply::Made(made.to_counts()));
            }
            (LoadAnswerTo::Client(client, number), Err(error)) => {
                self.reply(client, number, &Reply::Refused(error.to_string()));
            }
        }
    }

    fn go_on_with_load(&mut self, now: Instant) {
        let Worker { site, store, links, load, .. } = self;
        let Some((running, _)) = load else { return };
        running.begin_more(now, |request| site.begin(Io { store, outbox: links, now }, request));
        if let Some(report) = running.report(now)
            && let Some((_, answer)) = load.take()
        {
            self.answer_load(answer, Ok(report));
        }
    }

    fn serve_clients(&mut self, now: Instant) -> Result<bool, Failed> {
        let mut has_come = false;
        for at in 0..self.clients.len() {
            while let Some(client) = &mut self.clients[at] {
                match client.receive() {
                    Ok(Some((number, order))) => {
                        has_come = true;
                        self.carry_out(order, now, (at, number))?;
                    }
                    Ok(None) => break,
                    // One that is gone, or sends nonsense, gets no answers, and has nobody wait for it.
                    Err(_) => {
                        self.clients[at] = None;
                        self.resume(now);
                    }
                }
            }
        }
        Ok(has_come)
    }

    fn carry_out(
        &mut self,
        order: Order,
        now: Instant,
        (client, number): (usize, u64),
    ) -> Result<(), Failed> {
        match order {
            Order::Begin(request) => self.begin(&request, now, AnswerTo::Client(client, number)),
            Order::Load(load) => self.begin_load(&load, now, LoadAnswerTo::Client(client, number)),
            Order::Pause => self.pause(PauseAnswerTo::Client(client, number)),
            Order::Resume => self.resume(now),
            Order::Read(part) => self.read_for(client, number, part),
            Order::InDoubt => {
                let in_doubt = self.site.in_doubt().collect();
                self.reply(client, number, &Reply::InDoubt(in_doubt));
            }
            Order::Resolve(id, decision) => {
                let resolved = self.resolve(id, decision, now)?;
                self.reply(client, number, &Reply::Resolved(resolved));
            }
        }
        Ok(())
    }

    fn flush_clients(&mut self) {
        for end in &mut self.clients {
            match end.as_mut().map(ClientEnd::flush) {
                Some(Ok(is_all_sent)) => self.has_unsent |= !is_all_sent,
                Some(Err(_)) => *end = None,
                None => {}
            }
        }
    }

    /// A site has ended: nothing that it has sent counts any more.
    fn end_site(&mut self, site: SiteId, next_incarnation: u32, now: Instant) {
        self.links.remove(site);
        self.peers = self.links.sites();
        let io = Io { store: &mut self.store, outbox: &mut self.links, now };
        self.site.ended(io, site, next_incarnation);
    }

    /// Reaches a site through a channel.
    fn link(&mut self, site: SiteId, channel: Box<dyn Waiting>, now: Instant) {
        self.links.set(site, channel);
        self.peers = self.links.sites();
        self.site.meet(Io { store: &mut self.store, outbox: &mut self.links, now }, site);
    }

    fn receive_all(&mut self, now: Instant) -> Result<bool, Failed> {
        let mut has_come = false;
        for at in 0..self.peers.len() {
            let from = self.peers[at];
            for _ in 0..FRAMES_AT_ONCE {
                // A site that is gone is waited for by the protocol.
                let Ok(true) = self.links.receive(from, &mut self.messages) else { break };
                has_come = true;
                self.receive(from, now)?;
            }
        }
        Ok(has_come)
    }

    /// Takes in the messages that one frame has brought.
    fn receive(&mut self, from: SiteId, now: Instant) -> Result<(), Failed> {
        let Worker { site, store, links, messages, .. } = self;
        let mut received = Ok(());
        read_messages(messages, |message| {
            if received.is_ok() {
                received = site.receive(Io { store, outbox: links, now }, from, message);
            }
        });
        received
    }

    fn take_submissions(&mut self, now: Instant) -> Result<bool, Failed> {
        let mut has_come = false;
        while let Ok(submission) = self.submissions.try_recv() {
            has_come = true;
            match submission {
                Submission::Transaction(request, answer) => {
                    self.begin(&request, now, AnswerTo::Caller(answer))
                }
                Submission::Load(load, answer) => self.begin_load(&load, now, LoadAnswerTo::Caller(answer)),
                Submission::Pause(answer) => self.pause(PauseAnswerTo::Caller(answer)),
                Submission::Resume => self.resume(now),
                Submission::Read(read) => snapshot::read(self.store.db(), &self.program, read),
                Submission::InDoubt(answer) => answer(self.site.in_doubt().collect()),
                Submission::Resolve(id, decision, answer) => answer(self.resolve(id, decision, now)?),
                Submission::Ended(site, next_incarnation, answer) => {
                    self.end_site(site, next_incarnation, now);
                    answer();
                }
                Submission::Link(site, channel) => self.link(site, channel, now),
                Submission::Client(channel) => self.clients.push(Some(ClientEnd::new(channel))),
            }
        }
        Ok(has_come)
    }
}

impl<P: Program> fmt::Debug for Worker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("peers", &self.peers).finish_non_exhaustive()
    }
}
