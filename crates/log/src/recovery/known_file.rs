//! What is wrong with a file that the manifest asks for.

use std::path::Path;

use ensilo_disk::Disk;

use super::corruption::Corruption;
use super::error::OpenError;
use super::file_access::exists;
use super::file_check::{CheckedFile, Expected, check_blocks};
use super::forgiving::ForgivingDisk;
use super::generation::log_identity;
use super::manifest_file::spelled_path;
use super::replay_file::part_identity;
use crate::format::{BlockEnd, EarlierFile, FileIdentity, LogFileName, Manifest};

/// Returns every corruption of the file in which a replay came upon this one. A replay reads ahead by what
/// headers claim, and may name a place that a damaged header has led it to.
pub(super) fn corruptions_of(
    disk: &ForgivingDisk<'_>,
    dir: &Path,
    manifest: &Manifest,
    corruption: &Corruption,
) -> Result<Vec<Corruption>, OpenError> {
    let checked = check_known(disk, dir, manifest, &corruption.file)?.unwrap_or_default();
    if checked.corruptions.is_empty() {
        return Ok(vec![corruption.clone()]);
    }
    let found = checked.corruptions.into_iter();
    Ok(found.map(|(offset, kind)| Corruption { offset: Some(offset), kind, ..corruption.clone() }).collect())
}

/// Returns what is in a file, if it is there and one of those that the manifest asks for.
pub(super) fn check_known(
    disk: &ForgivingDisk<'_>,
    dir: &Path,
    manifest: &Manifest,
    path: &Path,
) -> Result<Option<CheckedFile>, OpenError> {
    let Some((identity, expected)) = expected_file(dir, manifest, path) else {
        return Ok(None);
    };
    if !exists(disk, path)? {
        return Ok(None);
    }
    let file = disk.open_read(path).map_err(OpenError::io("open", path))?;
    let unread = &|| disk.failures_in(path);
    check_blocks(&*file, &identity, 0, expected, unread).map(Some).map_err(OpenError::io("read", path))
}

/// Returns what the file of this path has to be, if it is one of those that the manifest asks for.
fn expected_file(dir: &Path, manifest: &Manifest, path: &Path) -> Option<(FileIdentity, Expected)> {
    if let Some(checkpoint) = &manifest.checkpoint
        && let Some(part) = checkpoint.parts.iter().find(|part| dir.join(&part.path) == path)
    {
        return Some((part_identity(manifest, checkpoint.id, part), Expected::End(BlockEnd::Part)));
    }
    let name = LogFileName::parse(path.file_name()?.to_str()?)?;
    let is_this = |file: &&EarlierFile| {
        file.name == name && path.parent().is_some_and(|parent| spelled_path(dir, &file.directory) == parent)
    };
    let expected = match manifest.earlier.iter().find(is_this) {
        Some(file) => file.valid_bytes.map_or(Expected::End(BlockEnd::Seal), Expected::Bytes),
        None if name.generation != manifest.generation => return None,
        None if name.largest_epoch.is_some() => Expected::End(BlockEnd::Seal),
        None => Expected::Written,
    };
    Some((log_identity(manifest.database, manifest.opening_of(&name)?, name), expected))
}
