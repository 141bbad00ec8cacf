//! All that a simulated disk holds, and the operations on it, one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use ensilo_disk::{Listed, LockHeld};

use super::faults::{FaultState, Gate, io_error, no_space};
use super::file_node::FileNode;
use super::names::{ChangeKind, Entry, Inode, Name, Namespace, ROOT, parts};
use super::random::{Random, mix};

/// What is spoiled at once.
const SECTOR_BYTES: u64 = 4096;

/// The disk as one process sees it.
///
/// Each operation that changes something happens at a *moment*, a number that grows. A sync covers the moments before the one it began at.
pub(super) struct State {
    names: Namespace,
    files: BTreeMap<Inode, Arc<FileNode>>,
    next_inode: Inode,
    moment: u64,
    /// How many open files there are of an inode; those without a name live on until the last one is closed.
    open_files: BTreeMap<Inode, usize>,
    locks: BTreeMap<Inode, Held>,
    /// Sectors of files that cannot be read.
    spoiled: BTreeSet<(Inode, u64)>,
    is_dead: bool,
    pub(super) faults: FaultState,
}

/// What is locked: a lock file, and its directory, which is the same if the file is removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Locked {
    directory: Inode,
    /// `None` for a share of a directory without the file.
    file: Option<Inode>,
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
    /// By so many who share it.
    Shared(usize),
}

/// A sync on its way.
pub(super) struct BegunSync {
    /// What was done before this moment is covered.
    pub(super) moment: u64,
    pub(super) fails: bool,
    pub(super) gate: Option<Arc<Gate>>,
}

impl Held {
    fn refusal(self) -> io::Error {
        LockHeld::by((self == Held::ByOne).then(std::process::id)).into()
    }
}

impl Default for State {
    fn default() -> State {
        State {
            names: Namespace::default(),
            files: BTreeMap::new(),
            next_inode: ROOT + 1,
            moment: 0,
            open_files: BTreeMap::new(),
            locks: BTreeMap::new(),
            spoiled: BTreeSet::new(),
            is_dead: false,
            faults: FaultState::default(),
        }
    }
}

/// The life of the disk and of its process.
impl State {
    pub(super) fn fork(&self) -> State {
        State {
            names: self.names.clone(),
            files: self.files.clone(),
            next_inode: self.next_inode,
            moment: self.moment,
            spoiled: self.spoiled.clone(),
            ..State::default()
        }
    }

    pub(super) fn crash(&self, seed: u64) -> State {
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
        State { files, names, next_inode: self.next_inode, spoiled, ..State::default() }
    }

    /// Gives the gates at which calls may hang.
    pub(super) fn end_process(&mut self) -> Vec<Arc<Gate>> {
        self.is_dead = true;
        self.faults.gates()
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

    /// The moment of an operation that begins now.
    fn tick(&mut self) -> u64 {
        self.moment += 1;
        self.moment - 1
    }
}

/// Names.
impl State {
    pub(super) fn create(&mut self, path: &Path, preallocate_bytes: u64) -> io::Result<Inode> {
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

    pub(super) fn open(&mut self, path: &Path) -> io::Result<Inode> {
        self.check_alive()?;
        let inode = self.names.live.lookup_file(path)?;
        self.count_open(inode);
        Ok(inode)
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
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

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.begin_name_change()?;
        let inode = self.names.live.lookup_file(path)?;
        let name = self.names.live.place(path)?;
        let moment = self.tick();
        self.names.change(moment, ChangeKind::Unlink { name, entry: Entry { inode, is_dir: false } });
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
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

    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<Listed>> {
        self.check_alive()?;
        Ok(self.list_dir(self.names.live.lookup_dir(dir)?))
    }

    pub(super) fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        self.begin_name_change()?;
        let moment = self.tick();
        self.make_dirs(dir, |names, name, entry| names.change(moment, ChangeKind::Link { name, entry }))
    }

    pub(super) fn provide_dir(&mut self, dir: &Path) -> io::Result<()> {
        self.make_dirs(dir, Namespace::link_stored)
    }

    pub(super) fn sync_dir_until(&mut self, dir: &Path, before: u64) -> io::Result<()> {
        let dir = self.names.live.lookup_dir(dir)?;
        self.names.sync(dir, before);
        self.drop_nameless_files();
        Ok(())
    }

    pub(super) fn exists(&self, path: &Path) -> io::Result<bool> {
        self.check_alive()?;
        match self.names.live.lookup(path) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn place(&self, path: &Path) -> io::Result<Inode> {
        self.check_alive()?;
        Ok(self.names.live.lookup(path)?.inode)
    }

    pub(super) fn lock(&mut self, path: &Path) -> io::Result<Locked> {
        self.begin_name_change()?;
        let name = self.names.live.place(path)?;
        let directory = name.dir;
        let known =
            self.names.live.get(&name).is_ok().then(|| self.names.live.lookup_file(path)).transpose()?;
        if let Some(held) = [Some(directory), known].into_iter().flatten().find_map(|at| self.locks.get(&at))
        {
            return Err(held.refusal());
        }
        let file = known.unwrap_or_else(|| self.link_new_file(name, 0));
        self.locks.extend([(directory, Held::ByOne), (file, Held::ByOne)]);
        self.count_open(file);
        Ok(Locked { directory, file: Some(file) })
    }

    pub(super) fn lock_shared(&mut self, path: &Path) -> io::Result<Locked> {
        self.check_alive()?;
        let name = self.names.live.place(path)?;
        let file =
            self.names.live.get(&name).is_ok().then(|| self.names.live.lookup_file(path)).transpose()?;
        let locked = Locked { directory: name.dir, file };
        for inode in locked.all() {
            if let Some(held @ Held::ByOne) = self.locks.get(&inode) {
                return Err(held.refusal());
            }
        }
        for inode in locked.all() {
            if let Held::Shared(holders) = self.locks.entry(inode).or_insert(Held::Shared(0)) {
                *holders += 1;
            }
        }
        file.into_iter().for_each(|file| self.count_open(file));
        Ok(locked)
    }

    pub(super) fn unlock(&mut self, locked: Locked) {
        for inode in locked.all() {
            match self.locks.get_mut(&inode) {
                Some(Held::Shared(holders)) if *holders > 1 => *holders -= 1,
                _ => _ = self.locks.remove(&inode),
            }
        }
        locked.file.into_iter().for_each(|file| self.close(file));
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

    fn new_inode(&mut self) -> Inode {
        self.next_inode += 1;
        self.next_inode - 1
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

/// Bytes. The inode is that of an open file, so it is there.
impl State {
    pub(super) fn file(&self, inode: Inode) -> io::Result<&FileNode> {
        self.check_alive()?;
        Ok(&self.files[&inode])
    }

    pub(super) fn read(&mut self, inode: Inode, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.check_alive()?;
        if self.faults.count_read() {
            return Err(io_error());
        }
        let sectors = offset / SECTOR_BYTES..offset.saturating_add(bytes.len() as u64).div_ceil(SECTOR_BYTES);
        if self.spoiled.iter().any(|(spoiled, sector)| *spoiled == inode && sectors.contains(sector)) {
            return Err(io_error());
        }
        let content = &self.files[&inode].live;
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > content.len_bytes()) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        content.read(offset, bytes);
        Ok(())
    }

    pub(super) fn write(&mut self, inode: Inode, offset: u64, bytes: Arc<[u8]>) -> io::Result<()> {
        self.check_alive()?;
        let fails = self.faults.count_write();
        let end = offset.saturating_add(bytes.len() as u64);
        check_len(end)?;
        let grows_by = end.saturating_sub(self.files[&inode].live.len_bytes());
        let excess = grows_by.saturating_sub(self.space_left());
        let (done, result) = if fails {
            (self.faults.random.index(bytes.len() + 1), Err(io_error()))
        } else if excess > 0 {
            let excess = usize::try_from(excess).unwrap_or(usize::MAX);
            (bytes.len().saturating_sub(excess), Err(no_space()))
        } else {
            (bytes.len(), Ok(()))
        };
        let moment = self.tick();
        let bytes = if done == bytes.len() { bytes } else { bytes[..done].into() };
        self.file_mut(inode).write(moment, offset, bytes);
        result
    }

    pub(super) fn set_len(&mut self, inode: Inode, len_bytes: u64) -> io::Result<()> {
        self.check_alive()?;
        check_len(len_bytes)?;
        let fails = self.faults.count_write();
        let grows_by = len_bytes.saturating_sub(self.files[&inode].live.len_bytes());
        if grows_by > self.space_left() {
            return Err(no_space());
        }
        if !fails || self.faults.random.coin() {
            let moment = self.tick();
            self.file_mut(inode).set_len(moment, len_bytes);
        }
        if fails { Err(io_error()) } else { Ok(()) }
    }

    pub(super) fn begin_sync(&mut self, is_of_dir: bool) -> io::Result<BegunSync> {
        self.check_alive()?;
        let fails = if is_of_dir { self.faults.count_dir_sync() } else { self.faults.count_sync() };
        Ok(BegunSync { moment: self.moment, fails, gate: self.faults.gate() })
    }

    pub(super) fn sync_until(&mut self, inode: Inode, before: u64) {
        self.file_mut(inode).sync(before);
    }

    pub(super) fn fail_sync(&mut self, inode: Inode) {
        let mut random = self.faults.random.clone();
        self.file_mut(inode).fail_sync(&mut random);
        self.faults.random = random;
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

    /// How many bytes files can grow by.
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

/// For damage and inspection, dead or alive.
impl State {
    /// All files with their paths, in order of the paths.
    pub(super) fn walk(&self, each: &mut impl FnMut(&Path, u64)) {
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

    pub(super) fn find(&self, path: &Path) -> io::Result<&FileNode> {
        Ok(&self.files[&self.names.live.lookup_file(path)?])
    }

    pub(super) fn find_mut(&mut self, path: &Path) -> io::Result<&mut FileNode> {
        let inode = self.names.live.lookup_file(path)?;
        Ok(self.file_mut(inode))
    }

    /// Takes away a file's name, with all that its directory had unsynced.
    pub(super) fn spoil(&mut self, path: &Path, sector: u64) -> io::Result<()> {
        let inode = self.names.live.lookup_file(path)?;
        self.spoiled.insert((inode, sector));
        Ok(())
    }

    pub(super) fn delete(&mut self, path: &Path) -> io::Result<()> {
        self.names.live.lookup_file(path)?;
        let name = self.names.live.place(path)?;
        self.names.sync(name.dir, u64::MAX);
        self.names.unlink_stored(&name);
        self.drop_nameless_files();
        Ok(())
    }
}
