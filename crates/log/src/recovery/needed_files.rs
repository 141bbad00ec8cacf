//! Which files a replay reads, and which the next generation needs.

use std::path::Path;

use ensilo_epoch::Epoch;

use super::chain::Chain;
use super::change_history::largest_epoch;
use super::corruption::DataLoss;
use super::earlier::EarlierLogFile;
use super::log_file::LogFile;
use super::replay_file::{Extent, ReplayFile, loss_of, part_identity};
use super::survey::Survey;
use crate::format::{CheckpointPart, EarlierFile, KeptFile, Manifest};

/// What the names of sealed files are worth that no survey has looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SealedNames {
    /// A replay has compared them with the files.
    Proved,
    /// Nothing.
    Hints,
}

impl Survey {
    /// Returns what a replay up to `last_epoch` reads: the checkpoint, then the log, oldest file first.
    pub(super) fn replay_files(&self, dir: &Path, manifest: &Manifest, last_epoch: Epoch) -> Vec<ReplayFile> {
        let begin_epoch =
            manifest.checkpoint.as_ref().map_or(Epoch::default(), |checkpoint| checkpoint.begin_epoch);
        let mut files = Vec::new();
        if let Some(checkpoint) = &manifest.checkpoint {
            files.extend(checkpoint.parts.iter().map(|part| {
                let CheckpointPart { bytes, records, digest, .. } = *part;
                ReplayFile {
                    path: dir.join(&part.path),
                    identity: part_identity(manifest, checkpoint.id, part),
                    extent: Extent::Part { bytes, records, digest },
                    first_epoch: Epoch::default(),
                    last_epoch,
                    unproved_name: None,
                    bytes,
                    loss: loss_of(part),
                }
            }));
        }
        // The names of files of earlier generations stand in the manifest.
        let is_unproved = |file: &LogFile, extent| {
            extent == Extent::Seal && file.name.generation == manifest.generation && file.scan.is_none()
        };
        let mut log: Vec<(&LogFile, Extent, Epoch)> = Vec::new();
        for earlier in &self.earlier {
            let Some(usable) = earlier.usable() else { continue };
            let extent = usable.valid_bytes.map_or(Extent::Seal, Extent::Bytes);
            log.push((&earlier.file, extent, usable.durable_epoch));
        }
        log.extend(
            self.chains.iter().flat_map(Chain::extents).map(|(file, extent)| (file, extent, last_epoch)),
        );
        log.sort_by_key(|(file, ..)| (file.name.generation, file.name.sequence, file.name.logger));
        files.extend(log.into_iter().map(|(file, extent, durable_epoch)| ReplayFile {
            path: file.path.clone(),
            identity: file.identity,
            extent,
            first_epoch: begin_epoch,
            last_epoch: durable_epoch.min(last_epoch),
            unproved_name: is_unproved(file, extent).then_some(file.name),
            bytes: match extent {
                Extent::Bytes(bytes) => bytes,
                Extent::Seal | Extent::Part { .. } => file.bytes,
            },
            loss: DataLoss::Everything,
        }));
        files
    }

    /// Returns the log files that the next generation needs, if nothing after `last_epoch` counts. `names`
    /// says whether the names of sealed files were compared with all that the files hold.
    pub(super) fn earlier_files(
        &self,
        manifest: &Manifest,
        last_epoch: Epoch,
        names: SealedNames,
    ) -> Vec<EarlierFile> {
        let begin_epoch =
            manifest.checkpoint.as_ref().map_or(Epoch::default(), |checkpoint| checkpoint.begin_epoch);
        // Every entry is of a later epoch than 0: a file without any is not needed.
        let begin_epoch = begin_epoch.max(Epoch::new(1));
        let kept = self.usable_earlier(last_epoch);
        let chains = self.chain_files(manifest, last_epoch);
        let new = chains.filter(|(file, _)| file.last_entry(names) >= begin_epoch).map(|(_, entry)| entry);
        kept.chain(new).collect()
    }

    /// Returns all log files that the manifest names and of which something counts, with the last epochs of their
    /// entries, if nothing after `last_epoch` counts.
    pub(super) fn files_with_changes(
        &self,
        manifest: &Manifest,
        last_epoch: Epoch,
        names: SealedNames,
    ) -> Vec<KeptFile> {
        let earlier = self.usable_earlier(last_epoch).map(|file| {
            let largest_epoch = largest_epoch(&file, manifest.epochs_of(file.name.generation));
            let found = self.earlier.iter().find(|earlier| earlier.entry.name == file.name);
            let len_bytes = found.map_or(0, |earlier| earlier.file.bytes);
            KeptFile { bytes: file.valid_bytes.unwrap_or(len_bytes), file, largest_epoch }
        });
        let chains = self.chain_files(manifest, last_epoch).map(|(file, entry)| KeptFile {
            largest_epoch: file.last_entry(names).min(last_epoch),
            bytes: entry.valid_bytes.unwrap_or(file.bytes),
            file: entry,
        });
        earlier.chain(chains).collect()
    }

    fn usable_earlier(&self, last_epoch: Epoch) -> impl Iterator<Item = EarlierFile> {
        self.earlier
            .iter()
            .filter_map(EarlierLogFile::usable)
            .map(move |usable| EarlierFile { durable_epoch: usable.durable_epoch.min(last_epoch), ..usable })
    }

    /// Returns the files of the last generation as those of an earlier one.
    fn chain_files(
        &self,
        manifest: &Manifest,
        last_epoch: Epoch,
    ) -> impl Iterator<Item = (&LogFile, EarlierFile)> {
        let opening = manifest.log_opening();
        self.chains.iter().flat_map(Chain::extents).map(move |(file, extent)| {
            let entry = EarlierFile {
                directory: file.directory.clone(),
                name: file.name,
                valid_bytes: match extent {
                    Extent::Bytes(bytes) => Some(bytes),
                    Extent::Seal | Extent::Part { .. } => None,
                },
                durable_epoch: last_epoch,
                opening,
            };
            (file, entry)
        })
    }
}

impl LogFile {
    /// No entry of the file has a later epoch. A name alone proves nothing.
    fn last_entry(&self, names: SealedNames) -> Epoch {
        match (&self.scan, self.named_epoch()) {
            (Some(scan), _) => scan.last_entry,
            (None, Some(named)) if names == SealedNames::Proved => named,
            _ => Epoch::new(u64::MAX),
        }
    }
}

impl Chain {
    /// Returns the files that have something to replay, and how far.
    pub(super) fn extents(&self) -> impl Iterator<Item = (&LogFile, Extent)> {
        let reached = self.reached;
        self.files.iter().enumerate().filter_map(move |(at, file)| {
            let (last, end) = reached?;
            let extent = match &file.scan {
                _ if at > last => return None,
                _ if at == last => Extent::Bytes(end),
                Some(scan) => Extent::Bytes(scan.valid_end),
                None => Extent::Seal,
            };
            Some((file, extent))
        })
    }
}
