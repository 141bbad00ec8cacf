//! What the log of a measurement holds, and that nobody takes it for more: of variants of Silo's engine.

use ensilo::generic::Database;
use ensilo::variants::{RowLog, Silo, TidLog, Variant};
use ensilo::{Engine, Error};
use ensilo_baselines::{KeyValue, PartitionedStore};

use super::opened::*;
use crate::*;

fn open_as<E: Engine>(disk: &Arc<SimulatedDisk>) -> Result<Database<E>> {
    options().open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new(DIRECTORY))
}

/// The bytes that some accounts and many small changes of them take in the log.
fn log_bytes<V: Variant>(disk: &Arc<SimulatedDisk>) -> u64 {
    let db = open_as::<Silo<V>>(disk).unwrap();
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert_many(tx, &(0..50).map(account).collect::<Vec<_>>())).unwrap();
    // Rows that changed before the first checkpoint are logged whole; one is made.
    db.checkpoint().unwrap();
    for turn in 0..20 {
        let change = |row: &mut Balance| row.balance = turn;
        db.transact(|tx| (0..50).try_for_each(|id| accounts.update(tx, id, change))).unwrap();
    }
    let bytes = db.statistics().unwrap().durability.unwrap().log_entry_bytes;
    db.close().unwrap();
    bytes
}

#[test]
fn a_log_of_rows_is_longer_and_recovers_the_same() {
    let [rows, changes] = [(); 2].map(|()| Arc::new(SimulatedDisk::new()));
    let (bytes_of_rows, bytes_of_changes) =
        (log_bytes::<RowLog>(&rows), log_bytes::<ensilo::variants::Standard>(&changes));
    assert!(bytes_of_rows > bytes_of_changes, "{bytes_of_rows} {bytes_of_changes}");
    let recovered = all_rows(&open(&rows));
    assert_eq!(recovered, all_rows(&open(&changes)));
    assert!(recovered.iter().all(|row| row.balance == 19) && recovered.len() == 50);
}

#[test]
fn a_log_of_tids_is_short_and_cannot_be_opened() {
    let [tids, changes] = [(); 2].map(|()| Arc::new(SimulatedDisk::new()));
    let (bytes_of_tids, bytes_of_changes) =
        (log_bytes::<TidLog>(&tids), log_bytes::<ensilo::variants::Standard>(&changes));
    assert!(bytes_of_tids * 10 < bytes_of_changes, "{bytes_of_tids} {bytes_of_changes}");
    for error in [open_with(options(), &tids).unwrap_err(), open_as::<Silo<TidLog>>(&tids).unwrap_err()] {
        assert!(matches!(error, Error::Open(_)), "{error:?}");
        assert!(error.to_string().contains("TIDs alone"), "{error}");
    }
}

#[test]
fn engines_without_a_log_have_no_directory() {
    let disk = Arc::new(SimulatedDisk::new());
    assert!(matches!(open_as::<KeyValue>(&disk), Err(Error::NotDurable)));
    assert!(matches!(open_as::<PartitionedStore>(&disk), Err(Error::NotDurable)));
    assert!(open_with(options(), &disk).is_ok(), "nothing was made there");
}
