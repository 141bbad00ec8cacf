//! What is wrong with a file that the manifest asks for.

use std::path::Path;

use ensilo_disk::Disk;

use super::corruption::Corruption;
use super::error::OpenError;
use super::file_access::exists;
use super::file_check::{CheckedFile, Expected, check_blocks};
use super::generation::log_identity;
use super::named_files::SuspectFiles;
use super::replay_file::part_identity;
use crate::format::{BlockEnd, EarlierFile, FileIdentity, LogFileName};

impl SuspectFiles<'_> {
    /// Returns every corruption of the file in which a replay came upon this one. A replay reads ahead by
    /// what headers claim, and may name a place that a damaged header has led it to.
    pub(super) fn corruptions_of(&self, corruption: &Corruption) -> Result<Vec<Corruption>, OpenError> {
        let checked = self.check_known(&corruption.file)?.unwrap_or_default();
        if checked.corruptions.is_empty() {
            return Ok(vec![corruption.clone()]);
        }
        let found = checked.corruptions.into_iter();
        Ok(found
            .map(|(offset, kind)| Corruption { offset: Some(offset), kind, ..corruption.clone() })
            .collect())
    }

    /// Returns what is in a file, if it is there and one of those that the manifest asks for.
    pub(super) fn check_known(&self, path: &Path) -> Result<Option<CheckedFile>, OpenError> {
        let Some((identity, expected)) = self.expected_file(path) else { return Ok(None) };
        if !exists(self.disk, path)? {
            return Ok(None);
        }
        let file = self.disk.open_read(path).map_err(OpenError::io("open", path))?;
        let unread = &|| self.disk.failures_in(path);
        let checked = check_blocks(&*file, &identity, 0, expected, unread);
        checked.map(Some).map_err(OpenError::io("read", path))
    }

    /// Returns what the file of this path has to be, if it is one of those that the manifest asks for.
    fn expected_file(&self, path: &Path) -> Option<(FileIdentity, Expected)> {
        if let Some(checkpoint) = &self.manifest.checkpoint
            && let Some(part) = self.part_at(path)
        {
            let identity = part_identity(self.manifest, checkpoint.id, part);
            return Some((identity, Expected::End(BlockEnd::Part)));
        }
        let (manifest, name) = (self.manifest, LogFileName::of(path)?);
        let is_this = |file: &&EarlierFile| file.name == name && self.log_path(&file.directory, name) == path;
        let expected = match manifest.earlier.iter().find(is_this) {
            Some(file) => file.valid_bytes.map_or(Expected::End(BlockEnd::Seal), Expected::Bytes),
            None if name.generation != manifest.generation => return None,
            None if name.largest_epoch.is_some() => Expected::End(BlockEnd::Seal),
            None => Expected::Written,
        };
        Some((log_identity(manifest.database, manifest.opening_of(&name)?, name), expected))
    }
}
