//! Which locks of the disk are held.

use std::collections::BTreeMap;
use std::io;

use ensilo_disk::LockHeld;

use super::names::Inode;

/// What is locked: a lock file, and its directory, which is the same if the file is removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locked {
    pub(super) directory: Inode,
    /// `None` for a share of a directory without the file.
    pub(super) file: Option<Inode>,
}

impl Locked {
    fn all(self) -> impl Iterator<Item = Inode> {
        [Some(self.directory), self.file].into_iter().flatten()
    }
}

/// How a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    ByOne,
    /// By so many holders of a share.
    Shared(usize),
}

impl Held {
    fn refusal(self) -> io::Error {
        LockHeld::by((self == Held::ByOne).then(std::process::id)).into()
    }
}

/// The locks that are held, each by its inode.
#[derive(Debug, Default)]
pub(super) struct Locks {
    held: BTreeMap<Inode, Held>,
}

impl Locks {
    /// # Errors
    /// `WouldBlock` where any of it is held or shared.
    pub(super) fn check_free(&self, locked: Locked) -> io::Result<()> {
        match locked.all().find_map(|inode| self.held.get(&inode)) {
            Some(held) => Err(held.refusal()),
            None => Ok(()),
        }
    }

    /// Returns who has all of it.
    pub(super) fn holder(&self, locked: Locked) -> Option<LockHeld> {
        let is_held = locked.all().any(|inode| self.held.get(&inode) == Some(&Held::ByOne));
        is_held.then(|| LockHeld::by(Some(std::process::id())))
    }

    /// Takes what is free.
    pub(super) fn take(&mut self, locked: Locked) {
        self.held.extend(locked.all().map(|inode| (inode, Held::ByOne)));
    }

    /// Takes a share.
    ///
    /// # Errors
    /// `WouldBlock` where any of it is held and not shared.
    pub(super) fn share(&mut self, locked: Locked) -> io::Result<()> {
        if let Some(held) =
            locked.all().find_map(|inode| self.held.get(&inode).filter(|&&held| held == Held::ByOne))
        {
            return Err(held.refusal());
        }
        for inode in locked.all() {
            if let Held::Shared(holders) = self.held.entry(inode).or_insert(Held::Shared(0)) {
                *holders += 1;
            }
        }
        Ok(())
    }

    /// Gives back what was taken, or a share.
    pub(super) fn release(&mut self, locked: Locked) {
        for inode in locked.all() {
            match self.held.get_mut(&inode) {
                Some(Held::Shared(holders)) if *holders > 1 => *holders -= 1,
                _ => _ = self.held.remove(&inode),
            }
        }
    }
}
