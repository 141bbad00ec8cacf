//! Damage that is found when a block is loaded.

use std::sync::mpsc::channel;

use ensilo::{DegradedReason, Error};

use super::*;

/// Returns the keys of items in the blocks as they are read back: the first and the last one of each.
fn damaged(at: impl Fn(&Block) -> u64) -> (Arc<SimulatedDisk>, Vec<u8>) {
    let disk = left_behind(3000, 1);
    let blocks = item_blocks(&disk);
    // Neither the first nor the last one of its part.
    let block = &blocks[2];
    assert!([&blocks[1], &blocks[3]].iter().any(|other| other.file == block.file));
    disk.flip(&block.file, (block.offset + at(block)) * 8 + 3).unwrap();
    (disk, block.payload.clone())
}

/// Returns an item of the block: its payload begins with the table, the length of the key and the key.
fn id_in(payload: &[u8]) -> u32 {
    u32::from_be_bytes(payload[2..6].try_into().unwrap())
}

#[test]
fn damage_is_an_error_for_those_who_need_the_block_and_ends_writes_and_checkpoints() {
    let hold = Hold::new();
    let (disk, payload) = damaged(|block| block.payload.len() as u64 / 2);
    assert!(matches!(open(options(), &disk.fork().into()), Err(Error::Open(_))));
    let (events, reported) = channel();
    let options_with_hook = loading().on_event(move |event| _ = events.send(event.to_string()));
    let db = open(options_with_hook, &disk).unwrap();
    let (items, people) = (items(&db), people(&db));
    let id = id_in(&payload);
    // Before anybody has come upon it.
    db.transact(|tx| items.update(tx, 1, |row: &mut Count| row.count = 5)).unwrap();
    let refused = |outcome: Result<()>| match outcome {
        Err(Error::LoadFailed(text)) => {
            assert!(text.contains("/checkpoint-") && text.contains("table item"), "{text}");
            text.to_string()
        }
        other => panic!("{other:?}"),
    };
    let why = refused(db.transact(|tx| items.get(tx, id).map(drop)));
    refused(db.read(|tx| items.get(tx, id).map(drop)));
    refused(db.read_stale(|tx| items.scan().count(tx).map(drop)));
    refused(db.transact(|tx| items.scan().reverse().count(tx).map(drop)));
    refused(db.transact(|tx| items.get_many(tx, &[1, id]).map(drop)));
    // Every write to the table, wherever.
    refused(db.transact(|tx| items.update(tx, 1, |row: &mut Count| row.count = 6)));
    refused(db.transact(|tx| items.insert(tx, &item(9000)).map(drop)));
    refused(db.transact(|tx| items.delete(tx, 1).map(drop)));
    refused(db.transact(|tx| items.scan().take_first(tx).map(drop)));
    // Other rows and tables are there.
    assert_eq!(db.transact(|tx| items.get(tx, 1)).unwrap().unwrap().count, 5);
    assert_eq!(db.transact(|tx| items.get(tx, 2998)).unwrap(), Some(item(2998)));
    db.transact(|tx| people.delete(tx, 1)).unwrap();
    hold.release();
    refused(db.wait_until_loaded());
    assert_eq!(reported.recv_timeout(Duration::from_secs(30)).unwrap(), why);
    let statistics = db.statistics().unwrap().durability.unwrap();
    assert_eq!(statistics.load.failure.as_ref(), Some(&why));
    assert_eq!(statistics.load.tables_left, 1);
    assert_eq!(statistics.degraded.unwrap().reason, DegradedReason::LoadFailed);
    assert!(matches!(db.checkpoint(), Err(Error::CheckpointFailed(text)) if text.contains(&why)));
    // Without the table nothing is in the way.
    db.drop_table("item").unwrap();
    db.wait_until_loaded().unwrap();
    db.checkpoint().unwrap();
    assert!(db.statistics().unwrap().durability.unwrap().degraded.is_none());
    db.close().unwrap();
    drop(db);
    let db = open(options(), &disk).unwrap();
    assert_eq!(db.list_tables().unwrap(), ["person"]);
}

/// A key that a damaged block begins with says nothing about which block has which keys.
#[test]
fn a_damaged_first_key_hides_no_row() {
    let _hold = Hold::new();
    for byte in 1..6 {
        let (disk, payload) = damaged(|_| 64 + byte);
        let id = id_in(&payload);
        let Ok(db) = open(loading(), &disk) else { continue };
        let items = items(&db);
        for id in (id - 20..id + 20).filter(|&id| is_key(id)) {
            match db.transact(|tx| items.get(tx, id)) {
                Ok(found) => assert_eq!(found, Some(item(id)), "{byte} {id}"),
                Err(Error::LoadFailed(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        let mut seen = 0;
        let scanned = db.read_stale(|tx| {
            items.scan().for_each(tx, |key, row| {
                assert_eq!(row, item(key));
                seen += 1;
            })
        });
        assert!(matches!(scanned, Err(Error::LoadFailed(_))), "{byte}: {scanned:?}");
        assert!(seen < 2000);
        let scanned = db.transact(|tx| items.range(..=id + 1).reverse().limit(10).count(tx));
        assert!(matches!(scanned, Err(Error::LoadFailed(_))), "{byte}: {scanned:?}");
    }
}

/// Of all that is damaged in a file of a checkpoint: the opening says it, or who needs it; and nobody finds another row or none.
#[test]
fn no_damage_is_served() {
    let hold = Hold::new();
    let whole = left_behind(2000, 2);
    let expected: Vec<_> = (0..2000).filter(|&id| is_key(id)).map(item).collect();
    let parts: Vec<_> =
        whole.files().into_iter().filter(|(path, _)| path.to_string_lossy().ends_with(".ckpt")).collect();
    assert!(parts.len() >= 3, "{parts:?}");
    let (mut at_opening, mut later) = (0, 0);
    for (path, len) in parts {
        let blocks: Vec<_> = blocks(&whole).into_iter().filter(|block| block.file == path).collect();
        let of_blocks =
            blocks.iter().flat_map(|block| [0, 5, 9, 17, 25, 64, 66, 70, 5000].map(|at| block.offset + at));
        let places = of_blocks.chain([10, 100, len - 1, len - 70, len / 2, len / 3]);
        for place in places.filter(|&place| place < len) {
            let disk = Arc::new(whole.fork());
            disk.flip(&path, place * 8 + 1).unwrap();
            let db = match open(loading(), &disk) {
                Ok(db) => db,
                Err(Error::Open(_)) => {
                    at_opening += 1;
                    continue;
                }
                Err(other) => panic!("{path:?} {place}: {other}"),
            };
            hold.release();
            let is_refused = matches!(db.wait_until_loaded(), Err(Error::LoadFailed(_)));
            let table = items(&db);
            match db.read_stale(|tx| table.scan().rows(tx)) {
                Ok(rows) => assert!(rows == expected, "{path:?} {place}"),
                Err(Error::LoadFailed(_)) => assert!(is_refused),
                Err(other) => panic!("{path:?} {place}: {other}"),
            }
            assert!(is_refused, "{path:?} {place}");
            later += 1;
        }
        // Cut, and gone.
        let disk = Arc::new(whole.fork());
        disk.truncate(&path, len - 100).unwrap();
        assert!(matches!(open(loading(), &disk), Err(Error::Open(_))));
        let disk = Arc::new(whole.fork());
        disk.delete(&path).unwrap();
        assert!(matches!(open(loading(), &disk), Err(Error::Open(_))));
    }
    assert!(at_opening > 10 && later > 5, "{at_opening} {later}");
}
