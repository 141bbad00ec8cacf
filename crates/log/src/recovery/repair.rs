//! Giving up what damage has made unreachable: only on request, and with a copy of everything as it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::chain::Depth;
use super::copy::{copy_file, free_name};
use super::database_files::list_log_files;
use super::error::{Consequence, Damage, OpenError};
use super::generation::create_directory;
use super::inspect::{Found, GenerationOptions, missing_manifest, take_lock};
use super::manifest_file::{MANIFEST, read_manifest, spelled_path};
use super::progress::Progress;
use super::replay::replay;
use super::survey::{Survey, survey};
use super::verify::Nowhere;
use crate::format::Manifest;

/// What a repair has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Everything up to this epoch is there, and nothing after it.
    pub kept_to: Epoch,
    /// Everything up to this epoch is known to have been stored: what lies between is given up. More may have been stored.
    pub stored_to: Epoch,
    /// What was damaged.
    pub damages: Vec<Damage>,
    /// A directory with all files as they were.
    pub copy: PathBuf,
}

/// Gives up all transactions of the damaged database in `dir` after an epoch, so that it can be opened again. All files are first copied
/// to `before-repair-<n>` in `dir`.
///
/// # Errors
/// [`OpenError::Refused`] when nothing is damaged, or not even everything up to that epoch is there; it says up to which epoch it is.
/// The other errors as in [`crate::inspect`]. The database is as it was, but for the copy.
pub fn repair(disk: &Arc<dyn Disk>, dir: &Path, accept_loss_after: Epoch) -> Result<Repaired, OpenError> {
    if !disk.exists(dir).map_err(OpenError::io("look for", dir))? {
        return Err(OpenError::NotADatabase { directory: dir.to_path_buf(), holds: None });
    }
    let lock = take_lock(&**disk, dir)?;
    let manifest = read_manifest(&**disk, dir)?.ok_or_else(|| missing_manifest(&**disk, dir))?;
    let found = survey(&**disk, dir, &manifest, Depth::Full)?;
    let reachable = check_request(&found, accept_loss_after)?;
    let files = found.replay_files(dir, &manifest, accept_loss_after);
    replay(&**disk, &files, &Nowhere, 1, &Progress::new())?;
    let copy = copy_all(&**disk, dir, &manifest)?;
    let repaired = Repaired {
        kept_to: accept_loss_after.min(reachable),
        stored_to: found.stored_epoch(&manifest),
        damages: found.damages.clone(),
        copy,
    };
    let options = GenerationOptions {
        directories: manifest.loggers.iter().map(|logger| spelled_path(dir, &logger.directory)).collect(),
        file_bytes: 0,
        first_epoch: Epoch::new(found.largest_epoch.max(repaired.stored_to).get() + 1),
    };
    let found = Found::new(Arc::clone(disk), dir.to_path_buf(), lock, manifest, found);
    found.generation_after(&options, repaired.kept_to)?;
    Ok(repaired)
}

/// The epoch up to which everything is there, if a repair up to `kept_to` makes sense.
fn check_request(found: &Survey, kept_to: Epoch) -> Result<Epoch, OpenError> {
    let worst =
        found.damages.iter().map(|damage| (damage.consequence, damage)).max_by_key(|(worst, _)| *worst);
    match worst {
        None => Err(OpenError::Refused(
            "nothing is damaged as far as repair can tell, and nothing was given up".to_owned(),
        )),
        Some((Consequence::After(reachable), _)) if kept_to > reachable => Err(OpenError::Refused(format!(
            "transactions after epoch {reachable} are lost already: accept the loss of everything after epoch {reachable}, or after an earlier one"
        ))),
        Some((Consequence::After(reachable), _)) => Ok(reachable),
        Some((_, damage)) => Err(OpenError::Damaged(Box::new(damage.clone()))),
    }
}

/// Copies all files of a database within its directory.
fn copy_all(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<PathBuf, OpenError> {
    let target = free_name(disk, dir, "before-repair-")?;
    let make =
        |directory: &Path| create_directory(disk, directory).map_err(OpenError::io("create", directory));
    make(&target)?;
    copy_file(disk, &dir.join(MANIFEST), &target.join(MANIFEST), None, &mut |_| Ok(()))?;
    for (number, spelled) in manifest.log_directories().into_iter().enumerate() {
        let from = spelled_path(dir, spelled);
        if !disk.exists(&from).map_err(OpenError::io("look for", &from))? {
            continue;
        }
        // Those that lie elsewhere get a name here.
        let to = if Path::new(spelled).is_absolute() {
            target.join(format!("elsewhere-{number}"))
        } else {
            target.join(spelled)
        };
        make(&to)?;
        for name in list_log_files(disk, &from)? {
            let name = name.to_string();
            copy_file(disk, &from.join(&name), &to.join(&name), None, &mut |_| Ok(()))?;
        }
        disk.sync_dir(&to).map_err(OpenError::io("sync", &to))?;
    }
    if let Some(checkpoint) = &manifest.checkpoint {
        for part in &checkpoint.parts {
            let to = target.join(&part.path);
            if let Some(directory) = to.parent() {
                make(directory)?;
            }
            copy_file(disk, &dir.join(&part.path), &to, None, &mut |_| Ok(()))?;
            if let Some(directory) = to.parent() {
                disk.sync_dir(directory).map_err(OpenError::io("sync", directory))?;
            }
        }
    }
    disk.sync_dir(&target).map_err(OpenError::io("sync", &target))?;
    Ok(target)
}
