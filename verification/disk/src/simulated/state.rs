//! All that a simulated disk holds, the life of its process, and how one disk follows from another. Operations happen one at a time.

mod bytes;
mod inspection;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use super::faults::{FaultState, SyncPause};
use super::file_node::FileNode;
use super::locks::Locks;
use super::names::{Inode, Namespace, ROOT};
use super::random::{Random, mix};

/// The disk as one process sees it.
///
/// Each operation that changes something happens at a *moment*, a number that grows. A sync covers the moments before the one it began at.
pub(super) struct DiskState {
    names: Namespace,
    files: BTreeMap<Inode, Arc<FileNode>>,
    next_inode: Inode,
    moment: u64,
    /// How many open files there are of an inode; those without a name live on until the last one is closed.
    open_files: BTreeMap<Inode, usize>,
    locks: Locks,
    /// Sectors of files that cannot be read.
    spoiled: BTreeSet<(Inode, u64)>,
    is_dead: bool,
    pub(super) faults: FaultState,
}

impl Default for DiskState {
    fn default() -> DiskState {
        DiskState {
            names: Namespace::default(),
            files: BTreeMap::new(),
            next_inode: ROOT + 1,
            moment: 0,
            open_files: BTreeMap::new(),
            locks: Locks::default(),
            spoiled: BTreeSet::new(),
            is_dead: false,
            faults: FaultState::default(),
        }
    }
}

impl DiskState {
    pub(super) fn fork(&self) -> DiskState {
        DiskState {
            names: self.names.clone(),
            files: self.files.clone(),
            next_inode: self.next_inode,
            moment: self.moment,
            spoiled: self.spoiled.clone(),
            ..DiskState::default()
        }
    }

    pub(super) fn crash(&self, seed: u64) -> DiskState {
        // Each file has numbers of its own, so that what happens to it does not hang on the files before it.
        let names = self.names.crash(&mut Random::new(mix(seed)));
        let named = names.named();
        let files = self.files.iter().filter(|(inode, _)| named.contains(inode));
        let files = files.map(|(&inode, file)| {
            let is_unchanged = file.is_synced();
            let crashed = || Arc::new(file.crash(&mut Random::new(mix(seed ^ mix(inode)))));
            (inode, if is_unchanged { file.clone() } else { crashed() })
        });
        let (files, spoiled) = (files.collect(), self.spoiled.clone());
        DiskState { files, names, next_inode: self.next_inode, spoiled, ..DiskState::default() }
    }

    /// Returns the pauses in which calls may hang.
    pub(super) fn end_process(&mut self) -> Vec<Arc<SyncPause>> {
        self.is_dead = true;
        self.faults.pauses()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead
    }

    pub(super) fn check_alive(&self) -> io::Result<()> {
        if self.is_dead { Err(io::Error::other("the process that used this disk has ended")) } else { Ok(()) }
    }

    pub(super) fn is_synced(&self) -> bool {
        self.names.is_synced() && self.files.values().all(|file| file.is_synced())
    }

    pub(super) fn moment(&self) -> u64 {
        self.moment
    }

    pub(super) fn set_moment(&mut self, moment: u64) {
        assert!(moment >= self.moment, "moments only grow");
        self.moment = moment;
    }

    /// Returns the moment of an operation that begins now.
    fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment - 1
    }

    fn new_inode(&mut self) -> Inode {
        self.next_inode += 1;
        self.next_inode - 1
    }

    pub(super) fn close(&mut self, inode: Inode) {
        if let Some(count) = self.open_files.get_mut(&inode) {
            *count -= 1;
            if *count == 0 {
                self.open_files.remove(&inode);
            }
        }
    }

    fn count_open(&mut self, inode: Inode) {
        *self.open_files.entry(inode).or_default() += 1;
    }

    fn file_mut(&mut self, inode: Inode) -> &mut FileNode {
        Arc::make_mut(self.files.get_mut(&inode).expect("an open file is kept"))
    }

    /// Returns how many bytes files can grow by.
    pub(super) fn space_left(&self) -> u64 {
        let Some(space_bytes) = self.faults.space_bytes() else { return u64::MAX };
        let named = self.names.live.named();
        let is_held = |inode: &Inode| named.contains(inode) || self.open_files.contains_key(inode);
        let held = self.files.iter().filter(|(inode, _)| is_held(inode));
        space_bytes.saturating_sub(held.map(|(_, file)| file.live.len_bytes()).sum())
    }

    /// Frees the files that nothing leads to any more.
    fn drop_nameless_files(&mut self) {
        let named = self.names.named();
        self.files.retain(|inode, _| named.contains(inode) || self.open_files.contains_key(inode));
    }
}

/// A simulated file keeps a word for each chunk up to the last one written, so that its length has a bound.
fn check_len(len_bytes: u64) -> io::Result<()> {
    const LEN_BYTES_MAX: u64 = 1 << 36;
    if len_bytes > LEN_BYTES_MAX { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(()) }
}
