//! Operations on names: files and directories are made, found, renamed, removed and locked.

use std::io;
use std::path::Path;
use std::sync::Arc;

use ensilo_disk::{Listed, LockHeld};

use super::{DiskState, check_len};
use crate::simulated::faults::no_space;
use crate::simulated::file_node::FileNode;
use crate::simulated::locks::Locked;
use crate::simulated::names::{ChangeKind, Entry, Inode, Name, Namespace, ROOT, parts};

impl DiskState {
    pub(in crate::simulated) fn create(&mut self, path: &Path, preallocate_bytes: u64) -> io::Result<Inode> {
        self.begin_name_change()?;
        let name = self.names.live.place(path)?;
        if self.names.live.get(&name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        check_len(preallocate_bytes)?;
        if preallocate_bytes > self.space_left() {
            return Err(no_space());
        }
        let inode = self.link_new_file(name, preallocate_bytes);
        self.count_open(inode);
        Ok(inode)
    }

    pub(in crate::simulated) fn open(&mut self, path: &Path) -> io::Result<Inode> {
        self.check_alive()?;
        let inode = self.names.live.lookup_file(path)?;
        self.count_open(inode);
        Ok(inode)
    }

    pub(in crate::simulated) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin_name_change()?;
        let entry = self.names.live.lookup(from)?;
        let (old, new) = (self.names.live.place(from)?, self.names.live.place(to)?);
        if entry.is_dir && to.starts_with(from) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match self.names.live.get(&new) {
            Ok(there) if there.inode == entry.inode => return Ok(()),
            Ok(there) if there.is_dir => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(_) if entry.is_dir => return Err(io::ErrorKind::NotADirectory.into()),
            _ => {}
        }
        let moment = self.tick();
        self.names.change(moment, ChangeKind::Rename { from: old, to: new, entry });
        Ok(())
    }

    pub(in crate::simulated) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.begin_name_change()?;
        let inode = self.names.live.lookup_file(path)?;
        let name = self.names.live.place(path)?;
        let moment = self.tick();
        self.names.change(moment, ChangeKind::Unlink { name, entry: Entry { inode, is_dir: false } });
        Ok(())
    }

    pub(in crate::simulated) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        self.begin_name_change()?;
        let inode = self.names.live.lookup_dir(path)?;
        let name = self.names.live.place(path)?;
        if self.names.live.list(inode).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let moment = self.tick();
        self.names.change(moment, ChangeKind::Unlink { name, entry: Entry { inode, is_dir: true } });
        Ok(())
    }

    pub(in crate::simulated) fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.check_alive()?;
        Ok(self.list_dir(self.names.live.lookup_dir(dir)?))
    }

    pub(in crate::simulated) fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        self.begin_name_change()?;
        let moment = self.tick();
        self.make_dirs(dir, |names, name, entry| names.change(moment, ChangeKind::Link { name, entry }))
    }

    pub(in crate::simulated) fn provide_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.make_dirs(dir, Namespace::link_stored)
    }

    pub(in crate::simulated) fn sync_dir_until(&mut self, dir: &Path, before: u64) -> io::Result<()> {
        let dir = self.names.live.lookup_dir(dir)?;
        self.names.sync(dir, before);
        self.drop_nameless_files();
        Ok(())
    }

    pub(in crate::simulated) fn exists(&self, path: &Path) -> io::Result<bool> {
        self.check_alive()?;
        match self.names.live.lookup(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    pub(in crate::simulated) fn place(&self, path: &Path) -> io::Result<Inode> {
        self.check_alive()?;
        Ok(self.names.live.lookup(path)?.inode)
    }

    pub(in crate::simulated) fn lock(&mut self, path: &Path) -> io::Result<Locked> {
        self.begin_name_change()?;
        let name = self.names.live.place(path)?;
        let (directory, known) = (name.dir, self.lock_file(&name, path)?);
        self.locks.check_free(Locked { directory, file: known })?;
        let file = known.unwrap_or_else(|| self.link_new_file(name, 0));
        let locked = Locked { directory, file: Some(file) };
        self.locks.take(locked);
        self.count_open(file);
        Ok(locked)
    }

    pub(in crate::simulated) fn lock_shared(&mut self, path: &Path) -> io::Result<Locked> {
        self.check_alive()?;
        let name = self.names.live.place(path)?;
        let locked = Locked { directory: name.dir, file: self.lock_file(&name, path)? };
        self.locks.share(locked)?;
        locked.file.into_iter().for_each(|file| self.count_open(file));
        Ok(locked)
    }

    pub(in crate::simulated) fn lock_holder(&self, path: &Path) -> Option<LockHeld> {
        let name = self.names.live.place(path).ok()?;
        let file = self.lock_file(&name, path).ok()?;
        self.locks.holder(Locked { directory: name.dir, file })
    }

    pub(in crate::simulated) fn unlock(&mut self, locked: Locked) {
        self.locks.release(locked);
        locked.file.into_iter().for_each(|file| self.close(file));
    }

    /// Returns the file of this name, if it is there.
    fn lock_file(&self, name: &Name, path: &Path) -> io::Result<Option<Inode>> {
        self.names.live.get(name).is_ok().then(|| self.names.live.lookup_file(path)).transpose()
    }

    fn begin_name_change(&mut self) -> io::Result<()> {
        self.check_alive()?;
        self.faults.count_name_change()
    }

    fn link_new_file(&mut self, name: Name, len_bytes: u64) -> Inode {
        let (inode, moment) = (self.new_inode(), self.tick());
        let mut file = FileNode::default();
        if len_bytes > 0 {
            file.set_len(moment, len_bytes);
        }
        self.files.insert(inode, Arc::new(file));
        self.names.change(moment, ChangeKind::Link { name, entry: Entry { inode, is_dir: false } });
        inode
    }

    /// Links the directories of a path that are missing by `link`.
    fn make_dirs(
        &mut self,
        path: &Path,
        mut link: impl FnMut(&mut Namespace, Name, Entry),
    ) -> io::Result<()> {
        let mut dir = ROOT;
        for part in parts(path)? {
            let name = Name { dir, name: part.into() };
            dir = match self.names.live.get(&name) {
                Ok(Entry { inode, is_dir: true }) => inode,
                Ok(Entry { is_dir: false, .. }) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(_) => {
                    let inode = self.new_inode();
                    link(&mut self.names, name, Entry { inode, is_dir: true });
                    inode
                }
            };
        }
        Ok(())
    }

    fn list_dir(&self, dir: Inode) -> Vec<Listed> {
        let entries = self.names.live.list(dir);
        let len_bytes = |inode| self.files.get(&inode).map_or(0, |file| file.live.len_bytes());
        let listed = entries.map(|(name, entry)| {
            let name = name.to_string();
            if entry.is_dir { Listed::directory(name) } else { Listed::file(name, len_bytes(entry.inode)) }
        });
        listed.collect()
    }
}
