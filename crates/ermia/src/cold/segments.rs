//! The files of cold rows.
//!
//! One is filled at a time. It is written through the system's cache, never synced, and removed when none of its rows is cold any more.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ensilo_disk::File;
use ensilo_engine::ColdPlace;
use ensilo_epoch::Epoch;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::{AtomicBool, AtomicU64};

use super::record::Leaving;
use super::word::ColdWord;

const WORD_BYTES: u64 = 8;

/// Words that a file may have.
pub(super) const SEGMENT_WORDS: u64 = (16 << 20) / WORD_BYTES;

/// One file.
#[derive(Debug)]
pub(super) struct Segment {
    file: Box<dyn File>,
    path: PathBuf,
    filled_words: AtomicU64,
    /// Words of records that are cold, and lie here.
    live_words: AtomicU64,
    /// Not all of it can be read, so that it cannot be cleaned.
    is_left: AtomicBool,
}

impl Segment {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn read(&self, place: ColdWord) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; place.len_words() * WORD_BYTES as usize];
        self.file.read_at(place.place() % SEGMENT_WORDS * WORD_BYTES, &mut bytes)?;
        Ok(bytes)
    }

    /// Returns all that was written.
    pub(super) fn read_all(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; (self.filled_words() * WORD_BYTES) as usize];
        self.file.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn forget(&self, place: ColdWord) {
        self.live_words.fetch_sub(place.len_words() as u64, Ordering::Relaxed);
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
        self.live_words.load(Ordering::Relaxed)
    }
}

/// All files, by number.
#[derive(Debug)]
pub(super) struct Segments {
    place: ColdPlace,
    /// Under the lock for as long as it takes to clone one: a reader keeps the file that it reads.
    table: RwLock<Vec<Option<Arc<Segment>>>>,
}

impl Segments {
    pub(super) fn new(place: ColdPlace) -> Self {
        Segments { place, table: RwLock::new(Vec::new()) }
    }

    /// Returns the file in which this lies, or lay.
    pub(super) fn get(&self, place: ColdWord) -> Option<Arc<Segment>> {
        self.at((place.place() / SEGMENT_WORDS) as usize)
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

    fn create(&self, number: usize) -> io::Result<Arc<Segment>> {
        let ColdPlace { disk, directory } = &self.place;
        disk.create_dir_all(directory)?;
        let path = directory.join(format!("rows-{number}"));
        if disk.exists(&path)? {
            disk.remove(&path)?;
        }
        let file = disk.create(&path, 0)?;
        let (filled_words, live_words) = (AtomicU64::new(0), AtomicU64::new(0));
        let is_left = AtomicBool::new(false);
        let segment = Arc::new(Segment { file, path, filled_words, live_words, is_left });
        self.set(number, Some(Arc::clone(&segment)));
        Ok(segment)
    }

    /// Removes what an earlier opening has left, as far as it can: what stays is overwritten.
    pub(super) fn remove_leftovers(&self) {
        let ColdPlace { disk, directory } = &self.place;
        let leftovers = disk.list(directory).unwrap_or_default();
        for file in leftovers.iter().filter(|file| file.is_file && file.name.starts_with("rows-")) {
            let _ = disk.remove(&directory.join(&file.name));
        }
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        for (_, segment) in self.all() {
            // What cannot be removed goes with the next opening.
            let _ = self.place.disk.remove(&segment.path);
        }
        let _ = self.place.disk.remove_dir(&self.place.directory);
    }
}

/// Fills the files.
#[derive(Debug, Default)]
pub(super) struct Writer {
    current: Option<(usize, Arc<Segment>)>,
    /// Numbers that no slot names any more.
    free: Vec<usize>,
    /// Numbers of files that are gone, each with the epoch since which that is so.
    retired: VecDeque<(Epoch, usize)>,
    next: usize,
}

impl Writer {
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
        let mut rest = rows;
        while let [first, ..] = rest {
            let (number, segment) = self.segment_for(segments, first.len_words() as u64)?;
            rest = append_to(&segment, number as u64 * SEGMENT_WORDS, rest, places)?;
        }
        Ok(())
    }

    /// Returns a file that has room for a record of so many words.
    fn segment_for(&mut self, segments: &Segments, len_words: u64) -> io::Result<(usize, Arc<Segment>)> {
        if let Some((number, segment)) = &self.current
            && segment.filled_words() + len_words <= SEGMENT_WORDS
        {
            return Ok((*number, Arc::clone(segment)));
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        let created = segments.create(number).inspect_err(|_| self.free.push(number))?;
        self.current = Some((number, Arc::clone(&created)));
        Ok((number, created))
    }

    /// Returns whether the file of this number is the one that is being filled.
    pub(super) fn is_filling(&self, number: usize) -> bool {
        self.current.as_ref().is_some_and(|(current, _)| *current == number)
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
        for (number, segment) in &empty {
            segments.set(*number, None);
            let _ = segments.place.disk.remove(&segment.path);
        }
        let epoch = now();
        self.retired.extend(empty.into_iter().map(|(number, _)| (epoch, number)));
    }
}

/// Appends as many of the rows as there is room for to a file that begins at `base`. Returns the others.
fn append_to<'r, 'v>(
    segment: &Segment,
    base: u64,
    rows: &'r [Leaving<'v>],
    places: &mut Vec<ColdWord>,
) -> io::Result<&'r [Leaving<'v>]> {
    let start = segment.filled_words();
    let (mut bytes, mut end, mut appended) = (Vec::new(), start, Vec::new());
    for row in rows {
        let len_words = row.len_words();
        if end + len_words as u64 > SEGMENT_WORDS {
            break;
        }
        row.encode(base + end, &mut bytes);
        appended.push(ColdWord::new(base + end, len_words));
        end += len_words as u64;
    }
    segment.file.write_at(start * WORD_BYTES, &bytes)?;
    segment.filled_words.store(end, Ordering::Relaxed);
    segment.live_words.fetch_add(end - start, Ordering::Relaxed);
    let rest = &rows[appended.len()..];
    places.extend(appended);
    Ok(rest)
}
