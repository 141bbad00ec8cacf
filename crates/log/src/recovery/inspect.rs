//! What a directory holds, and opening it.
//!
//! # Crash
//! An opening takes these steps; a crash between any two does no harm, because the manifest alone says what
//! counts:
//! 1. take the locks; read the manifest; see that the log directories are the database's
//!    ([`super::ownership`]); sync what an earlier process may have left in the system's cache;
//! 2. look at the files, find the durable epoch, or stop at damage;
//! 3. write the end of each log, as far as no block proves that it was synced, once more, and sync it: after
//!    a failed sync a system may show bytes that are not on the disk;
//! 4. replay;
//! 5. see whether the database may log to the directories that are asked for, and make those that are
//!    missing; bring the copy of the manifest up to it, remove what interrupted openings and checkpoints
//!    left, and bring the `OWNER` files up to the manifest;
//! 6. say which files are kept for readers of changes, if the opening keeps any ([`super::change_history`]), make the
//!    log files of the new generation, install the manifest that names them, copy it, claim the log directories, and
//!    remove what is not needed any more.
//!
//! What cannot be removed in steps 5 and 6 because the system fails does no harm, and is tried again by the
//! next checkpoint or opening; only the log files of an interrupted opening must go before a new one is made.
//!
//! A database that is only read needs neither room nor a right to write: nothing is written, synced, made or
//! removed for it. What an earlier process wrote and did not sync is shown as the system shows it.
//!
//! An opening that is refused, or fails before its manifest is in place, takes back what it has made
//! ([`super::created_paths`]): all that can be refused is looked at before the first step that changes a
//! file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::chain::{Chain, Depth};
use super::change_history::{KeptChanges, remove_history};
use super::checkpoint_blocks::CheckpointBlocks;
use super::corruption::worst_of;
use super::created_paths::CreatedPaths;
use super::database_files::DatabaseFiles;
use super::directory::{check_before_lock, check_is_database, check_new};
use super::directory_locks::{DirectoryLocks, LockMode, LockedDirectory, again_if_vanished};
use super::error::OpenError;
use super::file_access::{remove_if_there, rename, sync_dir};
use super::file_names::{CHANGES, CHANGES_NEW, MANIFEST, MANIFEST_NEW};
use super::forgiving::ForgivingDisk;
use super::generation::{GenerationOptions, NewGeneration};
use super::manifest_file::read_manifest;
use super::named_files::{NamedFiles, SuspectFiles};
use super::needed_files::SealedNames;
use super::own_manifest::check_on_disk;
use super::progress::Progress;
use super::replay::{Replay, Replayed, replay};
use super::replay_file::ReplayFile;
use super::requested_directories::RequestedDirectories;
use super::survey::Survey;
use super::unsynced::write_end_again;
use crate::format::{CheckpointEntry, DatabaseId, EPOCH_END, FORMAT_VERSION, Manifest, OpeningId};

/// What a directory holds. As long as this lives, nobody else can open it.
#[derive(Debug)]
pub struct Found {
    directory: LockedDirectory,
    /// `None` for a new database.
    pub(super) database: Option<(Manifest, Survey)>,
    /// Whether everything was replayed, and nothing was wrong.
    was_replayed: AtomicBool,
    /// Copies of records in the checkpoint, by the numbers of their parts, that the next generation goes on
    /// without.
    lost_copies: Vec<u32>,
    /// How many bytes of log files the next generation keeps for readers of changes; `None` if it keeps no changes.
    changes_bytes_max: Option<u64>,
}

/// Looks at the database in `dir`, to open it. A directory that is missing is created, for a new database; it
/// goes again with [`Found`] if that does not become one, as lock files do that were missing.
///
/// What is read was synced before, and nothing was changed.
///
/// # Errors
/// [`OpenError`]; the directory can be opened again when the cause is gone, and nothing is there that was not
/// there before.
pub fn inspect(disk: &Arc<dyn Disk>, dir: &Path) -> Result<Found, OpenError> {
    let mut locks = again_if_vanished(|| {
        let mut created = CreatedPaths::new(disk);
        created.create_directory(&**disk, dir)?;
        check_before_lock(&**disk, dir)?;
        DirectoryLocks::of_opening(&**disk, dir, created)
    })?;
    let database = match read_manifest(&**disk, dir)? {
        // What is there counts for nothing, and what will count is synced when it is made.
        None => {
            check_new(&**disk, dir)?;
            None
        }
        Some(manifest) => {
            // The process that has put it there may have come no further.
            sync_dir(&**disk, dir)?;
            let files = NamedFiles { disk: &**disk, dir, manifest: &manifest };
            locks.add_named(&files)?;
            files.check_owners()?;
            files.sync_last_generation()?;
            let survey = sound_survey(&**disk, dir, &manifest)?;
            survey.chains.iter().try_for_each(|chain| write_end_again(&**disk, chain))?;
            Some((manifest, survey))
        }
    };
    let directory = LockedDirectory { disk: Arc::clone(disk), dir: dir.to_path_buf(), locks };
    Ok(Found::new(directory, database))
}

/// What a directory holds, to be read alone.
#[derive(Debug)]
pub struct ReadOnlyFiles(Found);

impl ReadOnlyFiles {
    pub(super) fn new(found: Found) -> ReadOnlyFiles {
        ReadOnlyFiles(found)
    }

    /// Returns what was found.
    #[must_use]
    pub fn found(&self) -> &Found {
        &self.0
    }
}

/// Looks at the database in `dir`, to read it. Changes nothing. As long as the result lives, nobody can open the database to write; others
/// may read it. [`crate::inspect_beside`] keeps nobody away.
///
/// # Errors
/// [`OpenError`] when there is no database, it is damaged, or somebody has it open to write.
pub fn inspect_read_only(disk: &Arc<dyn Disk>, dir: &Path) -> Result<ReadOnlyFiles, OpenError> {
    check_is_database(&**disk, dir)?;
    let mut locks = DirectoryLocks::of_database(&**disk, dir, LockMode::Shared)?;
    let manifest = locks.add_checked(&**disk, dir)?;
    let survey = sound_survey(&**disk, dir, &manifest)?;
    let directory = LockedDirectory { disk: Arc::clone(disk), dir: dir.to_path_buf(), locks };
    Ok(ReadOnlyFiles(Found::new(directory, Some((manifest, survey)))))
}

/// Returns the survey of a database that has no damage.
pub(super) fn sound_survey(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<Survey, OpenError> {
    let found = SuspectFiles::new(&ForgivingDisk::new(disk), dir, manifest).survey(Depth::Tail)?;
    match worst_of(&found.corruptions) {
        None => Ok(found),
        Some(worst) => Err(OpenError::from(worst.clone())),
    }
}

impl Found {
    pub(super) fn new(directory: LockedDirectory, database: Option<(Manifest, Survey)>) -> Found {
        Found {
            directory,
            database,
            was_replayed: false.into(),
            lost_copies: Vec::new(),
            changes_bytes_max: None,
        }
    }

    /// Returns where it lies, and on which disk.
    pub(super) fn directory(&self) -> &LockedDirectory {
        &self.directory
    }

    /// Lets the next generation go on without these copies of records in the checkpoint.
    pub(super) fn without_copies(self, lost_copies: Vec<u32>) -> Found {
        Found { lost_copies, ..self }
    }

    /// Lets the next generation keep log files, after checkpoints have taken their place, for readers of changes: so
    /// many bytes of them at most. Its log must have whole rows alone ([`crate::LogOptions::whole_rows`]).
    pub fn keep_changes(&mut self, bytes_max: u64) {
        self.changes_bytes_max = Some(bytes_max);
    }

    /// Returns whether there is no database yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.database.is_none()
    }

    /// Returns what the manifest says; `None` for a new database.
    #[must_use]
    pub fn manifest(&self) -> Option<&Manifest> {
        self.database.as_ref().map(|(manifest, _)| manifest)
    }

    /// Returns the checkpoint that replay begins with.
    #[must_use]
    pub fn checkpoint(&self) -> Option<&CheckpointEntry> {
        self.manifest()?.checkpoint.as_ref()
    }

    /// `D`: replay brings back every transaction up to this epoch, and none after it. `None` for a new
    /// database.
    #[must_use]
    pub fn durable_epoch(&self) -> Option<Epoch> {
        self.database.as_ref().map(|(_, survey)| survey.durable_epoch)
    }

    /// No epoch on disk is later. 0 for a new database.
    #[must_use]
    pub fn largest_epoch(&self) -> Epoch {
        self.database.as_ref().map_or(Epoch::default(), |(_, survey)| survey.largest_epoch)
    }

    /// Returns whether the database was closed in order. True for a new one.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        self.database.as_ref().is_none_or(|(_, survey)| survey.chains.iter().all(|chain| chain.is_closed))
    }

    /// Gives up what was committed after `epoch`, although it is stored, unless a checkpoint has it: replay brings back
    /// nothing after it, and it is void for good once the next generation has begun.
    ///
    /// # Errors
    /// [`OpenError::Refused`] when not everything up to there is stored, or when the files say that more was durable: of
    /// this generation, or of those before where nothing of this one was.
    pub fn give_up_after(&mut self, epoch: Epoch) -> Result<(), OpenError> {
        let refused = |stored: Epoch| {
            OpenError::Refused(format!(
                "everything up to epoch {epoch} was stored once, and what is found reaches up to epoch {stored}"
            ))
        };
        let Some((manifest, survey)) = &mut self.database else {
            return if epoch == Epoch::default() { Ok(()) } else { Err(refused(Epoch::default())) };
        };
        let stored = survey.durable_epoch;
        if manifest.counted_to(stored) < manifest.counted_to(epoch) {
            return Err(refused(stored));
        }
        let end = manifest.checkpoint_end().unwrap_or_default();
        let counts_to = epoch.max(end);
        let (said, first) = (survey.said_durable(manifest), manifest.first_epoch);
        // What is said in the generation that begins behind the epoch, and has none of its own that counts, is of its opening.
        let said = if epoch >= first { said } else { manifest.durable_epoch };
        if said > counts_to && (epoch >= first || said < first) {
            return Err(OpenError::Refused(format!(
                "everything up to epoch {said} was durable once, and is to be given up after epoch {epoch}"
            )));
        }
        survey.durable_epoch = stored.min(counts_to);
        Ok(())
    }

    /// Takes all that was written for stored: a mistake that crash tests have to find.
    #[doc(hidden)]
    pub fn plant_replay_past_durable_epoch(&mut self) {
        let Some((_, survey)) = &mut self.database else { return };
        survey.durable_epoch = survey.largest_epoch;
        survey.chains.iter_mut().for_each(Chain::plant_reach_to_the_end);
    }

    /// Replays everything up to the durable epoch into `target`, with `threads` threads and one that reads.
    ///
    /// # Errors
    /// [`OpenError`]; what `target` has got by then is of no use.
    pub fn replay<R: Replay>(
        &self,
        target: &R,
        threads: usize,
        progress: &Progress,
    ) -> Result<Replayed, OpenError> {
        self.replay_files(self.files_to_replay(|_| true), target, threads, progress)
    }

    /// Like [`Found::replay`], without the checkpoint: of each row that the log has changed since that began,
    /// `target` gets all, since its first change there is a put or a deletion; of others nothing.
    ///
    /// # Errors
    /// As [`Found::replay`].
    pub fn replay_log<R: Replay>(
        &self,
        target: &R,
        threads: usize,
        progress: &Progress,
    ) -> Result<Replayed, OpenError> {
        let log = self.files_to_replay(|file| !file.is_checkpoint());
        self.replay_files(log, target, threads, progress)
    }

    /// Returns the blocks of the checkpoint, as `threads` threads find them by looking at their beginnings.
    /// `None` without a checkpoint, and where anything about it is not as it should be: to say what that is
    /// takes reading all of it, as [`Found::replay`] does.
    #[must_use]
    pub fn checkpoint_blocks(&self, threads: usize) -> Option<CheckpointBlocks> {
        let parts = self.files_to_replay(ReplayFile::is_checkpoint);
        if parts.is_empty() { None } else { CheckpointBlocks::find(&*self.directory.disk, parts, threads) }
    }

    pub(super) fn files_to_replay(&self, is_wanted: impl Fn(&ReplayFile) -> bool) -> Vec<ReplayFile> {
        let Some((manifest, found)) = &self.database else { return Vec::new() };
        let mut files = found.replay_files(&self.directory.dir, manifest, found.durable_epoch);
        files.retain(is_wanted);
        files
    }

    fn replay_files<R: Replay>(
        &self,
        files: Vec<ReplayFile>,
        target: &R,
        threads: usize,
        progress: &Progress,
    ) -> Result<Replayed, OpenError> {
        if self.database.is_none() {
            return Ok(Replayed::default());
        }
        let LockedDirectory { disk, .. } = &self.directory;
        let disk = ForgivingDisk::new(&**disk);
        let replayed = replay(&disk, &files, target, threads, progress);
        let replayed = replayed.map_err(|error| self.with_loss(&disk, error))?;
        // Relaxed: whoever begins a generation owns this.
        self.was_replayed.store(true, Ordering::Relaxed);
        Ok(replayed)
    }

    /// Damage that replay came upon, with its place and what it means; that takes a look at everything.
    fn with_loss(&self, disk: &ForgivingDisk<'_>, error: OpenError) -> OpenError {
        let (OpenError::Corrupt(corruption), Some((manifest, _))) = (&error, &self.database) else {
            return error;
        };
        let files = SuspectFiles::new(disk, &self.directory.dir, manifest);
        let Ok(full) = files.survey(Depth::Full) else { return error };
        let found = full.corruptions.into_iter().find(|other| other.file == corruption.file);
        let first = || files.corruptions_of(corruption).ok()?.into_iter().next();
        found.or_else(first).map_or(error, OpenError::from)
    }

    /// Begins a generation: makes its log files and installs the manifest that names them. From then on what
    /// is logged there counts.
    ///
    /// # Errors
    /// [`OpenError`]. The database holds what it held: the manifest before is there, or the next one, and
    /// nothing was logged yet.
    ///
    /// # Panics
    /// When the first epoch does not come after every epoch on disk, or there are no directories.
    pub fn next_generation(
        self,
        options: &GenerationOptions,
    ) -> Result<(NewGeneration, DatabaseFiles), OpenError> {
        let last_epoch = self.durable_epoch().unwrap_or_default();
        let known = self.manifest().cloned();
        let installed = self.generation_after(options, last_epoch)?;
        installed.files().claim()?;
        installed.remove_leftovers(known.as_ref());
        let Installed { directory, manifest, generation, changes } = installed;
        let files = DatabaseFiles::new(directory, manifest, generation.sealed.clone(), changes);
        Ok((generation, files))
    }

    /// Begins a generation in which nothing after `last_epoch` counts of what was before. Its manifest is in
    /// place, and the log directories are not claimed yet.
    pub(super) fn generation_after(
        self,
        options: &GenerationOptions,
        last_epoch: Epoch,
    ) -> Result<Installed, OpenError> {
        assert!(options.first_epoch > self.largest_epoch(), "an epoch that is on disk already");
        assert!(!options.directories.is_empty(), "a log without directories");
        if options.first_epoch >= EPOCH_END {
            return Err(OpenError::Refused(
                "no epochs are left for another opening of the database".to_owned(),
            ));
        }
        let Found { mut directory, database, was_replayed, lost_copies, changes_bytes_max } = self;
        let LockedDirectory { disk, dir, locks } = &mut directory;
        let disk = &**disk;
        check_on_disk(disk, dir, database.as_ref().map(|(manifest, _)| manifest))?;
        let names = if was_replayed.into_inner() { SealedNames::Proved } else { SealedNames::Hints };
        let before = database.as_ref().map_or_else(new_manifest, |(manifest, _)| manifest.clone());
        let known = NamedFiles { disk, dir, manifest: &before };
        let requested = RequestedDirectories::of(known, &options.directories)?;
        let in_the_way = requested.check(locks, database.is_none())?;
        requested.create(locks)?;
        in_the_way.iter().try_for_each(|path| remove_if_there(disk, path))?;
        let earlier = match &database {
            None => {
                requested.install_first_manifest(locks)?;
                Vec::new()
            }
            Some((manifest, survey)) => {
                // A crash may have left the copy of the manifest before, which needs what is removed now.
                known.bring_copy_up();
                // They would be files of the generation that begins.
                survey.unfinished.iter().try_for_each(|path| remove_if_there(disk, path))?;
                known.remove_leftovers(&manifest.log_directories());
                survey.earlier_files(manifest, last_epoch, names)
            }
        };
        requested.bring_up(locks)?;
        let manifest = Manifest {
            format: FORMAT_VERSION,
            generation: before.generation + 1,
            opening: OpeningId::random(),
            previous_opening: before.opening,
            first_epoch: options.first_epoch,
            durable_epoch: before.counted_to(last_epoch),
            loggers: requested.loggers.clone(),
            earlier,
            ..without_copies(&before, &lost_copies)
        };
        let history = known.change_history()?;
        locks.created().file(dir.join(CHANGES_NEW));
        if changes_bytes_max.is_some() && history.is_none() {
            locks.created().file(dir.join(CHANGES));
        }
        let files =
            database.iter().flat_map(|(_, survey)| survey.files_with_changes(&before, last_epoch, names));
        // Before the log files, which may take all the room that is left.
        let changes = changes_bytes_max
            .map(|bytes_max| KeptChanges::put_next(history, (&known, &manifest), files.collect(), bytes_max))
            .transpose()?;
        let generation = requested.create_files(locks, &manifest, options)?;
        let renamed = rename(disk, dir, MANIFEST_NEW, MANIFEST);
        // A rename that is said to have failed may have been done all the same: then the manifest names what
        // was made.
        let is_in_place = || !read_manifest(disk, dir).is_ok_and(|found| found.as_ref() != Some(&manifest));
        if renamed.is_ok() || is_in_place() {
            locks.created().keep();
        }
        renamed?;
        sync_dir(disk, dir)?;
        if changes.is_none() {
            // It does not count with this manifest.
            let _ = remove_history(disk, dir);
        }
        // Before the claim: the copy fits what owns the log directories before it and after it.
        NamedFiles { disk, dir, manifest: &manifest }.keep_copy();
        Ok(Installed { directory, manifest, generation, changes })
    }
}

/// A generation that has its manifest in place.
pub(super) struct Installed {
    directory: LockedDirectory,
    manifest: Manifest,
    generation: NewGeneration,
    changes: Option<KeptChanges>,
}

impl Installed {
    /// Returns the files that the manifest names. Nothing may be logged before they are claimed.
    pub(super) fn files(&self) -> NamedFiles<'_> {
        self.directory.files(&self.manifest)
    }

    /// Removes what is not needed any more of what the manifest before named.
    pub(super) fn remove_leftovers(&self, before: Option<&Manifest>) {
        self.files().remove_leftovers(&before.map(Manifest::log_directories).unwrap_or_default());
    }
}

/// Returns the same manifest without these parts of the checkpoint, the records of which other parts have
/// too.
pub(super) fn without_copies(manifest: &Manifest, lost_copies: &[u32]) -> Manifest {
    let mut manifest = manifest.clone();
    if let Some(checkpoint) = &mut manifest.checkpoint {
        checkpoint.parts.retain(|part| !(part.is_copy() && lost_copies.contains(&part.number)));
    }
    manifest
}

/// That of a new database, which was never opened.
pub(super) fn new_manifest() -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        last_generation_of_40_bits: 0,
        database: DatabaseId::random(),
        generation: 0,
        first_epoch: Epoch::default(),
        durable_epoch: Epoch::default(),
        next_checkpoint: 1,
        loggers: Vec::new(),
        earlier: Vec::new(),
        checkpoint: None,
        opening: OpeningId::random(),
        previous_opening: OpeningId::default(),
    }
}
