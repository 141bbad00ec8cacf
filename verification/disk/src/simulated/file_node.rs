//! One file: what reads see, what is stored, and what a power failure makes of the changes in between.

use std::ops::Range;
use std::sync::Arc;

use super::content::Content;
use super::random::{Random, mix};

/// What a device stores whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// A file, without its names.
#[derive(Clone, Default)]
pub(super) struct FileNode {
    pub(super) live: Content,
    stored: Content,
    /// In order of their moments.
    unsynced: Vec<Change>,
    /// A failed sync has lost changes: `stored` and `unsynced` no longer make up `live`.
    has_lost: bool,
}

#[derive(Clone)]
struct Change {
    moment: u64,
    kind: ChangeKind,
}

#[derive(Clone)]
enum ChangeKind {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen { len_bytes: u64 },
}

impl FileNode {
    pub(super) fn write(&mut self, moment: u64, offset: u64, bytes: Arc<[u8]>) {
        self.live.write(offset, &bytes);
        self.unsynced.push(Change { moment, kind: ChangeKind::Write { offset, bytes } });
    }

    pub(super) fn set_len(&mut self, moment: u64, len_bytes: u64) {
        self.live.set_len(len_bytes);
        self.unsynced.push(Change { moment, kind: ChangeKind::SetLen { len_bytes } });
    }

    /// Stores the changes before the moment `before`.
    pub(super) fn sync(&mut self, before: u64) {
        let covered = self.unsynced.partition_point(|change| change.moment < before);
        if covered == self.unsynced.len() && !self.has_lost {
            self.unsynced.clear();
            self.stored = self.live.clone();
            return;
        }
        for change in self.unsynced.drain(..covered) {
            change.kind.apply(&mut self.stored);
        }
    }

    /// A sync that fails: some of the changes are stored, the others never will be, and reads do not show it.
    pub(super) fn fail_sync(&mut self, random: &mut Random) {
        if !self.unsynced.is_empty() {
            self.stored = self.survivor(random);
            self.unsynced.clear();
            self.has_lost = true;
        }
    }

    /// Returns the file after a power failure, with nothing unsynced.
    pub(super) fn crash(&self, random: &mut Random) -> FileNode {
        let content = self.survivor(random);
        FileNode { live: content.clone(), stored: content, unsynced: Vec::new(), has_lost: false }
    }

    pub(super) fn is_synced(&self) -> bool {
        self.unsynced.is_empty() && !self.has_lost
    }

    /// Changes what is seen, and stores it.
    pub(super) fn damage(&mut self, change: impl FnOnce(&mut Content)) {
        change(&mut self.live);
        *self = FileNode { live: self.live.clone(), stored: self.live.clone(), ..FileNode::default() };
    }

    /// Returns what a power failure leaves: `I1` and `I2` of the module above.
    fn survivor(&self, random: &mut Random) -> Content {
        let mut content = self.stored.clone();
        if self.unsynced.is_empty() {
            return content;
        }
        let lengths = self.lengths();
        let cuts = cuts(&lengths);
        let loss = Loss::draw(random, &self.unsynced);
        let kept_lengths = loss.draw_length(random);
        let kept =
            |sector| cuts.iter().fold(loss.kept(sector), |kept, cut| cut.clamp(kept, sector, kept_lengths));
        for (index, change) in self.unsynced.iter().enumerate() {
            match &change.kind {
                ChangeKind::Write { offset, bytes } => {
                    write_where(&mut content, *offset, bytes, |sector| index < kept(sector));
                }
                ChangeKind::SetLen { len_bytes } => {
                    if index < kept_lengths && content.len_bytes() > *len_bytes {
                        content.set_len(*len_bytes);
                    }
                }
            }
        }
        content.set_len(self.draw_len(random, &lengths, kept_lengths));
        content
    }

    /// Returns the length before the first unsynced change and after each.
    fn lengths(&self) -> Vec<u64> {
        let mut len_bytes = self.stored.len_bytes();
        let mut lengths = vec![len_bytes];
        for change in &self.unsynced {
            len_bytes = change.kind.len_after(len_bytes);
            lengths.push(len_bytes);
        }
        lengths
    }

    /// Returns the length after `kept_lengths` changes, or one that the next write reached on its way.
    fn draw_len(&self, random: &mut Random, lengths: &[u64], kept_lengths: usize) -> u64 {
        let len_bytes = lengths[kept_lengths];
        match self.unsynced.get(kept_lengths) {
            Some(Change { kind: ChangeKind::Write { .. }, .. })
                if lengths[kept_lengths + 1] > len_bytes && random.coin() =>
            {
                let first = len_bytes / SECTOR_BYTES + 1;
                let sectors = (lengths[kept_lengths + 1] / SECTOR_BYTES).saturating_sub(first);
                let reached = (first + random.below(sectors + 1)) * SECTOR_BYTES;
                reached.min(lengths[kept_lengths + 1])
            }
            _ => len_bytes,
        }
    }
}

impl ChangeKind {
    fn apply(&self, content: &mut Content) {
        match self {
            ChangeKind::Write { offset, bytes } => content.write(*offset, bytes),
            ChangeKind::SetLen { len_bytes } => content.set_len(*len_bytes),
        }
    }

    fn len_after(&self, len_bytes: u64) -> u64 {
        match self {
            ChangeKind::Write { bytes, .. } if bytes.is_empty() => len_bytes,
            ChangeKind::Write { offset, bytes } => len_bytes.max(offset + bytes.len() as u64),
            ChangeKind::SetLen { len_bytes } => *len_bytes,
        }
    }

    /// Returns the sectors written; none for a new length.
    fn sectors(&self) -> Range<u64> {
        match self {
            ChangeKind::Write { offset, bytes } => {
                offset / SECTOR_BYTES..(offset + bytes.len() as u64).div_ceil(SECTOR_BYTES)
            }
            ChangeKind::SetLen { .. } => 0..0,
        }
    }
}

/// A change that made the file shorter.
struct Cut {
    index: usize,
    /// The bytes that were cut off.
    bytes: Range<u64>,
}

impl Cut {
    /// Keeps a sector in step with the length: after a cut that survives it shows nothing older than the cut, and before one that
    /// does not survive nothing newer.
    fn clamp(&self, kept: usize, sector: u64, kept_lengths: usize) -> usize {
        if self.bytes.start >= (sector + 1) * SECTOR_BYTES || self.bytes.end <= sector * SECTOR_BYTES {
            kept
        } else if self.index < kept_lengths {
            kept.max(self.index + 1)
        } else {
            kept.min(self.index)
        }
    }
}

/// Returns the cuts among changes that led through these lengths.
fn cuts(lengths: &[u64]) -> Vec<Cut> {
    let steps = lengths.windows(2).enumerate();
    let cuts = steps.filter(|(_, step)| step[1] < step[0]);
    cuts.map(|(index, step)| Cut { index, bytes: step[1]..step[0] }).collect()
}

/// How many of the changes each sector shows.
enum Loss {
    /// One number for some sectors in a row, another for all others. Nothing lost, everything lost, a write torn in the middle, a hole in
    /// what was written last, and a late write without the lost ones before it are all of this shape.
    Row { sectors: Range<u64>, inside: usize, outside: usize },
    /// A number for each sector: all, none, or any.
    Scattered { seed: u64, all_in_16: u64, changes: usize },
}

impl Loss {
    fn draw(random: &mut Random, changes: &[Change]) -> Loss {
        let count = changes.len();
        let drawn = random.index(count);
        let touched = changes[drawn].kind.sectors();
        let cut = touched.start + random.below(touched.end - touched.start + 1);
        let one = cut.min(touched.end.saturating_sub(1))..cut.min(touched.end.saturating_sub(1)) + 1;
        let some = if random.coin() { touched } else { one };
        match random.below(10) {
            0 => Loss::Row { sectors: 0..0, inside: 0, outside: 0 },
            1 => Loss::Row { sectors: 0..0, inside: count, outside: count },
            2 | 3 => Loss::Row { sectors: 0..cut, inside: drawn + 1, outside: drawn },
            4 => Loss::Row { sectors: cut..u64::MAX, inside: drawn + 1, outside: drawn },
            5 => Loss::Row { sectors: some, inside: drawn, outside: count },
            6 => Loss::Row { sectors: some, inside: drawn + 1, outside: 0 },
            _ => {
                let all_in_16 = [1, 8, 15][random.index(3)];
                Loss::Scattered { seed: random.next(), all_in_16, changes: count }
            }
        }
    }

    /// Returns how many changes `sector` shows.
    fn kept(&self, sector: u64) -> usize {
        match self {
            Loss::Row { sectors, inside, outside } => {
                if sectors.contains(&sector) {
                    *inside
                } else {
                    *outside
                }
            }
            Loss::Scattered { seed, all_in_16, changes } => {
                let mut random = Random::new(mix(seed ^ sector));
                match random.below(16) {
                    drawn if drawn < *all_in_16 => *changes,
                    drawn if drawn % 2 == 0 => 0,
                    _ => random.index(changes + 1),
                }
            }
        }
    }

    /// Returns how many changes the length shows.
    fn draw_length(&self, random: &mut Random) -> usize {
        match self {
            Loss::Row { inside, outside, .. } => *if random.coin() { inside } else { outside },
            Loss::Scattered { changes, .. } if random.coin() => *changes,
            Loss::Scattered { changes, .. } => random.index(changes + 1),
        }
    }
}

/// Writes those sectors of `bytes` for which `is_kept` says so.
fn write_where(content: &mut Content, offset: u64, bytes: &[u8], is_kept: impl Fn(u64) -> bool) {
    let place = |position: u64| usize::try_from(position - offset).expect("a place in the bytes of a write");
    let end = offset + bytes.len() as u64;
    let mut start = offset;
    while start < end {
        let is_run_kept = is_kept(start / SECTOR_BYTES);
        let mut run_end = end.min((start / SECTOR_BYTES + 1) * SECTOR_BYTES);
        while run_end < end && is_kept(run_end / SECTOR_BYTES) == is_run_kept {
            run_end = end.min(run_end + SECTOR_BYTES);
        }
        if is_run_kept {
            content.write(start, &bytes[place(start)..place(run_end)]);
        }
        start = run_end;
    }
}
