//! Cold records, byte by byte; the layout stands in the module above.

use std::io;

use ensilo_disk::Checksum;
use ensilo_engine::{ROW_LEN_MAX, RawRow, RoundedWords, RowRef, TableId};
use ensilo_sync::atomic::AtomicU64;

use super::word::ColdWord;
use crate::stamp::Stamp;

const WORD_BYTES: usize = 8;

/// Words in front of the row.
pub(super) const HEAD_WORDS: usize = 5;

/// A row that leaves memory.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Leaving<'a> {
    /// The address of its slot.
    pub(crate) slot: usize,
    pub(crate) table: TableId,
    pub(crate) stamp: Stamp,
    /// The largest stamp of a reader.
    pub(crate) predecessor: Stamp,
    pub(crate) row: RawRow<'a>,
}

/// Returns how long the record of a row is: head and row, rounded up.
fn record_words(row_len: usize) -> RoundedWords {
    RoundedWords::at_least(HEAD_WORDS + row_len.div_ceil(WORD_BYTES))
}

impl Leaving<'_> {
    pub(super) fn len_words(&self) -> RoundedWords {
        record_words(self.row.len_bytes())
    }

    /// Appends the record, which is to lie at `place`, and for which `bytes` has room.
    pub(super) fn encode(&self, place: u64, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&(self.row.len_bytes() as u32).to_le_bytes());
        let head = [self.slot as u64, u64::from(self.table.0), self.stamp.get(), self.predecessor.get()];
        for word in head.into_iter().chain(self.row.all_words()) {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.resize(start + self.len_words().get() * WORD_BYTES, 0);
        let crc = checksum(place, &bytes[start + 4..]);
        bytes[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// A record that was read back.
#[derive(Debug)]
pub(crate) struct ColdRecord(Vec<u8>);

impl ColdRecord {
    /// Returns the record that these bytes are, which were read from `place` for the record of a slot.
    pub(super) fn parse(bytes: Vec<u8>, place: ColdWord, slot: usize) -> io::Result<Self> {
        let is_as_long = Self::len_of_first(&bytes).is_some_and(|len| bytes.len() == len.get() * WORD_BYTES);
        let record = ColdRecord(bytes);
        if is_as_long && record.is_sound(place.place()) && record.slot() == slot {
            return Ok(record);
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a row that left memory is damaged there"))
    }

    /// Returns how long the record at the beginning of `bytes` says that it is, if that can be.
    pub(super) fn len_of_first(bytes: &[u8]) -> Option<RoundedWords> {
        let row_len = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
        (row_len <= ROW_LEN_MAX).then(|| record_words(row_len))
    }

    /// Returns the record at the beginning of `bytes`, which were read from `place`, and its length; `None` if there is no whole one.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub(super) fn first_of(bytes: &[u8], place: u64) -> io::Result<Option<(Self, RoundedWords)>> {
        let Some(len) = Self::len_of_first(bytes) else { return Ok(None) };
        let Some(bytes) = bytes.get(..len.get() * WORD_BYTES) else { return Ok(None) };
        let mut own = Vec::new();
        own.try_reserve_exact(bytes.len())?;
        own.extend_from_slice(bytes);
        let record = ColdRecord(own);
        Ok(record.is_sound(place).then_some((record, len)))
    }

    /// Returns whether a record that is as long as it says is the one that was written to `place`.
    fn is_sound(&self, place: u64) -> bool {
        checksum(place, &self.0[4..]) == self.word(0) as u32
    }

    fn word(&self, at: usize) -> u64 {
        match self.0[at * WORD_BYTES..].first_chunk() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => unreachable!("a record has a whole head"),
        }
    }

    pub(crate) fn len_bytes(&self) -> usize {
        (self.word(0) >> 32) as usize
    }

    pub(crate) fn slot(&self) -> usize {
        self.word(1) as usize
    }

    pub(crate) fn table(&self) -> TableId {
        TableId(self.word(2) as u32)
    }

    pub(crate) fn stamp(&self) -> Stamp {
        Stamp::new(self.word(3))
    }

    pub(crate) fn predecessor(&self) -> Stamp {
        Stamp::new(self.word(4))
    }

    /// Returns the row's bytes.
    pub(crate) fn row(&self) -> &[u8] {
        &self.0[HEAD_WORDS * WORD_BYTES..][..self.len_bytes()]
    }

    /// Computes a value from the row.
    pub(crate) fn read<R>(&self, read: impl FnOnce(RowRef<'_>) -> R) -> R {
        let words: Vec<_> = self.words().map(AtomicU64::new).collect();
        read(RawRow::new(&words, self.len_bytes()).committed_in(self.stamp().tid().epoch()))
    }

    /// Returns the row's words for a [`Leaving`].
    ///
    /// # Errors
    /// The system has no memory for them.
    pub(super) fn own_words(&self) -> io::Result<Vec<AtomicU64>> {
        let mut words = Vec::new();
        words.try_reserve_exact(self.len_bytes().div_ceil(WORD_BYTES))?;
        words.extend(self.words().map(AtomicU64::new));
        Ok(words)
    }

    /// Returns the row's words.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        (HEAD_WORDS..HEAD_WORDS + self.len_bytes().div_ceil(WORD_BYTES)).map(|at| self.word(at))
    }
}

fn checksum(place: u64, bytes: &[u8]) -> u32 {
    let mut digest = Checksum::default();
    digest.update(&place.to_le_bytes());
    digest.update(bytes);
    digest.value()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const SEVEN: RoundedWords = RoundedWords::at_least(7);

    fn encoded(place: u64) -> Vec<u8> {
        let words = [AtomicU64::new(7), AtomicU64::new(0x0102_0304)];
        let (stamp, predecessor) = (Stamp::new(12), Stamp::new(9));
        let row = RawRow::new(&words, 12);
        let leaving = Leaving { slot: 0x5000, table: TableId(3), stamp, predecessor, row };
        let mut bytes = Vec::new();
        leaving.encode(place, &mut bytes);
        assert_eq!(bytes.len(), leaving.len_words().get() * WORD_BYTES);
        bytes
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = ColdRecord::parse(encoded(70), ColdWord::new(70, SEVEN), 0x5000).unwrap();
        assert_eq!((record.table(), record.slot(), record.len_bytes()), (TableId(3), 0x5000, 12));
        assert_eq!((record.stamp(), record.predecessor()), (Stamp::new(12), Stamp::new(9)));
        assert_eq!(record.words().collect::<Vec<_>>(), [7, 0x0102_0304]);
        assert_eq!(record.row(), [7, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1]);
    }

    #[test]
    fn a_long_record_is_rounded_up_and_read_as_it_was_written() {
        let words: Vec<_> = (0..1500).map(AtomicU64::new).collect();
        let row = RawRow::new(&words, 1500 * WORD_BYTES);
        let (stamp, predecessor) = (Stamp::new(12), Stamp::new(9));
        let leaving = Leaving { slot: 0x5000, table: TableId(3), stamp, predecessor, row };
        let mut bytes = Vec::new();
        leaving.encode(70, &mut bytes);
        let len = leaving.len_words();
        assert!(len.get() > HEAD_WORDS + 1500 && bytes.len() == len.get() * WORD_BYTES);
        let (first, first_len) = ColdRecord::first_of(&bytes, 70).unwrap().unwrap();
        let record = ColdRecord::parse(bytes, ColdWord::new(70, len), 0x5000).unwrap();
        assert!(record.words().eq(0..1500) && first.words().eq(0..1500) && first_len == len);
    }

    #[test]
    fn no_bit_of_a_record_changes_unnoticed() {
        let bytes = encoded(70);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(ColdRecord::parse(damaged, ColdWord::new(70, SEVEN), 0x5000).is_err(), "bit {bit}");
        }
        assert!(ColdRecord::parse(bytes.clone(), ColdWord::new(71, SEVEN), 0x5000).is_err(), "another place");
        assert!(ColdRecord::parse(bytes, ColdWord::new(70, SEVEN), 0x5008).is_err(), "another record's");
    }
}
