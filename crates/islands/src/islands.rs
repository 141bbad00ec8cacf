//! Several instances as one database, in threads of one process.

use std::fmt;
use std::marker::PhantomData;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ensilo::{Database, Options};

use crate::binding::bind_this_thread;
use crate::channel::{ChannelKind, connect};
use crate::commit::{DistributedId, Failed, Outcome, Refusal, RefusalReason, Request, Site, SiteId};
use crate::instance::{
    Found, InstanceError, InstanceStore, Load, LoadReport, LoadTime, Notes, Place, Program, Recovered,
    RequestSource, Submission, Wake, Worker, WorkerChannels, pause_before_attempt,
};
use crate::placement::{InstancePlace, Plan};

/// How long a site waits for another one before it asks again, or gives up.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a transaction that is in conflict is tried.
const ATTEMPTS_MAX: u32 = 1000;

/// How [`Islands`] are opened.
pub struct IslandsOptions {
    plan: Plan,
    channel: ChannelKind,
    directory: Option<PathBuf>,
    workers: u16,
    database: Box<dyn Fn() -> Options + Send + Sync>,
}

impl IslandsOptions {
    /// Returns the options by default: instances in memory where the plan has them, with one worker for each of their processors, and channels through
    /// memory.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        let workers = plan.instances().iter().map(|place| place.cpus().len()).max().unwrap_or(1);
        IslandsOptions {
            plan,
            channel: ChannelKind::Memory,
            directory: None,
            workers: u16::try_from(workers.max(1)).unwrap_or(u16::MAX),
            database: Box::new(Database::options),
        }
    }

    /// Sets what carries messages between workers.
    #[must_use]
    pub fn channel(mut self, kind: ChannelKind) -> Self {
        self.channel = kind;
        self
    }

    /// Sets how many workers each instance has, at least one.
    #[must_use]
    pub fn workers(mut self, workers: u16) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// Stores the instances below a directory, each in one of its own.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the options that each instance's database is opened with.
    #[must_use]
    pub fn database(mut self, options: impl Fn() -> Options + Send + Sync + 'static) -> Self {
        self.database = Box::new(options);
        self
    }

    /// Opens all instances, and starts their workers.
    ///
    /// # Errors
    /// [`InstanceError`]; nothing runs then.
    pub fn open<P: Program>(self) -> Result<Islands<P>, InstanceError> {
        Islands::open(&self)
    }
}

impl fmt::Debug for IslandsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IslandsOptions { plan, channel, directory, workers, .. } = self;
        let mut shown = f.debug_struct("IslandsOptions");
        shown.field("plan", plan).field("channel", channel).field("directory", directory);
        shown.field("workers", workers).finish_non_exhaustive()
    }
}

/// One instance.
struct Instance<P> {
    db: Database,
    program: Arc<P>,
    workers: Vec<Running>,
}

/// A worker that runs.
struct Running {
    submissions: Mutex<Sender<Submission>>,
    wake: Arc<Wake>,
    thread: Option<JoinHandle<Result<(), Failed>>>,
}

/// Several instances as one database, in threads of this process.
pub struct Islands<P: Program> {
    instances: Vec<Instance<P>>,
    stops: Arc<AtomicBool>,
    program: PhantomData<P>,
}

impl<P: Program> Islands<P> {
    fn open(options: &IslandsOptions) -> Result<Self, InstanceError> {
        let places = options.plan.instances();
        let mut opened = Vec::new();
        for at in 0..places.len() {
            opened.push(OpenInstance::<P>::open(options, at)?);
        }
        let stops = Arc::new(AtomicBool::new(false));
        let ends = ends_between(places.len(), options.workers).map_err(InstanceError::Io)?;
        let (started, all_started) = mpsc::channel();
        let mut islands = Islands { instances: Vec::new(), stops, program: PhantomData };
        for ((instance, place), ends) in opened.into_iter().zip(places).zip(ends) {
            let running = instance.start(options, place, ends, (&islands.stops, &started));
            islands.instances.push(running.map_err(InstanceError::Io)?);
        }
        drop(started);
        all_started.iter().collect::<Result<(), InstanceError>>()?;
        Ok(islands)
    }

    /// Returns how many instances there are.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Returns the database of an instance: a transaction that stays within it runs there, as it would without others.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn database(&self, instance: u16) -> &Database {
        &self.instances[usize::from(instance)].db
    }

    /// Returns the program of an instance.
    ///
    /// # Panics
    /// When there is no such instance.
    #[must_use]
    pub fn program(&self, instance: u16) -> &P {
        &self.instances[usize::from(instance)].program
    }

    /// Runs a transaction with parts at several instances, which begins at one of them, and returns what has become of it. One that is in conflict with
    /// others is tried again.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn transact(&self, instance: u16, request: &Request) -> Outcome {
        let mut attempt = 1;
        loop {
            match self.try_transact(instance, request.clone()) {
                Outcome::Aborted(refusal) if refusal.reason.may_pass() && attempt < ATTEMPTS_MAX => {
                    thread::sleep(pause_before_attempt(attempt));
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    fn try_transact(&self, instance: u16, request: Request) -> Outcome {
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |outcome| drop(sender.send(outcome)));
        self.instances[usize::from(instance)].workers[0].submit(Submission::Transaction(request, answer));
        let ended =
            Refusal::new(RefusalReason::Rejected, "the instance has ended, and the outcome is not known");
        receiver.recv().unwrap_or(Outcome::Aborted(ended))
    }

    /// Has each worker make transactions itself, `width` at a time, and returns what became of them.
    pub fn run_load(
        &self,
        width: usize,
        LoadTime { warmup, measured }: LoadTime,
        source: impl Fn(SiteId) -> RequestSource,
    ) -> LoadReport {
        let (report_to, reports) = mpsc::channel();
        let counts_from = Instant::now() + warmup;
        let until = counts_from + measured;
        for (instance, workers) in (0..).zip(&self.instances) {
            for (worker, running) in (0..).zip(&workers.workers) {
                let (source, report_to) = (source(SiteId { instance, worker }), report_to.clone());
                running.submit(Submission::Load(Load { source, width, counts_from, until, report_to }));
            }
        }
        drop(report_to);
        let mut all = LoadReport::new();
        reports.iter().for_each(|report| all.add(&report));
        all
    }
}

impl<P: Program> Drop for Islands<P> {
    fn drop(&mut self) {
        // Release: what was done before.
        self.stops.store(true, Ordering::Release);
        for worker in self.instances.iter_mut().flat_map(|instance| &mut instance.workers) {
            worker.wake.wake();
            if let Some(thread) = worker.thread.take() {
                // One that has failed has said so to those who asked it for something.
                let _ = thread.join();
            }
        }
    }
}

impl<P: Program> fmt::Debug for Islands<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Islands").field("instances", &self.instances.len()).finish_non_exhaustive()
    }
}

impl Running {
    fn submit(&self, submission: Submission) {
        // A worker that has ended drops it, and with it whoever waits for the answer.
        let _ = self.submissions.lock().unwrap_or_else(PoisonError::into_inner).send(submission);
        self.wake.wake();
    }
}

/// An instance whose files are open, and whose workers do not run yet.
struct OpenInstance<P: Program> {
    db: Database,
    program: Arc<P>,
    workers: Vec<OpenWorker<P>>,
}

struct OpenWorker<P: Program> {
    site: Site<InstanceStore<P>>,
    store: InstanceStore<P>,
    wake: Arc<Wake>,
    recovered: Recovered,
}

impl<P: Program> OpenInstance<P> {
    fn open(options: &IslandsOptions, at: usize) -> Result<Self, InstanceError> {
        let count = options.plan.instances().len();
        let (Ok(instance), Ok(instances)) = (u16::try_from(at), u16::try_from(count)) else {
            return Err(InstanceError::Io(std::io::Error::other("there are at most 65,535 instances")));
        };
        let place = Place { instance, instances };
        let database = (options.database)();
        let db = match &options.directory {
            Some(directory) => database.open(directory.join(format!("instance-{at}")))?,
            None => database.in_memory()?,
        };
        let program = Arc::new(P::open(&db, place)?);
        let (notes, found) = match options.directory {
            Some(_) => Notes::open(&db, place, options.workers).map(|(notes, found)| (Some(notes), found))?,
            None => (None, Found::default()),
        };
        let mut notes = notes.map(Vec::into_iter);
        let mut workers = Vec::new();
        for worker in 0..options.workers {
            let (own, wake) = (SiteId { instance, worker }, Arc::new(Wake::default()));
            let notes = notes.as_mut().and_then(Iterator::next);
            let waker = Waker::from(Arc::clone(&wake));
            let mut store = InstanceStore::new(db.clone(), Arc::clone(&program), notes, waker);
            let is_own = |id: &DistributedId| id.coordinator.worker % options.workers == worker;
            let recovered = store.recover(&found, is_own)?;
            let site = Site::new(own, found.incarnation, PATIENCE);
            workers.push(OpenWorker { site, store, wake, recovered });
        }
        Ok(OpenInstance { db, program, workers })
    }

    /// Starts the workers. Each tells `started` whether it has met the others.
    fn start(
        self,
        options: &IslandsOptions,
        place: &InstancePlace,
        ends: Vec<WorkerEnds>,
        (stops, started): (&Arc<AtomicBool>, &Sender<Started>),
    ) -> std::io::Result<Instance<P>> {
        let mut running = Vec::new();
        for (at, (worker, ends)) in self.workers.into_iter().zip(ends).enumerate() {
            let (sender, submissions) = mpsc::channel();
            let wake = Arc::clone(&worker.wake);
            let (place, kind) = (place.clone(), options.channel);
            let (stops, started) = (Arc::clone(stops), started.clone());
            let run = move || {
                let channels = match bind_and_connect(&place, at, kind, ends) {
                    Ok(channels) => channels,
                    Err(error) => {
                        // Who opens the islands waits for it.
                        let _ = started.send(Err(error));
                        return Ok(());
                    }
                };
                let _ = started.send(Ok(()));
                drop(started);
                let OpenWorker { site, store, wake, recovered } = worker;
                Worker::new(site, store, channels, (submissions, wake)).run(recovered, &stops)
            };
            let thread = thread::Builder::new().name(format!("island-{at}")).spawn(run)?;
            running.push(Running { submissions: Mutex::new(sender), wake, thread: Some(thread) });
        }
        Ok(Instance { db: self.db, program: self.program, workers: running })
    }
}

/// Whether a worker has met the others.
type Started = Result<(), InstanceError>;

/// The sockets of one worker, by the site that each leads to.
type WorkerEnds = Vec<(SiteId, UnixStream)>;

fn bind_and_connect(
    place: &InstancePlace,
    worker: usize,
    kind: ChannelKind,
    ends: WorkerEnds,
) -> Result<WorkerChannels, InstanceError> {
    bind_this_thread(place, worker).map_err(|error| InstanceError::Io(std::io::Error::other(error)))?;
    let connect_one = |(site, end)| match connect(kind, end) {
        Ok(channel) => Ok((site, channel)),
        Err(error) => Err(InstanceError::Io(std::io::Error::other(error))),
    };
    // All in the order of the sites, so that no two wait for each other.
    ends.into_iter().map(connect_one).collect()
}

/// Returns the ends of a link between each worker and the worker of the same number at each other instance: by instance, by worker.
fn ends_between(instances: usize, workers: u16) -> std::io::Result<Vec<Vec<WorkerEnds>>> {
    let mut ends: Vec<Vec<WorkerEnds>> = Vec::new();
    ends.resize_with(instances, || std::iter::repeat_with(Vec::new).take(workers.into()).collect());
    for (first, second) in
        (0..instances).flat_map(|first| (first + 1..instances).map(move |second| (first, second)))
    {
        for worker in 0..workers {
            let (here, there) = UnixStream::pair()?;
            let site = |instance: usize| SiteId { instance: instance as u16, worker };
            ends[first][usize::from(worker)].push((site(second), here));
            ends[second][usize::from(worker)].push((site(first), there));
        }
    }
    for links in ends.iter_mut().flatten() {
        links.sort_by_key(|(site, _)| *site);
    }
    Ok(ends)
}
