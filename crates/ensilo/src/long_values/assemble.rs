//! Putting rows together with the long values that a statement asks for.

use ensilo_disk::Checksum;
use ensilo_engine::{Abort, AbortReason, Read, RowRef};
use ensilo_row::{KeyBuf, LongValue, Malformed, RowBuf, Slot};

use super::form::{RowForm, Wants};
use super::store::{LongStore, LongValues};
use super::{PIECE_LEN, pieces_of, set_piece_key};
use crate::older_rows::LONG_ROW_BYTES;
use crate::transaction::Inner;
use crate::{Error, Result};

/// Why a row was not put together.
enum Failure {
    /// It and its pieces do not fit each other.
    Misfit,
    /// Something that statements end with.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Self {
        Failure::Misfit
    }
}

impl<Raw: Read> Inner<'_, Raw> {
    /// Returns what `decode` makes of a row under `key` that is stored as the short one, once that has the values that are asked for.
    #[cold]
    pub(crate) fn decode_assembled<R>(
        &mut self,
        form: RowForm<'_, Raw::Store, impl Wants>,
        key: &KeyBuf,
        short: &RowBuf,
        decode: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<R> {
        let mut whole = std::mem::take(&mut self.local.converted.row);
        let assembled = self.assemble(form, key, short, &mut whole);
        self.local.converted.row = whole;
        assembled.map(|()| decode(self.local.converted.as_row()))
    }

    /// Makes `whole` the short row with the values that are asked for.
    pub(super) fn assemble(
        &mut self,
        form: RowForm<'_, Raw::Store, impl Wants>,
        key: &KeyBuf,
        short: &RowBuf,
        whole: &mut RowBuf,
    ) -> Result<()> {
        let Some(long) = form.long else {
            whole.set_words(short);
            return Ok(());
        };
        let outcome = self.try_assemble(form, long, key, short, whole);
        if whole.capacity_bytes() > LONG_ROW_BYTES {
            self.local.note_long_row();
        }
        outcome.map_err(|failure| match failure {
            Failure::Error(error) => error,
            Failure::Misfit => self.misfit(&long.store, key),
        })
    }

    fn try_assemble(
        &mut self,
        form: RowForm<'_, Raw::Store, impl Wants>,
        long: &LongValues<Raw::Store>,
        key: &KeyBuf,
        short: &RowBuf,
        whole: &mut RowBuf,
    ) -> Result<(), Failure> {
        whole.begin_variables(short, long.fixed_len);
        for &(column, slot) in &long.columns {
            match slot.long_value(short)? {
                Some(value) if form.wanted.has(column) => {
                    self.append_value(&long.store, key, (slot, value), whole)?;
                }
                _ => whole.append_variable_of(slot, short)?,
            }
        }
        Ok(())
    }

    /// Appends a long value, piece by piece.
    fn append_value(
        &mut self,
        store: &LongStore<Raw::Store>,
        key: &KeyBuf,
        (slot, value): (Slot, LongValue),
        whole: &mut RowBuf,
    ) -> Result<(), Failure> {
        let (mut checksum, mut left) = (Checksum::default(), value.len_bytes as usize);
        let (mut piece_key, mut bytes) = (KeyBuf::new(), Vec::new());
        for piece in 0..pieces_of(left) {
            set_piece_key(&mut piece_key, key, value.number, piece);
            if !self.read_piece(store, &piece_key, &mut bytes)? || bytes.len() != left.min(PIECE_LEN) {
                return Err(Failure::Misfit);
            }
            checksum.update(&bytes);
            whole.append_part(&bytes);
            left -= bytes.len();
        }
        whole.end_variable(slot, false);
        if checksum.value() == value.checksum { Ok(()) } else { Err(Failure::Misfit) }
    }

    /// Makes `bytes` those of a piece, and says whether there is one.
    fn read_piece(
        &mut self,
        store: &LongStore<Raw::Store>,
        key: &KeyBuf,
        bytes: &mut Vec<u8>,
    ) -> Result<bool> {
        #[cfg(test)]
        tests::PIECES_READ.set(tests::PIECES_READ.get() + 1);
        self.load_key(&store.pieces, key)?;
        let copy = |row: RowRef<'_>| {
            bytes.clear();
            row.all_words().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            bytes.truncate(row.len_bytes());
        };
        Ok(self.get(&store.pieces.store, RowForm::STORED, key, copy)?.is_some())
    }

    /// Ends the transaction at a row that does not fit its pieces: by a conflict if what was read does not belong together.
    fn misfit(&mut self, store: &LongStore<Raw::Store>, key: &KeyBuf) -> Error {
        let damage = || Abort::new(AbortReason::RowUnreadable, store.table, key.as_bytes());
        let abort = self.raw.check_reads().err().unwrap_or_else(damage);
        self.lost(abort)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use ensilo_engine::Write as _;

    use super::*;
    use crate::long_values::INLINE_LEN_MAX;
    use crate::{Columns, Database, Row};

    thread_local! {
        /// How many pieces were read to put rows together.
        pub(super) static PIECES_READ: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "document", index(name = "by_kind", columns(kind)))]
    struct Document {
        #[row(key)]
        id: u32,
        kind: u32,
        visits: u64,
        title: String,
        body: Vec<u8>,
        notes: String,
    }

    #[derive(Clone, Debug, PartialEq, Columns)]
    #[columns(of = Document)]
    struct Others {
        kind: u32,
        visits: u64,
        title: String,
    }

    #[derive(Clone, Debug, PartialEq, Columns)]
    #[columns(of = Document)]
    struct Visits {
        visits: u64,
    }

    #[derive(Clone, Debug, PartialEq, Columns)]
    #[columns(of = Document)]
    struct Notes {
        notes: String,
    }

    #[test]
    fn pieces_are_read_where_their_value_is_asked_for() {
        let db = Database::in_memory().unwrap();
        let table = db.create_table::<Document>().unwrap();
        let values = db.open_dynamic_table("document").unwrap();
        let by_kind = table.index::<u32>("by_kind").unwrap();
        let (body, notes) = (vec![7; 3 * INLINE_LEN_MAX], "n".repeat(2 * INLINE_LEN_MAX));
        let row = Document { id: 1, kind: 2, visits: 3, title: "title".to_owned(), body, notes };
        let read = |statement: &dyn Fn(&mut crate::Transaction<'_>) -> Result<()>| {
            let before = PIECES_READ.get();
            db.transact(|tx| statement(tx)).unwrap();
            PIECES_READ.get() - before
        };
        let key = [1u32.into()];
        let of_others = [
            read(&|tx| table.insert(tx, &row).map(drop)),
            read(&|tx| table.get_columns::<Others>(tx, 1).map(drop)),
            read(&|tx| table.scan().columns::<Others>().rows(tx).map(drop)),
            read(&|tx| by_kind.scan().columns::<Others>().rows(tx).map(drop)),
            read(&|tx| values.get_columns(tx, &key, &["title", "visits"]).map(drop)),
            read(&|tx| values.scan().columns(&["title"])?.collect(tx).map(drop)),
            read(&|tx| table.contains(tx, 1).map(drop)),
            read(&|tx| table.scan().count(tx).map(drop)),
            read(&|tx| table.update(tx, 1, |row: &mut Visits| row.visits += 1)),
            read(&|tx| table.update(tx, 1, |row: &mut Others| row.title.push('!'))),
            read(&|tx| values.update(tx, &key, &[("title", "another".into()), ("kind", 4u32.into())])),
            read(&|tx| table.add(tx, 1, &Visits { visits: 1 })),
        ];
        assert_eq!(of_others, [0; 12]);
        assert_eq!(read(&|tx| table.get_columns::<Notes>(tx, 1).map(drop)), 2);
        assert_eq!(read(&|tx| table.update(tx, 1, |row: &mut Notes| row.notes.push('!'))), 2);
        assert_eq!(read(&|tx| values.get_columns(tx, &key, &["body"]).map(drop)), 3);
        assert_eq!(read(&|tx| table.get(tx, 1).map(drop)), 6);
        assert_eq!(read(&|tx| table.delete(tx, 1).map(drop)), 0);
    }

    /// Damages a piece of the body of the only row, beside its row.
    fn damage(db: &Database, table: &crate::Table<Document>, piece: usize, bytes: Option<&[u8]>) {
        db.transact(|tx| {
            let long = table.core.long.as_ref().unwrap();
            let (mut key, mut row_key) = (KeyBuf::new(), KeyBuf::new());
            row_key.set(&1u32.to_be_bytes());
            set_piece_key(&mut key, &row_key, 0, piece);
            let pieces = &long.store.pieces.store;
            let found = tx.inner.find_to_write(pieces, &key)?.unwrap();
            match bytes {
                None => tx.inner.delete(pieces, found),
                Some(bytes) => {
                    let mut record = RowBuf::new();
                    record.set_bytes(bytes);
                    tx.inner.raw.put(found, record.words(), record.len_bytes()).unwrap();
                    Ok(())
                }
            }
        })
        .unwrap();
    }

    #[test]
    fn a_row_that_its_pieces_do_not_fit_is_never_shown() {
        let body = vec![7; 2 * INLINE_LEN_MAX + 1];
        let row = Document { id: 1, kind: 2, visits: 3, title: String::new(), body, notes: String::new() };
        let mut other = vec![7; INLINE_LEN_MAX];
        other[INLINE_LEN_MAX / 2] = 8;
        for (piece, bytes) in [(0, Some(&other[..])), (1, Some(&other[1..])), (2, Some(&[7, 7])), (1, None)] {
            let db = Database::in_memory().unwrap();
            let table = db.create_table::<Document>().unwrap();
            db.transact(|tx| table.insert(tx, &row)).unwrap();
            damage(&db, &table, piece, bytes);
            let refused = db.transact(|tx| table.get(tx, 1));
            assert!(matches!(refused, Err(Error::RowUnreadable(_))), "{piece}: {refused:?}");
            let others = db.transact(|tx| table.get_columns::<Others>(tx, 1)).unwrap().unwrap();
            assert_eq!(others.visits, 3);
            db.transact(|tx| table.replace(tx, &row)).unwrap();
            assert!(db.transact(|tx| table.get(tx, 1)).unwrap().as_ref() == Some(&row), "{piece}");
        }
    }
}
