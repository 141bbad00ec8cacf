//! The directory that a backup, or another new database, is made in.
//!
//! # Crash
//! The first thing in the directory is a mark, synced with its name; the last is the manifest, and when all was verified the mark goes, which is
//! synced before anybody is told of success. A directory with the mark is refused, whatever else is in it: a backup that was interrupted cannot
//! be taken for a database, nor one whose files were not verified.

use std::path::{Path, PathBuf};

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::{BackedUp, open_renamed};
use crate::format::{EarlierFile, FORMAT_VERSION, LogFileName, LoggerFiles, Manifest, OpeningId};
use crate::recovery::copy::{Watch, copy_file, copy_open_file};
use crate::recovery::database_files::{LOCK, remove_directory};
use crate::recovery::directory_locks::{DirectoryLocks, Share};
use crate::recovery::error::{Damage, OpenError};
use crate::recovery::generation::{NewGeneration, create_directory};
use crate::recovery::location::Location;
use crate::recovery::manifest_file::{
    MANIFEST, MANIFEST_COPY, MANIFEST_NEW, install_manifest, keep_copy, remove_if_there, spelled_path,
};
use crate::recovery::verify::verify_locked;

/// The mark of a backup that is being made.
pub(in crate::recovery) const UNFINISHED: &str = "BACKUP.unfinished";
/// The directory for log files within it.
pub(in crate::recovery) const LOG: &str = "log";

/// What is to be copied.
pub(super) struct Source<'a> {
    pub(super) dir: &'a Path,
    pub(super) manifest: &'a Manifest,
    /// The log files, as far as they are needed.
    pub(super) log: Vec<EarlierFile>,
    /// Nothing after it counts.
    pub(super) durable_epoch: Epoch,
    /// No epoch in any of the files is later.
    pub(super) largest_epoch: Epoch,
}

impl Source<'_> {
    /// Where the parts of the checkpoint lie, in the database and in the backup.
    fn checkpoint_directories(&self) -> Vec<&Path> {
        let parts = self.manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts);
        let mut directories: Vec<&Path> = parts.filter_map(|part| Path::new(&part.path).parent()).collect();
        directories.dedup();
        directories
    }

    /// What the file `copy` of a backup in `dir` was copied from, if it was.
    fn original(&self, dir: &Path, copy: &Path) -> Option<PathBuf> {
        let within = copy.strip_prefix(dir).ok()?;
        let mut parts = self.manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts);
        if parts.any(|part| Path::new(&part.path) == within) {
            return Some(self.dir.join(within));
        }
        let name = LogFileName::parse(within.strip_prefix(LOG).ok()?.to_str()?)?;
        let file = self.log.iter().find(|file| file.name == name)?;
        Some(spelled_path(self.dir, &file.directory).join(name.to_string()))
    }
}

/// Makes a database of `source` in `dir`, and verifies it. If that fails, what was made is removed.
pub(super) fn copy_to(
    disk: &dyn Disk,
    source: &Source<'_>,
    dir: &Path,
    watch: &mut Watch<'_>,
) -> Result<BackedUp, OpenError> {
    let target = Target::claim(disk, source.dir, source.manifest, dir)?;
    let copied = target.fill(source, watch);
    if copied.is_err() {
        // What cannot be removed does no harm.
        let _ = target.give_up(&source.checkpoint_directories());
    }
    copied
}

/// A directory that a database is made in, with the mark.
pub(in crate::recovery) struct Target<'t> {
    disk: &'t dyn Disk,
    dir: &'t Path,
    /// Whether the directory was there before.
    was_there: bool,
}

impl<'t> Target<'t> {
    /// Puts the mark into a directory that is empty or missing, and lies neither in a database nor where the one in `source`, with this
    /// manifest, keeps its log.
    pub(in crate::recovery) fn claim(
        disk: &'t dyn Disk,
        source: &Path,
        manifest: &Manifest,
        dir: &'t Path,
    ) -> Result<Self, OpenError> {
        let location = Location::of(disk, dir)?;
        refuse_within_database(disk, dir, &location)?;
        refuse_within_log(disk, source, manifest, dir, &location)?;
        let was_there = disk.exists(dir).map_err(OpenError::io("look for", dir))?;
        create_directory(disk, dir).map_err(OpenError::io("create", dir))?;
        refuse_unless_empty(disk, dir)?;
        let target = Target { disk, dir, was_there };
        // That the mark is not there yet keeps out whoever else wants to make a backup here.
        let path = dir.join(UNFINISHED);
        let mark = match disk.create(&path, 0) {
            Ok(mark) => mark,
            Err(error) => {
                let _ = target.remove_if_new();
                return Err(OpenError::Io { doing: "create", path, error });
            }
        };
        let synced = mark.sync_all().map_err(OpenError::io("sync", &path)).and_then(|()| target.sync(dir));
        if synced.is_err() {
            let _ = target.remove_mark();
        }
        synced.map(|()| target)
    }

    fn fill(&self, source: &Source<'_>, watch: &mut Watch<'_>) -> Result<BackedUp, OpenError> {
        let _locks = DirectoryLocks::of_database(self.disk, self.dir, Share::All)?;
        let mut copy = Copy { target: self, source, watch, files: 0, bytes: 0 };
        copy.copy_checkpoint()?;
        let earlier = copy.copy_log()?;
        let Copy { files, bytes, .. } = copy;
        self.begin_generation(&Manifest {
            format: FORMAT_VERSION,
            generation: source.manifest.generation + 1,
            first_epoch: Epoch::new(source.largest_epoch.get() + 1),
            durable_epoch: source.durable_epoch,
            loggers: vec![LoggerFiles { directory: LOG.to_owned(), first_sequence: 1 }],
            earlier,
            opening: OpeningId::random(),
            previous_opening: OpeningId::default(),
            ..source.manifest.clone()
        })?;
        // What is damaged there was copied so, and is told of the file that it was copied from: the copy goes.
        self.verify(|damage| {
            let file = source.original(self.dir, &damage.file).unwrap_or(damage.file);
            Damage { file, ..damage }
        })?;
        self.finish()?;
        Ok(BackedUp { durable_epoch: source.durable_epoch, files, bytes })
    }

    pub(in crate::recovery) fn directory(&self) -> &Path {
        self.dir
    }

    /// Creates a directory in it.
    pub(in crate::recovery) fn create(&self, directory: &Path) -> Result<(), OpenError> {
        create_directory(self.disk, directory).map_err(OpenError::io("create", directory))
    }

    /// Makes the log file of a generation without anything in it, and installs its manifest.
    pub(in crate::recovery) fn begin_generation(&self, manifest: &Manifest) -> Result<(), OpenError> {
        let Manifest { database, opening, generation, first_epoch, .. } = *manifest;
        let directories = [self.dir.join(LOG)];
        NewGeneration::create(self.disk, database, opening, generation, first_epoch, &directories, 0)
            .map_err(|(path, error)| OpenError::Io { doing: "create a log file in", path, error })?;
        install_manifest(self.disk, self.dir, manifest)?;
        keep_copy(self.disk, self.dir, manifest);
        Ok(())
    }

    /// Reads all of it, and fails with the first damage, as `named` names it.
    pub(in crate::recovery) fn verify(&self, named: impl FnOnce(Damage) -> Damage) -> Result<(), OpenError> {
        let mut first = None;
        verify_locked(self.disk, self.dir, &mut |damage| {
            first.get_or_insert(damage);
        })?;
        first.map_or(Ok(()), |damage| Err(OpenError::Damaged(Box::new(named(damage)))))
    }

    /// Removes the mark: the database is whole.
    pub(in crate::recovery) fn finish(&self) -> Result<(), OpenError> {
        let mark = self.dir.join(UNFINISHED);
        self.disk.remove(&mark).map_err(OpenError::io("remove", &mark))?;
        self.sync(self.dir)
    }

    /// Removes everything, the manifest first and the mark last. The manifest goes also where a sync fails; then the other files stay, so that
    /// what a crash leaves has the mark, has no manifest, or is all of a database. If no mark can be made, nothing is removed: without one what is there
    /// is a whole database.
    pub(in crate::recovery) fn give_up(
        &self,
        checkpoint_directories: &[impl AsRef<Path>],
    ) -> Result<(), OpenError> {
        self.put_mark_back()?;
        let marked = self.sync(self.dir);
        let names = [MANIFEST, MANIFEST_COPY, MANIFEST_NEW];
        let removed = names.map(|name| remove_if_there(self.disk, &self.dir.join(name)));
        let synced = self.sync(self.dir);
        [marked].into_iter().chain(removed).chain([synced]).collect::<Result<(), OpenError>>()?;
        for directory in checkpoint_directories {
            remove_directory(self.disk, &self.dir.join(directory))?;
        }
        remove_directory(self.disk, &self.dir.join(LOG))?;
        remove_if_there(self.disk, &self.dir.join(LOCK))?;
        self.sync(self.dir)?;
        self.remove_mark()
    }

    /// The mark may be gone already, if the sync that followed has failed.
    fn put_mark_back(&self) -> Result<(), OpenError> {
        let mark = self.dir.join(UNFINISHED);
        if !self.disk.exists(&mark).map_err(OpenError::io("look for", &mark))? {
            self.disk.create(&mark, 0).map_err(OpenError::io("create", &mark))?;
        }
        Ok(())
    }

    /// Removes the mark, and the directory if it is new.
    fn remove_mark(&self) -> Result<(), OpenError> {
        remove_if_there(self.disk, &self.dir.join(UNFINISHED))?;
        self.remove_if_new()
    }

    fn remove_if_new(&self) -> Result<(), OpenError> {
        if self.was_there {
            return Ok(());
        }
        self.disk.remove_dir(self.dir).map_err(OpenError::io("remove", self.dir))
    }

    pub(in crate::recovery) fn sync(&self, directory: &Path) -> Result<(), OpenError> {
        self.disk.sync_dir(directory).map_err(OpenError::io("sync", directory))
    }
}

/// Files that are being copied.
struct Copy<'c> {
    target: &'c Target<'c>,
    source: &'c Source<'c>,
    watch: &'c mut Watch<'c>,
    files: u64,
    bytes: u64,
}

impl Copy<'_> {
    fn copy_checkpoint(&mut self) -> Result<(), OpenError> {
        let Target { disk, dir, .. } = *self.target;
        for part in self.source.manifest.checkpoint.iter().flat_map(|checkpoint| &checkpoint.parts) {
            let to = dir.join(&part.path);
            let directory = to.parent().unwrap_or(dir).to_path_buf();
            create_directory(disk, &directory).map_err(OpenError::io("create", &directory))?;
            let from = self.source.dir.join(&part.path);
            self.copy(|watch| copy_file(disk, &from, &to, Some(part.bytes), watch))?;
            self.target.sync(&directory)?;
        }
        Ok(())
    }

    /// Copies log files into one directory; returns them as they are there.
    fn copy_log(&mut self) -> Result<Vec<EarlierFile>, OpenError> {
        let directory = self.target.dir.join(LOG);
        create_directory(self.target.disk, &directory).map_err(OpenError::io("create", &directory))?;
        let source = self.source;
        let mut earlier = Vec::new();
        for file in &source.log {
            self.copy_log_file(
                &spelled_path(source.dir, &file.directory),
                file,
                &directory.join(file.name.to_string()),
            )?;
            earlier.push(EarlierFile { directory: LOG.to_owned(), ..file.clone() });
        }
        self.target.sync(&directory)?;
        Ok(earlier)
    }

    fn copy_log_file(&mut self, from: &Path, file: &EarlierFile, to: &Path) -> Result<(), OpenError> {
        let disk = self.target.disk;
        let (name, source) = open_renamed(disk, from, file.name)?;
        let from = from.join(name.to_string());
        self.copy(|watch| copy_open_file(disk, &*source, &from, to, file.valid_bytes, watch))
    }

    /// Copies one file, and counts it.
    fn copy(&mut self, copy: impl FnOnce(&mut Watch<'_>) -> Result<u64, OpenError>) -> Result<(), OpenError> {
        let (before, watch) = (self.bytes, &mut self.watch);
        self.bytes += copy(&mut |bytes| watch(before + bytes))?;
        self.files += 1;
        Ok(())
    }
}

/// A directory of a database is no place for another one: the database removes what it does not know.
fn refuse_within_database(disk: &dyn Disk, dir: &Path, location: &Location) -> Result<(), OpenError> {
    let Some(directory) = location.other_database(disk, None)? else { return Ok(()) };
    let why = match location.is_of(directory) {
        true => format!("{} holds a database already", dir.display()),
        false => format!("{} lies within the database {}", dir.display(), directory.display()),
    };
    Err(OpenError::Refused(format!("{why}; name another directory")))
}

/// Nor is a directory that the database keeps its log in, wherever that lies, or one that such a directory is to lie in.
fn refuse_within_log(
    disk: &dyn Disk,
    source: &Path,
    manifest: &Manifest,
    dir: &Path,
    location: &Location,
) -> Result<(), OpenError> {
    for spelled in manifest.log_directories() {
        let log = spelled_path(source, spelled);
        let of_log = Location::of(disk, &log)?;
        let why = match (location.lies_within(&of_log), of_log.lies_within(location)) {
            (true, _) => "lies within",
            (false, true) => "encloses",
            (false, false) => continue,
        };
        return Err(OpenError::Refused(format!(
            "{} {why} {}, where the database keeps its log; name another directory",
            dir.display(),
            log.display()
        )));
    }
    Ok(())
}

fn refuse_unless_empty(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let listed = disk.list(dir).map_err(OpenError::io("list", dir))?;
    // A new file system has this in its root.
    match listed.into_iter().find(|entry| entry.name != "lost+found") {
        Some(entry) => Err(OpenError::Refused(format!(
            "{} is not empty, it holds {}; name another directory",
            dir.display(),
            entry.name
        ))),
        None => Ok(()),
    }
}
