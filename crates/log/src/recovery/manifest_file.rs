//! The manifest on disk: reading it and putting another one in its place.

use std::path::{Component, Path};

use ensilo_disk::Disk;

use super::corruption::{CorruptPlace, Corruption, CorruptionKind, DataLoss};
use super::error::OpenError;
use super::file_access::{exists, remove_if_there, rename, sync_dir, write_new};
use super::file_names::{MANIFEST, MANIFEST_COPY, MANIFEST_NEW};
use super::forgiving::ForgivingDisk;
use super::location::absolute_path;
use super::named_files::NamedFiles;
use crate::format::{Manifest, ManifestError};

/// No file that is read as a whole is longer: this suffices for millions of tables. A longer one is damaged.
const WHOLE_FILE_BYTES_MAX: usize = 64 << 20;

/// Returns the manifest of the database in `dir`, `None` if there is none.
pub(crate) fn read_manifest(disk: &dyn Disk, dir: &Path) -> Result<Option<Manifest>, OpenError> {
    match read_whole(disk, &dir.join(MANIFEST), |bytes| Manifest::decode(bytes).map_err(kind_of))? {
        None => Ok(None),
        Some(Ok(manifest)) => Ok(Some(manifest)),
        Some(Err(place)) => Err(OpenError::from(place.with_loss(without_manifest(disk, dir)))),
    }
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
    let place = match read_whole(disk, &path, |bytes| Manifest::decode(bytes).map_err(kind_of))? {
        None => CorruptPlace::new(&path, None, CorruptionKind::Missing),
        Some(Err(place)) => place,
        Some(Ok(_)) => return Ok(None),
    };
    match OpenError::from(place.with_loss(DataLoss::Everything)) {
        OpenError::Corrupt(corruption) => Ok(Some(*corruption)),
        error => Err(error),
    }
}

impl NamedFiles<'_> {
    /// Writes a copy of the manifest that is in place, before files are removed that the one before needs.
    /// Nothing depends on the copy as long as the manifest can be read: one that cannot be written now, on a
    /// full disk for one, is written with the next manifest.
    pub(super) fn keep_copy(&self) {
        let written = self.write_manifest(MANIFEST_COPY).and_then(|()| sync_dir(self.disk, self.dir));
        if written.is_err() {
            // A copy that is torn is none.
            let _ = remove_if_there(self.disk, &self.dir.join(MANIFEST_COPY));
        }
    }

    /// Writes the copy if it is not one of the manifest that is in place. A copy with another durable epoch
    /// is one: it says what a new one would say of the files, and to replace it would put it at risk on a
    /// full disk.
    pub(super) fn bring_copy_up(&self) {
        let durable_epoch = self.manifest.durable_epoch;
        let is_copy = |copy: Manifest| Manifest { durable_epoch, ..copy } == *self.manifest;
        if !read_copy(self.disk, self.dir).is_some_and(is_copy) {
            self.keep_copy();
        }
    }

    /// Puts the manifest in the place of the one before. When this returns, it is there after any crash;
    /// after an error a crash may leave either.
    pub(super) fn install_manifest(&self) -> Result<(), OpenError> {
        self.write_new_manifest()?;
        put_manifest_in_place(self.disk, self.dir)
    }

    /// Writes the manifest beside the one that counts, which stays as it is, and syncs it.
    pub(super) fn write_new_manifest(&self) -> Result<(), OpenError> {
        self.write_manifest(MANIFEST_NEW)
    }

    /// Writes the manifest into a new file, and syncs it, but not its name.
    fn write_manifest(&self, name: &str) -> Result<(), OpenError> {
        let path = self.dir.join(name);
        remove_if_there(self.disk, &path)?;
        let bytes = self.manifest.encode();
        assert!(bytes.len() <= WHOLE_FILE_BYTES_MAX, "a manifest that could not be read again");
        write_new(self.disk, &path, &bytes)
    }
}

/// Puts the manifest that was written last in the place of the one before.
///
/// # Errors
/// [`OpenError::Io`]. A crash may then leave either, and what both name is needed until a later manifest is
/// in place.
pub(super) fn put_manifest_in_place(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    rename(disk, dir, MANIFEST_NEW, MANIFEST)?;
    sync_dir(disk, dir)
}

/// Returns what a whole file, which is expected to be short, is decoded as, or what is wrong with it; `None`
/// if it is not there.
pub(super) fn read_whole<T>(
    disk: &dyn Disk,
    path: &Path,
    decode: impl FnOnce(&[u8]) -> Result<T, CorruptionKind>,
) -> Result<Option<Result<T, CorruptPlace>>, OpenError> {
    if !exists(disk, path)? {
        return Ok(None);
    }
    let disk = ForgivingDisk::new(disk);
    let bytes = read_file(&disk, path)?;
    Ok(Some(match disk.failures_in(path).into_iter().next() {
        Some(unread) => Err(unread),
        None => decode(&bytes).map_err(|kind| CorruptPlace::new(path, Some(0), kind)),
    }))
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
        let current = NamedFiles { disk: &disk, dir, manifest: &manifest };
        current.install_manifest().unwrap();
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
            NamedFiles { manifest: &other, ..current }.keep_copy();
            current.bring_copy_up();
            assert_eq!(read_copy(&disk, dir), Some(manifest.clone()));
        }
        for lost in [None, Some(100)] {
            match lost {
                None => disk.remove(&dir.join(MANIFEST_COPY)).unwrap(),
                Some(bit) => disk.flip(&dir.join(MANIFEST_COPY), bit).unwrap(),
            }
            current.bring_copy_up();
            assert_eq!(read_copy(&disk, dir), Some(manifest.clone()));
        }
        let older = Manifest { durable_epoch: Epoch::new(8), ..manifest.clone() };
        NamedFiles { manifest: &older, ..current }.keep_copy();
        // It would be lost where nothing can be written.
        disk.set_faults(Faults { no_space_after_bytes: Some(0), ..Faults::default() });
        current.bring_copy_up();
        assert_eq!(read_copy(&disk, dir), Some(older));
    }
}
