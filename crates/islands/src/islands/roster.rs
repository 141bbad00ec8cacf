//! A file beside the instances that says how many there are, to which cluster they belong, and in which of its terms they are.
//!
//! Without it an instance whose directory is lost would be made anew, with nothing in it, and the others would take that for what it has; and one of
//! another cluster, or an older copy of itself, would be taken for it.
//!
//! # Layout
//! The file `instances` has lines of text:
//! ```text
//! 3                                         the number of instances
//! cluster 9f6e3c1d0b5a48728f6e3c1d0b5a4872  the number of the cluster, in 32 hexadecimal digits
//! term 17 5a48728f9f6e3c1d5a48728f9f6e3c1d  the last term of the cluster that all have noted; nothing before there was one
//! begun 18 728f9f6e3c1d5a48728f9f6e3c1d5a48 a term that has begun; nothing when all have noted it
//! not all made                              or `not all marked`; nothing when the cluster is whole
//! ```
//! Earlier versions wrote the first line alone. Their instances do not say which cluster they belong to; the next opening notes that at each of them.
//! Without a term, instances of any are opened: whoever takes that line out of the file opens an older copy of an instance beside newer ones.
//!
//! # Crash
//! Each version of the file is written behind a rename: before the first instance is made, when all are stored, and before and after they note a term.
//! Where there is no file, the first of the instances that are found says how many there are, and which term all of them are in. A new cluster is one
//! without any instance: none is made beside others.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::directory_of;
use super::epoch_record::lock;
use crate::instance::{
    ClusterId, ClusterMember, ClusterStage, InstanceError, InstanceNumber, StoredInstance, Term, Terms,
    TermsOf,
};

/// What a directory says of its instances.
#[derive(Clone, Copy, Debug)]
struct Entry {
    instances: u16,
    /// `None` where an earlier version has made them.
    cluster: Option<ClusterId>,
    stage: ClusterStage,
    terms: Terms,
}

/// What an instance says of itself and its cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) stored: Option<StoredInstance>,
    pub(crate) cluster: Option<ClusterId>,
    pub(crate) term: Option<Term>,
}

/// Looks into the database of an instance, which nobody has open.
pub(crate) type Look<'a> = &'a dyn Fn(&Path) -> Result<Found, InstanceError>;

/// The instances that a directory has, or is to have.
#[derive(Debug)]
pub(super) struct Roster {
    directory: PathBuf,
    instances: u16,
    pub(super) member: ClusterMember,
    /// The directory, where the file does not say that the cluster is whole: two processes do not make it at once.
    held: Option<File>,
}

impl Roster {
    /// Returns the instances of a directory that is there, to open so many. Nothing changes.
    ///
    /// # Errors
    /// One of them is missing, or there are not so many; the file, or an instance that is to say how many they are, cannot be read.
    pub(super) fn find(directory: &Path, planned: u16, look: Look<'_>) -> Result<Self, InstanceError> {
        let in_file = read(directory).ok().flatten();
        let is_whole = in_file.is_some_and(|entry| entry.stage == ClusterStage::Whole);
        let held = if is_whole { None } else { Some(hold(directory).map_err(InstanceError::Io)?) };
        let found = find(directory, look)?;
        let new =
            Entry { instances: planned, cluster: None, stage: ClusterStage::Making, terms: Terms::default() };
        let entry = found.unwrap_or(new);
        if entry.instances != planned {
            return Err(problem(
                directory,
                &format!(
                    "the instances there are part of {}: open them with as many, not with {planned}; \
                     `ensilo islands redistribute` copies tables to another number of instances",
                    entry.instances
                ),
            ));
        }
        let Entry { cluster, stage, terms, .. } = entry;
        let terms = if in_file.is_some() { TermsOf::File } else { TermsOf::Instance(terms) };
        let member = ClusterMember { cluster: cluster.unwrap_or_else(ClusterId::random), stage, terms };
        Ok(Roster { directory: directory.to_owned(), instances: planned, member, held })
    }

    /// Says that the instances are about to be made, or marked.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn begin(&self) -> io::Result<()> {
        match self.member.stage {
            ClusterStage::Whole => Ok(()),
            stage => self.entry(stage, Terms::default()).write(&self.directory),
        }
    }

    /// Says that all instances are stored, and belong to the cluster. They are open: nobody else changes the file any more.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn end(self) -> io::Result<Cluster> {
        let terms = match self.member.terms {
            TermsOf::Instance(terms) => terms,
            TermsOf::File => stored_terms(&self.directory)?,
        };
        let entry = self.entry(ClusterStage::Whole, terms);
        if self.held.is_some() {
            entry.write(&self.directory)?;
        }
        Ok(Cluster { directory: self.directory, entry })
    }

    fn entry(&self, stage: ClusterStage, terms: Terms) -> Entry {
        Entry { instances: self.instances, cluster: Some(self.member.cluster), stage, terms }
    }
}

/// A cluster whose instances are open.
#[derive(Debug)]
pub(super) struct Cluster {
    directory: PathBuf,
    entry: Entry,
}

impl Cluster {
    /// Says that a term has begun, and returns it: each instance is to note it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn begin_term(&mut self) -> io::Result<Term> {
        let (terms, begun) = self.entry.terms.with_begun();
        self.set_terms(terms)?;
        Ok(begun)
    }

    /// Says that all instances have noted a term.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn end_term(&mut self, noted: Term) -> io::Result<()> {
        self.set_terms(Terms::all_in(noted))
    }

    /// Says of a copy of all instances how many they are, to which cluster they belong, and which term they are in.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn note_copy(&self, directory: &Path, term: Term) -> io::Result<()> {
        Entry { terms: Terms::all_in(term), ..self.entry }.write(directory)
    }

    fn set_terms(&mut self, terms: Terms) -> io::Result<()> {
        // Also where it fails: the file may say so.
        self.entry.terms = terms;
        self.entry.write(&self.directory)
    }
}

/// Returns the terms that the instances of a directory may be in; any where the file says nothing of them.
///
/// # Errors
/// The file cannot be read.
pub(super) fn stored_terms(directory: &Path) -> io::Result<Terms> {
    Ok(read(directory)?.map(|entry| entry.terms).unwrap_or_default())
}

/// Returns the path that the file is written under before it takes the place of the one before.
fn begun_in(directory: &Path) -> PathBuf {
    path_in(directory).with_extension("begun")
}

/// Removes the file of copies that are of no use, if there is one, also if it was not finished.
pub(super) fn remove(directory: &Path) {
    // If it cannot be removed it is in the way of the next copy, which says so.
    let _ = std::fs::remove_file(path_in(directory));
    let _ = std::fs::remove_file(begun_in(directory));
}

/// Returns whether a directory holds a database.
pub(crate) fn holds_database(directory: &Path) -> bool {
    ["MANIFEST", "MANIFEST.copy"].iter().any(|name| directory.join(name).exists())
}

/// Returns whether a directory is that of instances, also if they are lost.
pub(crate) fn holds_instances(directory: &Path) -> bool {
    path_in(directory).exists() || directory_of(directory, 0).exists() || !present(directory).is_empty()
}

/// Checks that each instance is there that was stored.
///
/// # Errors
/// One is missing; the file, or an instance that is to say how many they are, cannot be read.
pub(crate) fn check(directory: &Path, look: Look<'_>) -> Result<(), InstanceError> {
    find(directory, look).map(drop)
}

/// Returns which instance a directory is of several that are stored beside each other, as its place shows; `None` for any other directory.
///
/// The database there need not be whole.
#[must_use]
pub fn instance_by_place(directory: &Path) -> Option<InstanceNumber> {
    let directory = std::fs::canonicalize(directory).ok()?;
    let instance = number_of(directory.file_name()?.to_str()?)?;
    let above = directory.parent()?;
    let found = present(above).into_iter().max().map_or(0, |last| last + 1);
    let instances = read(above).ok().flatten().map_or(found, |entry| entry.instances).max(instance + 1);
    (instances > 1).then_some(InstanceNumber { instance, instances })
}

/// Returns what a directory says of its instances, all of which are there; `None` for a new cluster.
fn find(directory: &Path, look: Look<'_>) -> Result<Option<Entry>, InstanceError> {
    let present = present(directory);
    let entry = match (read(directory).map_err(InstanceError::Io)?, present.first()) {
        (Some(Entry { stage: ClusterStage::Making, .. }) | None, None) => return Ok(None),
        (Some(Entry { instances, cluster: None, .. }), Some(first)) => {
            // Also where the rest of the file is lost.
            Entry { instances, ..ask(directory, *first, look)? }
        }
        (Some(entry), _) => entry,
        (None, Some(first)) => ask(directory, *first, look)?,
    };
    let is_lost = |instance: &u16| !holds_database(&directory_of(directory, *instance));
    match (0..entry.instances).find(is_lost) {
        Some(lost) if entry.stage != ClusterStage::Making => {
            Err(lost_instance(directory, lost, entry.instances))
        }
        _ => Ok(Some(entry)),
    }
}

/// Returns what an instance says of all, where there is no file that does.
fn ask(directory: &Path, instance: u16, look: Look<'_>) -> Result<Entry, InstanceError> {
    let place = directory_of(directory, instance);
    let Found { stored, cluster, term } = look(&place)?;
    let Some(stored) = stored else {
        return Err(problem(
            &place,
            "it holds a database that is none of an instance: instances have a directory of their own",
        ));
    };
    let stage = if cluster.is_some() { ClusterStage::Whole } else { ClusterStage::Marking };
    let terms = term.map(Terms::all_in).unwrap_or_default();
    Ok(Entry { instances: stored.number.instances, cluster, stage, terms })
}

fn lost_instance(directory: &Path, lost: u16, instances: u16) -> InstanceError {
    problem(
        &directory_of(directory, lost),
        &format!(
            "instance {lost} of {instances} is lost, and what it had is not at the others: put its files back, or restore a copy of all"
        ),
    )
}

/// Returns the instances in a directory that have a database, in their order.
fn present(directory: &Path) -> Vec<u16> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let instances = entries.filter_map(|entry| number_of(entry.file_name().to_str()?));
    let mut present: Vec<u16> =
        instances.filter(|instance| holds_database(&directory_of(directory, *instance))).collect();
    present.sort_unstable();
    present
}

fn number_of(name: &str) -> Option<u16> {
    name.strip_prefix("instance-")?.parse().ok()
}

/// Keeps others from making instances in a directory.
fn hold(directory: &Path) -> io::Result<File> {
    let held = File::open(directory)?;
    lock(&held, directory, "instances are being opened there, in this process or another one")?;
    Ok(held)
}

fn read(directory: &Path) -> io::Result<Option<Entry>> {
    let path = path_in(directory);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?,
    };
    let damaged = || {
        io::Error::other(format!(
            "{}: it is damaged, and does not say how many instances there are: put it back; without it \
             the instances that are there say that, and none is opened if one is missing",
            path.display()
        ))
    };
    parse(&text).map(Some).ok_or_else(damaged)
}

fn parse(text: &str) -> Option<Entry> {
    let mut lines = text.lines().peekable();
    let instances = lines.next()?.parse().ok().filter(|instances| *instances > 0)?;
    let Some(cluster) = lines.next() else {
        let (stage, terms) = (ClusterStage::Marking, Terms::default());
        return Some(Entry { instances, cluster: None, stage, terms });
    };
    let cluster = cluster.strip_prefix(CLUSTER).filter(|digits| digits.len() == CLUSTER_DIGITS)?;
    let mut term_after = |word: &str| {
        let Some(line) = lines.next_if(|line| line.starts_with(word)) else { return Some(None) };
        line.strip_prefix(word)?.parse().ok().map(Some)
    };
    let terms = Terms { last: term_after(TERM)?, begun: term_after(BEGUN)? };
    let stage = match lines.next() {
        None => ClusterStage::Whole,
        Some(NOT_ALL_MADE) => ClusterStage::Making,
        Some(NOT_ALL_MARKED) => ClusterStage::Marking,
        Some(_) => return None,
    };
    let is_whole = lines.next().is_none() && text.ends_with('\n');
    is_whole.then_some(Entry { instances, cluster: Some(cluster.parse().ok()?), stage, terms })
}

const CLUSTER_DIGITS: usize = 32;

const CLUSTER: &str = "cluster ";
const TERM: &str = "term ";
const BEGUN: &str = "begun ";
const NOT_ALL_MADE: &str = "not all made";
const NOT_ALL_MARKED: &str = "not all marked";

impl Entry {
    /// Writes the file of a directory; a cluster has its number by then.
    fn write(&self, directory: &Path) -> io::Result<()> {
        let (path, begun) = (path_in(directory), begun_in(directory));
        let mut file = File::create(&begun)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&begun, &path)?;
        File::open(directory)?.sync_all()
    }

    fn text(&self) -> String {
        let Entry { instances, cluster, stage, terms } = self;
        let line = |word: &str, of: Option<String>| of.map(|of| format!("{word}{of}\n")).unwrap_or_default();
        let stage = match stage {
            ClusterStage::Whole => None,
            ClusterStage::Making => Some(NOT_ALL_MADE.to_owned()),
            ClusterStage::Marking => Some(NOT_ALL_MARKED.to_owned()),
        };
        [
            line("", Some(instances.to_string())),
            line(CLUSTER, cluster.map(|cluster| cluster.to_string())),
            line(TERM, terms.last.map(|term| term.to_string())),
            line(BEGUN, terms.begun.map(|term| term.to_string())),
            line("", stage),
        ]
        .concat()
    }
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("instances")
}

fn problem(path: &Path, what: &str) -> InstanceError {
    InstanceError::Io(io::Error::other(format!("{}: {what}", path.display())))
}
