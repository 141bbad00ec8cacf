use ensilo_bench::{TemporaryDirectory, temporary_root};
use ensilo_islands::commit::PART_BYTES_MAX;

use super::*;

fn script(text: &str) -> Script {
    Script::new(&text.parse().unwrap())
}

/// Four rows: 10 and 20 at the first of two instances, 30 and 40 at the second one.
const FOUR: &str = "r 10 w 20\nw 10 w 40\nr 30\nw 40 r *\n";

#[test]
fn rows_have_the_order_of_keys_and_are_divided_evenly() {
    let script = script("w 7 r 18446744073709551615\nr 0 r * r 7\n");
    let access = |rows, writes| Access { rows, writes };
    assert_eq!(script.rows, 3);
    assert_eq!(script.transactions[0], [access(Rows::One(1), true), access(Rows::One(2), false)]);
    assert_eq!(
        script.transactions[1],
        [access(Rows::One(0), false), access(Rows::Everywhere, false), access(Rows::One(1), false)]
    );
}

#[test]
fn a_range_is_at_all_instances_from_its_first_key_to_its_last_one() {
    let script = script("r 20-40\nw 10\nw 50 w 60\nr 30-40\n");
    assert_eq!(script.rows, 6);
    for (instances, long, short) in
        [(1, vec![0], vec![0]), (3, vec![0, 1], vec![1]), (6, vec![1, 2, 3], vec![2, 3])]
    {
        assert_eq!(script.instances_of(0, instances), long);
        assert_eq!(script.instances_of(3, instances), short);
        let number = InstanceNumber { instance: script.home(0, instances), instances };
        let parts = script.parts(0, number, Replay::All);
        assert!(parts.keys().copied().eq(long.into_iter().map(u64::from)), "{instances}");
        assert_eq!(script.parts(0, number, Replay::Local).len(), 1);
    }
}

#[test]
fn what_is_beyond_a_thousand_keys_is_everywhere_and_fits_into_a_message() {
    let text: String =
        (0..5000).map(|key| format!("{} {key} ", if key < 4000 { 'r' } else { 'w' })).collect();
    let script = script(&format!("{text}\n{}\n", "w 18446744073709551615 ".repeat(KEYS_MAX)));
    assert_eq!(script.transactions[0].len(), KEYS_MAX + 1);
    assert_eq!(script.transactions[0][KEYS_MAX], Access { rows: Rows::Everywhere, writes: true });
    assert_eq!(script.transactions[1].len(), KEYS_MAX);
    let number = InstanceNumber { instance: 0, instances: 2 };
    for transaction in [0, 1] {
        for part in script.parts(transaction, number, Replay::All).into_values() {
            assert!(to_bytes(&part).len() <= PART_BYTES_MAX);
        }
    }
}

#[test]
fn the_spread_is_that_of_the_file_for_each_number_of_instances() {
    let script = script(FOUR);
    // Of the first instance's two one goes to the other, and of the second one's two one.
    let two = script.spread(2, Replay::All);
    assert_eq!((two.distributed, two.others, two.hottest), (0.5, 0.5, 0.5));
    let multisite = script.spread(2, Replay::Multisite);
    assert_eq!((multisite.distributed, multisite.others), (1.0, 1.0));
    let one = script.spread(1, Replay::All);
    assert_eq!((one.distributed, one.others), (0.0, 0.0));
    // Where no transaction begins, all are made: of the four rows' instances that is the second one's.
    let four = script.spread(4, Replay::All);
    let others = [1.0, (1.0 + 2.0 + 1.0 + 3.0) / 4.0, 0.0, 3.0];
    assert_eq!(four.others, others.iter().sum::<f64>() / 4.0);
}

#[test]
fn all_skew_goes_to_the_hottest_instance() {
    let script = script("r 1 w 4\nr 2 w 4\nr 3 w 4\nw 4\n");
    assert_eq!(script.spread(4, Replay::All).hottest, 1.0);
}

#[test]
fn transactions_that_are_made_local_stay_at_their_instance() {
    let script = script(FOUR);
    for (instance, replay) in
        [0, 1].into_iter().flat_map(|at| [(at, Replay::Local), (at, Replay::MultisiteMadeLocal)])
    {
        let number = InstanceNumber { instance, instances: 2 };
        for transaction in script.made_by(number, replay) {
            let parts = script.parts(transaction, number, replay);
            assert_eq!(parts.keys().copied().collect::<Vec<u64>>(), [u64::from(instance)]);
        }
    }
}

#[test]
fn what_multisite_transactions_are_compared_with_are_the_same_ones_made_local() {
    let script = Arc::new(script(FOUR));
    let all = RecordedOptions { file: PathBuf::new(), script: Arc::clone(&script), replay: Replay::All };
    let [multisite, local] = [all.with_multisite(100), all.multisite_made_local()];
    for instance in 0..2 {
        let number = InstanceNumber { instance, instances: 2 };
        let made = [&multisite, &local].map(|options| script.made_by(number, options.replay));
        assert_eq!(made[0], made[1]);
        for transaction in made[1].iter().copied() {
            let accesses =
                |options: &RecordedOptions| script.parts(transaction, number, options.replay).into_values();
            let count = |options| {
                accesses(options).map(|part| match part {
                    Part::Accesses(accesses) => accesses.len(),
                    _ => 0,
                })
            };
            assert!(count(&multisite).sum::<usize>() >= count(&local).sum());
            assert!(accesses(&multisite).len() > 1 && accesses(&local).len() == 1);
        }
    }
    assert_eq!((local.multisite_percent(), local.spread(2).others), (0, 0.0));
}

#[test]
fn the_writes_of_a_transaction_count_one_together() {
    let script = script("w 1\nw 1 w 2 w 3\nr 1 w 2 w * w 3 w 4 w 1\nr 1 r *\nw *\n");
    for (transaction, expected) in [1, 1, 1, 0, 0].into_iter().enumerate() {
        let number = InstanceNumber { instance: 0, instances: 3 };
        let parts = script.parts(transaction, number, Replay::All);
        let amounts = parts.values().flat_map(|part| match part {
            Part::Accesses(accesses) => accesses.iter().filter_map(|(_, amount)| *amount).collect(),
            _ => Vec::new(),
        });
        assert_eq!(amounts.sum::<i64>(), expected, "{transaction}");
    }
    assert_eq!(script.writing(), 3);
}

/// What is loaded runs before the time that is measured.
#[test]
fn the_file_is_read_while_an_instance_is_loaded() {
    let directory = TemporaryDirectory::new(&temporary_root().unwrap()).unwrap();
    let file = directory.path().join("recorded");
    std::fs::write(&file, FOUR).unwrap();
    let options = RecordedOptions::from_file(&file).unwrap();
    let db = Database::in_memory().unwrap();
    let number = InstanceNumber { instance: 1, instances: 2 };
    let recorded = Recorded::open(&db, number).unwrap();
    for load in options.loads(number) {
        db.transact(|tx| recorded.execute(tx, load.local.as_ref().unwrap())).unwrap();
    }
    std::fs::remove_file(&file).unwrap();
    let site = SiteId { instance: 1, worker: 0 };
    assert!(recorded.requests(site, &options.description(1)).is_ok());
}

#[test]
fn a_lost_or_torn_transaction_is_found() {
    let options =
        |text| RecordedOptions { file: PathBuf::new(), script: Arc::new(script(text)), replay: Replay::All };
    let check = |text, sum: i64| options(text).check(1, 100, &mut |_, _| Ok(to_bytes(&sum)));
    assert_eq!(check("w 1\nw 2 w 3\n", 100), Ok(()));
    assert!(check("w 1\nw 2 w 3\n", 99).is_err());
    assert_eq!(check("w 1\nr 1\n", 40), Ok(()));
    assert!(check("w 1\nr 1\n", 101).is_err());
    assert!(check("r 1\n", 1).is_err());
}
