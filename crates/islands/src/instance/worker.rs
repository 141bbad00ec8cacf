//! The thread that serves an instance's channels, and the transactions that begin there.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use ensilo::Error;
use ensilo::group::GroupMember;

use super::aside;
use super::client::{ClientEnd, OpenPart};
use super::idle::Idle;
use super::links::{Links, read_messages};
use super::load::{Load, LoadReport, RunningLoad};
use super::notes::note_record;
use super::program::Program;
use super::rejected::RejectedOutcomes;
use super::snapshot::Snapshots;
use super::store::{InstanceStore, Recovered, Storing};
use super::submission::{Answer, Replier, ReplyTo, Submission};
use super::wake::Wake;
use crate::channel::{Waiting, wait_for_any};
use crate::commit::{
    DistributedId, Failed, Io, OpenId, Outcome, PartStore as _, Refusal, RefusalReason, Refused, Site, SiteId,
};

/// How long a worker waits for others to end what is under way, when it is to stop.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// How many frames of one channel are received before the next one's turn.
const FRAMES_AT_ONCE: usize = 16;

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
    answers: BTreeMap<DistributedId, Answer<Outcome>>,
    load: Option<(RunningLoad, Answer<ensilo::Result<LoadReport>>)>,
    snapshots: Snapshots,
    /// Who waits until that is stored which an open transaction has read.
    validated: Vec<(Storing, Answer<Result<(), Refusal>>)>,
    rejected: RejectedOutcomes,
    /// Whether epochs of all instances end still.
    ends_epochs: bool,
    /// Whether the instance's own files say that one has ended.
    has_noted_record: bool,
    /// Who waits until all decisions are carried out.
    pauses: Vec<Answer<()>>,
    /// What clients are to be told.
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
        let ends_epochs = store.member().is_some();
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
            snapshots: Snapshots::default(),
            validated: Vec::new(),
            rejected: RejectedOutcomes::default(),
            ends_epochs,
            has_noted_record: false,
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
        let (mut idle, mut stopped) = (Idle::default(), None);
        loop {
            if self.turn()? {
                idle.end();
                continue;
            }
            // Acquire: what whoever stops it has done before.
            if stops.load(Ordering::Acquire) {
                let is_late = stopped.get_or_insert_with(Instant::now).elapsed() > STOP_PATIENCE;
                // Where others have ended in the midst of something, it is found at the next opening.
                if is_late || self.site.is_idle() && self.rejected.is_empty() && self.links.flush() {
                    return Ok(());
                }
            }
            if idle.is_long() {
                self.sleep();
            }
        }
    }

    /// Sleeps until something may have come.
    fn sleep(&mut self) {
        let has_attempts = self.load.as_ref().is_some_and(|(load, _)| load.has_attempts());
        // Nobody says that there is room again in a channel, or that something has ended at another worker.
        let most = Idle::sleep_max(has_attempts || self.has_unsent || self.site.has_waiting());
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
            self.answer_or_keep(id, outcome);
        }
        self.answer_rejected()?;
        self.answer_validated()?;
        self.answer_pauses();
        has_come |= self.reply_to_clients();
        self.has_unsent = !self.links.flush();
        self.flush_clients();
        Ok(has_come)
    }

    fn validate(&mut self, id: OpenId, answer: Answer<Result<(), Refusal>>) {
        match self.store.open().validate(id) {
            Ok(Some(ticket)) => self.validated.push((Storing::new(ticket), answer)),
            Ok(None) => answer(Ok(())),
            Err(refusal) => answer(Err(refusal)),
        }
    }

    fn answer_validated(&mut self) -> Result<(), Failed> {
        let mut at = 0;
        while let Some((storing, _)) = self.validated.get_mut(at) {
            if self.store.is_stored(storing)? {
                let (_, answer) = self.validated.swap_remove(at);
                answer(Ok(()));
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    fn answer_pauses(&mut self) {
        if !self.pauses.is_empty() && self.site.has_carried_out() {
            self.pauses.drain(..).for_each(|answer| answer(()));
        }
    }

    fn pause(&mut self, answer: Answer<()>) {
        self.rejected.pause();
        self.site.pause();
        self.pauses.push(answer);
    }

    fn resume(&mut self, now: Instant) {
        self.pauses.clear();
        self.rejected.resume(self.store.member());
        self.site.resume(Io { store: &mut self.store, outbox: &mut self.links, now });
    }

    /// Answers, or keeps what was rejected until that is stored which it follows from.
    fn answer_or_keep(&mut self, id: DistributedId, outcome: Outcome) {
        let is_rejected =
            matches!(&outcome, Outcome::Aborted(refusal) if refusal.reason == RefusalReason::Rejected);
        match self.store.member().filter(|_| is_rejected) {
            Some(member) => self.rejected.keep(member, id, outcome),
            None => self.answer(id, outcome),
        }
    }

    fn answer_rejected(&mut self) -> Result<(), Failed> {
        while let Some((id, outcome)) = self.rejected.take_stored(|storing| self.store.is_stored(storing))? {
            self.answer(id, outcome);
        }
        Ok(())
    }

    fn answer(&mut self, id: DistributedId, outcome: Outcome) {
        let outcome = match &mut self.load {
            Some((load, _)) => load.end(id, outcome, Instant::now()),
            None => Some(outcome),
        };
        if let (Some(outcome), Some(answer)) = (outcome, self.answers.remove(&id)) {
            answer(outcome);
        }
    }

    fn begin_load(&mut self, load: &Load, answer: Answer<ensilo::Result<LoadReport>>) {
        match self.running_load(load) {
            Ok(running) => self.load = Some((running, answer)),
            Err(error) => answer(Err(error)),
        }
    }

    fn running_load(&self, load: &Load) -> ensilo::Result<RunningLoad> {
        if self.load.is_some() {
            return Err(Error::rollback("the worker makes transactions already"));
        }
        let source = self.program.requests(self.own, &load.description)?;
        // What the program needs to get ready is no part of what is measured.
        RunningLoad::new(load, source, Instant::now(), self.site.waited())
            .ok_or_else(|| Error::rollback("no clock can tell when that ends"))
    }

    fn go_on_with_load(&mut self, now: Instant) {
        let Worker { site, store, links, load, .. } = self;
        let Some((running, _)) = load else { return };
        running
            .begin_more(now, |request, since| site.begin(Io { store, outbox: links, now }, request, since));
        if let Some(report) = running.report(now, site.waited())
            && let Some((_, answer)) = load.take()
        {
            answer(Ok(report));
        }
    }

    fn replier(&self, client: usize, number: u64) -> Replier {
        let (replies, wake) = (self.replies.0.clone(), Arc::clone(&self.wake));
        Replier { replies, wake, client, number, has_replied: false }
    }

    fn serve_clients(&mut self, now: Instant) -> Result<bool, Failed> {
        let mut has_come = false;
        for at in 0..self.clients.len() {
            while let Some(client) = &mut self.clients[at] {
                match client.receive() {
                    Ok(Some((number, order))) => {
                        has_come = true;
                        let replier = self.replier(at, number);
                        self.carry_out(Submission::of(order, replier), now)?;
                    }
                    Ok(None) => break,
                    // Where it may have paused this for the end of an epoch, that would go on without it.
                    Err(error) if self.ends_epochs => {
                        return Err(Failed(format!("whoever ends the epochs cannot be reached: {error}")));
                    }
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

    fn take_submissions(&mut self, now: Instant) -> Result<bool, Failed> {
        let mut has_come = false;
        while let Ok(submission) = self.submissions.try_recv() {
            has_come = true;
            self.carry_out(submission, now)?;
        }
        Ok(has_come)
    }

    fn carry_out(&mut self, submission: Submission, now: Instant) -> Result<(), Failed> {
        match submission {
            Submission::Transaction(request, since, answer) => {
                let io = Io { store: &mut self.store, outbox: &mut self.links, now };
                let id = self.site.begin(io, &request, since);
                self.answers.insert(id, answer);
            }
            Submission::Execute(OpenPart { id, is_first, part }, answer) => {
                match self.store.open().execute(id, is_first, &part) {
                    Ok(reply) => answer(Ok(reply)),
                    Err(Refused { refusal, ticket: None }) => answer(Err(refusal)),
                    Err(Refused { refusal, ticket: Some(ticket) }) => {
                        let answer = Box::new(|stored: Result<(), _>| answer(stored.and(Err(refusal))));
                        self.validated.push((Storing::new(ticket), answer));
                    }
                }
            }
            Submission::Validate(id, answer) => self.validate(id, answer),
            Submission::RollBack(id) => self.store.open().roll_back(id),
            Submission::Load(load, answer) => self.begin_load(&load, answer),
            Submission::Pause(answer) => self.pause(answer),
            Submission::Resume => self.resume(now),
            Submission::EndEpoch(answer) => {
                self.check_log()?;
                self.of_member(|member| answer(member.end_epoch()));
            }
            Submission::WhenStored(epoch, answer) => self.of_member(|member| {
                // Where it never will be nobody answers: whoever asks again finds out why.
                member.on_stored(epoch, |stored| stored.map_or((), answer));
            }),
            Submission::GiveUp => {
                self.ends_epochs = false;
                self.of_member(GroupMember::give_up);
            }
            Submission::Release(epoch, answer) => {
                self.of_member(|member| member.release(epoch));
                answer(());
                if !mem::replace(&mut self.has_noted_record, true) {
                    // One that fails is tried again at the next opening.
                    let _ = note_record(self.store.db());
                }
            }
            Submission::Fail(message) => return Err(Failed(message)),
            Submission::BeginSnapshot(id, begun) => {
                self.snapshots.begin((self.store.db(), &self.program), id, begun);
            }
            Submission::Read(id, part, answer) => self.snapshots.read(id, part, answer),
            Submission::EndSnapshot(id) => self.snapshots.end(id),
            Submission::Administer(request, answer) => {
                let program = Arc::clone(&self.program);
                aside::run(answer, move || program.administer(&request));
            }
            Submission::Maintain(maintenance, answer) => {
                let db = self.store.db().clone();
                aside::run(answer, move || maintenance.carry_out(&db));
            }
            Submission::InDoubt(answer) => answer(self.site.in_doubt().collect()),
            Submission::Resolve(id, decision, answer) => {
                let io = Io { store: &mut self.store, outbox: &mut self.links, now };
                answer(self.site.resolve(io, id, decision)?);
            }
            Submission::Ended(site, next_incarnation, answer) => {
                self.end_site(site, next_incarnation, now);
                answer(());
            }
            Submission::Link(site, channel) => self.link(site, channel, now),
            Submission::Client(channel) => self.clients.push(Some(ClientEnd::new(channel))),
        }
        Ok(())
    }

    /// Fails where the log has: nobody else may have found out.
    fn check_log(&self) -> Result<(), Failed> {
        match self.store.db().group_member() {
            Ok(member) => member.check().map_err(|error| Failed(error.to_string())),
            // Nothing is stored.
            Err(_) => Ok(()),
        }
    }

    /// Does something with the database as one of several, if it is stored.
    fn of_member(&self, act: impl FnOnce(&GroupMember)) {
        if let Ok(member) = self.store.db().group_member() {
            act(&member);
        }
    }

    /// Replies to clients that are still there.
    fn reply_to_clients(&mut self) -> bool {
        let mut has_come = false;
        while let Ok((client, number, reply)) = self.replies.1.try_recv() {
            has_come = true;
            if let Some(client) = &mut self.clients[client] {
                client.send(number, &reply);
            }
        }
        has_come
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
}

impl<P: Program> fmt::Debug for Worker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("peers", &self.peers).finish_non_exhaustive()
    }
}
