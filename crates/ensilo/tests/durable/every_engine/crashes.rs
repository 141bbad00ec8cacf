//! Power failures: what was acknowledged is there, and nothing without what came before it.

use super::*;

#[test]
fn acknowledged_rows_survive_every_power_failure() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 10);
    for id in 10..40 {
        db.transact(|tx| accounts.insert(tx, &account(id))).unwrap();
        if id % 8 == 0 {
            db.checkpoint().unwrap();
        }
        for seed in 0..10 {
            let crashed = Arc::new(disk.fork().crash(seed * 100 + u64::from(id)));
            let rows = all_rows(&open(&crashed));
            assert_eq!(rows, (0..=id).map(account).collect::<Vec<_>>(), "seed {seed} after {id}");
        }
    }
}

#[test]
fn crashes_while_recovering_do_no_harm() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 20);
    db.checkpoint().unwrap();
    db.transact(|tx| accounts.delete(tx, 3)).unwrap();
    let rows = all_rows(&db);
    let mut crashed = Arc::new(disk.crash(1));
    for life in 0..40 {
        // The n-th write, sync or name change of the opening fails; then the power does.
        let faults = ensilo_test_disk::Faults {
            seed: life,
            write_error_at: (life % 3 == 0).then_some(1 + life / 3),
            sync_error_at: (life % 3 == 1).then_some(1 + life / 3),
            name_error_at: (life % 3 == 2).then_some(1 + life / 3),
            ..Default::default()
        };
        crashed.set_faults(faults);
        drop(open_with(options(), &crashed));
        crashed = Arc::new(crashed.crash(life));
        assert_eq!(all_rows(&open(&Arc::new(crashed.fork()))), rows, "life {life}");
    }
}

#[test]
fn what_was_added_is_there_once_after_every_power_failure() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 4);
    let mut expected: Vec<Account> = (0..4).map(account).collect();
    for round in 0..30u32 {
        let (from, to) = (round % 4, (round + 1 + round / 4 % 3) % 4);
        db.transact(|tx| {
            accounts.subtract(tx, from, &Balance { balance: round.into() })?;
            accounts.add(tx, to, &Balance { balance: round.into() })
        })
        .unwrap();
        expected[from as usize].balance -= i64::from(round);
        expected[to as usize].balance += i64::from(round);
        if round % 8 == 5 {
            db.checkpoint().unwrap();
        }
        for seed in 0..4 {
            let crashed = Arc::new(disk.fork().crash(seed * 100 + u64::from(round)));
            assert_eq!(all_rows(&open(&crashed)), expected, "seed {seed} after {round}");
        }
    }
}
