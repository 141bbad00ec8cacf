//! Several instances as one database: in processes of their own, or in threads of one process.

mod attempts;
mod backup;
mod commit_unit;
mod control;
mod epoch_record;
mod epochs;
mod local;
mod open;
mod open_files;
mod point;
mod process;
mod processes;
mod remote;
mod roster;
mod running;
mod started;
mod term;
mod unfinished_disk;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use ensilo::{Database, Options};

pub(crate) use self::attempts::Attempts;
pub use self::backup::IslandsBackup;
pub(crate) use self::backup::{Unfinished, create_directories};
pub use self::commit_unit::CommitUnit;
use self::epoch_record::EpochRecord;
use self::epochs::{Activity, EpochCommit};
use self::local::{InstanceOptions, StoredUnit};
pub use self::open::OpenTransaction;
pub use self::point::PointReader;
pub use self::process::run_if_instance;
use self::processes::{MakeCommand, Processes};
pub use self::roster::instance_by_place;
use self::roster::{Cluster, Found, Roster};
pub(crate) use self::roster::{check, holds_database, holds_instances};
use self::running::Running;
pub use self::started::end_instance_processes;
use crate::channel::ChannelKind;
use crate::commit::{Decision, DistributedId, Outcome, Refusal, RefusalReason, Request, SiteId};
use crate::instance::{
    InstanceError, InstanceNumber, Load, LoadReport, LoadTime, Program, Submission, machine_nanos,
    stored_cluster, stored_instance, stored_term,
};
use crate::placement::Plan;

/// How [`Islands`] are opened.
pub struct IslandsOptions {
    plan: Plan,
    channel: ChannelKind,
    directory: Option<PathBuf>,
    workers: u16,
    database: Box<dyn Fn() -> Options + Send + Sync>,
    command: Option<MakeCommand>,
    unit: CommitUnit,
    /// Whether a copy is opened that is not finished, by whoever makes it.
    opens_unfinished: bool,
}

impl IslandsOptions {
    /// Returns the options by default: instances in memory where the plan has them, in threads of this process, with one worker for each of their
    /// processors, and channels through memory.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let workers = plan.instances().iter().map(|place| place.cpus().len()).max().unwrap_or(1);
        IslandsOptions {
            plan,
            channel: ChannelKind::Memory,
            directory: None,
            workers: u16::try_from(workers.max(1)).unwrap_or(u16::MAX),
            database: Box::new(Database::options),
            command: None,
            unit: CommitUnit::Transaction,
            opens_unfinished: false,
        }
    }

    /// Opens a copy that is not finished, too.
    pub(crate) fn unfinished(mut self) -> Self {
        self.opens_unfinished = true;
        self
    }

    /// Sets what is stored at all instances at once, by default a transaction. It stays the same for instances that are stored;
    /// [`Redistribution`](crate::Redistribution) copies tables to instances with another one.
    #[must_use]
    pub fn commit_unit(mut self, unit: CommitUnit) -> Self {
        self.unit = unit;
        self
    }

    /// Sets what carries messages between workers.
    #[must_use]
    pub fn channel(mut self, kind: ChannelKind) -> Self {
        self.channel = kind;
        self
    }

    /// Sets how many workers each instance has, at least one. It stays the same for instances that are stored;
    /// [`Redistribution`](crate::Redistribution) copies tables to instances with another number of them.
    #[must_use]
    pub fn workers(mut self, workers: u16) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Stores the instances below a directory, each in one of its own. A directory has a fixed number of instances: with a plan of more or fewer of
    /// them it is not opened, and nothing in it changes. [`Redistribution`](crate::Redistribution), or `ensilo islands redistribute`, copies tables to
    /// another number of instances. Nor is it opened when one of them is lost, or has been replaced by that of another cluster, or by an older copy of
    /// its own: one that was taken before the directory was last opened or closed, or before the last [copy](Islands::backup) of all, or that is out
    /// of such a copy. Its own files are put back then, or a copy of all. A copy of one instance that was taken since then is not told from it
    /// where all of them have crashed: what it lacks is lost, and transactions may be there by halves.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the options that each instance's database is opened with, by default none. An instance with a process of its own is opened with those
    /// that it gives to [`run_if_instance`].
    #[must_use]
    pub fn database(mut self, options: impl Fn() -> Options + Send + Sync + 'static) -> Self {
        self.database = Box::new(options);
        self
    }

    /// Gives each instance a process of its own, which this command starts: that of a program which calls [`run_if_instance`], such as this one. Its
    /// input is taken. An instance that dies, or does not take in within three seconds that another one has died, is started again, if it is stored
    /// in a directory, and the others go on; what it was coordinating has an [unknown](Outcome::Unknown) outcome. One in memory is lost for good with
    /// its rows, and parts of what it was coordinating stay [in doubt](Islands::in_doubt) elsewhere until somebody [resolves](Islands::resolve) them.
    #[must_use]
    pub fn processes(mut self, command: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        self.command = Some(Box::new(command));
        self
    }

    /// Opens all instances, and starts their workers.
    ///
    /// # Errors
    /// [`InstanceError`]; nothing runs then.
    pub fn open<P: Program>(mut self) -> Result<Islands<P>, InstanceError> {
        let roster = self.find_roster()?;
        let record = self.open_record()?;
        let instances = self.instances(record.as_ref(), roster.as_ref())?;
        roster.as_ref().map_or(Ok(()), Roster::begin).map_err(InstanceError::Io)?;
        let record = record.map(|record| Arc::new(Mutex::new(record)));
        let running = match self.command.take() {
            Some(command) => {
                let processes = Processes::start(instances.clone(), command, record.clone())?;
                Running::in_processes(&instances, processes)
            }
            None => Running::in_threads(&instances, &self.database)?,
        };
        let running = Arc::new(running);
        let start = |record| EpochCommit::start(Arc::clone(&running), record);
        let epochs = record.map(start).transpose().map_err(InstanceError::Io)?;
        // Behind the first epoch: what instances say of the cluster counts.
        let cluster = roster.map(Roster::end).transpose().map_err(InstanceError::Io)?;
        let islands = Islands {
            epochs,
            cluster: cluster.map(Mutex::new),
            running,
            next_worker: AtomicU32::new(0),
            next_open: AtomicU64::new(0),
            next_point: AtomicU64::new(0),
        };
        if let Some(mut cluster) = islands.lock_cluster() {
            // Where there is no room for it they go on in the term that they are in: a full disk leaves a way in.
            let _ = islands.begin_term(&mut cluster);
        }
        Ok(islands)
    }

    /// Finds out which instances the directory has, if there is one.
    fn find_roster(&self) -> Result<Option<Roster>, InstanceError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        if !self.opens_unfinished && Unfinished::is_in(directory) {
            let message = "the directory has a copy that was not finished: remove it, and make another one";
            return Err(InstanceError::Io(io::Error::other(message)));
        }
        // A database makes its own directory, and not the one above.
        create_directories(directory).map_err(InstanceError::Io)?;
        let look = |directory: &Path| look_into(directory, (self.database)());
        Roster::find(directory, self.instance_count()?, &look).map(Some)
    }

    fn instance_count(&self) -> Result<u16, InstanceError> {
        let too_many = |_| InstanceError::Io(io::Error::other("there are at most 65,535 instances"));
        u16::try_from(self.plan.instances().len()).map_err(too_many)
    }

    /// Opens the record of the epochs of all instances, if they commit by epochs.
    fn open_record(&self) -> Result<Option<EpochRecord>, InstanceError> {
        let refused = |message: &str| Err(InstanceError::Io(io::Error::other(message)));
        let Some(directory) = &self.directory else {
            return match self.unit {
                CommitUnit::Transaction => Ok(None),
                CommitUnit::Epoch => {
                    refused("the unit of commit is an epoch for instances that are stored in a directory")
                }
            };
        };
        match (self.unit, EpochRecord::exists(directory)) {
            (CommitUnit::Transaction, false) => Ok(None),
            (CommitUnit::Transaction, true) => {
                refused("the instances are stored with epochs as the unit of commit: open them so")
            }
            (CommitUnit::Epoch, false) if holds_database(&directory_of(directory, 0)) => refused(
                "there are instances, and no file epochs beside them: they are stored with transactions as the unit of commit, or it is lost",
            ),
            (CommitUnit::Epoch, _) => {
                let opened = EpochRecord::open(directory, self.plan.instances().len());
                opened.map(Some).map_err(InstanceError::Io)
            }
        }
    }

    fn instances(
        &self,
        record: Option<&EpochRecord>,
        roster: Option<&Roster>,
    ) -> Result<Vec<InstanceOptions>, InstanceError> {
        let (places, instances) = (self.plan.instances(), self.instance_count()?);
        let unit = |instance: u16| match record {
            Some(record) => StoredUnit::Epoch { counts_to: record.end_of(instance.into()) },
            None => StoredUnit::Transaction,
        };
        let of_instance = |(instance, cpus): (u16, _)| InstanceOptions {
            number: InstanceNumber { instance, instances },
            cpus,
            workers: self.workers,
            channel: self.channel,
            directory: self.directory.as_ref().map(|all| directory_of(all, instance)),
            unit: unit(instance),
            member: roster.map(|roster| roster.member),
            opens_unfinished: self.opens_unfinished,
        };
        Ok((0..).zip(places.iter().cloned()).map(of_instance).collect())
    }
}

/// Looks into the database of an instance that nobody has open, and returns what it says of itself and its cluster.
pub(crate) fn look_into(directory: &Path, database: Options) -> Result<Found, InstanceError> {
    let db: Database = database.for_reading().answer_while_loading(true).open(directory)?;
    Ok(Found { stored: stored_instance(&db)?, cluster: stored_cluster(&db)?, term: stored_term(&db)? })
}

fn refused(message: &str) -> Refusal {
    Refusal::new(RefusalReason::Rejected, message)
}

pub(crate) fn directory_of(all: &Path, instance: u16) -> PathBuf {
    all.join(format!("instance-{instance}"))
}

impl fmt::Debug for IslandsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IslandsOptions { plan, channel, directory, workers, unit, .. } = self;
        let mut shown = f.debug_struct("IslandsOptions");
        shown.field("plan", plan).field("channel", channel).field("directory", directory);
        shown.field("workers", workers).field("unit", unit).finish_non_exhaustive()
    }
}

/// Several instances as one database.
///
/// Dropping it closes it: what was submitted ends first.
#[derive(Debug)]
pub struct Islands<P: Program> {
    /// Ends before the instances do.
    epochs: Option<EpochCommit>,
    /// The cluster that the instances are; `None` in memory.
    cluster: Option<Mutex<Cluster>>,
    running: Arc<Running<P>>,
    /// Of an instance, the next one that a transaction begins at.
    next_worker: AtomicU32,
    next_open: AtomicU64,
    next_point: AtomicU64,
}

/// A copy of one instance from before is an older one from then on.
impl<P: Program> Drop for Islands<P> {
    fn drop(&mut self) {
        self.begin_last_term();
    }
}

impl<P: Program> Islands<P> {
    /// Returns how many instances there are.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.running.instances()
    }

    /// Returns the database and the program of an instance in this process: a transaction that stays within it may run there by any thread, as it
    /// would without others. `None` where instances have processes of their own.
    ///
    /// Its [`read_stale`](Database::read_stale), and its [`read`](Database::read) where others write all the time, show a moment of this instance,
    /// which may lie between two transactions with parts elsewhere that have happened in the other order there: [`read_all`](Self::read_all) does
    /// not.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn local(&self, instance: u16) -> Option<(&Database, &P)> {
        assert!(usize::from(instance) < self.instances(), "there is no instance {instance}");
        let instance = &self.running.local()?[usize::from(instance)];
        Some((&instance.db, &*instance.program))
    }

    /// Returns the number of the process of an instance; `None` where instances are in this process.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn process_id(&self, instance: u16) -> Option<u32> {
        Some(self.running.processes()?.process_id(instance))
    }

    /// Runs a transaction with parts at several instances, which begins at one of them, and returns what has become of it. One that is in conflict
    /// with others is tried again, a thousand times and for five seconds; one that has waited ten times in vain, a second for a vote or half of one
    /// for what is prepared, is aborted for good.
    ///
    /// Transactions take turns among the workers of the instance. Each worker talks to those of its number at the other instances: what the request
    /// says of workers does not count.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn transact(&self, instance: u16, request: &Request) -> Outcome {
        let mut attempts = Attempts::begin();
        loop {
            match self.try_transact_since(instance, request, attempts.since) {
                Outcome::Aborted(refusal) if attempts.may_go_on(refusal.reason) => {}
                outcome => return outcome,
            }
        }
    }

    /// Runs a transaction once, as [`transact`](Self::transact) does, which is more patient: each call is a transaction as young as can be, and where
    /// some wait for each other the older ones go first.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn try_transact(&self, instance: u16, request: &Request) -> Outcome {
        self.try_transact_since(instance, request, machine_nanos())
    }

    fn try_transact_since(&self, instance: u16, request: &Request, since: u64) -> Outcome {
        let is_instance = |site: &SiteId| usize::from(site.instance) < self.instances();
        if let Some((site, _)) = request.remote.iter().find(|(site, _)| !is_instance(site)) {
            let message = format!("there is no instance {}", site.instance);
            return Outcome::Aborted(Refusal::new(RefusalReason::Rejected, message));
        }
        let worker = self.take_turn();
        let mut request = request.clone();
        request.remote.iter_mut().for_each(|(site, _)| site.worker = worker);
        self.run(SiteId { instance, worker }, request, since)
    }

    /// Returns the worker whose turn it is.
    fn take_turn(&self) -> u16 {
        // Relaxed: a matter of who does the work.
        (self.next_worker.fetch_add(1, Ordering::Relaxed) % u32::from(self.running.workers())) as u16
    }

    /// Has a site coordinate a transaction, and waits for the outcome.
    fn run(&self, coordinator: SiteId, request: Request, since: u64) -> Outcome {
        let _activity = self.activity();
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |outcome| drop(sender.send(outcome)));
        self.running.submit(coordinator, Submission::Transaction(request, since, answer));
        let ended = || Outcome::Unknown("the instance has ended before it answered".to_owned());
        receiver.recv().unwrap_or_else(|_| ended())
    }

    /// Says that somebody waits for an answer from now on.
    fn activity(&self) -> Option<Activity<'_>> {
        self.epochs.as_ref().map(EpochCommit::activity)
    }

    /// Has the program of an instance do what is [no part of a transaction](Program::administer), and returns what that returns.
    ///
    /// # Errors
    /// What the program says; [`RefusalReason::NoVote`] when the instance has ended before it has answered.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn administer(&self, instance: u16, request: &[u8]) -> Result<Vec<u8>, Refusal> {
        let _activity = self.activity();
        let (sender, done) = mpsc::channel();
        let answer = Box::new(move |result| drop(sender.send(result)));
        self.running.submit(SiteId { instance, worker: 0 }, Submission::Administer(request.to_vec(), answer));
        let ended = |_| Refusal::new(RefusalReason::NoVote, "the instance has ended before it answered");
        done.recv().map_err(ended)?
    }

    /// Returns the transactions with a part at an instance that has voted, and waits for the decision: for moments, or until the instance that
    /// coordinates it comes back. Meanwhile what the part has written is locked, and what it has read stays as it is. Empty for an instance that is
    /// dead; one that is stopped is waited for.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn in_doubt(&self, instance: u16) -> Vec<DistributedId> {
        let (sender, in_doubt) = mpsc::channel();
        for site in self.running.sites().filter(|site| site.instance == instance) {
            let sender = sender.clone();
            let answer = Box::new(move |ids| _ = sender.send(ids));
            self.running.submit(site, Submission::InDoubt(answer));
        }
        drop(sender);
        in_doubt.into_iter().flatten().collect()
    }

    /// Decides at one instance about a transaction that is [in doubt](Self::in_doubt) there, in the place of its coordinator. Returns whether it was
    /// in doubt.
    ///
    /// It is for a coordinator that is lost for good. The decision is carried out at this instance alone: where others have heard, or come to,
    /// another one, half of the transaction has happened.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn resolve(&self, instance: u16, id: DistributedId, decision: Decision) -> bool {
        let (sender, resolved) = mpsc::channel();
        let answer = Box::new(move |is_resolved| _ = sender.send(is_resolved));
        let site = SiteId { instance, worker: id.coordinator.worker % self.running.workers() };
        self.running.submit(site, Submission::Resolve(id, decision, answer));
        resolved.recv().unwrap_or(false)
    }

    /// Has each worker make transactions itself, `width` at a time, as its [program](Program::requests) makes them after a description, and returns
    /// what became of them.
    ///
    /// # Errors
    /// That of the program, or when an instance ends.
    pub fn run_load(&self, width: usize, time: LoadTime, description: &[u8]) -> ensilo::Result<LoadReport> {
        let _activity = self.activity();
        let (sender, made) = mpsc::channel();
        for site in self.running.sites() {
            let load = Load { description: description.to_vec(), width, time };
            let sender = sender.clone();
            let answer = Box::new(move |made| drop(sender.send(made)));
            self.running.submit(site, Submission::Load(load, answer));
        }
        drop(sender);
        let (mut all, mut workers) = (LoadReport::new(), 0);
        for made in made {
            all.add(&made?);
            workers += 1;
        }
        if workers < self.running.sites().count() {
            return Err(ensilo::Error::rollback("an instance has ended before its load"));
        }
        Ok(all)
    }
}
