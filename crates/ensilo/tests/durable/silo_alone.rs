//! What holds over Silo's engine alone: each test says why it does not hold over every other.

use super::opened::*;
use crate::*;

/// Over ERMIA's engine a transaction that nobody has read from may be lost where later ones are kept.
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

/// Two-phase commit is Silo's alone.
#[test]
fn tickets_of_a_prepared_transaction_say_when_its_reads_and_its_decision_are_stored() {
    for (seed, decides) in (0..20).zip([false, true].into_iter().cycle()) {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, accounts) = with_accounts(&disk, 2);
        // It is read before it is stored.
        let visibly = db.request().durability(ensilo::Durability::Visible);
        visibly.transact(|tx| accounts.insert(tx, &account(2))).unwrap();
        let mut session = db.begin().unwrap();
        assert!(accounts.get(&mut session, 2).unwrap().is_some());
        accounts.insert(&mut session, &account(3)).unwrap();
        let mut prepared = session.prepare().unwrap();
        let ticket = if decides { prepared.commit_with_ticket() } else { prepared.ticket_of_reads() };
        ticket.unwrap().wait().unwrap();
        let rows = all_rows(&open(&Arc::new(disk.crash(seed))));
        assert_eq!((rows.contains(&account(2)), rows.contains(&account(3))), (true, decides), "seed {seed}");
        drop((prepared, session, db));
    }
}
