//! Where a path leads, whether or not anything is there: two paths are compared by the places of directories,
//! not by how they are spelled.

use std::io;
use std::path::{Component, Path, PathBuf};

use ensilo_disk::{Disk, Place};

use super::error::OpenError;
use super::file_access::exists;
use super::file_names::{MANIFEST, MANIFEST_COPY};

/// Where a path leads.
#[derive(Debug)]
pub(super) struct Location {
    /// The directories that it lies in, from the nearest that is there, which may be the one that the path
    /// leads to, out to the root.
    pub(super) around: Vec<(PathBuf, Place)>,
    /// The rest of the path within the first of them, which is not there.
    missing: PathBuf,
}

impl Location {
    /// Finds the directories around a path.
    pub(super) fn of(disk: &dyn Disk, path: &Path) -> Result<Location, OpenError> {
        find(disk, path).map_err(OpenError::io("find", path))
    }

    /// Returns whether the path leads to this directory, one of those around it.
    pub(super) fn is_of(&self, directory: &Path) -> bool {
        self.missing.as_os_str().is_empty() && self.around[0].0 == directory
    }

    /// Returns whether it is `outer`, or lies within it.
    pub(super) fn lies_within(&self, outer: &Location) -> bool {
        let nearest = outer.around[0].1;
        match outer.missing.as_os_str().is_empty() {
            true => self.around.iter().any(|(_, place)| *place == nearest),
            false => self.around[0].1 == nearest && self.missing.starts_with(&outer.missing),
        }
    }

    /// Returns whether both lead to the same place.
    pub(super) fn is_same(&self, other: &Location) -> bool {
        self.lies_within(other) && other.lies_within(self)
    }

    /// Returns the nearest directory around that holds a database, unless the directory of the database `own`
    /// is nearer.
    pub(super) fn other_database(
        &self,
        disk: &dyn Disk,
        own: Option<&Location>,
    ) -> Result<Option<&Path>, OpenError> {
        let own = own.filter(|own| self.lies_within(own)).map(|own| own.around[0].1);
        for (directory, _) in self.around.iter().take_while(|(_, place)| Some(*place) != own) {
            for name in [MANIFEST, MANIFEST_COPY] {
                let path = directory.join(name);
                if exists(disk, &path)? {
                    return Ok(Some(directory));
                }
            }
        }
        Ok(None)
    }
}

/// Returns the absolute path, without `..` unless what is left then leads to another place.
pub(super) fn absolute_path(disk: &dyn Disk, path: &Path) -> Result<PathBuf, OpenError> {
    let path = std::path::absolute(path).map_err(OpenError::io("find", path))?;
    let mut direct = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => _ = direct.pop(),
            _ => direct.push(component),
        }
    }
    if direct == path || Location::of(disk, &direct)?.is_same(&Location::of(disk, &path)?) {
        return Ok(direct);
    }
    Ok(path)
}

fn find(disk: &dyn Disk, path: &Path) -> io::Result<Location> {
    let (mut directory, mut missing) = (PathBuf::new(), PathBuf::new());
    for component in std::path::absolute(path)?.components() {
        let next = directory.join(component);
        match component {
            // What is missing has no links in it.
            Component::ParentDir if missing.pop() => {}
            // Only a directory has one that it lies in.
            _ if missing.as_os_str().is_empty()
                && disk.exists(&next)?
                && disk.exists(&next.join(".."))? =>
            {
                directory = next;
            }
            _ => missing.push(component),
        }
    }
    let mut around = vec![(directory.clone(), disk.place(&directory)?)];
    while let Some(outer) = outside(disk, &around)? {
        around.push(outer);
    }
    Ok(Location { around, missing })
}

/// Returns the directory that the last of these lies in, `None` for the root. Behind a link it is another one
/// than the path says.
fn outside(disk: &dyn Disk, around: &[(PathBuf, Place)]) -> io::Result<Option<(PathBuf, Place)>> {
    let Some((directory, inner)) = around.last() else { return Ok(None) };
    let up = directory.join("..");
    let place = disk.place(&up)?;
    if place == *inner {
        return Ok(None);
    }
    let parent = directory.parent().map(Path::to_path_buf);
    let spelled = parent.filter(|parent| disk.place(parent).is_ok_and(|found| found == place));
    Ok(Some((spelled.unwrap_or(up), place)))
}
