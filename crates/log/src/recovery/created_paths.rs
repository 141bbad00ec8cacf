//! What an opening or a repair makes before its manifest is in place, and takes back if it fails.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::Disk;

use super::error::OpenError;
use super::file_access::{exists, make_directory, sync_dir};

/// Files and directories in the order in which they were made. Dropping this removes them, the last one
/// first, unless they were kept. One that cannot be removed stays, and so does all that was made before it:
/// that may be needed to find out which database it belongs to.
#[derive(Debug, Default)]
pub(super) struct CreatedPaths {
    /// `None` if all is kept.
    disk: Option<Arc<dyn Disk>>,
    paths: Vec<CreatedPath>,
}

#[derive(Debug)]
struct CreatedPath {
    path: PathBuf,
    is_directory: bool,
}

impl CreatedPaths {
    pub(super) fn new(disk: &Arc<dyn Disk>) -> CreatedPaths {
        CreatedPaths { disk: Some(Arc::clone(disk)), paths: Vec::new() }
    }

    /// Notes a file that is about to be made, or was just made.
    pub(super) fn file(&mut self, path: PathBuf) {
        self.paths.push(CreatedPath { path, is_directory: false });
    }

    /// Creates a directory and those above it that are missing, and syncs their names.
    pub(super) fn create_directory(&mut self, disk: &dyn Disk, directory: &Path) -> Result<(), OpenError> {
        let mut missing = Vec::new();
        for path in directory.ancestors().filter(|path| !path.as_os_str().is_empty()) {
            if exists(disk, path)? {
                break;
            }
            missing.push(CreatedPath { path: path.to_path_buf(), is_directory: true });
        }
        self.paths.extend(missing.into_iter().rev());
        make_directory(disk, directory)
    }

    /// Lets a directory stay that another opening has locked.
    pub(super) fn leave_directory(&mut self, directory: &Path) {
        self.paths.retain(|created| !(created.is_directory && created.path == directory));
    }

    /// Lets all stay that was made.
    pub(super) fn keep(&mut self) {
        self.paths.clear();
    }

    fn take_back(&mut self, disk: &dyn Disk) -> Result<(), OpenError> {
        while let Some(CreatedPath { path, is_directory }) = self.paths.pop() {
            let path = &path;
            if !exists(disk, path)? {
                continue;
            }
            if is_directory {
                disk.remove_dir(path).map_err(OpenError::io("remove", path))?;
                continue;
            }
            disk.remove(path).map_err(OpenError::io("remove", path))?;
            // What was made before is not to be gone after a crash that brings this one back.
            let directory = path.parent().unwrap_or(path);
            sync_dir(disk, directory)?;
        }
        Ok(())
    }
}

impl Drop for CreatedPaths {
    fn drop(&mut self) {
        if let Some(disk) = self.disk.take() {
            // What made all of it go is reported already.
            let _ = self.take_back(&*disk);
        }
    }
}
