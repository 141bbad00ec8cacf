//! The log files of one logger of one generation, in order, and how far they reach.
//!
//! # Crash
//! A logger seals a file, syncs it, and only then writes into the next one, which it has made before. So:
//! - every file before the last one that has blocks ends with a seal;
//! - a file that ends with a seal has a successor;
//! - a file without a seal, and of a logger that did not end in order, is as long as it says that it was
//!   made;
//! - files behind the last one with blocks are empty, and may be half made unless a seal comes before them.
//!
//! # Terms
//! - **tail**: the last file that has blocks.
//! - **unreached**: a file in which nothing counts any more, because something before it is damaged or
//!   missing.
//! - **reach**: the mark up to which the logger's transactions are there.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use ensilo_epoch::Epoch;

use super::corruption::{CorruptPlace, CorruptionKind};
use super::error::OpenError;
use super::log_file::{LogFile, misnamed};
use super::named_files::NamedFiles;
use super::scan::{Evidence, LogFileScan};
use crate::format::{BLOCK_HEADER_BYTES, BlockEnd, BlockError, FileHeader, LogFileName, LoggerFiles};

/// The files of one logger of the manifest's generation.
#[derive(Debug)]
pub(super) struct Chain {
    /// From the first that is needed to the tail, or to the first that is damaged.
    pub(super) files: Vec<LogFile>,
    /// Those that are unreached: they testify to what was stored, and to the epochs that are on disk.
    pub(super) unreached: Vec<LogFile>,
    pub(super) reach: Epoch,
    /// The end of the block with the mark that is reached, and the place of its file in `files`.
    pub(super) reached: Option<(usize, u64)>,
    pub(super) evidence: Evidence,
    pub(super) corrupt_places: Vec<CorruptPlace>,
    /// Whether the logger ended in order.
    pub(super) is_closed: bool,
}

/// How thoroughly files are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// As far as it takes to say what was stored last; replay checks the rest.
    Tail,
    /// Every block.
    Full,
}

/// Where to look for the files of a logger.
pub(super) struct ChainSurveyor<'a> {
    pub(super) files: &'a NamedFiles<'a>,
    pub(super) logger: u32,
    /// The log files in the logger's directory.
    pub(super) listed: &'a [LogFileName],
}

/// The names of the files of a logger.
#[derive(Default)]
struct Names {
    /// Those that follow each other, up to the first that is missing.
    reached: Vec<LogFileName>,
    others: Vec<LogFileName>,
    /// Those of files behind a gap in which nothing was written.
    unwritten: Vec<LogFileName>,
}

impl ChainSurveyor<'_> {
    fn logger_files(&self) -> &LoggerFiles {
        &self.files.manifest.loggers[self.logger as usize]
    }

    fn path(&self, name: LogFileName) -> PathBuf {
        self.files.log_path(&self.logger_files().directory, name)
    }

    /// Sorts the names of the files from `first` on.
    fn names(&self, first: u64, corrupt_places: &mut Vec<CorruptPlace>) -> Result<Names, OpenError> {
        let generation = self.files.manifest.generation;
        let mut own: Vec<LogFileName> = self
            .listed
            .iter()
            .filter(|name| {
                name.generation == generation && name.logger == self.logger && name.sequence >= first
            })
            .copied()
            .collect();
        own.sort_unstable();
        let mut names = Names::default();
        for name in own {
            let expected = first + names.reached.len() as u64;
            match name.sequence.cmp(&expected) {
                Ordering::Equal => names.reached.push(name),
                Ordering::Less => {
                    corrupt_places.push(CorruptPlace::new(&self.path(name), None, CorruptionKind::Doubled));
                    names.others.push(name);
                }
                Ordering::Greater if self.is_written(name)? => names.others.push(name),
                Ordering::Greater => names.unwritten.push(name),
            }
        }
        let next = first + names.reached.len() as u64;
        if names.reached.is_empty() || names.others.iter().any(|name| name.sequence >= next) {
            let name = LogFileName::open(generation, self.logger, next);
            corrupt_places.push(missing(&self.path(name), name));
        }
        Ok(names)
    }

    fn is_written(&self, name: LogFileName) -> Result<bool, OpenError> {
        let mut file = LogFile::open(self.files, &self.logger_files().directory, name)?;
        file.scan(self.files.disk)?;
        Ok(file.header.is_ok() || file.evidence().has_blocks)
    }

    /// Adds the files behind a gap that are none of the logger's. Before a file was made, the header of the one
    /// before was synced, so that only the last one may be without, right behind one that is missed or one of those `written`.
    fn add_strangers(
        &self,
        unwritten: &[LogFileName],
        written: &[LogFileName],
        corrupt_places: &mut Vec<CorruptPlace>,
    ) {
        let is_behind_one = |name: LogFileName| written.iter().any(|one| one.sequence + 1 == name.sequence);
        for &name in unwritten.iter().filter(|&&name| !is_behind_one(name)) {
            let before = LogFileName::open(name.generation, name.logger, name.sequence - 1);
            let missed = missing(&self.path(before), before).file;
            let is_missed =
                |place: &CorruptPlace| place.kind == CorruptionKind::Missing && place.file == missed;
            if !corrupt_places.iter().any(is_missed) {
                corrupt_places.push(CorruptPlace::new(&self.path(name), None, CorruptionKind::NotALogFile));
            }
        }
    }

    /// Looks at the files.
    pub(super) fn survey(&self, depth: Depth) -> Result<Chain, OpenError> {
        let first = self.logger_files().first_sequence;
        let mut corrupt_places = Vec::new();
        let names = self.names(first, &mut corrupt_places)?;
        let written = names.others.clone();
        let mut chain = Chain {
            files: self.open(names.reached, depth)?,
            unreached: self.open(names.others, depth)?,
            reach: Epoch::default(),
            reached: None,
            evidence: Evidence::default(),
            corrupt_places,
            is_closed: false,
        };
        chain.cut_at_tail();
        chain.find_reach(self)?;
        chain.take_evidence();
        chain.check_late_names(self)?;
        self.add_strangers(&names.unwritten, &written, &mut chain.corrupt_places);
        Ok(chain)
    }

    /// Looks at each file. The blocks of one with a damaged header do not count, but testify.
    fn open(&self, names: Vec<LogFileName>, depth: Depth) -> Result<Vec<LogFile>, OpenError> {
        let open = |name: LogFileName| {
            let mut file = LogFile::open(self.files, &self.logger_files().directory, name)?;
            if depth == Depth::Full || !name.is_sealed() {
                file.scan(self.files.disk)?;
            }
            Ok(file)
        };
        names.into_iter().map(open).collect()
    }
}

impl Chain {
    /// Goes on behind the last mark.
    pub(super) fn plant_reach_to_the_end(&mut self) {
        let end = self.files.iter().rposition(|file| file.scan.as_ref().is_some());
        let scan = end.and_then(|at| Some((at, self.files[at].scan.as_ref()?.valid_end)));
        self.reached = scan.or(self.reached);
    }

    /// Puts aside the empty files behind the tail, and those behind the first damage.
    fn cut_at_tail(&mut self) {
        let tail = self.files.iter().rposition(LogFile::has_blocks).unwrap_or(0);
        let mut kept = tail + 1;
        for at in 0..self.files.len() {
            // A crash leaves anything of a file that was made ahead, but not another one.
            if at > tail && !self.is_sealed(at - 1) && !self.files[at].is_foreign() {
                continue;
            }
            if let Some(place) = self.corrupt_place_at(at, tail) {
                // What lies in front of the damage still counts, for a repair. A wrong name damages nothing.
                if !matches!(place.kind, CorruptionKind::Misnamed { .. }) {
                    kept = kept.min(if self.files[at].header.is_ok() { at + 1 } else { at });
                }
                self.corrupt_places.push(place);
            }
        }
        let unreached = self.files.split_off(kept.min(self.files.len()));
        self.unreached.extend(unreached);
    }

    fn corrupt_place_at(&self, at: usize, tail: usize) -> Option<CorruptPlace> {
        let file = &self.files[at];
        match (&file.header, &file.scan) {
            (Err(kind), _) => Some(CorruptPlace::new(&file.path, Some(0), kind.clone())),
            (Ok(header), Some(scan)) => {
                let has_next = at + 1 < self.files.len();
                corrupt_end(file, scan, at < tail, has_next).or_else(|| cut_end(file, header, scan))
            }
            // It is sealed by its name.
            (Ok(_), None) => (at + 1 == self.files.len()).then(|| missing_after(file)),
        }
    }

    /// Returns whether a file ends with a seal, as far as is known.
    fn is_sealed(&self, at: usize) -> bool {
        let file = &self.files[at];
        file.scan.as_ref().map_or(file.name.is_sealed(), |scan| scan.end == BlockEnd::Seal)
    }

    /// Finds the last mark.
    fn find_reach(&mut self, surveyor: &ChainSurveyor<'_>) -> Result<(), OpenError> {
        for at in (0..self.files.len()).rev() {
            if self.files[at].scan.is_none() {
                self.files[at].scan(surveyor.files.disk)?;
                self.check_sealed(at);
            }
            let Some(scan) = &self.files[at].scan else { continue };
            self.is_closed |= scan.end == BlockEnd::Closed;
            if let Some((mark, end)) = scan.mark.filter(|_| self.reached.is_none()) {
                self.reach = mark;
                self.reached = Some((at, end));
                return Ok(());
            }
        }
        // No mark: the logger has come as far as it was when its first file was made. Where that is not
        // known, nothing of this generation counts, and all of the ones before does.
        self.reach = self
            .files
            .first()
            .and_then(|file| file.header.as_ref().ok())
            .map_or(surveyor.files.manifest.first_epoch, |header| header.first_epoch);
        Ok(())
    }

    /// Takes what all files say that were looked at, also those in which nothing counts.
    fn take_evidence(&mut self) {
        for file in self.files.iter().chain(&self.unreached) {
            self.evidence.merge(file.evidence());
        }
    }

    /// Looks at files with names that say a later epoch than all blocks that were looked at. Replay compares
    /// the other names.
    fn check_late_names(&mut self, surveyor: &ChainSurveyor<'_>) -> Result<(), OpenError> {
        let known = self.evidence.largest_epoch;
        for at in 0..self.files.len() {
            let file = &mut self.files[at];
            if file.scan.is_none() && file.named_epoch() > Some(known) {
                file.scan(surveyor.files.disk)?;
                self.evidence.merge(file.evidence());
                self.check_sealed(at);
            }
        }
        Ok(())
    }

    /// After a late look at a file that is sealed by its name.
    fn check_sealed(&mut self, at: usize) {
        let file = &self.files[at];
        if let Some(place) = file.scan.as_ref().and_then(|scan| corrupt_end(file, scan, true, true)) {
            self.corrupt_places.push(place);
        }
    }
}

/// Returns the place where a file ends that is shorter than it was made, although nothing ended it: it was
/// cut, or what ended it is damaged.
fn cut_end(file: &LogFile, header: &FileHeader, scan: &LogFileScan) -> Option<CorruptPlace> {
    let reserved_bytes = scan.is_cut(header)?;
    let cut = (scan.bytes, CorruptionKind::Cut { reserved_bytes });
    let (offset, kind) = match scan.stopped {
        // What a cut leaves of a block, or of the zeros behind the last one.
        None | Some(BlockError::Empty | BlockError::Length) => cut,
        // An end in order has no payload, and the space behind it was given back.
        Some(error) if scan.valid_end + BLOCK_HEADER_BYTES as u64 == scan.bytes => {
            (scan.valid_end, CorruptionKind::Block(error))
        }
        Some(_) => cut,
    };
    Some(CorruptPlace::new(&file.path, Some(offset), kind))
}

/// Returns what is wrong with the end of a file.
fn corrupt_end(
    file: &LogFile,
    scan: &LogFileScan,
    must_be_sealed: bool,
    has_next: bool,
) -> Option<CorruptPlace> {
    let at_end = |kind| CorruptPlace::new(&file.path, Some(scan.valid_end), kind);
    let stopped = || match scan.stopped {
        Some(error) => CorruptionKind::Block(error),
        None => CorruptionKind::NoEnd,
    };
    match scan.end {
        BlockEnd::Seal if has_next => misnamed(file.name, file.identity.epochs, scan.last_entry)
            .map(|kind| CorruptPlace { offset: None, ..at_end(kind) }),
        BlockEnd::Seal => Some(missing_after(file)),
        BlockEnd::Part => Some(at_end(CorruptionKind::Block(BlockError::Header))),
        _ if must_be_sealed || file.name.is_sealed() || scan.is_damaged() => Some(at_end(stopped())),
        BlockEnd::None | BlockEnd::Closed => None,
    }
}

/// Returns the place of the file that must come after a sealed one, and is not there.
fn missing_after(file: &LogFile) -> CorruptPlace {
    let name = LogFileName { sequence: file.name.sequence + 1, ..file.name };
    missing(&file.path, name)
}

/// Returns the place of a file that would lie beside `path`, and is not there. Nobody knows whether it was
/// sealed.
fn missing(path: &Path, name: LogFileName) -> CorruptPlace {
    CorruptPlace::new(&path.with_file_name(name.either_name()), None, CorruptionKind::Missing)
}
