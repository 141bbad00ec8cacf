//! Batches of requests on a database in a directory.

use ensilo::Error;

use super::*;

#[test]
fn all_that_a_batch_has_answered_survives_a_power_failure() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 100);
    let ids: Vec<u32> = (0..120).collect();
    let results = db.transact_many(
        &ids,
        |&id, prefetch| prefetch.row(&accounts, id),
        |tx, &id| accounts.update(tx, id, |row: &mut Balance| row.balance = i64::from(id)),
    );
    let results = results.unwrap();
    assert!(results[..100].iter().all(Result::is_ok));
    assert!(results[100..].iter().all(|result| matches!(result, Err(Error::MissingRow(_)))));
    for seed in 0..10 {
        let rows = all_rows(&open(&Arc::new(disk.fork().crash(seed))));
        assert_eq!(rows.len(), 100);
        assert!(rows.iter().all(|row| row.balance == i64::from(row.id)), "seed {seed}: {rows:?}");
    }
}
