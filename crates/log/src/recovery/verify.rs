//! Reading everything, to report what is damaged.

use std::collections::BTreeSet;
use std::path::Path;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::chain::Depth;
use super::error::{Damage, OpenError, ReplayError};
use super::inspect::{missing_manifest, take_lock};
use super::manifest_file::read_manifest;
use super::progress::Progress;
use super::replay::{Replay, Replayed, replay};
use super::survey::survey;
use crate::format::Write;

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// What was read and found in order.
    pub replayed: Replayed,
    /// How many files were read.
    pub files: u64,
    /// How many damages were reported.
    pub damages: u64,
    /// What an opening would bring back; `None` if there is damage.
    pub durable_epoch: Option<Epoch>,
}

/// Reads all files of the database in `dir` that count, and reports damage, the first of each file. Changes nothing, but that
/// the lock is held for as long.
///
/// # Errors
/// [`OpenError`] when there is no database, another process has it open, or the system fails. Damage is no error here.
pub fn verify(disk: &dyn Disk, dir: &Path, report: &mut dyn FnMut(Damage)) -> Result<Verified, OpenError> {
    if !disk.exists(dir).map_err(OpenError::io("look for", dir))? {
        return Err(OpenError::NotADatabase { directory: dir.to_path_buf(), holds: None });
    }
    let _lock = take_lock(disk, dir)?;
    verify_locked(disk, dir, report)
}

/// Verifies a database that the caller has locked.
pub(super) fn verify_locked(
    disk: &dyn Disk,
    dir: &Path,
    report: &mut dyn FnMut(Damage),
) -> Result<Verified, OpenError> {
    let mut verified = Verified::default();
    let mut report = |verified: &mut Verified, damage| {
        verified.damages += 1;
        report(damage);
    };
    let manifest = match read_manifest(disk, dir) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Err(missing_manifest(disk, dir)),
        Err(OpenError::Damaged(damage)) => {
            report(&mut verified, *damage);
            return Ok(verified);
        }
        Err(error) => return Err(error),
    };
    let found = survey(disk, dir, &manifest, Depth::Full)?;
    let mut reported = BTreeSet::new();
    for damage in &found.damages {
        reported.insert(damage.file.clone());
        report(&mut verified, damage.clone());
    }
    for file in found.replay_files(dir, &manifest, found.durable_epoch) {
        if reported.contains(&file.path) {
            continue;
        }
        verified.files += 1;
        match replay(disk, std::slice::from_ref(&file), &Nowhere, 1, &Progress::new()) {
            Ok(replayed) => verified.replayed.add(&replayed),
            Err(OpenError::Damaged(damage)) => report(&mut verified, *damage),
            Err(error) => return Err(error),
        }
    }
    verified.durable_epoch = (verified.damages == 0).then_some(found.durable_epoch);
    Ok(verified)
}

/// Takes everything and keeps nothing.
#[derive(Debug)]
pub(super) struct Nowhere;

impl Replay for Nowhere {
    type Worker<'r> = ();

    fn worker(&self) {}

    fn apply(&self, (): &mut (), _: &[Write<'_>]) -> Result<(), ReplayError> {
        Ok(())
    }
}
