//! Reading everything, to report what is damaged.

use std::collections::BTreeSet;
use std::path::Path;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::chain::Depth;
use super::error::{Damage, OpenError, ReplayError};
use super::inspect::{check_is_database, missing_manifest, take_shared_lock};
use super::manifest_file::read_manifest;
use super::progress::Progress;
use super::replay::{Replay, Replayed, replay};
use super::survey::{before, survey};
use crate::format::{Manifest, Write};

/// What was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verified {
    /// What was read and found in order.
    pub replayed: Replayed,
    /// How many files were read.
    pub files: u64,
    /// How many damages were reported.
    pub damages: u64,
    /// The last epoch of which an opening would bring anything back; `None` if there is damage.
    pub durable_epoch: Option<Epoch>,
    /// The first and the last of the epochs before that one of which nothing counts: of the time between the last two openings, or given
    /// up by a repair. `None` if there are none, or that is not known any more.
    pub void: Option<(Epoch, Epoch)>,
}

/// Reads all files of the database in `dir` that count, and reports damage, the first of each file. Changes nothing; nobody can open
/// the database meanwhile, if it was ever opened where it lies. Needs no right to write.
///
/// # Errors
/// [`OpenError`] when there is no database, another process has it open, or the system fails. Damage is no error here.
pub fn verify(disk: &dyn Disk, dir: &Path, report: &mut dyn FnMut(Damage)) -> Result<Verified, OpenError> {
    check_is_database(disk, dir)?;
    let _lock = take_shared_lock(disk, dir)?;
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
    if verified.damages == 0 {
        verified.durable_epoch = Some(manifest.counted_to(found.durable_epoch));
        verified.void = void_epochs(&manifest, found.durable_epoch);
    }
    Ok(verified)
}

/// The epochs between the generations before and the present one, if something of that one counts.
fn void_epochs(manifest: &Manifest, durable_epoch: Epoch) -> Option<(Epoch, Epoch)> {
    let (first, last) = (Epoch::new(manifest.durable_epoch.get() + 1), before(manifest.first_epoch));
    (manifest.generation > 1 && durable_epoch > last && first <= last).then_some((first, last))
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
