//! Reads what has committed from the log files of an open database, while they are written: epoch by epoch, in a bounded
//! amount of memory.
//!
//! An epoch is given once it is durable, and its changes are sorted by TID. Each logger has a part of an epoch somewhere
//! between two of its marks: so the files of all loggers are read side by side, of the one that has come least far first,
//! until all marks are past the epoch. What lies behind it is kept for the next call, as far as there is room. What is
//! thrown away is read again from the last point in front of which everything was given.
//!
//! # Source
//! No paper has it. That an epoch is the unit follows from Silo (SOSP 2013) §4.3: TIDs order what depends on each other,
//! and epochs what does not.
//!
//! # Memory
//! Changes that were read and not given: as much as the options say, or a single change that is larger. Beside that, of
//! each logger a chunk of a mebibyte at most, or one block if it is longer, and a point for each chunk in front of which
//! not everything was given.
//!
//! # Crash
//! A reader goes by what lies on the disk: the manifest and `CHANGES` say which files there are. One that was removed
//! since is missed when it is to be opened; what is open can be read to its end.

mod chain;
mod pending;
mod place;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use self::chain::{Chain, ChainFiles, ChainPlace, Sink};
use self::pending::Pending;
pub use self::pending::{EpochChanges, LoggedChange};
pub use self::place::LogPlace;
use super::change_history::largest_epoch;
use super::directory::manifest_of;
use super::error::OpenError;
use super::log_file::list_log_files;
use super::named_files::NamedFiles;
use crate::format::{Change, ChangeHistory, EarlierFile, EpochWidth, Manifest, OpeningId, Write};

/// Checkpoints may remove files several times while a plan is made.
const PLANS_MAX: u32 = 5;

/// Tells the changes of one history from those of every other: they go on as long as each opening keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryId {
    /// The opening that has begun it.
    pub begun_by: u128,
    /// The opening that it was seen in: copies of a database have the beginning in common.
    pub seen_by: u128,
}

/// What a reader gives, and how much it holds.
#[derive(Debug, Clone, Default)]
pub struct ChangeReaderOptions {
    /// The tables; `None` for all.
    pub tables: Option<BTreeSet<u32>>,
    /// So many bytes of changes are held at most, but one change at least.
    pub bytes_max: usize,
}

/// Why changes cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChangeReadError {
    /// The database was not opened to keep changes.
    NotKept,
    /// The log is not there any more from the place on: its first epoch is this one.
    Missed {
        /// The first epoch of which all changes are there.
        first_epoch: Epoch,
    },
    /// The place is one of another history.
    OtherHistory,
    /// The files cannot be read.
    Files(OpenError),
}

/// Reads changes. See the module's documentation.
#[derive(Debug)]
pub struct ChangeReader {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: ChangeReaderOptions,
    generation: GenerationReader,
    /// Those that come after it.
    later: VecDeque<GenerationReader>,
    /// Everything in front of it was given.
    place: LogPlace,
    pending: Pending,
    /// How often which files there are may be found out anew before something more was given.
    plans_left: u32,
}

/// The log files of one generation.
#[derive(Debug)]
struct GenerationReader {
    place: ChainPlace,
    /// No entry that counts is later; `None` of the generation that is written.
    last_epoch: Option<Epoch>,
    chains: Vec<Chain>,
}

/// Returns the history that an open database keeps, and its first epoch.
///
/// # Errors
/// [`ChangeReadError::NotKept`], [`ChangeReadError::Files`].
pub fn change_history(disk: &dyn Disk, dir: &Path) -> Result<(HistoryId, Epoch), ChangeReadError> {
    let (manifest, history) = manifest_and_history(disk, dir)?;
    let id = HistoryId { begun_by: history.history.0, seen_by: manifest.opening.0 };
    Ok((id, history.first_epoch))
}

impl ChangeReader {
    /// Returns a reader of what comes behind a place in a history.
    ///
    /// # Errors
    /// [`ChangeReadError`].
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        (history, place): (HistoryId, LogPlace),
        options: ChangeReaderOptions,
    ) -> Result<ChangeReader, ChangeReadError> {
        let (manifest, found) = manifest_and_history(&*disk, dir)?;
        if history.begun_by == found.history.0 && place.epoch() < found.first_epoch {
            return Err(ChangeReadError::Missed { first_epoch: found.first_epoch });
        }
        if !has_place(&manifest, &found, (history, place)) {
            return Err(ChangeReadError::OtherHistory);
        }
        let (generation, later) = plan(&*disk, dir, (&manifest, &found), place)?;
        let pending = Pending::new(options.bytes_max);
        let dir = dir.to_path_buf();
        Ok(ChangeReader { disk, dir, options, generation, later, place, pending, plans_left: PLANS_MAX })
    }

    /// Returns the place in front of which everything was given.
    #[must_use]
    pub fn place(&self) -> LogPlace {
        self.place
    }

    /// Returns the next changes: those of one epoch, or a part of them if they are too many. `None` if there are no more up
    /// to `durable_epoch`, which must be that of the log.
    ///
    /// # Errors
    /// [`ChangeReadError::Missed`] when files have gone that were not read yet; [`ChangeReadError::Files`]. A later call
    /// goes on at the same place.
    pub fn next(&mut self, durable_epoch: Epoch) -> Result<Option<EpochChanges>, ChangeReadError> {
        loop {
            let last = self.generation.last_epoch.map_or(durable_epoch, |last| last.min(durable_epoch));
            let reach = self.generation.reach();
            if let Some(taken) = self.pending.take_epoch(reach.min(Epoch::new(last.get() + 1))) {
                self.go_on_from(taken.next);
                return Ok(Some(taken));
            }
            if self.pending.has_only_cut() {
                self.pending.read_again();
                self.generation.chains.iter_mut().for_each(Chain::rewind);
            } else if reach <= last {
                self.read(last)?;
            } else {
                self.go_on_from(self.place.max(LogPlace::after(last)));
                let has_ended = self.generation.last_epoch == Some(last);
                match if has_ended { self.later.pop_front() } else { None } {
                    Some(next) => self.generation = next,
                    None => return Ok(None),
                }
            }
        }
    }

    fn go_on_from(&mut self, place: LogPlace) {
        (self.place, self.plans_left) = (place, PLANS_MAX);
        self.generation.chains.iter_mut().for_each(|chain| chain.advance(place));
    }

    /// Reads on in the files of the logger that has come least far.
    fn read(&mut self, last: Epoch) -> Result<(), ChangeReadError> {
        let GenerationReader { place, chains, .. } = &mut self.generation;
        let Some(chain) = chains.iter_mut().min_by_key(|chain| chain.reach()) else { return Ok(()) };
        let mut wanted =
            Wanted { from: self.place, tables: self.options.tables.as_ref(), pending: &mut self.pending };
        match chain.read((&*self.disk, place), last, &mut wanted) {
            Err(error) => self.plan_anew(error),
            Ok(()) => Ok(()),
        }
    }

    /// Finds out anew which files there are, where one that is missing has gone because nobody needs it: everything in it was given, or there were too
    /// many files.
    fn plan_anew(&mut self, error: OpenError) -> Result<(), ChangeReadError> {
        let is_missing =
            matches!(&error, OpenError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound);
        if !is_missing || self.plans_left == 0 {
            self.plans_left = PLANS_MAX;
            return Err(ChangeReadError::Files(error));
        }
        let (manifest, history) = manifest_and_history(&*self.disk, &self.dir)?;
        if self.place.epoch() < history.first_epoch {
            return Err(ChangeReadError::Missed { first_epoch: history.first_epoch });
        }
        let (generation, later) = plan(&*self.disk, &self.dir, (&manifest, &history), self.place)?;
        (self.generation, self.later) = (generation, later);
        self.pending = Pending::new(self.options.bytes_max);
        self.plans_left -= 1;
        Ok(())
    }
}

/// Returns whether a place that was seen in some opening is one of this history: whether that opening was one of this database, and counts so far.
fn has_place(manifest: &Manifest, found: &ChangeHistory, (id, place): (HistoryId, LogPlace)) -> bool {
    let counts =
        |(opening, last): &(OpeningId, Epoch)| opening.0 == id.seen_by && place <= LogPlace::after(*last);
    id.begun_by == found.history.0 && (id.seen_by == manifest.opening.0 || found.ended.iter().any(counts))
}

/// Returns the first generation to be read from a place on, and the others.
fn plan(
    disk: &dyn Disk,
    dir: &Path,
    (manifest, history): (&Manifest, &ChangeHistory),
    place: LogPlace,
) -> Result<(GenerationReader, VecDeque<GenerationReader>), ChangeReadError> {
    let plan = Plan { files: NamedFiles { disk, dir, manifest }, history, place };
    plan.generations().map_err(ChangeReadError::Files)
}

impl GenerationReader {
    /// All entries of epochs before this one were read.
    fn reach(&self) -> Epoch {
        self.chains.iter().map(Chain::reach).min().unwrap_or(Epoch::MAX)
    }
}

/// Takes what is wanted of the entries that are read.
struct Wanted<'r> {
    from: LogPlace,
    tables: Option<&'r BTreeSet<u32>>,
    pending: &'r mut Pending,
}

impl Sink for Wanted<'_> {
    fn wants_block(&self, last_epoch: Epoch) -> bool {
        last_epoch >= self.from.epoch()
    }

    fn take(&mut self, place: LogPlace, write: &Write<'_>) {
        let is_of_table = self.tables.is_none_or(|tables| tables.contains(&write.table));
        if is_of_table && place >= self.from && self.pending.takes(place) {
            let row = match write.change {
                Change::Put(row) => Some(row.to_vec()),
                Change::Patch(_) | Change::Delete => None,
            };
            let (tid, table, key) = (write.tid, write.table, write.key.to_vec());
            self.pending.insert(place, LoggedChange { tid, table, key, row });
        }
    }
}

/// Which files are to be read from a place on.
struct Plan<'p> {
    files: NamedFiles<'p>,
    history: &'p ChangeHistory,
    place: LogPlace,
}

impl Plan<'_> {
    /// Returns the first generation, and the others; the last one is that which is written.
    fn generations(&self) -> Result<(GenerationReader, VecDeque<GenerationReader>), OpenError> {
        let mut later = self.earlier();
        later.push_back(self.current()?);
        match later.pop_front() {
            Some(first) => Ok((first, later)),
            None => Ok((self.current()?, later)),
        }
    }

    fn earlier(&self) -> VecDeque<GenerationReader> {
        let files = self.earlier_files();
        let generations = files.chunk_by(|one, other| one.name.generation == other.name.generation);
        let readers = generations.map(|files| {
            let loggers = files.chunk_by(|one, other| one.name.logger == other.name.logger);
            let chain =
                |files: &[EarlierFile]| Chain::new(ChainFiles::Ended(files.to_vec()), Epoch::default());
            GenerationReader {
                place: self.chain_place(files[0].name.generation),
                last_epoch: files.iter().map(|file| file.durable_epoch).max(),
                chains: loggers.map(chain).collect(),
            }
        });
        readers.collect()
    }

    /// Returns the files of earlier generations that may have something behind the place, each once and in order. Where a file is both kept and
    /// named by the manifest, that counts.
    fn earlier_files(&self) -> Vec<EarlierFile> {
        let manifest = self.files.manifest;
        let kept = self.history.kept.iter().map(|kept| (&kept.file, kept.largest_epoch));
        let named = manifest
            .earlier
            .iter()
            .map(|file| (file, largest_epoch(file, manifest.epochs_of(file.name.generation))));
        let is_needed = |&(file, largest_epoch): &(&EarlierFile, Epoch)| {
            file.name.generation < manifest.generation && largest_epoch >= self.place.epoch()
        };
        let mut files: Vec<_> = named.chain(kept).filter(is_needed).map(|(file, _)| file.clone()).collect();
        let order = |file: &EarlierFile| (file.name.generation, file.name.logger, file.name.sequence);
        files.sort_by_key(order);
        files.dedup_by_key(|file| order(file));
        files
    }

    fn current(&self) -> Result<GenerationReader, OpenError> {
        let manifest = self.files.manifest;
        let mut chains = Vec::new();
        for (logger, files) in (0u32..).zip(&manifest.loggers) {
            let kept = self.history.kept.iter().map(|kept| kept.file.name);
            let kept = kept.filter(|name| name.generation == manifest.generation && name.logger == logger);
            let first = kept.map(|name| name.sequence).fold(files.first_sequence, u64::min);
            let growing = ChainFiles::Growing {
                directory: files.directory.clone(),
                generation: manifest.generation,
                logger,
                opening: manifest.log_opening(),
                first_sequence: self.first_unread(&files.directory, logger, first)?,
            };
            chains.push(Chain::new(growing, manifest.first_epoch));
        }
        let place = self.chain_place(manifest.generation);
        Ok(GenerationReader { place, last_epoch: None, chains })
    }

    /// Returns the file of a logger, from this one on, in front of the first one that may have something behind the place: the mark that it ends with
    /// says how far the logger came, and the file that is written may not have one yet. The names of sealed files were given by this process.
    fn first_unread(&self, directory: &str, logger: u32, first: u64) -> Result<u64, OpenError> {
        let NamedFiles { disk, dir, manifest } = self.files;
        let names = list_log_files(disk, &dir.join(directory))?;
        let own = names.iter().filter(|name| (name.generation, name.logger) == (manifest.generation, logger));
        let sealed: BTreeMap<u64, Epoch> = own
            .filter_map(|name| Some((name.sequence, name.largest_epoch(EpochWidth::default())?)))
            .collect();
        let is_given = |sequence: &u64| sealed.get(sequence).is_some_and(|&last| last < self.place.epoch());
        Ok((first..).take_while(is_given).last().unwrap_or(first))
    }

    fn chain_place(&self, generation: u64) -> ChainPlace {
        let NamedFiles { dir, manifest, .. } = self.files;
        ChainPlace {
            dir: dir.to_path_buf(),
            database: manifest.database,
            epochs: manifest.epochs_of(generation),
        }
    }
}

/// Reads the manifest and the history that goes with it: one may be replaced between the two reads.
fn manifest_and_history(disk: &dyn Disk, dir: &Path) -> Result<(Manifest, ChangeHistory), ChangeReadError> {
    for _ in 0..3 {
        let manifest = manifest_of(disk, dir).map_err(ChangeReadError::Files)?;
        let files = NamedFiles { disk, dir, manifest: &manifest };
        if let Some(history) = files.change_history().map_err(ChangeReadError::Files)? {
            return Ok((manifest, history));
        }
    }
    Err(ChangeReadError::NotKept)
}
