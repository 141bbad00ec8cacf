//! Long values beside other transactions.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use super::*;

/// Sets a flag when it goes, also by a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A value of several pieces that is one byte repeated.
fn plain(byte: u32) -> Document {
    Document { body: vec![byte as u8; 2 * INLINE + (byte as usize % 3) * INLINE / 2 + 9], ..document(1, 0) }
}

/// Checks a row that is there, if there is one.
fn check_plain(row: Option<Document>) -> ensilo::Result<()> {
    let is_plain = row.is_none_or(|row| row == plain(row.body[0].into()));
    assert!(is_plain, "a value of two transactions");
    Ok(())
}

#[test]
fn a_value_is_never_that_of_two_transactions() {
    const ROUNDS: u32 = 200;
    let (db, table) = with_documents(&[plain(0)]);
    let (is_over, next) = (AtomicBool::new(false), AtomicU32::new(1));
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let byte = next.fetch_add(1, Ordering::Relaxed);
                        if byte > ROUNDS {
                            break;
                        }
                        db.request()
                            .retries(u32::MAX)
                            .transact(|tx| table.replace(tx, &plain(byte)))
                            .unwrap();
                    }
                })
            })
            .collect();
        for reader in 0..3 {
            let (db, table, is_over) = (&db, &table, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    // Within the closure: also what a transaction sees that cannot commit is whole.
                    match reader {
                        0 => db
                            .request()
                            .retries(u32::MAX)
                            .transact(|tx| check_plain(table.get(tx, 1)?))
                            .unwrap(),
                        1 => db.read(|tx| check_plain(table.scan().rows(tx)?.pop())).unwrap(),
                        _ => db.read_stale(|tx| check_plain(table.get(tx, 1)?)).unwrap(),
                    }
                }
            });
        }
        let _over = SetOnDrop(&is_over);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
    let last = db.read(|tx| table.get(tx, 1)).unwrap().unwrap();
    assert_rows(&db, std::slice::from_ref(&last));
}

#[test]
fn no_change_of_a_long_value_is_lost() {
    const EACH: usize = 100;
    let (db, table) = with_documents(&[Document { body: vec![0; 2 * INLINE], ..document(1, 0) }]);
    thread::scope(|scope| {
        for number in 0..2usize {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                for round in 0..EACH {
                    let at = number * INLINE + round;
                    let change = |row: &mut Body| {
                        row.body[at] += 1;
                        row.body.push(1);
                    };
                    db.request().retries(u32::MAX).transact(|tx| table.update(tx, 1, change)).unwrap();
                }
            });
        }
    });
    let body = db.read(|tx| table.get_columns::<Body>(tx, 1)).unwrap().unwrap().body;
    assert_eq!(body.len(), 2 * INLINE + 2 * EACH);
    assert_eq!(body.iter().map(|byte| usize::from(*byte)).sum::<usize>(), 4 * EACH);
}

#[test]
fn of_two_transactions_that_read_what_the_other_writes_one_gives_way() {
    let (db, table) = with_documents(&[plain(0), Document { id: 2, code: 7, ..plain(0) }]);
    for _ in 0..40 {
        for id in [1, 2] {
            db.transact(|tx| table.update(tx, id, |row: &mut Body| row.body = plain(0).body)).unwrap();
        }
        thread::scope(|scope| {
            for (own, other) in [(1, 2), (2, 1)] {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    db.request()
                        .retries(u32::MAX)
                        .transact(|tx| {
                            if table.get_columns::<Body>(tx, other)?.unwrap().body[0] == 0 {
                                table.update(tx, own, |row: &mut Body| row.body = plain(1).body)?;
                            }
                            Ok(())
                        })
                        .unwrap();
                });
            }
        });
        let bodies = db.read(|tx| table.scan().columns::<Body>().rows(tx)).unwrap();
        assert_eq!(bodies.iter().filter(|row| row.body[0] == 1).count(), 1);
    }
}

#[test]
fn a_snapshot_keeps_no_copy_of_a_value_beside_which_something_changes() {
    const VALUE: usize = 8 << 20;
    let (db, table) = with_documents(&[document(1, VALUE)]);
    let now = db.statistics().unwrap().epochs.global_epoch;
    while db.statistics().unwrap().epochs.snapshot_epoch <= now {
        thread::yield_now();
    }
    let memory = || db.statistics().unwrap().memory;
    let before = memory();
    db.read_stale(|snapshot| {
        assert!(table.get(snapshot, 1)?.unwrap() == document(1, VALUE));
        thread::scope(|scope| {
            let change = || {
                for visits in 1..=20 {
                    db.transact(|tx| table.update(tx, 1, |row: &mut Visits| row.visits = visits)).unwrap();
                    db.transact(|tx| table.update(tx, 1, |row: &mut Kind| row.kind += 1)).unwrap();
                    db.transact(|tx| table.update(tx, 1, |row: &mut Title| row.title.push('!'))).unwrap();
                }
            };
            scope.spawn(change).join().unwrap();
        });
        assert!(memory().live_bytes < before.live_bytes + (VALUE / 8) as u64);
        assert!(memory().version_bytes < (VALUE / 8) as u64);
        assert!(table.get(snapshot, 1)?.unwrap() == document(1, VALUE));
        // One piece that is another one is copied alone.
        thread::scope(|scope| {
            let change = || db.transact(|tx| table.update(tx, 1, |row: &mut Body| row.body[VALUE / 2] ^= 1));
            scope.spawn(change).join().unwrap().unwrap();
        });
        assert!(memory().live_bytes < before.live_bytes + (VALUE / 8) as u64);
        assert!(table.get(snapshot, 1)?.unwrap() == document(1, VALUE));
        Ok(())
    })
    .unwrap();
    let row = db.read(|tx| table.get(tx, 1)).unwrap().unwrap();
    assert_eq!((row.visits, row.kind, row.title.len(), pieces(&db)), (20, 21, 30, pieces_of(&row)));
}

/// Two-phase locking goes on behind each long row, and must not take that for a range of its own.
#[test]
fn a_scan_over_many_long_rows_leaves_the_rows_beside_them_to_others() {
    const LONG: u32 = 300;
    let mut documents: Vec<_> = (0..LONG).map(|id| document(id, INLINE + 1)).collect();
    documents.push(document(9000, 1));
    let (db, table) = with_documents(&documents);
    for is_reverse in [false, true] {
        let scan = |ids| if is_reverse { table.range(ids).reverse() } else { table.range(ids) };
        let mut tx = db.begin().unwrap();
        let mut rows = scan(0..LONG).rows(&mut tx).unwrap();
        rows.sort_by_key(|row| row.id);
        assert!(rows == documents[..LONG as usize]);
        assert!(scan(9000..9001).rows(&mut tx).unwrap() == documents[LONG as usize..]);
        thread::scope(|scope| {
            let insert = || db.transact(|tx| table.insert(tx, &document(5000 + u32::from(is_reverse), 1)));
            scope.spawn(insert).join().unwrap().unwrap();
        });
    }
}
