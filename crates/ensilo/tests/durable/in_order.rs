//! What holds over the engines whose transactions commit in the order in which they become visible: over ERMIA's engine one that nobody has read
//! from may be lost where later ones are kept.

use super::opened::*;
use crate::*;

#[test]
fn what_was_only_visible_survives_in_order_or_not_at_all() {
    for seed in 0..30 {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, accounts) = with_accounts(&disk, 1);
        for id in 1..200 {
            let request = db.request().durability(ensilo::Durability::Visible);
            request.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
        }
        let rows = all_rows(&open(&Arc::new(disk.crash(seed))));
        assert_eq!(rows, (0..rows.len() as u32).map(account).collect::<Vec<_>>(), "seed {seed}");
        assert!(!rows.is_empty());
        // The dead process notices that it is dead, and ends.
        drop(db);
    }
}
