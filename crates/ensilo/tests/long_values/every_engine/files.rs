//! Long values in files: the log, checkpoints, what is read beside a writer, backups, and what damage leaves.

use std::path::PathBuf;

use ensilo::{ColumnType, Error, Order, Result, Schema, SchemaChange, Value};
use ensilo_log::{DEFINITION_TABLES, SalvageLoss, salvage};

use super::*;

fn rows() -> Vec<Document> {
    (0..).zip(LENGTHS).map(|(id, len)| document(id, len)).collect()
}

fn logged_bytes(db: &Database) -> u64 {
    db.statistics().unwrap().durability.unwrap().log_entry_bytes
}

/// Makes changes of every kind, and returns the rows that there are then.
fn change(db: &Database, mut rows: Vec<Document>) -> Vec<Document> {
    let table = db.open_table::<Document>().unwrap();
    rows[7].visits = 9;
    rows[6].body = bytes(99, 3 * INLINE + 5);
    rows[5].body = bytes(5, 3);
    rows[4].notes = Some("n".repeat(2 * INLINE));
    db.transact(|tx| {
        table.update(tx, 7, |row: &mut Visits| row.visits = 9)?;
        table.replace(tx, &rows[6])?;
        table.update(tx, 5, |row: &mut Body| row.body = bytes(5, 3))?;
        table.update(tx, 4, |row: &mut Notes| row.notes.clone_from(&rows[4].notes))?;
        table.delete(tx, 3).map(drop)
    })
    .unwrap();
    rows.remove(3);
    rows
}

#[test]
fn long_values_come_back_from_the_log_from_checkpoints_and_from_both() {
    for checkpoints in [[false, false], [true, false], [false, true], [true, true]] {
        let disk = Arc::new(SimulatedDisk::new());
        let db = open(&disk);
        fill(&db, &rows());
        if checkpoints[0] {
            db.checkpoint().unwrap();
        }
        let expected = change(&db, rows());
        if checkpoints[1] {
            db.checkpoint().unwrap();
        }
        for seed in 0..2 {
            let db = open(&Arc::new(disk.fork().crash(seed)));
            assert_rows(&db, &expected);
            // It goes on.
            let table = db.open_table::<Document>().unwrap();
            db.transact(|tx| table.update(tx, 7, |row: &mut Body| row.body.truncate(INLINE + 1))).unwrap();
            let mut expected = expected.clone();
            expected.last_mut().unwrap().body.truncate(INLINE + 1);
            assert_rows(&db, &expected);
        }
        drop(db);
        assert_rows(&open(&disk), &expected);
    }
}

/// Returns all rows.
fn with_again(db: &Database) -> Vec<Document> {
    let table = db.open_table::<Document>().unwrap();
    db.read(|tx| table.scan().rows(tx)).unwrap()
}

#[test]
fn what_changes_beside_a_long_value_is_logged_without_it_also_behind_a_checkpoint() {
    const VALUE: usize = 4 << 20;
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let table = fill(&db, &[document(1, VALUE)]);
    for _ in 0..2 {
        let before = logged_bytes(&db);
        db.transact(|tx| table.update(tx, 1, |row: &mut Visits| row.visits += 1)).unwrap();
        db.transact(|tx| table.update(tx, 1, |row: &mut Kind| row.kind += 1)).unwrap();
        db.transact(|tx| table.update(tx, 1, |row: &mut Title| row.title.push('!'))).unwrap();
        db.transact(|tx| table.add(tx, 1, &Visits { visits: 3 })).unwrap();
        assert!(logged_bytes(&db) - before < 2000);
        // One byte of it: a piece.
        db.transact(|tx| table.update(tx, 1, |row: &mut Body| row.body[VALUE / 2] ^= 1)).unwrap();
        assert!(logged_bytes(&db) - before < 4 * INLINE as u64);
        db.checkpoint().unwrap();
    }
    let row = Document { visits: 8, kind: 3, title: "document 1!!".to_owned(), ..document(1, VALUE) };
    assert_rows(&open(&Arc::new(disk.fork().crash(1))), &[row]);
}

#[test]
fn whole_transactions_come_back_or_none_of_them() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let table = fill(&db, &[document(1, 3 * INLINE)]);
    for seed in 0..8 {
        let visible = db.request().durability(ensilo::Durability::Visible);
        let body = bytes(seed, (seed as usize % 4 + 1) * INLINE + 3);
        visible.transact(|tx| table.update(tx, 1, |row: &mut Body| row.body.clone_from(&body))).unwrap();
        let crashed = open(&Arc::new(disk.fork().crash(u64::from(seed))));
        let rows = with_again(&crashed);
        assert_rows(&crashed, &rows);
        let is_one = (0..=seed).any(|seed| rows[0].body == bytes(seed, (seed as usize % 4 + 1) * INLINE + 3));
        assert!(is_one || rows[0] == document(1, 3 * INLINE));
    }
}

#[test]
fn long_values_are_loaded_while_the_database_answers() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    fill(&db, &rows());
    db.checkpoint().unwrap();
    let expected = change(&db, rows());
    db.close().unwrap();
    let loading = || options().answer_while_loading(true);
    for id in [7, 6, 2] {
        let db = open_with(loading(), &disk);
        let table = db.open_table::<Document>().unwrap();
        let row = expected.iter().find(|row| row.id == id).unwrap();
        assert!(db.transact(|tx| table.get(tx, id)).unwrap().as_ref() == Some(row));
        assert_rows_of(&db, &expected);
    }
    // Writes before all is there.
    let db = open_with(loading(), &disk);
    let table = db.open_table::<Document>().unwrap();
    db.transact(|tx| table.update(tx, 7, |row: &mut Body| row.body = bytes(1, INLINE + 1))).unwrap();
    db.transact(|tx| table.delete(tx, 6)).unwrap();
    let mut expected = expected;
    expected.retain(|row| row.id != 6);
    expected.last_mut().unwrap().body = bytes(1, INLINE + 1);
    assert_rows_of(&db, &expected);
    db.wait_until_loaded().unwrap();
    assert_rows(&db, &expected);
    db.checkpoint().unwrap();
    db.close().unwrap();
    assert_rows(&open(&disk), &expected);
}

#[track_caller]
fn assert_rows_of(db: &Database, expected: &[Document]) {
    assert!(with_again(db) == expected);
}

#[test]
fn a_write_whose_pieces_cannot_be_loaded_is_undone_as_a_whole() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    fill(&db, &[document(1, 4 << 20), document(2, 9)]);
    db.checkpoint().unwrap();
    let number = db.statistics().unwrap().table("document").unwrap().long_values.as_ref().unwrap().number;
    db.close().unwrap();
    let blocks = blocks_of(&disk, u8::try_from(number).unwrap());
    // Not at an end of a part, where the opening would find it.
    let is_inside = |three: &&[(PathBuf, usize)]| three.iter().all(|block| block.0 == three[1].0);
    let (file, offset) = &blocks.windows(3).find(is_inside).unwrap()[1];
    disk.flip(file, (*offset as u64 + 100) * 8).unwrap();
    let db = open_with(options().answer_while_loading(true), &disk);
    let table = db.open_table::<Document>().unwrap();
    let mut refused = None;
    _ = db.transact(|tx| {
        // Whatever the closure makes of it.
        refused = table.replace(tx, &document(1, 3)).err();
        Ok(())
    });
    assert!(matches!(refused, Some(Error::LoadFailed(_))), "{refused:?}");
    // Before anything was written, where the background has found it out, or the transaction was undone: the value is still the long one.
    let refused = db.transact(|tx| table.get(tx, 1));
    assert!(matches!(refused, Err(Error::LoadFailed(_))), "{refused:?}");
    // It is known to be damaged now.
    let refused = db.transact(|tx| table.insert(tx, &document(3, 1)));
    assert!(matches!(refused, Err(Error::LoadFailed(_))), "{refused:?}");
    assert!(db.transact(|tx| table.get(tx, 2)).unwrap().unwrap() == document(2, 9));
}

#[test]
fn readers_beside_a_writer_and_backups_have_the_long_values() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    fill(&db, &rows());
    db.checkpoint().unwrap();
    let expected = change(&db, rows());
    assert_rows(&open_with(options().read_only(true).beside_writer(true), &disk), &expected);
    db.backup("/backup").unwrap();
    let copy: Database =
        options().open_with(Arc::clone(&disk) as Arc<dyn Disk>, Path::new("/backup")).unwrap();
    assert_rows(&copy, &expected);
    db.close().unwrap();
    assert_rows(&open_with(options().read_only(true), &disk), &expected);
}

/// Returns the blocks with records of a table in the checkpoint: the file, and where the payload lies. See `docs/format.md`.
fn blocks_of(disk: &SimulatedDisk, table: u8) -> Vec<(PathBuf, usize)> {
    let files = disk.files().into_iter().map(|(path, _)| path);
    let mut blocks = Vec::new();
    for file in files.filter(|path| path.extension().is_some_and(|extension| extension == "ckpt")) {
        let bytes = disk.contents(&file).unwrap();
        let mut offset = 4096;
        while bytes[offset + 16] >> 1 & 3 == 0 {
            let len = u32::from_le_bytes(bytes[offset + 8..][..4].try_into().unwrap()) as usize;
            if bytes[offset + 64] == table {
                blocks.push((file.clone(), offset + 64));
            }
            offset += 64 + len;
        }
    }
    blocks
}

fn save(disk: &Arc<SimulatedDisk>) -> SalvageLoss {
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    salvage(&disk, Path::new("/db"), Path::new("/saved")).unwrap().loss()
}

fn open_saved(options: Options, disk: &Arc<SimulatedDisk>) -> Database {
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new("/saved")).unwrap()
}

/// Salvages what is left of a database that has lost the definitions of its indexes, where its long values are named, and all records of these
/// tables.
fn save_without_indexes(disk: &Arc<SimulatedDisk>, also: &[u32]) {
    for table in also.iter().chain(&DEFINITION_TABLES[1..]) {
        let blocks = blocks_of(disk, u8::try_from(*table).unwrap());
        assert!(!blocks.is_empty(), "{table}");
        for (file, offset) in blocks {
            disk.flip(&file, (offset as u64 + 5) * 8).unwrap();
        }
    }
    assert_eq!(save(disk), SalvageLoss::Definitions);
}

/// Returns all rows of the table, whatever its columns and indexes are.
fn values(db: &Database) -> Vec<Vec<Value>> {
    let table = db.open_dynamic_table("document").unwrap();
    db.transact(|tx| table.scan().collect(tx)).unwrap()
}

fn create_indexes(db: &Database) {
    db.create_index("document", "by_kind", [("kind", Order::Ascending)]).unwrap();
    db.create_unique_index("document", "by_code", [("code", Order::Ascending)]).unwrap();
}

#[test]
fn rows_without_their_long_values_are_unreadable_by_every_way_and_can_be_replaced_or_deleted() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    fill(&db, &rows());
    db.checkpoint().unwrap();
    let number = db.statistics().unwrap().table("document").unwrap().long_values.as_ref().unwrap().number;
    db.close().unwrap();
    save_without_indexes(&disk, &[number]);
    let db = open_saved(options(), &disk);
    create_indexes(&db);
    let table = db.open_table::<Document>().unwrap();
    let (by_code, dynamic) =
        (table.index::<u32>("by_code").unwrap(), db.open_dynamic_table("document").unwrap());
    let refused: [Result<()>; 7] = [
        db.transact(|tx| table.get(tx, 7).map(drop)),
        db.transact(|tx| by_code.equal(1007).rows(tx).map(drop)),
        db.transact(|tx| dynamic.get(tx, &[7u32.into()]).map(drop)),
        db.transact(|tx| dynamic.scan().reverse().collect(tx).map(drop)),
        db.transact(|tx| dynamic.scan().by_index("by_code")?.reverse().collect(tx).map(drop)),
        db.transact(|tx| dynamic.scan().reverse().take_first(tx).map(drop)),
        db.read_stale(|tx| dynamic.encoded().get(tx, &[0, 0, 0, 7]).map(drop)),
    ];
    for (way, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(Error::RowUnreadable(_))), "{way}: {refused:?}");
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("in document at id = 7"), "{text}");
        assert!(
            text.ends_with("where a part of a long value is lost, replace the row or delete it"),
            "{text}"
        );
    }
    let titles = db.transact(|tx| table.scan().columns::<Title>().rows(tx)).unwrap();
    assert_eq!(titles.len(), 8);
    db.transact(|tx| {
        table.update(tx, 7, |row: &mut Visits| row.visits += 1)?;
        table.replace(tx, &document(7, 3 * INLINE))?;
        table.upsert(tx, &document(6, 5))?;
        (4..6).try_for_each(|id| table.delete(tx, id).map(drop))
    })
    .unwrap();
    let mut expected = rows();
    expected.drain(4..);
    expected.extend([document(6, 5), document(7, 3 * INLINE)]);
    assert_rows_of(&db, &expected);
    db.close().unwrap();
    assert_rows_of(&open_saved(options(), &disk), &expected);
}

#[test]
fn long_values_that_the_catalog_does_not_name_are_not_taken_from_another_table() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let fixed = ColumnType::FixedText { len_max: 8 };
    let create = |name: &str, column_type| {
        let schema = Schema::builder(name).column("id", ColumnType::U32).column("name", column_type);
        db.create_dynamic_table(schema.key([("id", Order::Ascending)]).build().unwrap()).unwrap()
    };
    create("document", fixed);
    let other = create("other", fixed);
    db.transact(|tx| other.insert(tx, &[1u32.into(), "other".into()])).unwrap();
    // Its long values come behind the other table, and before one that has none yet.
    db.change_table("document", &SchemaChange::new().widen("name", ColumnType::Text)).unwrap();
    create("late", ColumnType::Text);
    let table = db.open_dynamic_table("document").unwrap();
    let long = Value::from("y".repeat(3 * INLINE));
    db.transact(|tx| {
        table.insert(tx, &[1u32.into(), long.clone()])?;
        table.insert(tx, &[2u32.into(), "short".into()])
    })
    .unwrap();
    db.checkpoint().unwrap();
    db.close().unwrap();
    save_without_indexes(&disk, &[]);
    let db = open_saved(options(), &disk);
    let (table, other) =
        (db.open_dynamic_table("document").unwrap(), db.open_dynamic_table("other").unwrap());
    let refused = db.transact(|tx| table.get(tx, &[1u32.into()]));
    assert!(matches!(refused, Err(Error::RowUnreadable(_))), "{refused:?}");
    assert_eq!(db.transact(|tx| table.get(tx, &[2u32.into()])).unwrap().unwrap()[1], "short".into());
    assert_eq!(db.transact(|tx| other.get(tx, &[1u32.into()])).unwrap().unwrap()[1], "other".into());
    // A change of the columns makes a place for new ones, each table's own.
    for (name, text) in [("document", "z"), ("late", "u")] {
        db.change_table(name, &SchemaChange::new().add("more", ColumnType::U8, 1u8)).unwrap();
        let table = db.open_dynamic_table(name).unwrap();
        let text = Value::from(text.repeat(3 * INLINE));
        db.transact(|tx| table.upsert(tx, &[1u32.into(), text.clone(), 2u8.into()])).unwrap();
    }
    db.close().unwrap();
    let db = open_saved(options(), &disk);
    assert!(values(&db)[0][1] == Value::from("z".repeat(3 * INLINE)));
    assert_eq!(pieces(&db), 3);
}

#[test]
fn a_row_that_has_lost_a_piece_is_unreadable_and_can_be_replaced_or_deleted() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let big = |id: u32| document(id, 4 << 20);
    fill(&db, &[document(0, 9), big(1), big(2), document(3, 9)]);
    db.checkpoint().unwrap();
    let number = db.statistics().unwrap().table("document").unwrap().long_values.as_ref().unwrap().number;
    db.close().unwrap();
    let blocks = blocks_of(&disk, u8::try_from(number).unwrap());
    assert!(blocks.len() > 20, "{}", blocks.len());
    // In the midst of each value.
    for at in [blocks.len() / 4, 3 * blocks.len() / 4] {
        let (file, offset) = &blocks[at];
        disk.flip(file, (*offset as u64 + 100) * 8).unwrap();
    }
    assert_eq!(save(&disk), SalvageLoss::Rows);
    let db = open_saved(options(), &disk);
    let table = db.open_table::<Document>().unwrap();
    let dynamic = db.open_dynamic_table("document").unwrap();
    for id in [1, 2] {
        let refused: Result<_> = db.transact(|tx| table.get(tx, id));
        assert!(matches!(refused, Err(Error::RowUnreadable(_))), "{refused:?}");
        let refused = db.read_stale(|tx| table.get(tx, id));
        assert!(matches!(refused, Err(Error::RowUnreadable(_))), "{refused:?}");
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(&format!("in document at id = {id};")), "{text}");
        // What lies in the row is there.
        let columns = db.transact(|tx| dynamic.get_columns(tx, &[id.into()], &["title", "code"])).unwrap();
        assert_eq!(columns.unwrap(), [format!("document {id}").into(), (1000 + id).into()]);
    }
    assert!(matches!(db.transact(|tx| table.scan().rows(tx)), Err(Error::RowUnreadable(_))));
    let titles = db.transact(|tx| table.scan().columns::<Title>().rows(tx)).unwrap();
    assert_eq!(titles.len(), 4);
    db.transact(|tx| table.delete(tx, 1)).unwrap();
    db.transact(|tx| table.replace(tx, &document(2, 3 * INLINE))).unwrap();
    assert_rows(&db, &[document(0, 9), document(2, 3 * INLINE), document(3, 9)]);
}
