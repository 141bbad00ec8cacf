//! What tests look at and damage, whether or not the process of the disk has ended.

use std::io;
use std::path::Path;

use super::DiskState;
use crate::simulated::file_node::FileNode;
use crate::simulated::names::{Inode, ROOT};

impl DiskState {
    /// All files with their paths, in order of the paths.
    pub(in crate::simulated) fn walk(&self, each: &mut impl FnMut(&Path, u64)) {
        self.walk_dir(ROOT, Path::new(""), each);
    }

    fn walk_dir(&self, dir: Inode, path: &Path, each: &mut impl FnMut(&Path, u64)) {
        for (name, entry) in self.names.live.list(dir) {
            let path = path.join(name);
            if entry.is_dir {
                self.walk_dir(entry.inode, &path, each);
            } else {
                each(&path, self.files[&entry.inode].live.len_bytes());
            }
        }
    }

    pub(in crate::simulated) fn find(&self, path: &Path) -> io::Result<&FileNode> {
        Ok(&self.files[&self.names.live.lookup_file(path)?])
    }

    pub(in crate::simulated) fn find_mut(&mut self, path: &Path) -> io::Result<&mut FileNode> {
        let inode = self.names.live.lookup_file(path)?;
        Ok(self.file_mut(inode))
    }

    pub(in crate::simulated) fn spoil(&mut self, path: &Path, sector: u64) -> io::Result<()> {
        let inode = self.names.live.lookup_file(path)?;
        self.spoiled.insert((inode, sector));
        Ok(())
    }

    /// Takes away a file's name, with all that its directory had unsynced.
    pub(in crate::simulated) fn delete(&mut self, path: &Path) -> io::Result<()> {
        self.names.live.lookup_file(path)?;
        let name = self.names.live.place(path)?;
        self.names.sync(name.dir, u64::MAX);
        self.names.unlink_stored(&name);
        self.drop_nameless_files();
        Ok(())
    }
}
