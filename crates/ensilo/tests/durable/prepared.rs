//! Prepared transactions that are stored, over the engines that have them.

use super::opened::*;
use crate::*;

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
