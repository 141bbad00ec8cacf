//! How much is shown of log files that are being written.
//!
//! Several loggers write while their files are read, one after the other. So a file that is read later may say of another one, read
//! before, that it was stored further than was seen; that is no damage. In turn:
//! 1. *Testimony*: all blocks of all files that are written are asked what was stored ([`Evidence`]), also behind a place without one.
//! 2. *Reach*: only then each log is walked again, from its beginning to the first place without a block. What the evidence says was
//!    there before: if the walk does not come as far, something is lost. `D` is the last epoch before the least mark, as ever.
//! 3. *Cut*: each log ends before the first block that knows of a later durable epoch than `D`. The first block with a mark beyond `D`
//!    does not: its logger had no such mark before, and no epoch is durable before all loggers have its mark. So the files so cut reach
//!    `D`, and none says that more was stored. A file that was found too short for a header, as a crash leaves one that was just being made,
//!    stays as short: whether that is damage, the survey says.
//!
//! Files that had the name of a sealed one when they were listed are whole; what they know of was stored before the walks.

use std::path::{Path, PathBuf};

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::captured_disk::CapturedDisk;
use crate::format::{BlockCodec, FILE_HEADER_BYTES, Manifest};
use crate::recovery::error::OpenError;
use crate::recovery::log_file::{LogFile, list_log_files};
use crate::recovery::named_files::NamedFiles;
use crate::recovery::scan::{Evidence, each_block};
use crate::recovery::survey::before;

/// How much is shown of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) path: PathBuf,
    /// From here on there are zeros.
    pub(super) visible_bytes: u64,
    /// Up to here: as long as the file says that it was made, or was found if it says nothing.
    pub(super) len_bytes: u64,
}

/// A log file, and what a walk over its blocks has found.
struct Walked {
    file: LogFile,
    /// The end of the last block.
    end: u64,
    mark: Option<Epoch>,
    reserved_bytes: u64,
    /// Where blocks end that know of a durable epoch; the last one of each epoch.
    known: Vec<(Epoch, u64)>,
}

/// The files of a logger, oldest first.
struct LoggerWalk {
    files: Vec<Walked>,
    reach: Epoch,
}

/// Returns where the log files that are written are cut; `None` if something in them is lost.
///
/// # Errors
/// [`OpenError::Io`].
pub(super) fn find_cuts(
    disk: &CapturedDisk,
    dir: &Path,
    manifest: &Manifest,
) -> Result<Option<Vec<Cut>>, OpenError> {
    let files = NamedFiles { disk, dir, manifest };
    let logs = (0u32..).zip(&manifest.loggers);
    let mut logs: Vec<Vec<LogFile>> =
        logs.map(|(logger, _)| files_of(&files, logger)).collect::<Result<_, _>>()?;
    let mut evidence = Evidence::default();
    for file in logs.iter_mut().flatten().filter(|file| !file.name.is_sealed()) {
        file.scan(disk)?;
        evidence.merge(file.evidence());
    }
    let logs: Vec<LoggerWalk> =
        logs.into_iter().map(|log| LoggerWalk::new(disk, log, manifest)).collect::<Result<_, _>>()?;
    let reach = logs.iter().map(|log| log.reach).min().unwrap_or(manifest.first_epoch);
    let durable_epoch = before(reach);
    let stored = evidence.durable_epoch.max(manifest.durable_epoch);
    let mut is_lost = durable_epoch < stored;
    for walked in logs.iter().flat_map(|log| &log.files) {
        is_lost |= walked.file.evidence().synced_to > walked.end || walked.is_shortened(disk)?;
    }
    let cuts = || logs.iter().flat_map(|log| log.cuts(durable_epoch)).collect();
    Ok((!is_lost).then(cuts))
}

/// Returns the log files of a logger, oldest first.
fn files_of(files: &NamedFiles<'_>, logger: u32) -> Result<Vec<LogFile>, OpenError> {
    let log = &files.manifest.loggers[logger as usize];
    let directory = files.dir.join(&log.directory);
    if !files.disk.exists(&directory).map_err(OpenError::io("look for", &directory))? {
        return Ok(Vec::new());
    }
    let mut names = list_log_files(files.disk, &directory)?;
    names.retain(|name| {
        (name.generation, name.logger) == (files.manifest.generation, logger)
            && name.sequence >= log.first_sequence
    });
    names.sort_unstable_by_key(|name| name.sequence);
    names.into_iter().map(|name| LogFile::open(files, &log.directory, name)).collect()
}

impl LoggerWalk {
    /// Walks over the files that are written, and back to the last mark.
    fn new(disk: &CapturedDisk, log: Vec<LogFile>, manifest: &Manifest) -> Result<LoggerWalk, OpenError> {
        let first = log.first().and_then(|file| file.header.as_ref().ok()).map(|header| header.first_epoch);
        let (mut files, mut mark) = (Vec::new(), None);
        for file in log.into_iter().rev() {
            if mark.is_none() || !file.name.is_sealed() {
                let walked = Walked::new(disk, file)?;
                mark = mark.or(walked.mark);
                files.push(walked);
            }
        }
        files.reverse();
        Ok(LoggerWalk { files, reach: mark.or(first).unwrap_or(manifest.first_epoch) })
    }

    /// Cuts the files that are written behind what is known of epochs up to `durable_epoch`.
    fn cuts(&self, durable_epoch: Epoch) -> Vec<Cut> {
        let mut is_behind = false;
        let written = self.files.iter().filter(|walked| !walked.file.name.is_sealed());
        let cut = |walked: &Walked| {
            let counted = walked.known.iter().take_while(|&&(known, _)| !is_behind && known <= durable_epoch);
            let visible_bytes = counted.last().map_or(FILE_HEADER_BYTES as u64, |&(_, end)| end);
            is_behind |= visible_bytes < walked.end;
            let len_bytes = walked.len_bytes();
            Cut { path: walked.file.path.clone(), visible_bytes: visible_bytes.min(len_bytes), len_bytes }
        };
        written.map(cut).collect()
    }
}

impl Walked {
    fn new(disk: &CapturedDisk, file: LogFile) -> Result<Walked, OpenError> {
        let mut walked = Walked {
            end: FILE_HEADER_BYTES as u64,
            mark: None,
            reserved_bytes: file.header.as_ref().map_or(0, |header| header.reserved_bytes),
            known: Vec::new(),
            file,
        };
        let (path, codec) = (walked.file.path.clone(), BlockCodec::new(&walked.file.identity));
        let opened = disk.open_read(&path).map_err(OpenError::io("open", &path))?;
        let len_bytes = opened.len_bytes().map_err(OpenError::io("read", &path))?;
        let each = &mut |sealed: &crate::format::SealedHeader, _: &[u8]| {
            walked.end = sealed.end_offset();
            walked.mark = sealed.header.mark.or(walked.mark);
            walked.reserved_bytes =
                walked.reserved_bytes.max(sealed.header.reserved_bytes.unwrap_or_default());
            match walked.known.last_mut() {
                Some((known, end)) if *known == sealed.header.durable_epoch => *end = walked.end,
                _ => walked.known.push((sealed.header.durable_epoch, walked.end)),
            }
            true
        };
        each_block(&*opened, &codec, FILE_HEADER_BYTES as u64, len_bytes, each)
            .map_err(OpenError::io("read", &path))?;
        Ok(walked)
    }

    /// Returns whether somebody has cut the file, by what was seen before the walk: it was shorter than it says that it was made, still is,
    /// and nothing had ended it.
    fn is_shortened(&self, disk: &CapturedDisk) -> Result<bool, OpenError> {
        let (Ok(header), Some(scan)) = (&self.file.header, &self.file.scan) else { return Ok(false) };
        let Some(reserved_bytes) = scan.is_cut(header) else { return Ok(false) };
        let path = &self.file.path;
        let now = disk.open_read(path).and_then(|file| file.len_bytes());
        Ok(now.map_err(OpenError::io("read", path))? < reserved_bytes)
    }

    /// Returns how long the file was made; of one that has not even a header, how long it was found.
    fn len_bytes(&self) -> u64 {
        let found = self.file.scan.as_ref().map_or(self.file.bytes, |scan| scan.bytes);
        if found < FILE_HEADER_BYTES as u64 && self.known.is_empty() {
            return found;
        }
        found.max(self.reserved_bytes).max(self.end)
    }
}
