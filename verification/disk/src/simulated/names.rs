//! The names of files and directories: what is seen, what is stored, and the changes in between.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use super::random::Random;

/// What a name stands for, whatever it is called.
pub(super) type Inode = u64;

/// The directory that is always there and has no name.
pub(super) const ROOT: Inode = 0;

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) dir: Inode,
    pub(super) name: Arc<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) inode: Inode,
    pub(super) is_dir: bool,
}

/// All names at one moment. Copies share their memory until one of them changes.
#[derive(Debug, Clone, Default)]
pub(super) struct NameTable {
    entries: Arc<BTreeMap<Name, Entry>>,
}

/// The names of a disk.
#[derive(Clone, Default)]
pub(super) struct Namespace {
    pub(super) live: NameTable,
    stored: NameTable,
    /// In order of their moments.
    unsynced: Vec<NameChange>,
}

#[derive(Clone)]
struct NameChange {
    moment: u64,
    kind: ChangeKind,
}

#[derive(Clone)]
pub(super) enum ChangeKind {
    Link {
        name: Name,
        entry: Entry,
    },
    Unlink {
        name: Name,
        entry: Entry,
    },
    /// Whatever was called `to` is no longer.
    Rename {
        from: Name,
        to: Name,
        entry: Entry,
    },
}

impl Namespace {
    pub(super) fn change(&mut self, moment: u64, kind: ChangeKind) {
        kind.apply(&mut self.live);
        self.unsynced.push(NameChange { moment, kind });
    }

    /// Adds a name that is stored at once.
    pub(super) fn link_stored(&mut self, name: Name, entry: Entry) {
        self.live.insert(name.clone(), entry);
        self.stored.insert(name, entry);
    }

    /// Removes a name at once, from what is seen and what is stored.
    pub(super) fn unlink_stored(&mut self, name: &Name) {
        self.live.remove(name);
        self.stored.remove(name);
    }

    /// Stores the changes of `dir` before the moment `before`, and with each those that it rests on.
    pub(super) fn sync(&mut self, dir: Inode, before: u64) {
        let wanted: Vec<bool> = self
            .unsynced
            .iter()
            .map(|change| change.moment < before && change.kind.names().any(|name| name.dir == dir))
            .collect();
        let stored = self.with_forerunners(wanted);
        let mut stored = stored.into_iter();
        let names = &mut self.stored;
        self.unsynced.retain(|change| {
            let is_stored = stored.next().unwrap_or(false);
            if is_stored {
                change.kind.apply(names);
            }
            !is_stored
        });
    }

    /// Returns the names after a power failure, with nothing unsynced: `I3` of the module above.
    pub(super) fn crash(&self, random: &mut Random) -> Namespace {
        let count = self.unsynced.len();
        let drawn: Vec<bool> = match random.below(8) {
            0 => vec![false; count],
            1 => vec![true; count],
            2 | 3 => {
                let kept = random.index(count + 1);
                (0..count).map(|index| index < kept).collect()
            }
            4 | 5 => (0..count).map(|_| random.coin()).collect(),
            6 => (0..count).map(|_| random.below(8) == 0).collect(),
            _ => (0..count).map(|_| random.below(8) != 0).collect(),
        };
        let mut names = self.stored.clone();
        for (change, is_kept) in self.unsynced.iter().zip(self.with_forerunners(drawn)) {
            if is_kept {
                change.kind.apply(&mut names);
            }
        }
        Namespace { live: names.clone(), stored: names, unsynced: Vec::new() }
    }

    pub(super) fn is_synced(&self) -> bool {
        self.unsynced.is_empty()
    }

    /// Returns all that has a name, seen or stored or on its way.
    pub(super) fn named(&self) -> BTreeSet<Inode> {
        let mut named = self.live.named();
        named.extend(self.stored.named());
        named.extend(self.unsynced.iter().map(|change| change.kind.entry().inode));
        named
    }

    /// Adds to the chosen changes those before them that touched one of their names, or what is in a directory that they remove.
    fn with_forerunners(&self, mut chosen: Vec<bool>) -> Vec<bool> {
        let mut names: BTreeSet<&Name> = BTreeSet::new();
        let mut removed_dirs: BTreeSet<Inode> = BTreeSet::new();
        for (change, is_chosen) in self.unsynced.iter().zip(&mut chosen).rev() {
            let is_forerunner =
                change.kind.names().any(|name| names.contains(name) || removed_dirs.contains(&name.dir));
            if *is_chosen || is_forerunner {
                *is_chosen = true;
                names.extend(change.kind.names());
                if let ChangeKind::Unlink { entry: Entry { inode, is_dir: true }, .. } = change.kind {
                    removed_dirs.insert(inode);
                }
            }
        }
        chosen
    }
}

impl NameTable {
    /// Returns what `path` stands for.
    pub(super) fn lookup(&self, path: &Path) -> io::Result<Entry> {
        let mut entry = Entry { inode: ROOT, is_dir: true };
        for name in parts(path)? {
            entry = self.get(&Name { dir: dir_of(entry)?, name: name.into() })?;
        }
        Ok(entry)
    }

    /// Returns the directory that `path` stands for.
    pub(super) fn lookup_dir(&self, path: &Path) -> io::Result<Inode> {
        dir_of(self.lookup(path)?)
    }

    /// Returns the file that `path` stands for.
    pub(super) fn lookup_file(&self, path: &Path) -> io::Result<Inode> {
        let entry = self.lookup(path)?;
        if entry.is_dir { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(entry.inode) }
    }

    /// Returns the name that `path` spells, whether or not it is taken. Its directory exists.
    pub(super) fn place(&self, path: &Path) -> io::Result<Name> {
        let parts = parts(path)?;
        let Some((last, above)) = parts.split_last() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the root has no name"));
        };
        let dir = self.lookup_dir(&above.iter().collect::<std::path::PathBuf>())?;
        Ok(Name { dir, name: (*last).into() })
    }

    /// # Errors
    /// `NotFound`.
    pub(super) fn get(&self, name: &Name) -> io::Result<Entry> {
        self.entries.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the names in a directory, in order.
    pub(super) fn list(&self, dir: Inode) -> impl Iterator<Item = (&str, Entry)> {
        let first = Name { dir, name: "".into() };
        let names = self.entries.range(first..).take_while(move |(name, _)| name.dir == dir);
        names.map(|(name, entry)| (&*name.name, *entry))
    }

    /// Returns all that has a name.
    pub(super) fn named(&self) -> BTreeSet<Inode> {
        self.entries.values().map(|entry| entry.inode).collect()
    }

    fn insert(&mut self, name: Name, entry: Entry) {
        Arc::make_mut(&mut self.entries).insert(name, entry);
    }

    fn remove(&mut self, name: &Name) {
        Arc::make_mut(&mut self.entries).remove(name);
    }
}

impl ChangeKind {
    fn apply(&self, names: &mut NameTable) {
        match self {
            ChangeKind::Link { name, entry } => names.insert(name.clone(), *entry),
            ChangeKind::Unlink { name, .. } => names.remove(name),
            ChangeKind::Rename { from, to, entry } => {
                names.remove(from);
                names.insert(to.clone(), *entry);
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &Name> {
        let (first, second) = match self {
            ChangeKind::Link { name, .. } | ChangeKind::Unlink { name, .. } => (name, None),
            ChangeKind::Rename { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn entry(&self) -> Entry {
        match self {
            ChangeKind::Link { entry, .. }
            | ChangeKind::Unlink { entry, .. }
            | ChangeKind::Rename { entry, .. } => *entry,
        }
    }
}

/// Returns the names along a path from the root on.
pub(super) fn parts(path: &Path) -> io::Result<Vec<&str>> {
    let refused = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => {
                parts.push(part.to_str().ok_or_else(|| refused("a name that is no text"))?)
            }
            Component::RootDir | Component::CurDir => {}
            // There are no links, and nothing lies above the root.
            Component::ParentDir => _ = parts.pop(),
            Component::Prefix(_) => return Err(refused("a path with a prefix")),
        }
    }
    Ok(parts)
}

fn dir_of(entry: Entry) -> io::Result<Inode> {
    if entry.is_dir { Ok(entry.inode) } else { Err(io::ErrorKind::NotADirectory.into()) }
}
