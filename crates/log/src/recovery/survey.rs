//! What the files of a database are, whether they are all there, and up to which epoch they hold what was
//! stored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ensilo_epoch::Epoch;

use super::chain::{Chain, ChainSurveyor, Depth};
use super::corruption::{CorruptPlace, Corruption, CorruptionKind, DataLoss};
use super::earlier::EarlierLogFile;
use super::error::OpenError;
use super::file_access::exists;
use super::file_names::MANIFEST;
use super::log_file::{LogFile, is_unused, list_log_files, read_header, reads_as_empty};
use super::named_files::SuspectFiles;
use super::replay_file::{loss_of, part_identity};
use super::scan::Evidence;
use crate::format::{BlockEnd, EarlierFile, LogFileName, Manifest};

/// The files of a database as a manifest names them.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) chains: Vec<Chain>,
    pub(super) earlier: Vec<EarlierLogFile>,
    pub(super) corruptions: Vec<Corruption>,
    /// `D`: everything up to here was stored, and nothing after it counts. Without damage, that is.
    pub(super) durable_epoch: Epoch,
    /// Everything up to here can be read in the log, whatever is damaged. The checkpoint is another matter.
    pub(super) reachable_epoch: Epoch,
    /// No epoch in any file is later.
    pub(super) largest_epoch: Epoch,
    /// Empty log files of an opening that was interrupted.
    pub(super) unfinished: Vec<PathBuf>,
}

/// What a log file is that the manifest knows nothing of.
enum UnlistedFile {
    Wrong(CorruptionKind),
    /// Empty: an opening that was interrupted left it.
    Unfinished,
    /// As far as it can be read it is that, too.
    Unread,
}

impl Survey {
    /// Returns the epoch up to which everything was stored at some time, whatever has become of it.
    pub(super) fn stored_epoch(&self, manifest: &Manifest) -> Epoch {
        let reach = self.chains.iter().map(|chain| chain.reach.max(chain.evidence.mark)).min();
        let stored = reach.map(before).unwrap_or_default().max(self.said_durable(manifest));
        // Of the epochs between two generations nothing was ever stored.
        manifest.counted_to(stored)
    }

    /// Returns the latest epoch of which a block of the last generation, or the manifest, says that it was durable.
    pub(super) fn said_durable(&self, manifest: &Manifest) -> Epoch {
        let said = self.chains.iter().map(|chain| chain.evidence.durable_epoch);
        said.max().unwrap_or_default().max(manifest.durable_epoch)
    }
}

/// A survey while it is made.
struct Surveyor<'a> {
    files: &'a SuspectFiles<'a>,
    depth: Depth,
    corrupt_places: Vec<CorruptPlace>,
    /// Damaged parts of the checkpoint, and what is lost with each.
    corrupt_parts: Vec<(CorruptPlace, DataLoss)>,
    /// What log files say that the manifest knows nothing of.
    unlisted: Evidence,
    /// Those of which not all can be read, and in which nothing else stands.
    unread_unlisted: Vec<PathBuf>,
    /// The least epoch that damage of earlier generations leaves reachable.
    earlier_reach: Option<Epoch>,
}

impl SuspectFiles<'_> {
    /// Looks at the files that the manifest names. Damage that `depth` does not show is left to replay; if
    /// any shows, all is looked at, so that what is said of its consequences is true. What the disk could not
    /// read is damage wherever something counts, or could.
    pub(super) fn survey(&self, depth: Depth) -> Result<Survey, OpenError> {
        let surveyor = Surveyor {
            files: self,
            depth,
            corrupt_places: Vec::new(),
            corrupt_parts: Vec::new(),
            unlisted: Evidence::default(),
            unread_unlisted: Vec::new(),
            earlier_reach: None,
        };
        let found = surveyor.survey()?;
        if found.corruptions.is_empty() || depth == Depth::Full {
            return Ok(found);
        }
        self.survey(Depth::Full)
    }
}

impl Surveyor<'_> {
    fn survey(mut self) -> Result<Survey, OpenError> {
        let listed = self.list_directories()?;
        let unfinished = self.check_unlisted(&listed)?;
        let earlier = self.survey_earlier(&listed)?;
        let mut chains = Vec::new();
        for (logger, files) in (0u32..).zip(&self.files.manifest.loggers) {
            let listed = listed.get(files.directory.as_str()).map_or(&[][..], Vec::as_slice);
            let mut chain = ChainSurveyor { files: self.files, logger, listed }.survey(self.depth)?;
            self.corrupt_places.append(&mut chain.corrupt_places);
            chains.push(chain);
        }
        self.check_checkpoint()?;
        self.note_unread(&chains, &earlier);
        self.check_evidence(&chains);
        let reach = chains.iter().map(|chain| chain.reach).min().unwrap_or(self.files.manifest.first_epoch);
        Ok(Survey {
            durable_epoch: before(reach),
            reachable_epoch: before(self.reachable(reach)),
            largest_epoch: self.largest_epoch(&chains),
            corruptions: self.corruptions(reach),
            chains,
            earlier,
            unfinished,
        })
    }

    /// Returns the log files by directory, as the manifest spells them. A directory that is missing is noted.
    fn list_directories(&mut self) -> Result<BTreeMap<String, Vec<LogFileName>>, OpenError> {
        let mut listed = BTreeMap::new();
        for spelled in self.files.manifest.log_directories() {
            let directory = self.files.dir.join(spelled);
            if exists(self.files.disk, &directory)? {
                listed.insert(spelled.to_owned(), list_log_files(self.files.disk, &directory)?);
            } else {
                self.corrupt_places.push(CorruptPlace::new(&directory, None, CorruptionKind::Missing));
            }
        }
        Ok(listed)
    }

    /// Looks at log files that the manifest knows nothing of; returns those that an interrupted opening left.
    fn check_unlisted(
        &mut self,
        listed: &BTreeMap<String, Vec<LogFileName>>,
    ) -> Result<Vec<PathBuf>, OpenError> {
        let mut unfinished = Vec::new();
        for (directory, names) in listed {
            for &name in names {
                let is_later = name.generation > self.files.manifest.generation;
                let is_extra = name.generation == self.files.manifest.generation
                    && name.logger as usize >= self.files.manifest.loggers.len();
                if !is_later && !is_extra {
                    continue;
                }
                let mut file = LogFile::open(self.files, directory, name)?;
                file.scan(self.files.disk)?;
                self.unlisted.merge(file.evidence());
                match self.classify_unlisted(&file, is_extra)? {
                    UnlistedFile::Wrong(kind) => {
                        self.corrupt_places.push(CorruptPlace::new(&file.path, None, kind));
                    }
                    UnlistedFile::Unfinished => unfinished.push(file.path),
                    // What could not be read is noted by itself.
                    UnlistedFile::Unread => self.unread_unlisted.push(file.path),
                }
            }
        }
        Ok(unfinished)
    }

    /// Classifies a log file that the manifest does not list.
    fn classify_unlisted(&self, file: &LogFile, is_extra: bool) -> Result<UnlistedFile, OpenError> {
        let is_empty = reads_as_empty(self.files.disk, &file.path)?;
        let is_unread = !self.files.disk.failures_in(&file.path).is_empty();
        let later = CorruptionKind::LaterGeneration(file.name.generation);
        Ok(UnlistedFile::Wrong(match &file.header {
            Err(kind) if kind.is_foreign() => kind.clone(),
            _ if is_extra => CorruptionKind::OtherFile,
            _ if file.evidence().has_blocks || is_unread && !is_empty => later,
            _ if is_unread => return Ok(UnlistedFile::Unread),
            _ if file.name.is_sealed() => CorruptionKind::NotALogFile,
            _ if is_unused(self.files.disk, &file.path, &file.identity)? => {
                return Ok(UnlistedFile::Unfinished);
            }
            Ok(_) => later,
            Err(_) => CorruptionKind::NotALogFile,
        }))
    }

    fn survey_earlier(
        &mut self,
        listed: &BTreeMap<String, Vec<LogFileName>>,
    ) -> Result<Vec<EarlierLogFile>, OpenError> {
        let mut earlier: Vec<EarlierLogFile> = Vec::new();
        for entry in &self.files.manifest.earlier {
            if !listed.get(&entry.directory).is_some_and(|names| names.contains(&entry.name)) {
                let path = self.files.log_path(&entry.directory, entry.name);
                let missing = CorruptPlace::new(&path, None, CorruptionKind::Missing);
                self.note_earlier_place(&earlier, entry, missing);
                continue;
            }
            let mut file = LogFile::open(self.files, &entry.directory, entry.name)?;
            if file.header.is_ok() && self.depth == Depth::Full {
                file.scan(self.files.disk)?;
            }
            let found = EarlierLogFile { entry: entry.clone(), file };
            let place = found.corrupt_place();
            earlier.push(found);
            if let Some(place) = place {
                self.note_earlier_place(&earlier, entry, place);
            }
        }
        Ok(earlier)
    }

    /// Notes a corrupt place, and how far the generation of the file reaches with it.
    fn note_earlier_place(&mut self, before: &[EarlierLogFile], entry: &EarlierFile, place: CorruptPlace) {
        let same = |earlier: &&EarlierLogFile| {
            let name = earlier.file.name;
            (name.generation, name.logger) == (entry.name.generation, entry.name.logger)
                && name.sequence <= entry.name.sequence
        };
        let files = || before.iter().filter(same).map(|earlier| &earlier.file);
        let marks = files().filter_map(|file| file.scan.as_ref()?.mark).map(|(mark, _)| mark);
        let headers = files().filter_map(|file| file.header.as_ref().ok()).map(|header| header.first_epoch);
        // The generations before had ended when this one began; what is wrong with their files is noted by
        // itself.
        let ended =
            self.files.manifest.earlier.iter().filter(|other| other.name.generation < entry.name.generation);
        let ended = ended.map(|other| Epoch::new(other.durable_epoch.get() + 1));
        let reach = marks.chain(headers).chain(ended).max().unwrap_or_default();
        self.earlier_reach = Some(self.earlier_reach.map_or(reach, |least| least.min(reach)));
        self.corrupt_places.push(place);
    }

    fn check_checkpoint(&mut self) -> Result<(), OpenError> {
        let Some(checkpoint) = &self.files.manifest.checkpoint else { return Ok(()) };
        for part in &checkpoint.parts {
            let path = self.files.dir.join(&part.path);
            let place = if exists(self.files.disk, &path)? {
                match read_header(
                    self.files.disk,
                    &path,
                    &part_identity(self.files.manifest, checkpoint.id, part),
                )? {
                    (_, Err(kind)) => Some((Some(0), kind)),
                    (bytes, Ok(_)) => (bytes != part.bytes).then_some((None, CorruptionKind::NotAsInstalled)),
                }
            } else {
                Some((None, CorruptionKind::Missing))
            };
            if let Some((offset, kind)) = place {
                self.corrupt_parts.push((CorruptPlace { file: path, offset, kind }, loss_of(part)));
            }
        }
        Ok(())
    }

    /// Puts what the disk could not read in the place of the corrupt places that follow from it. It is a
    /// corrupt place also where no other shows it: what cannot be read at the end of a log may have been more
    /// of it.
    fn note_unread(&mut self, chains: &[Chain], earlier: &[EarlierLogFile]) {
        for failure in self.files.disk.failures() {
            let follows =
                |place: &CorruptPlace| place.file == failure.file && place.kind.may_follow_from_unread();
            if let Some(part) = self.files.part_at(&failure.file) {
                let loss = loss_of(part);
                self.corrupt_parts.retain(|(place, _)| !follows(place));
                self.corrupt_parts.push((failure, loss));
            } else if self.is_of_log(&failure, chains, earlier) {
                self.corrupt_places.retain(|place| !follows(place));
                self.corrupt_places.push(failure);
            }
        }
        // What lies in a directory that cannot be read is reported with it.
        self.corrupt_places.sort_by_key(|place| place.offset.is_some() || !place.kind.is_unread());
    }

    /// Returns whether what could not be read is a log directory, or lies in a log file where something
    /// counts, or could.
    fn is_of_log(&self, failure: &CorruptPlace, chains: &[Chain], earlier: &[EarlierLogFile]) -> bool {
        let path = &failure.file;
        let is_directory = |path: &Path| self.files.log_directories().any(|directory| directory == path);
        match LogFileName::of(path).filter(|_| path.parent().is_some_and(is_directory)) {
            None => is_directory(path),
            Some(name) if self.files.manifest.is_done_with(&name) => false,
            Some(_) => counted_end(path, chains, earlier).is_none_or(|end| failure.offset < Some(end)),
        }
    }

    /// Whether the log reaches as far as its own blocks, or the manifest, say that it did.
    fn check_evidence(&mut self, chains: &[Chain]) {
        let Some(least) = chains.iter().min_by_key(|chain| chain.reach) else { return };
        let claimed = chains.iter().map(|chain| chain.evidence.durable_epoch).max().unwrap_or_default();
        let stored = claimed.max(self.files.manifest.durable_epoch);
        if before(least.reach) >= stored || !self.corrupt_places.is_empty() {
            return;
        }
        let Some(file) = least.files.last() else { return };
        let offset = file.scan.as_ref().map(|scan| scan.valid_end);
        self.corrupt_places.push(CorruptPlace::new(&file.path, offset, CorruptionKind::ShortLog { stored }));
    }

    /// Files that were not looked at have names that say no later epoch, which replay compares with what they
    /// hold.
    fn largest_epoch(&self, chains: &[Chain]) -> Epoch {
        let seen = chains.iter().map(|chain| &chain.evidence).chain([&self.unlisted]);
        let seen = seen.map(|evidence| evidence.largest_epoch);
        let checkpoint = self.files.manifest.checkpoint.iter().map(|checkpoint| checkpoint.end_epoch);
        let known = [self.files.manifest.first_epoch, self.files.manifest.durable_epoch];
        seen.chain(checkpoint).chain(known).max().unwrap_or_default()
    }

    /// Returns how far the log can be read, if the last generation's reaches `reach`.
    fn reachable(&self, reach: Epoch) -> Epoch {
        self.earlier_reach.map_or(reach, |earlier| earlier.min(reach))
    }

    /// Returns the corruption of a manifest that gives up what its checkpoint needs. None is written so: a
    /// checkpoint is installed when its end is durable.
    fn manifest_before_checkpoint(&self) -> Option<Corruption> {
        let (durable, end) = (self.files.manifest.durable_epoch, self.files.manifest.checkpoint_end()?);
        (durable < end).then(|| Corruption {
            file: self.files.dir.join(MANIFEST),
            offset: None,
            kind: CorruptionKind::BeforeCheckpoint { durable, end },
            loss: DataLoss::LogOfCheckpoint(end),
        })
    }

    /// Returns what the corrupt places mean, if the log of the last generation reaches `reach`.
    fn corruptions(&self, reach: Epoch) -> Vec<Corruption> {
        let reach = self.reachable(reach);
        let of_log = match self.files.manifest.checkpoint_end() {
            // A checkpoint is made while transactions go on: without the log up to its end it is no state
            // that ever was.
            Some(end) if before(reach) < end => DataLoss::LogOfCheckpoint(end),
            _ => DataLoss::After(before(reach)),
        };
        let manifest = self.manifest_before_checkpoint();
        let is_unknown = |place: &&CorruptPlace| {
            matches!(place.kind, CorruptionKind::LaterGeneration(_) | CorruptionKind::NotALogFile)
        };
        let unknown: Vec<&PathBuf> =
            self.corrupt_places.iter().filter(is_unknown).map(|place| &place.file).collect();
        let log = self.corrupt_places.iter().map(|place| match &place.file {
            file if unknown.contains(&file) => place.with_loss(DataLoss::Everything),
            file if self.unread_unlisted.contains(file) => place.with_loss(DataLoss::Leftover),
            _ => place.with_loss(of_log),
        });
        let checkpoint = self.corrupt_parts.iter().map(|(place, loss)| place.with_loss(*loss));
        each_once(manifest.into_iter().chain(checkpoint).chain(log))
    }
}

/// Returns where what counts of a log file ends, if it is known.
fn counted_end(path: &Path, chains: &[Chain], earlier: &[EarlierLogFile]) -> Option<u64> {
    let found = earlier.iter().find(|earlier| earlier.file.path == path);
    if let Some(end) = found.and_then(|earlier| earlier.entry.valid_bytes) {
        return Some(end);
    }
    let of_chains = chains.iter().flat_map(|chain| chain.files.iter().chain(&chain.unreached));
    let mut files = of_chains.chain(found.map(|earlier| &earlier.file));
    let scan = files.find(|file| file.path == path)?.scan.as_ref()?;
    (scan.end != BlockEnd::None).then_some(scan.valid_end)
}

/// Returns each corruption once, and a directory that is missing, or cannot be read, without the files in it.
fn each_once(corruptions: impl Iterator<Item = Corruption>) -> Vec<Corruption> {
    let mut reported: Vec<Corruption> = Vec::new();
    for corruption in corruptions {
        let is_reported = |other: &Corruption| {
            *other == corruption
                || matches!(other.kind, CorruptionKind::Missing | CorruptionKind::Unopened { .. })
                    && corruption.file.parent() == Some(other.file.as_path())
        };
        if !reported.iter().any(is_reported) {
            reported.push(corruption);
        }
    }
    reported
}

/// Returns the last epoch before this one.
pub(super) fn before(epoch: Epoch) -> Epoch {
    Epoch::new(epoch.get().saturating_sub(1))
}
