//! What a batch of the change feed has.

use std::sync::Arc;
use std::thread;

use ensilo::generic::Migrations;
use ensilo::{ChangeBatch, Engine};
use ensilo_test_disk::SimulatedDisk;

use super::{Other, account, open_with, options, put};

/// Returns how many changes the batches have, of which only such may be empty that end an epoch of which others were.
fn changes_of(batches: impl IntoIterator<Item = ChangeBatch>) -> usize {
    let (mut len, mut epoch_under_way) = (0, None);
    for batch in batches {
        assert!(epoch_under_way.is_none_or(|epoch| epoch == batch.epoch()), "{batch:?}");
        let is_last_part = epoch_under_way.is_some() && batch.ends_epoch();
        assert!(!batch.changes().is_empty() || is_last_part, "{batch:?}");
        epoch_under_way = (!batch.ends_epoch()).then_some(batch.epoch());
        len += batch.changes().len();
    }
    assert_eq!(epoch_under_way, None);
    len
}

pub(super) fn epochs_of_dropped_tables_give_no_batch_and_parts_of_an_epoch_an_end<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let others = db.table::<Other>().unwrap();
    for id in 0..4 {
        db.transact(|tx| others.insert(tx, &Other { id })).unwrap();
    }
    let both = |id: u32| {
        db.transact(|tx| {
            others.insert(tx, &Other { id: id.into() })?;
            accounts.insert(tx, &account(id, 1)).map(drop)
        })
    };
    (4..8).for_each(|id| both(id).unwrap());
    // One epoch with more than the memory holds, of which one table's part lies behind the other's.
    db.transact(|tx| {
        (100..600).try_for_each(|id| accounts.insert(tx, &account(id, 1)).map(drop))?;
        (100..600).try_for_each(|id| others.insert(tx, &Other { id }).map(drop))
    })
    .unwrap();
    let all = |memory_bytes| {
        let mut changes = db.changes().memory_bytes(memory_bytes).begin_at_oldest().unwrap();
        changes_of(std::iter::from_fn(|| changes.try_next().unwrap()))
    };
    assert_eq!([10_000, 16 << 20].map(all), [1_012; 2]);
    db.drop_table("other").unwrap();
    assert_eq!([10_000, 16 << 20].map(all), [504; 2]);
}

pub(super) fn tables_of_the_system_give_no_batch_while_they_are_made<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let mut changes = db.changes().begin_now().unwrap();
    let reader = thread::spawn(move || {
        let mut batches = vec![changes.wait().unwrap()];
        while batches.iter().map(|batch| batch.changes().len()).sum::<usize>() < 2 {
            batches.push(changes.wait().unwrap());
        }
        changes_of(batches)
    });
    put(&db, &accounts, 1, 5);
    db.migrate(&Migrations::new().run("nothing", |_| Ok(()))).unwrap();
    db.sequence::<u32>("numbers").unwrap();
    put(&db, &accounts, 2, 5);
    assert_eq!(reader.join().unwrap(), 2);
}
