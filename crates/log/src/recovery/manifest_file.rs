//! The manifest on disk: reading it and putting another one in its place.

use std::path::{Component, Path, PathBuf};

use ensilo_disk::Disk;

use super::corruption::{CorruptPlace, Corruption, CorruptionKind, DataLoss};
use super::error::OpenError;
use super::file_access::{exists, remove_if_there, rename, sync_dir, write_new};
use super::file_names::{MANIFEST, MANIFEST_COPY, MANIFEST_NEW};
use super::forgiving::ForgivingDisk;
use super::location::absolute_path;
use crate::format::{Manifest, ManifestError};

/// No file that is read as a whole is longer: this suffices for millions of tables. A longer one is damaged.
const WHOLE_FILE_BYTES_MAX: usize = 64 << 20;

/// Returns the manifest of the database in `dir`, `None` if there is none.
pub(crate) fn read_manifest(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, OpenError> {
    let path = dir.join(MANIFEST);
    if !exists(disk, &path)? {
        return Ok(None);
    }
    let (bytes, unread) = read_what_can_be_read(disk, &path)?;
    if let Some(CorruptPlace { file, offset, kind }) = unread {
        return Err(OpenError::corrupt(&file, offset, kind, without_manifest(disk, dir)));
    }
    Manifest::decode(&bytes)
        .map(Some)
        .map_err(|error| OpenError::corrupt(&path, Some(0), kind_of(error), without_manifest(disk, dir)))
}

/// Returns what is wrong with a file that cannot be decoded as a manifest.
pub(super) fn kind_of(error: ManifestError) -> CorruptionKind {
    match error {
        ManifestError::Head(error) => CorruptionKind::Header(error),
        ManifestError::Body(malformed) => CorruptionKind::Manifest(malformed),
    }
}

/// That there is no manifest in `dir`, which holds a database.
pub(super) fn manifest_is_lost(disk: &dyn Disk, dir: &Path) -> OpenError {
    OpenError::corrupt(&dir.join(MANIFEST), None, CorruptionKind::Missing, without_manifest(disk, dir))
}

/// Returns what is lost with the manifest of the database in `dir`.
fn without_manifest(disk: &dyn Disk, dir: &Path) -> DataLoss {
    if read_copy(disk, dir).is_some() { DataLoss::Manifest } else { DataLoss::Everything }
}

/// Returns the copy of the manifest, if it can be read.
pub(super) fn read_copy(disk: &dyn Disk, dir: &Path) -> Option<Manifest> {
    Manifest::decode(&read_file(disk, &dir.join(MANIFEST_COPY)).ok()?).ok()
}

/// Returns why the copy of the manifest of the database in `dir` cannot be read, if it cannot. Nothing else
/// says which files belong to the database.
///
/// # Errors
/// [`OpenError`] if the system fails, or a later version wrote it.
pub(super) fn corruption_of_copy(disk: &dyn Disk, dir: &Path) -> Result<Option<Corruption>, OpenError> {
    let path = dir.join(MANIFEST_COPY);
    let found = if exists(disk, &path)? {
        let (bytes, unread) = read_what_can_be_read(disk, &path)?;
        let corruption = || Manifest::decode(&bytes).err().map(|error| (Some(0), kind_of(error)));
        unread.map(|place| (place.offset, place.kind)).or_else(corruption)
    } else {
        Some((None, CorruptionKind::Missing))
    };
    let Some((offset, kind)) = found else { return Ok(None) };
    match OpenError::corrupt(&path, offset, kind, DataLoss::Everything) {
        OpenError::Corrupt(corruption) => Ok(Some(*corruption)),
        error => Err(error),
    }
}

/// Writes a copy of the manifest that is in place, before files are removed that the one before needs.
/// Nothing depends on the copy as long as the manifest can be read: one that cannot be written now, on a full
/// disk for one, is written with the next manifest.
pub(super) fn keep_copy(disk: &dyn Disk, dir: &Path, manifest: &Manifest) {
    let copy = dir.join(MANIFEST_COPY);
    let written = remove_if_there(disk, &copy)
        .and_then(|()| write_manifest(disk, &copy, manifest))
        .and_then(|()| sync_dir(disk, dir));
    if written.is_err() {
        // A copy that is torn is none.
        let _ = remove_if_there(disk, &copy);
    }
}

/// Writes the copy if it is not one of the manifest that is in place. A copy with another durable epoch is
/// one: it says what a new one would say of the files, and to replace it would put it at risk on a full disk.
pub(super) fn bring_copy_up(disk: &dyn Disk, dir: &Path, manifest: &Manifest) {
    let is_copy = |copy: Manifest| Manifest { durable_epoch: manifest.durable_epoch, ..copy } == *manifest;
    if !read_copy(disk, dir).is_some_and(is_copy) {
        keep_copy(disk, dir, manifest);
    }
}

/// Puts `manifest` in the place of the one before. When this returns, it is there after any crash; after an
/// error a crash may leave either.
pub(crate) fn install_manifest(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), OpenError> {
    write_new_manifest(disk, dir, manifest)?;
    put_manifest_in_place(disk, dir)
}

/// Writes the next manifest beside the one that counts, which stays as it is, and syncs it.
pub(super) fn write_new_manifest(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<(), OpenError> {
    let new = dir.join(MANIFEST_NEW);
    remove_if_there(disk, &new)?;
    write_manifest(disk, &new, manifest)
}

/// Writes a manifest into a new file, and syncs it, but not its name.
fn write_manifest(disk: &dyn Disk, path: &Path, manifest: &Manifest) -> Result<(), OpenError> {
    let bytes = manifest.encode();
    assert!(bytes.len() <= WHOLE_FILE_BYTES_MAX, "a manifest that could not be read again");
    write_new(disk, path, &bytes)
}

/// Puts the manifest that was written last in the place of the one before.
///
/// # Errors
/// [`OpenError::Io`]. A crash may then leave either, and what both name is needed until a later manifest is
/// in place.
pub(super) fn put_manifest_in_place(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    rename_new_manifest(disk, dir)?;
    sync_dir(disk, dir)
}

/// Renames the manifest that was written last, without a sync.
///
/// # Errors
/// [`OpenError::Io`]. The one before is in place.
pub(super) fn rename_new_manifest(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    rename(disk, dir, MANIFEST_NEW, MANIFEST)
}

/// Returns a whole file, which is expected to be short, and what of it could not be read, if anything.
pub(super) fn read_what_can_be_read(
    disk: &dyn Disk,
    path: &Path,
) -> Result<(Vec<u8>, Option<CorruptPlace>), OpenError> {
    let disk = ForgivingDisk::new(disk);
    let bytes = read_file(&disk, path)?;
    Ok((bytes, disk.failures_in(path).into_iter().next()))
}

/// Returns a whole file, which is expected to be short. Of one that is too long there are so many bytes that
/// it is none of its kind.
pub(crate) fn read_file(disk: &dyn Disk, path: &Path) -> Result<Vec<u8>, OpenError> {
    let read = || {
        let file = disk.open_read(path)?;
        let len = usize::try_from(file.len_bytes()?).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len.min(WHOLE_FILE_BYTES_MAX + 1)];
        file.read_at(0, &mut bytes)?;
        Ok(bytes)
    };
    read().map_err(OpenError::io("read", path))
}

/// Returns a directory as the manifest of the database in `dir` spells it: relative, if it lies within by its
/// spelling, and else absolute, where possible without `..`, which would lead through other directories.
pub(crate) fn spell_path(disk: &dyn Disk, dir: &Path, path: &Path) -> Result<String, OpenError> {
    let spelled = match path.strip_prefix(dir) {
        Ok(inside) if !leads_outside(inside) => inside.to_path_buf(),
        _ => absolute_path(disk, path)?,
    };
    spelled
        .into_os_string()
        .into_string()
        .map_err(|_| OpenError::Refused(format!("the path {} is not UTF-8", path.display())))
}

/// Returns whether a directory that a manifest spells so may lie outside of the database's.
pub(super) fn leads_outside(spelled: &Path) -> bool {
    // Earlier versions spelled directories relatively that are reached by going up.
    spelled.is_absolute() || spelled.components().any(|component| component == Component::ParentDir)
}

/// Returns the log directories that the manifest of the database in `dir` names, as far as they are there,
/// each once, however it is spelled.
pub(super) fn log_directories_there(
    disk: &dyn Disk,
    dir: &Path,
    manifest: &Manifest,
) -> Result<Vec<PathBuf>, OpenError> {
    let (mut there, mut places) = (Vec::new(), Vec::new());
    for spelled in manifest.log_directories() {
        let directory = spelled_path(dir, spelled);
        if exists(disk, &directory)? {
            let place = disk.place(&directory).map_err(OpenError::io("look for", &directory))?;
            if !places.contains(&place) {
                places.push(place);
                there.push(directory);
            }
        }
    }
    Ok(there)
}

/// Returns the path that the manifest of the database in `dir` spells so.
pub(crate) fn spelled_path(dir: &Path, spelled: &str) -> PathBuf {
    dir.join(spelled)
}

#[cfg(test)]
mod tests {
    use ensilo_epoch::Epoch;
    use ensilo_test_disk::{Faults, SimulatedDisk};

    use super::*;
    use crate::format::{DatabaseId, OpeningId};
    use crate::recovery::inspect::new_manifest;

    #[test]
    fn a_copy_of_another_manifest_is_replaced_and_one_with_another_durable_epoch_is_not() {
        let (disk, dir) = (SimulatedDisk::new(), Path::new(""));
        let manifest = Manifest { durable_epoch: Epoch::new(9), ..new_manifest() };
        install_manifest(&disk, dir, &manifest).unwrap();
        let others: [fn(&mut Manifest); 5] = [
            |other| other.database = DatabaseId::random(),
            |other| other.generation += 1,
            |other| other.first_epoch = Epoch::new(3),
            |other| other.next_checkpoint += 1,
            |other| other.opening = OpeningId::random(),
        ];
        for change in others {
            let mut other = manifest.clone();
            change(&mut other);
            keep_copy(&disk, dir, &other);
            bring_copy_up(&disk, dir, &manifest);
            assert_eq!(read_copy(&disk, dir), Some(manifest.clone()));
        }
        for lost in [None, Some(100)] {
            match lost {
                None => disk.remove(&dir.join(MANIFEST_COPY)).unwrap(),
                Some(bit) => disk.flip(&dir.join(MANIFEST_COPY), bit).unwrap(),
            }
            bring_copy_up(&disk, dir, &manifest);
            assert_eq!(read_copy(&disk, dir), Some(manifest.clone()));
        }
        let older = Manifest { durable_epoch: Epoch::new(8), ..manifest.clone() };
        keep_copy(&disk, dir, &older);
        // It would be lost where nothing can be written.
        disk.set_faults(Faults { no_space_after_bytes: Some(0), ..Faults::default() });
        bring_copy_up(&disk, dir, &manifest);
        assert_eq!(read_copy(&disk, dir), Some(older));
    }
}
