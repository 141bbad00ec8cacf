//! One log file as it is found: its header, and what a scan of it says.

use std::path::{Path, PathBuf};

use ensilo_disk::Disk;

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

    /// What its blocks and its name say of what was on disk, as far as they were looked at.
    pub(super) fn evidence(&self) -> Evidence {
        let mut evidence = self.scan.as_ref().map(|scan| scan.evidence).unwrap_or_default();
        evidence.largest_epoch = evidence.largest_epoch.max(self.name.largest_epoch.unwrap_or_default());
        evidence
    }

    /// Whether it has blocks, as far as is known: one that is sealed by its name must have.
    pub(super) fn has_blocks(&self) -> bool {
        self.name.largest_epoch.is_some() || self.scan.as_ref().is_some_and(|scan| scan.evidence.has_blocks)
    }
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
