//! Which log files are kept for readers of changes, after a checkpoint has taken their place: `CHANGES` on disk.
//!
//! The manifest does not name them, so that no opening reads them and none of their damage keeps the rows away.
//!
//! # Crash
//! `CHANGES` is replaced before the manifest that drops log files, and before a manifest of another opening. So with
//! either manifest all files from its first epoch on are named, by one of the two or by both. With the manifest of an
//! opening that keeps no changes it does not count, and is removed.

use std::path::Path;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::corruption::CorruptionKind;
use super::error::OpenError;
use super::file_access::{exists, open, remove_if_there, rename, sync_dir, write_new};
use super::file_names::{CHANGES, CHANGES_NEW};
use super::manifest_file::read_whole;
use super::named_files::NamedFiles;
use super::sealed_files::SealedFiles;
use crate::format::{ChangeHistory, EarlierFile, EpochWidth, KeptFile, LogFileName, Manifest};

/// The history of changes of an open database.
#[derive(Debug)]
pub(super) struct KeptChanges {
    pub(super) history: ChangeHistory,
    /// So many bytes of files are kept at most that nothing else needs.
    pub(super) bytes_max: u64,
}

impl NamedFiles<'_> {
    /// Returns the history of changes that goes with the manifest, if one was kept. A damaged one is none.
    ///
    /// # Errors
    /// [`OpenError::Io`].
    pub(super) fn change_history(&self) -> Result<Option<ChangeHistory>, OpenError> {
        let decode = |bytes: &[u8]| ChangeHistory::decode(bytes).map_err(CorruptionKind::Header);
        let read = read_whole(self.disk, &self.dir.join(CHANGES), decode)?;
        Ok(read.and_then(Result::ok).filter(|history| {
            history.database == self.manifest.database && history.openings.contains(&self.manifest.opening)
        }))
    }
}

/// Puts a history of changes in the place of the one before. When this returns, it is there after any crash.
pub(super) fn put_history(disk: &dyn Disk, dir: &Path, history: &ChangeHistory) -> Result<(), OpenError> {
    let new = dir.join(CHANGES_NEW);
    remove_if_there(disk, &new)?;
    write_new(disk, &new, &history.encode())?;
    rename(disk, dir, CHANGES_NEW, CHANGES)?;
    sync_dir(disk, dir)
}

/// Ends the history of changes, if there is one: no crash brings it back.
pub(super) fn remove_history(disk: &dyn Disk, dir: &Path) -> Result<(), OpenError> {
    let path = dir.join(CHANGES);
    if !exists(disk, &path)? {
        return Ok(());
    }
    remove_if_there(disk, &path)?;
    sync_dir(disk, dir)
}

impl KeptChanges {
    /// Returns the history that a new opening begins.
    fn begin(manifest: &Manifest, bytes_max: u64) -> KeptChanges {
        let history = ChangeHistory {
            database: manifest.database,
            history: manifest.opening,
            openings: vec![manifest.opening],
            ended: Vec::new(),
            first_epoch: manifest.first_epoch,
            kept: Vec::new(),
        };
        KeptChanges { history, bytes_max }
    }

    /// Puts the history in place that goes with the manifest of the next opening, before that: the one that was there goes
    /// on, or another one begins.
    pub(super) fn put_next(
        history: Option<ChangeHistory>,
        (before, next): (&NamedFiles<'_>, &Manifest),
        files: Vec<KeptFile>,
        bytes_max: u64,
    ) -> Result<KeptChanges, OpenError> {
        let changes = match history {
            Some(history) => KeptChanges::continued(history, before.manifest, next, files, bytes_max),
            None => KeptChanges::begin(next, bytes_max),
        };
        put_history(before.disk, before.dir, &changes.history)?;
        Ok(changes)
    }

    /// Returns this history as the opening of `next` goes on with it, which needs none of the log `files` of before
    /// but those that it names.
    fn continued(
        history: ChangeHistory,
        before: &Manifest,
        next: &Manifest,
        files: Vec<KeptFile>,
        bytes_max: u64,
    ) -> KeptChanges {
        let mut kept = KeptChanges { history, bytes_max };
        kept.history.openings = vec![before.opening, next.opening];
        // An opening that was interrupted may have noted it.
        kept.history.ended.retain(|(opening, _)| *opening != before.opening);
        // What lies between the last epoch that counts and the opening's first one is void: a position there is behind everything.
        let before_first = Epoch::new(before.first_epoch.get().saturating_sub(1));
        kept.history.ended.push((before.opening, next.durable_epoch.max(before_first)));
        kept.keep(files, next);
        kept
    }

    /// Goes on with a manifest of the same opening, which drops files that the one `before` names.
    pub(super) fn follow(&mut self, before: &NamedFiles<'_>, next: &Manifest, sealed: &SealedFiles) {
        self.history.openings = vec![next.opening];
        let mut files = Vec::new();
        for file in before.manifest.earlier.iter().filter(|file| !next.earlier.contains(file)) {
            let largest_epoch = largest_epoch(file, before.manifest.epochs_of(file.name.generation));
            files.push(before.kept(file.clone(), largest_epoch));
        }
        for (number, (old, new)) in (0u32..).zip(before.manifest.loggers.iter().zip(&next.loggers)) {
            for (sequence, largest_epoch) in sealed.of_logger(number) {
                if (old.first_sequence..new.first_sequence).contains(&sequence) {
                    let name = LogFileName::open(next.generation, number, sequence);
                    let file = EarlierFile {
                        directory: old.directory.clone(),
                        name: name.sealed(largest_epoch, EpochWidth::default()),
                        valid_bytes: None,
                        durable_epoch: largest_epoch,
                        opening: next.log_opening(),
                    };
                    files.push(before.kept(file, largest_epoch));
                }
            }
        }
        self.keep(files, next);
    }

    /// Keeps these files too, as far as there is room: those with the latest epochs.
    fn keep(&mut self, files: Vec<KeptFile>, next: &Manifest) {
        let ChangeHistory { kept, ended, first_epoch, .. } = &mut self.history;
        for file in files {
            let is_same = |other: &KeptFile| other.file.name.is_same_file(file.file.name);
            if !kept.iter().any(is_same) {
                kept.push(file);
            }
        }
        kept.retain(|file| file.largest_epoch >= *first_epoch && !next.names(&file.file));
        kept.sort_by_key(|kept| kept.largest_epoch);
        let mut bytes: u64 = kept.iter().map(|kept| kept.bytes).sum();
        while bytes > self.bytes_max && !kept.is_empty() {
            let dropped = kept.remove(0);
            bytes -= dropped.bytes;
            *first_epoch = (*first_epoch).max(Epoch::new(dropped.largest_epoch.get() + 1));
        }
        kept.retain(|file| file.largest_epoch >= *first_epoch);
        // The position behind all of an opening is good as long as nothing behind it has gone.
        ended.retain(|(_, last)| last.get() + 1 >= first_epoch.get());
    }
}

impl NamedFiles<'_> {
    fn kept(&self, file: EarlierFile, largest_epoch: Epoch) -> KeptFile {
        let path = self.log_path(&file.directory, file.name);
        // What is not there takes no room. A reader says that it is missing.
        let len_bytes = || open(self.disk, &path).map_or(0, |(_, len)| len);
        let bytes = file.valid_bytes.unwrap_or_else(len_bytes);
        KeptFile { file, largest_epoch, bytes }
    }
}

/// Returns the largest epoch of what counts in a file of an earlier generation. Its name was compared with its blocks
/// when the generation after it began, or the file counts as far as its generation does.
pub(super) fn largest_epoch(file: &EarlierFile, epochs: EpochWidth) -> Epoch {
    file.name.largest_epoch(epochs).map_or(file.durable_epoch, |named| named.min(file.durable_epoch))
}

impl Manifest {
    /// Returns whether this file is one of those that the manifest names.
    fn names(&self, file: &EarlierFile) -> bool {
        let name = file.name;
        let is_of_logger = self.loggers.get(name.logger as usize).is_some_and(|logger| {
            name.generation == self.generation && name.sequence >= logger.first_sequence
        });
        is_of_logger || self.earlier.iter().any(|earlier| earlier.name.is_same_file(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::OpeningId;
    use crate::recovery::inspect::new_manifest;

    fn kept(sequence: u64, largest_epoch: u64, bytes: u64) -> KeptFile {
        let largest_epoch = Epoch::new(largest_epoch);
        let file = EarlierFile {
            directory: "log".to_owned(),
            name: LogFileName::open(1, 0, sequence).sealed(largest_epoch, EpochWidth::default()),
            valid_bytes: None,
            durable_epoch: largest_epoch,
            opening: OpeningId(7),
        };
        KeptFile { file, largest_epoch, bytes }
    }

    #[test]
    fn the_latest_files_are_kept_and_the_first_epoch_follows_the_others() {
        let mut changes = KeptChanges::begin(&new_manifest(), 250);
        let files = vec![kept(3, 30, 100), kept(1, 10, 100), kept(2, 20, 100)];
        changes.keep(files.clone(), &new_manifest());
        assert_eq!(changes.history.first_epoch, Epoch::new(11));
        assert_eq!(changes.history.kept, [kept(2, 20, 100), kept(3, 30, 100)]);
        changes.keep(files, &new_manifest());
        assert_eq!(changes.history.kept, [kept(2, 20, 100), kept(3, 30, 100)], "what went is not kept again");
        changes.bytes_max = 0;
        changes.keep(Vec::new(), &new_manifest());
        assert_eq!((changes.history.first_epoch, changes.history.kept.len()), (Epoch::new(31), 0));
    }
}
