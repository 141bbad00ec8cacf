//! One log file as it is found: its header, and what a scan of it says.

use std::io;
use std::path::{Path, PathBuf};

use ensilo_disk::{Disk, File};
use ensilo_epoch::Epoch;

use super::error::{Finding, OpenError};
use super::generation::log_identity;
use super::scan::{Evidence, Scan, scan};
use crate::format::{
    BlockCodec, DatabaseId, FILE_HEADER_BYTES, FileHeader, FileIdentity, HeaderDamage, LogFileName,
};

/// A log file of the database.
#[derive(Debug, Clone)]
pub(super) struct LogFile {
    pub(super) path: PathBuf,
    /// The directory as the manifest spells it.
    pub(super) directory: String,
    pub(super) name: LogFileName,
    pub(super) identity: FileIdentity,
    /// Its length.
    pub(super) bytes: u64,
    pub(super) header: Result<FileHeader, Finding>,
    /// What its blocks say, if they were looked at.
    pub(super) scan: Option<Scan>,
}

impl LogFile {
    /// Reads the header of the file of this name, which is there.
    pub(super) fn open(
        disk: &dyn Disk,
        dir: &Path,
        directory: &str,
        name: LogFileName,
        database: DatabaseId,
    ) -> Result<LogFile, OpenError> {
        let path = dir.join(directory).join(name.to_string());
        let identity = log_identity(database, name);
        let (bytes, header) = read_header(disk, &path, &identity)?;
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

    /// What its blocks say of what was on disk, if they were looked at.
    pub(super) fn evidence(&self) -> Evidence {
        self.scan.as_ref().map(|scan| scan.evidence).unwrap_or_default()
    }

    /// Whether it has blocks, as far as is known: one that is sealed by its name must have.
    pub(super) fn has_blocks(&self) -> bool {
        self.name.largest_epoch.is_some() || self.scan.as_ref().is_some_and(|scan| scan.evidence.has_blocks)
    }
}

/// Whether the name of a sealed file contradicts its blocks, the last entry of which is of epoch `found`, 0 if there is none: a file
/// without entries is named after an epoch of the time when it was sealed, which no block says.
pub(super) fn misnamed(name: LogFileName, found: Epoch) -> Option<Finding> {
    let named = name.largest_epoch.filter(|&named| named != found && found != Epoch::default())?;
    Some(Finding::Misnamed { named, found })
}

/// Whether nothing was ever written to the file of this identity but its header, and perhaps not even that.
pub(super) fn is_unused(disk: &dyn Disk, path: &Path, identity: &FileIdentity) -> Result<bool, OpenError> {
    let (_, header) = read_header(disk, path, identity)?;
    let from = match header {
        Ok(_) => FILE_HEADER_BYTES as u64,
        Err(Finding::Header(HeaderDamage::Short)) => 0,
        Err(Finding::Header(_)) if has_torn_header(disk, path, identity)? => FILE_HEADER_BYTES as u64,
        Err(_) => return Ok(false),
    };
    let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
    has_zeros_from(&*file, from).map_err(OpenError::io("read", path))
}

/// Whether the file begins with the first bytes of the header that it should have, none of them perhaps, and zeros up to its end.
fn has_torn_header(disk: &dyn Disk, path: &Path, identity: &FileIdentity) -> Result<bool, OpenError> {
    let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
    let mut bytes = [0; FILE_HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(OpenError::io("read", path))?;
    Ok(FileHeader::is_torn(&bytes, identity))
}

/// Whether a file has nothing but zeros from this offset on.
pub(super) fn has_zeros_from(file: &dyn File, from: u64) -> io::Result<bool> {
    let len = file.len_bytes()?;
    let mut bytes = vec![0; 1 << 20];
    let mut at = from;
    while at < len {
        let piece = bytes.len().min(usize::try_from(len - at).unwrap_or(usize::MAX));
        file.read_at(at, &mut bytes[..piece])?;
        if bytes[..piece].iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        at += piece as u64;
    }
    Ok(true)
}

/// The length of a file, and its header if it is the one that it should be.
pub(super) fn read_header(
    disk: &dyn Disk,
    path: &Path,
    identity: &FileIdentity,
) -> Result<(u64, Result<FileHeader, Finding>), OpenError> {
    let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
    let len = file.len_bytes().map_err(OpenError::io("read", path))?;
    if len < FILE_HEADER_BYTES as u64 {
        return Ok((len, Err(Finding::Header(HeaderDamage::Short))));
    }
    let mut bytes = vec![0; FILE_HEADER_BYTES];
    file.read_at(0, &mut bytes).map_err(OpenError::io("read", path))?;
    let header = match FileHeader::decode(&bytes) {
        Err(damage) => Err(Finding::Header(damage)),
        Ok(header) if header.identity.database != identity.database => {
            Err(Finding::OtherDatabase(header.identity.database))
        }
        Ok(header) if header.identity.file != identity.file => Err(Finding::OtherFile),
        Ok(header) => Ok(header),
    };
    Ok((len, header))
}
