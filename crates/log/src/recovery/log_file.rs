//! One log file as it is found: its header, and what a scan of it says.

use std::io;
use std::path::{Path, PathBuf};

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;

use super::corruption::{CorruptPlace, CorruptionKind, DataLoss};
use super::error::OpenError;
use super::file_access::{OpenFile, PIECE_BYTES, list, open, pieces};
use super::forgiving::ForgivingDisk;
use super::named_files::NamedFiles;
use super::scan::{Evidence, LogFileScan, scan};
use crate::format::{
    BlockCodec, EpochWidth, FILE_HEADER_BYTES, FileHeader, FileIdentity, HeaderError, LogFileName,
};

/// A log file of the database.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    /// The directory as the manifest spells it.
    pub(super) directory: String,
    pub(super) name: LogFileName,
    /// What it has to be. Of a file that the manifest does not know, any opening may have written it.
    pub(super) identity: FileIdentity,
    /// Its length.
    pub(super) bytes: u64,
    pub(super) header: Result<FileHeader, CorruptionKind>,
    /// What its blocks say, if they were looked at.
    pub(super) scan: Option<LogFileScan>,
}

impl LogFile {
    /// Reads the header of the file of this name, which is there, in a directory that the manifest spells so.
    pub(super) fn open(
        files: &NamedFiles<'_>,
        directory: &str,
        name: LogFileName,
    ) -> Result<LogFile, OpenError> {
        let path = files.log_path(directory, name);
        let (bytes, identity, header) = files.read_log_header(&path, name)?;
        Ok(LogFile { path, directory: directory.to_owned(), name, identity, bytes, header, scan: None })
    }

    /// Looks at the blocks.
    pub(super) fn scan(&mut self, disk: &dyn Disk) -> Result<(), OpenError> {
        let file = disk.open_read(&self.path).map_err(OpenError::io("open", &self.path))?;
        let found =
            scan(&*file, &BlockCodec::new(&self.identity)).map_err(OpenError::io("read", &self.path))?;
        self.scan = Some(found);
        Ok(())
    }

    /// Returns what its blocks say of what was on disk, if they were looked at.
    pub(super) fn evidence(&self) -> Evidence {
        self.scan.as_ref().map(|scan| scan.evidence).unwrap_or_default()
    }

    /// Returns whether it has blocks, as far as is known: one that is sealed by its name must have.
    pub(super) fn has_blocks(&self) -> bool {
        self.name.is_sealed() || self.scan.as_ref().is_some_and(|scan| scan.evidence.has_blocks)
    }

    /// Returns the largest epoch that its name says, if it is sealed by its name.
    pub(super) fn named_epoch(&self) -> Option<Epoch> {
        self.name.largest_epoch(self.identity.epochs)
    }

    /// Returns whether its header is that of another file.
    pub(super) fn is_foreign(&self) -> bool {
        self.header.as_ref().is_err_and(CorruptionKind::is_foreign)
    }
}

/// Returns the log files in a directory.
pub(crate) fn list_log_files(disk: &dyn Disk, directory: &Path) -> Result<Vec<LogFileName>, OpenError> {
    let listed = list(disk, directory)?;
    Ok(listed
        .iter()
        .filter(|entry| entry.is_file)
        .filter_map(|entry| LogFileName::parse(&entry.name))
        .collect())
}

/// Opens a log file that is given its other name at any moment, once.
pub(super) fn open_renamed(
    disk: &dyn Disk,
    directory: &Path,
    name: LogFileName,
) -> Result<(LogFileName, Box<dyn File>), OpenError> {
    let under_open_name = |name: &LogFileName| LogFileName { epoch_number: None, ..*name };
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    // A list that is made at that moment may have neither name, and the opening after it may come too late.
    for _ in 0..3 {
        let names = list_log_files(disk, directory)?;
        let Some(name) = names.into_iter().find(|other| under_open_name(other) == under_open_name(&name))
        else {
            continue;
        };
        match disk.open_read(&directory.join(name.to_string())) {
            Ok(file) => return Ok((name, file)),
            Err(again) => error = again,
        }
    }
    Err(OpenError::Io { doing: "open", path: directory.join(name.to_string()), error })
}

/// Returns whether the name of a sealed file contradicts its blocks, the last entry of which is of epoch
/// `found`, 0 if there is none: a file without entries is named after an epoch of the time when it was
/// sealed, which no block says. Its epochs are so wide.
pub(super) fn misnamed(name: LogFileName, epochs: EpochWidth, found: Epoch) -> Option<CorruptionKind> {
    let named = name.largest_epoch(epochs).filter(|&named| named != found && found != Epoch::default())?;
    Some(CorruptionKind::Misnamed { named, found, right: name.sealed(found, epochs) })
}

/// Returns whether nothing was ever written to the file of this identity but its header, and perhaps not even
/// that.
pub(super) fn is_unused(disk: &dyn Disk, path: &Path, identity: &FileIdentity) -> Result<bool, OpenError> {
    let (_, header) = read_header(disk, path, identity)?;
    let from = match header {
        Ok(_) => FILE_HEADER_BYTES as u64,
        Err(CorruptionKind::Header(HeaderError::Short)) => 0,
        Err(CorruptionKind::Header(_)) if has_torn_header(disk, path, identity)? => FILE_HEADER_BYTES as u64,
        Err(_) => return Ok(false),
    };
    has_zeros_from(disk, path, from)
}

/// Returns whether the file begins with the first bytes of the header that it should have, none of them
/// perhaps, and zeros up to its end.
fn has_torn_header(disk: &dyn Disk, path: &Path, identity: &FileIdentity) -> Result<bool, OpenError> {
    let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
    let mut bytes = [0; FILE_HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(OpenError::io("read", path))?;
    Ok(FileHeader::is_torn(&bytes, identity))
}

/// Returns whether nothing was written behind the header, if there is one.
pub(super) fn is_empty_log_file(disk: &dyn Disk, path: &Path) -> Result<bool, OpenError> {
    has_zeros_from(disk, path, FILE_HEADER_BYTES as u64)
}

/// Returns whether a file has nothing but zeros from this offset on.
fn has_zeros_from(disk: &dyn Disk, path: &Path, from: u64) -> Result<bool, OpenError> {
    all_pieces(disk, path, from, &mut |_, bytes| bytes.iter().all(|&byte| byte == 0))
}

/// Returns whether a file has nothing but zeros behind its header, as far as it can be read.
pub(super) fn reads_as_empty(disk: &ForgivingDisk<'_>, path: &Path) -> Result<bool, OpenError> {
    all_pieces(disk, path, 0, &mut |at, bytes| {
        let unread = disk.failures_in(path);
        let holds = |place: &CorruptPlace, offset: u64| {
            place.offset.is_none_or(|from| from <= offset) && offset < place.end()
        };
        let is_unread = |offset| unread.iter().any(|place| holds(place, offset));
        let mut found = (at..).zip(bytes).filter(|&(_, &byte)| byte != 0);
        found.all(|(offset, _)| offset < FILE_HEADER_BYTES as u64 || is_unread(offset))
    })
}

/// Returns whether all pieces of a file from this offset on are as they should be, by their offset and bytes.
fn all_pieces(
    disk: &dyn Disk,
    path: &Path,
    from: u64,
    is_right: &mut dyn FnMut(u64, &[u8]) -> bool,
) -> Result<bool, OpenError> {
    let (file, len) = open(disk, path)?;
    let mut bytes = vec![0; PIECE_BYTES];
    for (at, piece) in pieces(from..len) {
        file.read_at(at, &mut bytes[..piece]).map_err(OpenError::io("read", path))?;
        if !is_right(at, &bytes[..piece]) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl NamedFiles<'_> {
    /// Returns the length of the log file of this name, which file it has to be, and its header if it is that
    /// one.
    pub(super) fn read_log_header(
        &self,
        path: &Path,
        name: LogFileName,
    ) -> Result<(u64, FileIdentity, Result<FileHeader, CorruptionKind>), OpenError> {
        let (bytes, header) = read_any_header(self.disk, path)?;
        let database = self.manifest.database;
        let found = || {
            let header = header.as_ref().map(|header| (header.identity.opening, header.identity.epochs));
            let (opening, epochs) = header.unwrap_or_default();
            FileIdentity { database, file: name.role(), opening, epochs }
        };
        let identity = self.manifest.identity_of(name).unwrap_or_else(found);
        Ok((bytes, identity, header.and_then(|header| check_identity(header, &identity))))
    }
}

/// Returns the length of a file, and its header if it is the one that it should be.
pub(super) fn read_header(
    disk: &dyn Disk,
    path: &Path,
    identity: &FileIdentity,
) -> Result<(u64, Result<FileHeader, CorruptionKind>), OpenError> {
    let (bytes, header) = read_any_header(disk, path)?;
    Ok((bytes, header.and_then(|header| check_identity(header, identity))))
}

/// Returns the length of a file, and its header, whichever file of whichever database it is.
fn read_any_header(
    disk: &dyn Disk,
    path: &Path,
) -> Result<(u64, Result<FileHeader, CorruptionKind>), OpenError> {
    let (file, len) = open(disk, path)?;
    if len < FILE_HEADER_BYTES as u64 {
        return Ok((len, Err(CorruptionKind::Header(HeaderError::Short))));
    }
    let mut bytes = vec![0; FILE_HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(OpenError::io("read", path))?;
    Ok((len, FileHeader::decode(&bytes).map_err(CorruptionKind::Header)))
}

/// Opens a file, whatever it is. Returns as many bytes of it as a header has, too.
///
/// # Errors
/// [`OpenError::Corrupt`] if these bytes cannot be read; the others of reading them.
pub(super) fn open_with_head(
    disk: &ForgivingDisk<'_>,
    path: &Path,
) -> Result<(OpenFile, Vec<u8>), OpenError> {
    let (file, len) = open(disk, path)?;
    let mut head = vec![0; FILE_HEADER_BYTES.min(usize::try_from(len).unwrap_or(usize::MAX))];
    file.read_at(0, &mut head).map_err(OpenError::io("read", path))?;
    match disk.failures_in(path).pop() {
        Some(CorruptPlace { kind, .. }) => Err(OpenError::corrupt(path, Some(0), kind, DataLoss::Everything)),
        None => Ok(((file, len), head)),
    }
}

/// Returns the header, if it is that of the file with this identity.
fn check_identity(header: FileHeader, wanted: &FileIdentity) -> Result<FileHeader, CorruptionKind> {
    let found = header.identity;
    if found.database != wanted.database {
        Err(CorruptionKind::OtherDatabase(found.database))
    } else if found.file != wanted.file {
        Err(CorruptionKind::OtherFile)
    } else if (found.opening, found.epochs) != (wanted.opening, wanted.epochs) {
        Err(CorruptionKind::OtherCopy)
    } else {
        Ok(header)
    }
}
