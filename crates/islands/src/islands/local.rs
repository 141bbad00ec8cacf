//! An instance whose workers run in this process.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::task::Waker;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use ensilo::group::GroupMember;
use ensilo::{Database, Error, OpenError, Options};
use serde::{Deserialize, Serialize};

use super::roster::stored_terms;
use super::unfinished_disk::UnfinishedDisk;
use crate::binding::{bind_this_thread, with_memory_of};
use crate::channel::{ChannelError, ChannelKind, connect_to_wait};
use crate::commit::{Ages, Failed, Site, SiteId};
use crate::instance::{
    ClusterMember, ClusterStage, Found, InstanceError, InstanceNumber, InstanceStore, Keeping, Notes,
    OpenTransactions, Program, Recovered, Submission, Submitter, Terms, TermsOf, Wake, Worker, check_cluster,
    check_term, join_cluster,
};
use crate::placement::InstancePlace;

/// How long a site waits for another one before it asks again, or gives up.
const PATIENCE: Duration = Duration::from_secs(1);

/// What an instance needs to know of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InstanceOptions {
    pub(crate) number: InstanceNumber,
    pub(crate) cpus: InstancePlace,
    pub(crate) workers: u16,
    pub(crate) channel: ChannelKind,
    /// The instance's own directory; `None` in memory.
    pub(crate) directory: Option<PathBuf>,
    pub(crate) unit: StoredUnit,
    /// The cluster that it belongs to; `None` in memory.
    pub(crate) member: Option<ClusterMember>,
    /// Whether its directory may say that it is not finished.
    pub(crate) opens_unfinished: bool,
}

impl InstanceOptions {
    /// Returns the options of an instance that was opened, and is opened again.
    pub(crate) fn again(&self) -> Self {
        let mut again = self.clone();
        if let Some(member) = &mut again.member {
            if member.stage == ClusterStage::Making {
                // Others may not be made yet, but this one is.
                member.stage = ClusterStage::Marking;
            }
            // Its files may be other ones by now.
            member.terms = TermsOf::File;
        }
        again
    }

    /// Opens the database. One that has to be there is not made.
    fn open_database(&self, database: Options) -> ensilo::Result<Database> {
        let Some(directory) = &self.directory else { return database.in_memory() };
        let may_be_new = self.member.is_none_or(|member| member.stage == ClusterStage::Making);
        let database = if may_be_new { database } else { database.must_exist(true) };
        match self.opens_unfinished {
            true => database.open_with(Arc::new(UnfinishedDisk), directory),
            false => database.open(directory),
        }
    }

    /// Returns the terms that the instance may be in, which has its database open.
    fn terms(&self, member: ClusterMember) -> io::Result<Terms> {
        match (member.terms, self.directory.as_deref().and_then(Path::parent)) {
            (TermsOf::File, Some(all)) => stored_terms(all),
            (TermsOf::Instance(terms), _) => Ok(terms),
            (TermsOf::File, None) => Ok(Terms::default()),
        }
    }

    /// Returns why a database is not opened that has not what counts of its epochs: its files are of another cluster, or older than what the file
    /// `epochs` says.
    fn explain(&self, error: Error, database: Options) -> Error {
        let (Some(directory), Some(member), StoredUnit::Epoch { .. }) =
            (&self.directory, self.member, self.unit)
        else {
            return error;
        };
        let Error::Open(refused) = &error else { return error };
        let OpenError::Refused(why) = &**refused else { return error };
        // What cannot be opened at all is refused for something else.
        let looked = database.for_reading().answer_while_loading(true).open(directory);
        let Ok(db) = looked else { return error };
        let belongs = check_cluster(&db, self.number, member.cluster)
            .and_then(|()| check_term(&db, self.number, &self.terms(member).unwrap_or_default()));
        belongs.err().unwrap_or_else(|| {
            Error::rollback(format!(
                "the files of instance {} do not fit the file epochs beside them ({why}): they, or that file, are an older copy: put the newer ones back, or restore a copy of all",
                self.number.instance
            ))
        })
    }
}

/// What is stored at all instances at once.
#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
pub(crate) enum StoredUnit {
    Transaction,
    /// All of an epoch. Of what the instance has stored, all counts up to this epoch of its own; everything before the first epoch has ended.
    Epoch {
        counts_to: Option<u64>,
    },
}

/// See the module's documentation.
pub(crate) struct LocalInstance<P> {
    pub(crate) db: Database,
    pub(crate) program: Arc<P>,
    pub(crate) open: Arc<OpenTransactions<P>>,
    /// The database as one of several whose epochs are stored together, if it is one.
    pub(crate) member: Option<GroupMember>,
    channel: ChannelKind,
    workers: Vec<LocalWorker>,
    stops: Arc<AtomicBool>,
    /// How often it was opened.
    pub(crate) incarnation: u32,
}

/// A worker that runs.
struct LocalWorker {
    submitter: Submitter,
    thread: Option<JoinHandle<Result<(), Failed>>>,
}

/// A worker that is about to run.
struct Prepared<P: Program> {
    own: SiteId,
    program: Arc<P>,
    site: Site<InstanceStore<P>>,
    store: InstanceStore<P>,
    wake: Arc<Wake>,
    recovered: Recovered,
}

impl<P: Program> LocalInstance<P> {
    /// Opens an instance, prepares again what was prepared before a crash, and starts its workers.
    ///
    /// `on_failure` is called when a worker can go on no more.
    pub(crate) fn open(
        options: &InstanceOptions,
        database: Options,
        on_failure: fn(&Failed),
    ) -> Result<Self, InstanceError> {
        let database = match options.unit {
            StoredUnit::Epoch { counts_to: Some(epoch) } => database.give_up_after(epoch),
            StoredUnit::Epoch { counts_to: None } | StoredUnit::Transaction => database,
        };
        // Its rows are the instance's, also those that a recovery makes.
        let opened = with_memory_of(&options.cpus, || options.open_database(database.clone()));
        let db = opened.map_err(InstanceError::Io)?.map_err(|error| options.explain(error, database))?;
        // What is prepared relies on the index, which rows that are loaded later would change.
        db.wait_until_loaded()?;
        // First: the files may be of another instance, of another cluster, or of another time.
        if let Some(member) = options.member {
            join_cluster(&db, options.number, member)?;
            check_term(&db, options.number, &options.terms(member).map_err(InstanceError::Io)?)?;
        }
        let (keeping, found) = open_keeping(options, &db)?;
        let program = Arc::new(P::open(&db, options.number)?);
        let open = Arc::new(OpenTransactions::new(db.clone(), Arc::clone(&program)));
        let member = keeping.iter().find_map(Keeping::member).cloned();
        let (prepared, incarnation) =
            (prepare_workers(options, (&db, &program, &open), keeping, &found)?, found.incarnation);
        if let Some(member) = &member {
            member.hold();
        }
        let stops = Arc::new(AtomicBool::new(false));
        let mut instance = LocalInstance {
            db,
            program,
            open,
            member,
            channel: options.channel,
            workers: Vec::new(),
            stops,
            incarnation,
        };
        for worker in prepared {
            match worker.start(&options.cpus, &instance.stops, on_failure) {
                Ok(running) => instance.workers.push(running),
                Err(error) => {
                    // Those that run have the directory open.
                    instance.stop();
                    instance.join();
                    return Err(error);
                }
            }
        }
        Ok(instance)
    }

    /// Tells all workers that another instance has ended, and comes back with this incarnation; returns when they know.
    pub(crate) fn end_other(&self, instance: u16, next_incarnation: u32) {
        let (sender, known) = mpsc::channel::<()>();
        for (worker, of_worker) in (0..).zip(&self.workers) {
            let (site, sender) = (SiteId { instance, worker }, sender.clone());
            let known = Box::new(move |()| drop(sender));
            of_worker.submitter.submit(Submission::Ended(site, next_incarnation, known));
        }
        drop(sender);
        // Each of them drops its sender, also one that has ended.
        let _ = known.recv();
    }

    /// Has a worker do something. One that has ended drops it.
    pub(crate) fn submit(&self, worker: u16, submission: Submission) {
        self.workers[usize::from(worker)].submitter.submit(submission);
    }

    /// Has a worker reach another site over a socket, once the other end does the same.
    pub(crate) fn link(&self, worker: u16, site: SiteId, end: UnixStream) -> io::Result<()> {
        let channel = connect_to_wait(self.channel, end).map_err(io_error)?;
        self.submit(worker, Submission::Link(site, channel));
        Ok(())
    }

    /// Has a worker serve a client over a socket, once the other end does the same.
    pub(crate) fn serve(&self, worker: u16, end: UnixStream) -> io::Result<()> {
        let channel = connect_to_wait(self.channel, end).map_err(io::Error::other)?;
        self.submit(worker, Submission::Client(channel));
        Ok(())
    }

    /// Has the workers end when nothing is under way any more.
    pub(crate) fn stop(&self) {
        // Release: what was done before.
        self.stops.store(true, Ordering::Release);
        self.workers.iter().for_each(|worker| worker.submitter.wake());
    }

    /// Waits for the workers to end.
    pub(crate) fn join(&mut self) {
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            // One that has failed has said so to those who asked it for something.
            let _ = thread.join();
        }
    }
}

/// Returns the error of the system, where it is one.
fn io_error(error: ChannelError) -> io::Error {
    match error {
        ChannelError::Io(error) => error,
        ChannelError::Closed => io::Error::new(io::ErrorKind::BrokenPipe, error),
        error => io::Error::other(error),
    }
}

/// Returns how each worker keeps what is committed, and what was found of that.
fn open_keeping(options: &InstanceOptions, db: &Database) -> Result<(Vec<Keeping>, Found), InstanceError> {
    let (number, workers) = (options.number, options.workers);
    Ok(match (&options.directory, options.unit) {
        (None, _) => ((0..workers).map(|_| Keeping::Memory).collect(), Found::default()),
        (Some(_), StoredUnit::Transaction) => {
            let (notes, found) = Notes::open(db, number, workers)?;
            (notes.into_iter().map(Keeping::Transactions).collect(), found)
        }
        (Some(_), StoredUnit::Epoch { counts_to }) => {
            let found = Found::without_notes(db, number, workers, counts_to.is_some())?;
            let member = db.group_member()?;
            ((0..workers).map(|_| Keeping::Epochs(member.clone())).collect(), found)
        }
    })
}

fn prepare_workers<P: Program>(
    options: &InstanceOptions,
    (db, program, open): (&Database, &Arc<P>, &Arc<OpenTransactions<P>>),
    keeping: Vec<Keeping>,
    found: &Found,
) -> Result<Vec<Prepared<P>>, InstanceError> {
    let mut stores = Vec::new();
    for keeping in keeping {
        let wake = Arc::new(Wake::new().map_err(InstanceError::Io)?);
        let waker = Waker::from(Arc::clone(&wake));
        stores.push((
            InstanceStore::new((db.clone(), Arc::clone(program)), Arc::clone(open), keeping, waker),
            wake,
        ));
    }
    // Until all are prepared.
    let mut tried_out = Vec::new();
    for part in &found.parts {
        tried_out.push(stores[0].0.try_out(part)?);
    }
    let (mut prepared, ages) = (Vec::new(), Ages::default());
    for (worker, (mut store, wake)) in (0..).zip(stores) {
        let own = SiteId { instance: options.number.instance, worker };
        let recovered = store.recover(found, |id| id.coordinator.worker == worker)?;
        let site = Site::new(own, found.incarnation, ages.clone(), PATIENCE);
        prepared.push(Prepared { own, program: Arc::clone(program), site, store, wake, recovered });
    }
    Ok(prepared)
}

impl<P: Program> Prepared<P> {
    fn start(
        self,
        cpus: &InstancePlace,
        stops: &Arc<AtomicBool>,
        on_failure: fn(&Failed),
    ) -> Result<LocalWorker, InstanceError> {
        let Prepared { own, program, site, store, wake, recovered } = self;
        let (sender, submissions) = mpsc::channel();
        let (bound, is_bound) = mpsc::channel();
        let (cpus, stops, own_wake) = (cpus.clone(), Arc::clone(stops), Arc::clone(&wake));
        let run = move || {
            let is_bound = bind_this_thread(&cpus, own.worker.into());
            let may_run = is_bound.is_ok();
            // Whoever starts it waits for this.
            let _ = bound.send(is_bound);
            if !may_run {
                return Ok(());
            }
            let ended = Worker::new((own, program), site, store, (submissions, wake)).run(recovered, &stops);
            ended.inspect_err(on_failure)
        };
        let name = format!("island-{own}");
        let thread = thread::Builder::new().name(name).spawn(run).map_err(InstanceError::Io)?;
        wait_until_bound(&is_bound)?;
        Ok(LocalWorker { submitter: Submitter::new(sender, own_wake), thread: Some(thread) })
    }
}

fn wait_until_bound(is_bound: &Receiver<Result<(), crate::BindError>>) -> Result<(), InstanceError> {
    let ended = || InstanceError::Io(io::Error::other("a worker has ended at its start"));
    let bound = is_bound.recv().map_err(|_| ended())?;
    bound.map_err(|error| InstanceError::Io(io::Error::other(error)))
}

impl<P> fmt::Debug for LocalInstance<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalInstance").field("db", &self.db).finish_non_exhaustive()
    }
}
