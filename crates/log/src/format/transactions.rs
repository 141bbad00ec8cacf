//! Reading log entries back. Any bytes are accepted; what is no entry is an error.

use ensilo_epoch::Epoch;

use super::cursor::{Decoder, Malformed};
use super::entry::{DELETE, LEFT_OUT, LONG_KEY, PATCH, PUT};

/// The bits of a TID below its sequence, which are 0 in files.
const STATUS_BITS: u32 = 3;
/// The bits of a TID below its epoch: 17 of the sequence and 3 of the status.
const BITS_BELOW_EPOCH: u32 = u64::BITS - Epoch::BITS;

/// Returns the epoch of a TID: the bits above the sequence and the status.
#[inline]
#[must_use]
pub const fn epoch_of(tid: u64) -> Epoch {
    Epoch::new(tid >> BITS_BELOW_EPOCH)
}

/// Returns the sequence of a TID: its number within the epoch.
#[inline]
#[must_use]
pub const fn sequence_of(tid: u64) -> u64 {
    (tid & ((1 << BITS_BELOW_EPOCH) - 1)) >> STATUS_BITS
}

/// The transactions in the payload of a block, in the order in which they were logged. After an error there
/// are no more.
#[derive(Debug, Clone)]
pub struct Transactions<'a> {
    decoder: Decoder<'a>,
    /// Writes of the transaction begun last that were not read yet.
    pending: u64,
    tid: u64,
}

/// A write of a transaction.
#[derive(Debug, Clone)]
pub struct Write<'a> {
    /// The TID of the transaction.
    pub tid: u64,
    /// The table.
    pub table: u32,
    /// The key within the table.
    pub key: &'a [u8],
    /// What became of the row.
    pub change: Change<'a>,
}

/// What became of a row.
#[derive(Debug, Clone)]
pub enum Change<'a> {
    /// It is this now.
    Put(&'a [u8]),
    /// These words of it are now these.
    Patch(PatchWords<'a>),
    /// It is gone.
    Delete,
}

/// The words of a patch: the index within the row and the value.
#[derive(Debug, Clone)]
pub struct PatchWords<'a> {
    decoder: Decoder<'a>,
    pairs: usize,
}

impl<'a> Transactions<'a> {
    /// Reads the payload of a block.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Transactions<'a> {
        Transactions { decoder: Decoder::new(payload), pending: 0, tid: 0 }
    }

    /// Returns the next write, of this transaction or the next that has one; `None` at the end.
    ///
    /// # Errors
    /// [`Malformed`]; the payload is of no use from there on.
    #[inline]
    pub fn next_write(&mut self) -> Result<Option<Write<'a>>, Malformed> {
        while self.pending == 0 {
            if self.decoder.is_empty() {
                return Ok(None);
            }
            self.tid = self.decoder.u64()?;
            self.pending = self.decoder.varint()?;
        }
        self.pending -= 1;
        self.write().map(Some)
    }

    #[inline]
    fn write(&mut self) -> Result<Write<'a>, Malformed> {
        let head = self.decoder.u8()?;
        if head == LEFT_OUT {
            return Err(Malformed::LeftOut);
        }
        let key_len = match head >> 2 {
            LONG_KEY => match self.decoder.varint()? {
                len if len < u64::from(LONG_KEY) => return Err(Malformed::Number),
                len => len,
            },
            short => u64::from(short),
        };
        let table = self.decoder.varint_u32()?;
        let key = self.decoder.bytes(key_len)?;
        let change = match head & 3 {
            PUT => {
                let row_len = self.decoder.varint()?;
                Change::Put(self.decoder.bytes(row_len)?)
            }
            PATCH => Change::Patch(self.patch_words()?),
            DELETE => Change::Delete,
            _ => return Err(Malformed::Kind),
        };
        Ok(Write { tid: self.tid, table, key, change })
    }

    /// Walks over the pairs once, so that a later read meets no error.
    #[inline]
    fn patch_words(&mut self) -> Result<PatchWords<'a>, Malformed> {
        let pairs = usize::try_from(self.decoder.varint()?).map_err(|_| Malformed::Number)?;
        let words = PatchWords { decoder: self.decoder.clone(), pairs };
        for _ in 0..pairs {
            self.decoder.varint_u32()?;
            self.decoder.u64()?;
        }
        Ok(words)
    }
}

impl Iterator for PatchWords<'_> {
    type Item = (u32, u64);

    #[inline]
    fn next(&mut self) -> Option<(u32, u64)> {
        self.pairs = self.pairs.checked_sub(1)?;
        Some((self.decoder.varint_u32().ok()?, self.decoder.u64().ok()?))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.pairs, Some(self.pairs))
    }
}

impl ExactSizeIterator for PatchWords<'_> {}

#[cfg(test)]
mod tests {
    use super::super::cursor::Cursor;
    use super::super::entry::*;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Plan {
        Put(Vec<u8>),
        Patch(Vec<(u32, u64)>),
        Delete,
    }

    type Planned = (u64, Vec<(u32, Vec<u8>, Plan)>);

    fn transactions() -> impl Strategy<Value = Vec<Planned>> {
        let change = prop_oneof![
            vec(any::<u8>(), 0..200).prop_map(Plan::Put),
            vec((any::<u32>().prop_map(|index| index >> (index % 32)), any::<u64>()), 0..9)
                .prop_map(Plan::Patch),
            Just(Plan::Delete),
        ];
        let table = any::<u32>().prop_map(|table| table >> (table % 32));
        vec((any::<u64>(), vec((table, vec(any::<u8>(), 0..130), change), 0..5)), 0..5)
    }

    fn words(row: &[u8]) -> Vec<u64> {
        row.chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            })
            .collect()
    }

    fn bytes_of(plan: &[Planned]) -> usize {
        let write = |(table, key, change): &(u32, Vec<u8>, Plan)| match change {
            Plan::Put(row) => put_bytes(*table, key.len(), row.len()),
            Plan::Patch(pairs) => {
                let exact = patch_bytes(*table, key.len(), pairs.iter().map(|pair| pair.0));
                assert!(exact <= patch_bytes_max(*table, key.len(), pairs.len()));
                exact
            }
            Plan::Delete => delete_bytes(*table, key.len()),
        };
        plan.iter()
            .map(|(_, writes)| transaction_bytes(writes.len()) + writes.iter().map(write).sum::<usize>())
            .sum()
    }

    fn encode(plan: &[Planned]) -> Vec<u8> {
        let mut bytes = vec![0; bytes_of(plan)];
        let mut cursor = Cursor::new(&mut bytes);
        for (tid, writes) in plan {
            encode_transaction(&mut cursor, *tid, writes.len());
            for (table, key, change) in writes {
                match change {
                    Plan::Put(row) => encode_put(&mut cursor, *table, key, row.len(), words(row)),
                    Plan::Patch(pairs) => encode_patch(&mut cursor, *table, key, pairs.iter().copied()),
                    Plan::Delete => encode_delete(&mut cursor, *table, key),
                }
            }
        }
        assert_eq!(cursor.filled(), bytes.len());
        bytes
    }

    fn plan_of(write: &Write<'_>) -> (u64, u32, Vec<u8>, Plan) {
        let change = match &write.change {
            Change::Put(row) => Plan::Put(row.to_vec()),
            Change::Patch(words) => Plan::Patch(words.clone().collect()),
            Change::Delete => Plan::Delete,
        };
        (write.tid, write.table, write.key.to_vec(), change)
    }

    proptest! {
        #[test]
        fn entries_come_back_in_the_bytes_foretold(plan in transactions()) {
            let bytes = encode(&plan);
            let mut reader = Transactions::new(&bytes);
            for (tid, writes) in plan {
                for (table, key, change) in writes {
                    let read = reader.next_write().unwrap().unwrap();
                    prop_assert_eq!(plan_of(&read), (tid, table, key, change));
                }
            }
            prop_assert!(reader.next_write().unwrap().is_none());
        }

        #[test]
        fn a_patched_row_is_logged_as_it_is_after_the_change(
            row in vec(any::<u8>(), 1..200),
            pairs in vec((any::<prop::sample::Index>(), any::<u64>()), 0..9),
        ) {
            let mut patched = words(&row);
            let pairs: Vec<_> =
                pairs.iter().map(|(index, word)| (index.index(patched.len()) as u32, *word)).collect();
            pairs.iter().for_each(|&(index, word)| patched[index as usize] = word);
            let encoded = |encode: &dyn Fn(&mut Cursor<'_>)| {
                let mut bytes = vec![0; put_bytes(3, 3, row.len())];
                encode(&mut Cursor::new(&mut bytes));
                bytes
            };
            prop_assert_eq!(
                encoded(&|cursor| encode_patched(cursor, 3, b"key", row.len(), words(&row), pairs.iter().copied())),
                encoded(&|cursor| encode_put(cursor, 3, b"key", row.len(), patched.iter().copied()))
            );
        }

        #[test]
        fn arbitrary_bytes_are_read_to_an_end(bytes in vec(any::<u8>(), 0..400)) {
            let mut reader = Transactions::new(&bytes);
            while let Ok(Some(write)) = reader.next_write() {
                let _ = plan_of(&write);
            }
        }

        #[test]
        fn damaged_entries_are_read_to_an_end(plan in transactions(), at: prop::sample::Index, value: u8) {
            let mut bytes = encode(&plan);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let mut reader = Transactions::new(&bytes);
            while let Ok(Some(write)) = reader.next_write() {
                let _ = plan_of(&write);
            }
        }
    }

    #[test]
    fn writes_that_were_left_out_are_an_error() {
        let mut bytes = [0; LEFT_OUT_BYTES];
        let mut cursor = Cursor::new(&mut bytes);
        encode_transaction(&mut cursor, 7 << 20, 1);
        encode_left_out(&mut cursor);
        assert_eq!(cursor.filled(), LEFT_OUT_BYTES);
        assert_eq!(Transactions::new(&bytes).next_write().unwrap_err(), Malformed::LeftOut);
    }

    #[test]
    fn a_cut_entry_is_an_error() {
        let bytes = encode(&[(7 << 20, vec![(1, b"key".to_vec(), Plan::Put(vec![1, 2, 3]))])]);
        assert_eq!((epoch_of(7 << 20 | 5 << 3), sequence_of(7 << 20 | 5 << 3)), (Epoch::new(7), 5));
        for len in 1..bytes.len() {
            assert_eq!(Transactions::new(&bytes[..len]).next_write().unwrap_err(), Malformed::Short);
        }
    }
}
