//! What an earlier process has written and may not have synced: nothing of it is believed before it is on the
//! disk.

use std::collections::BTreeSet;
use std::path::Path;

use ensilo_disk::Disk;

use super::chain::Chain;
use super::error::OpenError;
use super::file_access::{PIECE_BYTES, pieces, sync_dir};
use super::file_names::MANIFEST;
use super::log_file::{LogFile, list_log_files};
use super::named_files::NamedFiles;
use super::replay_file::ReplayFile;
use crate::format::FILE_HEADER_BYTES;

impl NamedFiles<'_> {
    /// Syncs the manifest, but not its name, the log files of the last generation, and the names in their
    /// directories.
    pub(super) fn sync_last_generation(&self) -> Result<(), OpenError> {
        sync_file(self.disk, &self.dir.join(MANIFEST))?;
        for directory in self.log_directories_there()? {
            sync_dir(self.disk, &directory)?;
            for name in list_log_files(self.disk, &directory)? {
                if name.generation == self.manifest.generation {
                    sync_file(self.disk, &directory.join(name.to_string()))?;
                }
            }
        }
        Ok(())
    }
}

/// Syncs what a repair goes on with: the manifest, these files, which it has read, and their names; and the
/// end of each log.
pub(super) fn sync_kept(
    disk: &dyn Disk,
    dir: &Path,
    files: &[ReplayFile],
    chains: &[Chain],
) -> Result<(), OpenError> {
    sync_file(disk, &dir.join(MANIFEST))?;
    files.iter().try_for_each(|file| sync_file(disk, &file.path))?;
    let directories: BTreeSet<&Path> =
        files.iter().filter_map(|file| file.path.parent()).chain([dir]).collect();
    for directory in directories {
        sync_dir(disk, directory)?;
    }
    chains.iter().try_for_each(|chain| write_end_again(disk, chain))
}

fn sync_file(disk: &dyn Disk, path: &Path) -> Result<(), OpenError> {
    disk.open(path).and_then(|file| file.sync_all()).map_err(OpenError::io("sync", path))
}

/// Writes what counts at the end of a log once more, as far as no block says that it was synced, and syncs
/// it: after a failed sync a system may show bytes that are not on the disk.
pub(super) fn write_end_again(disk: &dyn Disk, chain: &Chain) -> Result<(), OpenError> {
    let Some((at, end)) = chain.reached else { return Ok(()) };
    let LogFile { path, scan, .. } = &chain.files[at];
    let Some(scan) = scan else { return Ok(()) };
    let from = scan.evidence.synced_to.max(FILE_HEADER_BYTES as u64);
    if from >= end {
        return Ok(());
    }
    let file = disk.open(path).map_err(OpenError::io("open", path))?;
    let mut bytes = vec![0; PIECE_BYTES];
    for (at, piece) in pieces(from..end) {
        file.read_at(at, &mut bytes[..piece]).map_err(OpenError::io("read", path))?;
        file.write_at(at, &bytes[..piece]).map_err(OpenError::io("write", path))?;
    }
    file.sync_all().map_err(OpenError::io("sync", path))
}
