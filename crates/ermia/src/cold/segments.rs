//! The files of cold rows.
//!
//! One is filled at a time. It is written through the system's cache, never synced, and removed when none of its rows is cold any more. When
//! the database is closed all of them are removed, while its directory is still its own.
//!
//! A record that is longer than files are gets one of its own, and reaches past the places of that. That harms nobody: only where a record
//! begins is a place.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ensilo_disk::File;
use ensilo_engine::ColdPlace;
use ensilo_epoch::Epoch;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::{AtomicBool, AtomicU64};

use super::open_files::OpenFiles;
use super::record::Leaving;
use super::word::ColdWord;

const WORD_BYTES: u64 = 8;

/// One file.
#[derive(Debug)]
pub(super) struct Segment {
    /// While it is open.
    file: RwLock<Option<Arc<dyn File>>>,
    was_read: AtomicBool,
    /// Its name is gone.
    is_removed: AtomicBool,
    path: PathBuf,
    /// Its first word, where places are counted from.
    first_word: u64,
    filled_words: AtomicU64,
    /// Words of records that are cold, and lie here.
    live_words: AtomicU64,
    /// Cleaning can move no more of it: what is left cannot be read, or is of a dropped store.
    is_left: AtomicBool,
}

impl Segment {
    fn new(path: PathBuf, first_word: u64) -> Self {
        Segment {
            file: RwLock::new(None),
            was_read: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            path,
            first_word,
            filled_words: AtomicU64::new(0),
            live_words: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn first_word(&self) -> u64 {
        self.first_word
    }

    /// Returns the file, if it is open.
    pub(super) fn file(&self) -> Option<Arc<dyn File>> {
        self.file.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_file(&self, file: Option<Arc<dyn File>>) {
        *self.file.write().unwrap_or_else(PoisonError::into_inner) = file;
    }

    /// Returns whether it was read since the last call.
    pub(super) fn take_was_read(&self) -> bool {
        self.was_read.swap(false, Ordering::Relaxed)
    }

    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// Says that the name is gone. False if it was before.
    pub(super) fn set_removed(&self) -> bool {
        !self.is_removed.swap(true, Ordering::Relaxed)
    }

    pub(super) fn forget(&self, place: ColdWord) {
        // Release: whoever finds nothing left finds that no slot leads here any more.
        self.live_words.fetch_sub(place.len_words() as u64, Ordering::Release);
    }

    /// Says that the file is to stay as long as there are cold rows in it.
    pub(super) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }

    pub(super) fn filled_words(&self) -> u64 {
        self.filled_words.load(Ordering::Relaxed)
    }

    pub(super) fn live_words(&self) -> u64 {
        // Acquire: see `forget`.
        self.live_words.load(Ordering::Acquire)
    }
}

/// All files, by number.
#[derive(Debug)]
pub(super) struct Segments {
    place: ColdPlace,
    /// Words that a file may have, unless it has a single record.
    segment_words: u64,
    files: OpenFiles,
    /// Under the lock for as long as it takes to clone one: a reader keeps the file that it reads.
    table: RwLock<Vec<Option<Arc<Segment>>>>,
}

impl Segments {
    pub(super) fn new(place: ColdPlace) -> Self {
        let segment_words = place.file_bytes / WORD_BYTES;
        assert!(segment_words > 0, "a file that is too short");
        let files = OpenFiles::new(Arc::clone(&place.disk));
        Segments { place, segment_words, files, table: RwLock::new(Vec::new()) }
    }

    pub(super) fn segment_words(&self) -> u64 {
        self.segment_words
    }

    /// Returns whether the disk has room for so many words more, as far as that is known.
    pub(super) fn has_room(&self, words: u64) -> bool {
        self.place.check_room(words * WORD_BYTES).is_ok()
    }

    /// Takes so many words of the disk, and gives them back.
    pub(super) fn try_reserve(&self, words: u64) -> io::Result<()> {
        self.place.check_room(words * WORD_BYTES)?;
        self.place.disk.create_dir_all(&self.place.directory)?;
        let path = self.place.directory.join("rows-none");
        // What the last time has left, if it could not be removed.
        let _ = self.place.disk.remove(&path);
        drop(self.place.disk.create(&path, words * WORD_BYTES)?);
        self.place.disk.remove(&path)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.place.directory
    }

    /// Returns the file in which this lies, or lay.
    pub(super) fn get(&self, place: ColdWord) -> Option<Arc<Segment>> {
        self.at((place.place() / self.segment_words) as usize)
    }

    /// Returns the bytes of a record of this file.
    pub(super) fn read(&self, segment: &Arc<Segment>, place: ColdWord) -> io::Result<Vec<u8>> {
        self.read_words(segment, place.place() - segment.first_word, place.len_words())
    }

    /// Returns so many words of a file from this one on.
    pub(super) fn read_words(&self, segment: &Arc<Segment>, at: u64, words: usize) -> io::Result<Vec<u8>> {
        let mut bytes = bytes_for(words)?;
        bytes.resize(words * WORD_BYTES as usize, 0);
        segment.was_read.store(true, Ordering::Relaxed);
        self.files.get(segment)?.read_at(at * WORD_BYTES, &mut bytes)?;
        Ok(bytes)
    }

    fn at(&self, number: usize) -> Option<Arc<Segment>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).get(number)?.clone()
    }

    /// Returns all files, with their numbers.
    pub(super) fn all(&self) -> Vec<(usize, Arc<Segment>)> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table
            .iter()
            .enumerate()
            .filter_map(|(number, segment)| Some((number, Arc::clone(segment.as_ref()?))))
            .collect()
    }

    /// Returns how many bytes of the files are rows, and how many there are.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let words = self.all().iter().fold((0, 0), |(live, filled), (_, segment)| {
            (live + segment.live_words(), filled + segment.filled_words())
        });
        (words.0 * WORD_BYTES, words.1 * WORD_BYTES)
    }

    fn set(&self, number: usize, segment: Option<Arc<Segment>>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() <= number {
            table.resize(number + 1, None);
        }
        table[number] = segment;
    }

    fn create(&self, number: usize) -> io::Result<Filling> {
        self.place.disk.create_dir_all(&self.place.directory)?;
        let path = self.place.directory.join(format!("rows-{number}"));
        let segment = Arc::new(Segment::new(path, number as u64 * self.segment_words));
        let file = self.files.create(&segment)?;
        self.set(number, Some(Arc::clone(&segment)));
        Ok(Filling { number, segment, file })
    }

    /// Removes a file in which there is nothing left.
    fn remove(&self, number: usize, segment: &Arc<Segment>) {
        self.set(number, None);
        self.files.remove(segment);
        self.files.close(segment);
    }

    /// Removes all files. Those that are open can be read as before.
    fn remove_all(&self) {
        self.all().iter().for_each(|(_, segment)| self.files.remove(segment));
        let _ = self.place.disk.remove_dir(&self.place.directory);
    }
}

/// Fills the files.
#[derive(Debug, Default)]
pub(super) struct Writer {
    current: Option<Filling>,
    /// Nothing is written any more.
    is_closed: bool,
    /// Numbers that no slot names any more.
    free: Vec<usize>,
    /// Numbers of files that are gone, each with the epoch since which that is so.
    retired: VecDeque<(Epoch, usize)>,
    next: usize,
}

/// The file that is being filled.
#[derive(Debug)]
struct Filling {
    number: usize,
    segment: Arc<Segment>,
    file: Arc<dyn File>,
}

impl Writer {
    /// Removes all files, and makes none from now on. Called by the one who can say that nobody else has their names yet; once is enough.
    pub(super) fn close(&mut self, segments: &Segments) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.current = None;
            segments.remove_all();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Appends rows, and returns where each lies.
    pub(super) fn append(&mut self, segments: &Segments, rows: &[Leaving<'_>]) -> io::Result<Vec<ColdWord>> {
        let mut places = Vec::with_capacity(rows.len());
        let appended = self.append_all(segments, rows, &mut places);
        if appended.is_err() {
            let in_vain = places.iter().filter_map(|&place| Some((place, segments.get(place)?)));
            in_vain.for_each(|(place, segment)| segment.forget(place));
        }
        appended.map(|()| places)
    }

    fn append_all(
        &mut self,
        segments: &Segments,
        rows: &[Leaving<'_>],
        places: &mut Vec<ColdWord>,
    ) -> io::Result<()> {
        let words: u64 = rows.iter().map(|row| row.len_words().get() as u64).sum();
        segments.place.check_room(words * WORD_BYTES)?;
        let mut rest = rows;
        while let [first, ..] = rest {
            let filling = self.filling_for(segments, first.len_words().get() as u64)?;
            rest = filling.append(segments.segment_words, rest, places)?;
        }
        Ok(())
    }

    /// Returns a file that has room for a record of so many words.
    fn filling_for(&mut self, segments: &Segments, len_words: u64) -> io::Result<&Filling> {
        let has_room = |filling: &Filling| filling.has_room(segments.segment_words, len_words, 0);
        if !self.current.as_ref().is_some_and(has_room) {
            let number = self.free.pop().unwrap_or_else(|| {
                self.next += 1;
                self.next - 1
            });
            let created = segments.create(number).inspect_err(|_| self.free.push(number))?;
            self.current = Some(created);
        }
        match &self.current {
            Some(filling) => Ok(filling),
            None => unreachable!("it was made"),
        }
    }

    /// Returns whether the file of this number is the one that is being filled.
    pub(super) fn is_filling(&self, number: usize) -> bool {
        self.current.as_ref().is_some_and(|current| current.number == number)
    }

    pub(super) fn remove_empty(&mut self, segments: &Segments, horizon: Epoch, now: impl FnOnce() -> Epoch) {
        while let Some((_, number)) = self.retired.pop_front_if(|(epoch, _)| *epoch < horizon) {
            self.free.push(number);
        }
        let is_empty = |(number, segment): &(usize, Arc<Segment>)| {
            !self.is_filling(*number) && segment.live_words() == 0
        };
        let empty: Vec<_> = segments.all().into_iter().filter(is_empty).collect();
        if empty.is_empty() {
            return;
        }
        empty.iter().for_each(|(number, segment)| segments.remove(*number, segment));
        let epoch = now();
        self.retired.extend(empty.into_iter().map(|(number, _)| (epoch, number)));
    }
}

/// Returns room for so many words, which may be those of a large row.
fn bytes_for(words: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(words * WORD_BYTES as usize)?;
    Ok(bytes)
}

impl Filling {
    /// Returns whether the file takes a record of so many words behind so many that are still to be written.
    fn has_room(&self, segment_words: u64, len_words: u64, behind_words: u64) -> bool {
        let start = self.segment.filled_words() + behind_words;
        start == 0 || start + len_words <= segment_words
    }

    /// Appends as many of the rows as there is room for. Returns the others.
    fn append<'r, 'v>(
        &self,
        segment_words: u64,
        rows: &'r [Leaving<'v>],
        places: &mut Vec<ColdWord>,
    ) -> io::Result<&'r [Leaving<'v>]> {
        let Filling { segment, file, .. } = self;
        let start = segment.filled_words();
        let (mut words, mut appended) = (0, Vec::new());
        for row in rows {
            let len = row.len_words();
            if !self.has_room(segment_words, len.get() as u64, words) {
                break;
            }
            appended.push(ColdWord::new(segment.first_word + start + words, len));
            words += len.get() as u64;
        }
        let mut bytes = bytes_for(words as usize)?;
        rows.iter().zip(&appended).for_each(|(row, word)| row.encode(word.place(), &mut bytes));
        file.write_at(start * WORD_BYTES, &bytes)?;
        segment.filled_words.store(start + words, Ordering::Relaxed);
        segment.live_words.fetch_add(words, Ordering::Relaxed);
        let rest = &rows[appended.len()..];
        places.extend(appended);
        Ok(rest)
    }
}
