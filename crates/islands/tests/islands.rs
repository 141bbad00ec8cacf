//! Transactions over several instances in threads of this process, through the public API.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bank;
mod loads;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bank::{
    ACCOUNTS, Account, BALANCE, Bank, GET_READY, PANIC, Part, READY_AFTER, options, site, sum_of_all,
    transfer,
};
use ensilo::{Database, Durability};
use ensilo_islands::commit::{Outcome, PART_BYTES_MAX, RefusalReason, Request};
use ensilo_islands::{ChannelKind, CommitUnit, Islands, IslandsOptions, LoadTime};
use loads::load_until;

fn balances(islands: &Islands<Bank>) -> Vec<i64> {
    let sum_at = |instance| {
        let outcome = islands.transact(instance, &Request::new(Some(Part::Sum.bytes()), Vec::new()));
        let Outcome::Committed { local: Some(sum), .. } = outcome else { panic!("{outcome:?}") };
        i64::from_le_bytes(sum.try_into().unwrap())
    };
    (0..islands.instances() as u16).map(sum_at).collect()
}

#[test]
fn money_goes_from_one_instance_to_another_or_stays() {
    for kind in ChannelKind::all() {
        let islands = options(3).channel(kind).open::<Bank>().unwrap();
        let outcome = islands.transact(0, &transfer(2, (1, 5), 300, None));
        let Outcome::Committed { local: Some(local), remote } = outcome else { panic!("{outcome:?}") };
        assert_eq!(local, 700i64.to_le_bytes());
        assert_eq!(remote, [(site(2), 1300i64.to_le_bytes().to_vec())]);
        for (ids, amount) in [((1, 5), 701), ((1, ACCOUNTS), 1), ((1, 5), -1301)] {
            let outcome = islands.transact(0, &transfer(2, ids, amount, None));
            let Outcome::Aborted(refusal) = outcome else { panic!("{outcome:?}") };
            assert_eq!(refusal.reason, RefusalReason::Rejected);
        }
        assert_eq!(balances(&islands), [7700, 8000, 8300]);
    }
}

#[test]
fn the_own_part_knows_what_the_others_have_returned() {
    let islands = options(3).open::<Bank>().unwrap();
    let empty = |instance, id| (site(instance), Part::Empty { id }.bytes());
    for balance in [3 * BALANCE, 3 * BALANCE] {
        let request = Request::new(Some(Part::Collect { id: 0 }.bytes()), vec![empty(1, 4), empty(2, 5)]);
        let outcome = islands.transact(0, &request);
        let Outcome::Committed { local: Some(local), .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(local, balance.to_le_bytes());
    }
    assert_eq!(balances(&islands), [10_000, 7000, 7000]);
}

#[test]
fn a_part_that_panics_ends_its_transaction_alone() {
    let islands = options(2).open::<Bank>().unwrap();
    let add = || Part::Add { id: 1, amount: 1, number: None }.bytes();
    for (local, remote) in [(Part::Panic.bytes(), add()), (add(), Part::Panic.bytes())] {
        let outcome = islands.transact(0, &Request::new(Some(local), vec![(site(1), remote)]));
        assert!(matches!(outcome, Outcome::Aborted(_)), "{outcome:?}");
    }
    assert!(matches!(islands.transact(0, &transfer(1, (1, 1), 1, None)), Outcome::Committed { .. }));
    assert_eq!(balances(&islands), [7999, 8001]);
}

#[test]
fn what_panics_or_never_ends_is_an_error() {
    let islands = options(2).open::<Bank>().unwrap();
    let read = islands.read_all(&[(0, Vec::new()), (1, vec![1])]);
    assert!(read.is_err_and(|refusal| refusal.to_string().contains("panicked")));
    let time = LoadTime { warmup: Duration::MAX, measured: Duration::MAX };
    assert!(islands.run_load(1, time, &[]).is_err());
    assert!(matches!(islands.transact(0, &transfer(1, (1, 1), 1, None)), Outcome::Committed { .. }));
    assert_eq!(sum_of_all(&islands), 16_000);
}

#[test]
fn a_load_whose_instance_ends_is_an_error() {
    let islands = options(2).open::<Bank>().unwrap();
    let time = LoadTime { warmup: Duration::ZERO, measured: Duration::from_millis(50) };
    for _ in 0..2 {
        assert!(islands.run_load(1, time, PANIC).is_err());
    }
}

#[test]
fn a_load_is_measured_from_when_its_source_is_ready() {
    let islands = options(2).open::<Bank>().unwrap();
    let time = LoadTime { warmup: Duration::ZERO, measured: READY_AFTER / 2 };
    // Where the time began earlier it would be over before there is anything to do.
    assert!((0..20).any(|_| islands.run_load(1, time, GET_READY).unwrap().committed > 0));
}

#[test]
fn what_does_not_fit_into_a_message_is_refused_and_what_does_arrives() {
    let islands = options(2).open::<Bank>().unwrap();
    let outcome_of = |part: Vec<u8>| islands.transact(0, &Request::new(None, vec![(site(1), part)]));
    let largest = outcome_of(Part::Fill { bytes: PART_BYTES_MAX }.bytes());
    assert!(matches!(&largest, Outcome::Committed { remote, .. } if remote[0].1.len() == PART_BYTES_MAX));
    for part in [Part::Fill { bytes: PART_BYTES_MAX + 1 }.bytes(), vec![0; PART_BYTES_MAX + 1]] {
        let refused = outcome_of(part);
        assert!(matches!(&refused, Outcome::Aborted(refusal) if refusal.to_string().contains("at most")));
    }
    assert_eq!(balances(&islands), [8000, 8000]);
}

#[test]
fn workers_that_send_to_each_other_all_the_time_lose_and_make_no_money() {
    for instances in [2, 4] {
        let islands = options(instances).open::<Bank>().unwrap();
        assert!(load_until(&islands, 3, Duration::from_millis(500), 100) > 100);
        assert_eq!(balances(&islands).iter().sum::<i64>(), instances as i64 * 8000);
    }
}

/// One of the rows is read by the coordinator alone, and one by a participant.
#[test]
fn what_a_transaction_reads_at_two_instances_belongs_together() {
    let [first, second] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let by_epochs = options(2).directory(second.path()).commit_unit(CommitUnit::Epoch);
    for (options, reads, pause) in [
        (options(2).workers(2), 1000, Duration::ZERO),
        (options(2).directory(first.path()), 20, Duration::from_millis(1)),
        (by_epochs.workers(2), 20, Duration::ZERO),
    ] {
        let islands = options.open::<Bank>().unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let moving = scope.spawn(|| {
                let mut amounts = [1, -1].into_iter().cycle();
                while let Some(amount) = amounts.next().filter(|_| !is_over.load(Ordering::Relaxed)) {
                    islands.transact(1, &transfer(0, (0, 0), amount, None));
                    // Whoever meets what is prepared waits as long as it is being stored.
                    thread::sleep(pause);
                }
            });
            let balance = || Part::Balance { id: 0 }.bytes();
            let both = Request::new(Some(balance()), vec![(site(1), balance())]);
            for _ in 0..reads {
                let outcome = islands.transact(0, &both);
                let Outcome::Committed { local: Some(here), remote } = outcome else { panic!("{outcome:?}") };
                let [here, there] = [here, remote[0].1.clone()]
                    .map(|balance| i64::from_le_bytes(balance.try_into().unwrap()));
                assert_eq!(here + there, 2 * BALANCE);
            }
            is_over.store(true, Ordering::Relaxed);
            moving.join().unwrap();
        });
    }
}

#[test]
fn a_transaction_has_one_part_at_each_site_that_there_is() {
    let islands = options(2).open::<Bank>().unwrap();
    let part = || Part::Balance { id: 0 }.bytes();
    for remote in
        [vec![(site(0), part())], vec![(site(1), part()), (site(1), part())], vec![(site(2), part())]]
    {
        let outcome = islands.transact(0, &Request::new(None, remote));
        assert!(
            matches!(&outcome, Outcome::Aborted(refusal) if refusal.reason == RefusalReason::Rejected),
            "{outcome:?}"
        );
    }
}

#[test]
fn what_is_read_at_all_instances_belongs_to_one_moment() {
    let [first, second] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    for (instances, options) in [
        (3, options(3)),
        (2, options(2).directory(first.path())),
        (2, options(2).directory(second.path()).commit_unit(CommitUnit::Epoch)),
    ] {
        let islands = options.open::<Bank>().unwrap();
        let (mut reads, mut made) = (0, 0);
        // Again and again: on a slow disk little happens in a second.
        while reads <= 2 || made <= 20 {
            thread::scope(|scope| {
                let loading = scope.spawn(|| load_until(&islands, 3, Duration::from_secs(1), 0));
                while !loading.is_finished() {
                    assert_eq!(sum_of_all(&islands), instances * 8000);
                    reads += 1;
                }
                let committed = loading.join().unwrap();
                assert!(committed > 0, "nothing commits");
                made += committed;
            });
        }
        // What was answered before is there.
        assert!(matches!(islands.transact(0, &transfer(1, (1, 1), 1, None)), Outcome::Committed { .. }));
        let read = islands.read_all(&[(0, Vec::new())]).unwrap();
        assert_eq!(read, [balances(&islands)[0].to_le_bytes()]);
    }
}

#[test]
fn what_was_answered_is_there_after_the_next_opening() {
    for unit in CommitUnit::all() {
        let directory = tempfile::tempdir().unwrap();
        let options = |instances| options(instances).directory(directory.path()).commit_unit(unit);
        for round in 0..3 {
            let islands = options(2).open::<Bank>().unwrap();
            assert_eq!(balances(&islands), [8000 - 10 * round, 8000 + 10 * round]);
            for _ in 0..10 {
                let outcome = islands.transact(0, &transfer(1, (1, 2), 1, None));
                assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
            }
        }
        let other = options(3).open::<Bank>();
        assert!(other.is_err_and(|error| error.to_string().contains("of 2")));
    }
}

#[test]
fn instances_stay_with_their_unit_of_commit() {
    let refusal = |options: IslandsOptions| options.open::<Bank>().unwrap_err().to_string();
    assert!(refusal(options(2).commit_unit(CommitUnit::Epoch)).contains("stored in a directory"));
    let [transaction, epoch] = CommitUnit::all();
    for (unit, other, word) in [(transaction, epoch, "transactions"), (epoch, transaction, "epochs")] {
        let directory = tempfile::tempdir().unwrap();
        let options = |unit| options(2).directory(directory.path()).commit_unit(unit);
        let islands = options(unit).open::<Bank>().unwrap();
        if unit == CommitUnit::Epoch {
            assert!(refusal(options(unit)).contains("open already"));
        }
        drop(islands);
        assert!(refusal(options(other)).contains(word));
        assert_eq!(balances(&options(unit).open::<Bank>().unwrap()), [8000, 8000]);
    }
}

/// Also those that nobody has waited for.
#[test]
fn transactions_of_one_instance_belong_to_the_epochs_of_all() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let options = options(2).directory(directory.path()).commit_unit(CommitUnit::Epoch);
        options.open::<Bank>().unwrap()
    };
    let islands = open();
    let (db, bank) = islands.local(1).unwrap();
    db.transact(|tx| bank.accounts.replace(tx, &Account { id: 0, balance: 0 })).unwrap();
    db.checkpoint().unwrap();
    let visible = db.request().durability(Durability::Visible);
    visible.transact(|tx| bank.accounts.replace(tx, &Account { id: 1, balance: 0 })).unwrap();
    drop(islands);
    assert_eq!(balances(&open()), [8000, 6000]);
}

/// Made while money is moved between the instances.
#[test]
fn a_copy_of_all_instances_is_one_of_a_moment() {
    for unit in CommitUnit::all() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        let open = |name: &str| {
            let options = options(2).directory(place(name)).commit_unit(unit);
            options.open::<Bank>().unwrap()
        };
        let islands = open("here");
        let answered = transfer(1, (1, 2), 1, Some(7));
        assert!(matches!(islands.transact(0, &answered), Outcome::Committed { .. }));
        thread::scope(|scope| {
            let loading = scope.spawn(|| load_until(&islands, 3, Duration::from_millis(800), 10));
            for copy in ["first", "second"] {
                let made = islands.backup(place(copy)).unwrap();
                assert!(made.files >= 2 && made.bytes > 1000, "{made:?}");
                islands.checkpoint().unwrap();
                assert!(islands.backup(place(copy)).is_err_and(|error| error.to_string().contains("empty")));
            }
            assert!(loading.join().unwrap() > 10);
        });
        for copy in ["first", "second"] {
            let copy = open(copy);
            assert_eq!(balances(&copy).iter().sum::<i64>(), 16_000);
            assert_eq!(sum_of_all(&copy), 16_000);
            let numbers = Request::new(Some(Part::Numbers.bytes()), Vec::new());
            let Outcome::Committed { local: Some(there), .. } = copy.transact(1, &numbers) else { panic!() };
            assert!(there.chunks(8).any(|number| number == 7u64.to_le_bytes()));
            assert!(matches!(copy.transact(0, &transfer(1, (1, 2), 1, None)), Outcome::Committed { .. }));
        }
    }
    let in_memory = options(2).open::<Bank>().unwrap();
    let directory = tempfile::tempdir().unwrap();
    assert!(in_memory.backup(directory.path()).is_err() && in_memory.checkpoint().is_err());
    assert!(in_memory.backup(directory.path().join("above/copy")).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn a_directory_has_one_copy_and_nothing_else() {
    for unit in CommitUnit::all() {
        let directory = tempfile::tempdir().unwrap();
        let (here, there) = (directory.path().join("here"), directory.path().join("there"));
        let open = |place: &Path| {
            let options = options(2).directory(place).commit_unit(unit);
            options.open::<Bank>().unwrap()
        };
        let islands = open(&here);
        assert!(matches!(islands.transact(0, &transfer(1, (1, 2), 5, None)), Outcome::Committed { .. }));
        for target in [here.clone(), here.join("instance-0"), PathBuf::new()] {
            assert!(islands.backup(&target).is_err(), "{}", target.display());
        }
        assert_eq!(balances(&islands), [7995, 8005]);
        let made: Vec<bool> = thread::scope(|scope| {
            let make = || islands.backup(&there).is_ok();
            let making: Vec<_> = (0..3).map(|_| scope.spawn(make)).collect();
            making.into_iter().map(|making| making.join().unwrap()).collect()
        });
        assert_eq!(made.into_iter().filter(|is_made| *is_made).count(), 1);
        assert_eq!(balances(&open(&there)), [7995, 8005]);
        drop(islands);
        assert_eq!(balances(&open(&here)), [7995, 8005]);
        // One that was not finished.
        std::fs::write(there.join("BACKUP.unfinished"), []).unwrap();
        let opened = options(2).directory(&there).commit_unit(unit).open::<Bank>();
        assert!(opened.is_err_and(|error| error.to_string().contains("not finished")));
    }
}

/// What the instances know of themselves is compared with the file, and where that is lost nothing is opened.
#[test]
fn instances_whose_record_is_lost_are_not_opened() {
    type Damage = fn(&Path);
    let remove = |place: &Path| std::fs::remove_file(place.join("epochs")).unwrap();
    let empty = |place: &Path| std::fs::write(place.join("epochs"), []).unwrap();
    let clear = |place: &Path| std::fs::write(place.join("epochs"), vec![0; 12_288]).unwrap();
    let lose = |place: &Path| std::fs::remove_dir_all(place.join("instance-1")).unwrap();
    let damages: [(Damage, &str); 4] =
        [(remove, "no file epochs"), (empty, "new or empty"), (clear, "new or empty"), (lose, "is lost")];
    for (damage, word) in damages {
        let directory = tempfile::tempdir().unwrap();
        let open = |unit| options(2).directory(directory.path()).commit_unit(unit).open::<Bank>();
        let islands = open(CommitUnit::Epoch).unwrap();
        for _ in 0..3 {
            let outcome = islands.transact(0, &transfer(1, (1, 2), 5, None));
            assert!(matches!(outcome, Outcome::Committed { .. }));
        }
        drop(islands);
        damage(directory.path());
        let refused = open(CommitUnit::Epoch).unwrap_err().to_string();
        assert!(refused.contains(word), "{refused}");
        assert!(open(CommitUnit::Transaction).is_err());
    }
}

/// It would be empty, and the others would take that for what it has.
#[test]
fn a_lost_instance_is_lost_whatever_harmless_is_in_its_directory() {
    type Leave = fn(&Path);
    let nothing: Leave = |_| ();
    let empty: Leave = |lost| std::fs::create_dir(lost).unwrap();
    let found: Leave = |lost| std::fs::create_dir_all(lost.join("lost+found")).unwrap();
    let log: Leave = |lost| std::fs::create_dir_all(lost.join("log")).unwrap();
    let lock: Leave = |lost| {
        std::fs::create_dir(lost).unwrap();
        std::fs::write(lost.join("LOCK"), []).unwrap();
    };
    for unit in CommitUnit::all() {
        // Without the roster the other instances say how many there are.
        let cases = [(true, 0), (false, 2), (true, 2), (false, 0), (true, 1)];
        for (leave, (has_roster, instance)) in [nothing, empty, found, log, lock].into_iter().zip(cases) {
            let here = tempfile::tempdir().unwrap();
            let open = || options(3).directory(here.path()).commit_unit(unit).open::<Bank>();
            drop(open().unwrap());
            let lost = here.path().join(format!("instance-{instance}"));
            std::fs::remove_dir_all(&lost).unwrap();
            leave(&lost);
            if !has_roster {
                std::fs::remove_file(here.path().join("instances")).unwrap();
            }
            let refused = open().unwrap_err().to_string();
            assert!(refused.contains(&format!("instance {instance} of 3 is lost")), "{unit}: {refused}");
            assert!(!lost.join("MANIFEST").exists(), "{unit}");
        }
    }
}

#[test]
fn an_instance_of_another_store_is_refused_and_both_are_named() {
    for unit in CommitUnit::all() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |place: &Path| options(2).directory(place).commit_unit(unit).open::<Bank>();
        drop(open(here.path()).unwrap());
        drop(open(there.path()).unwrap());
        let cluster_of = |place: &Path| {
            let text = std::fs::read_to_string(place.join("instances")).unwrap();
            text.lines().nth(1).unwrap().to_owned()
        };
        let (own, other) = (cluster_of(here.path()), cluster_of(there.path()));
        assert_ne!(own, other);
        let instance = |place: &Path| place.join("instance-1");
        let kept = there.path().join("kept");
        std::fs::rename(instance(here.path()), &kept).unwrap();
        std::fs::rename(instance(there.path()), instance(here.path())).unwrap();
        for has_roster in [true, false] {
            if !has_roster {
                std::fs::remove_file(here.path().join("instances")).unwrap();
            }
            let refused = open(here.path()).unwrap_err().to_string();
            assert!(refused.contains(&own) && refused.contains(&other), "{unit}: {refused}");
            assert!(refused.contains("instance 1"), "{unit}: {refused}");
        }
        std::fs::remove_dir_all(instance(here.path())).unwrap();
        std::fs::rename(&kept, instance(here.path())).unwrap();
        assert_eq!(balances(&open(here.path()).unwrap()), [8000, 8000]);
        assert_eq!(cluster_of(here.path()), own);
    }
}

/// As earlier versions have made them.
fn forget_cluster(place: &Path, instances: usize) {
    for instance in 0..instances {
        let db = Database::open(place.join(format!("instance-{instance}"))).unwrap();
        db.drop_table("islands_cluster").unwrap();
        db.close().unwrap();
    }
    std::fs::write(place.join("instances"), format!("{instances}\n")).unwrap();
}

#[test]
fn instances_of_an_earlier_version_get_a_cluster_unless_one_has_another() {
    let unit = CommitUnit::Transaction;
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let open = |place: &Path| options(2).directory(place).commit_unit(unit).open::<Bank>();
    drop(open(here.path()).unwrap());
    drop(open(there.path()).unwrap());
    forget_cluster(here.path(), 2);
    let first = open(here.path()).unwrap();
    assert!(matches!(first.transact(0, &transfer(1, (1, 2), 5, None)), Outcome::Committed { .. }));
    drop(first);
    let text = std::fs::read_to_string(here.path().join("instances")).unwrap();
    assert!(text.starts_with("2\ncluster ") && text.lines().count() == 3, "{text}");
    assert_eq!(balances(&open(here.path()).unwrap()), [7995, 8005]);
    // One that was put there, and of which the others know nothing.
    forget_cluster(here.path(), 2);
    std::fs::remove_dir_all(here.path().join("instance-1")).unwrap();
    std::fs::rename(there.path().join("instance-1"), here.path().join("instance-1")).unwrap();
    for _ in 0..2 {
        let refused = open(here.path()).unwrap_err().to_string();
        assert!(refused.contains("the files of instance 1 are of cluster "), "{refused}");
    }
}

#[test]
fn a_damaged_roster_is_not_gone_by_and_the_instances_say_what_it_did() {
    let here = tempfile::tempdir().unwrap();
    let (open, roster) = (|| options(2).directory(here.path()).open::<Bank>(), here.path().join("instances"));
    let cluster = || std::fs::read_to_string(&roster).unwrap().lines().take(2).collect::<Vec<_>>().join("\n");
    drop(open().unwrap());
    let (text, own) = (std::fs::read_to_string(&roster).unwrap(), cluster());
    let cuts = [1, 9, 33].map(|bytes| &text[..text.len() - bytes]);
    for damage in ["", "x", "0\n", "2\ncluster 12\n", &format!("{text}all\n")].into_iter().chain(cuts) {
        std::fs::write(&roster, damage).unwrap();
        let refused = open().unwrap_err().to_string();
        assert!(refused.contains("it is damaged"), "{damage:?}: {refused}");
    }
    std::fs::remove_file(&roster).unwrap();
    drop(open().unwrap());
    assert_eq!(cluster(), own);
    std::fs::write(&roster, "2\n").unwrap();
    drop(open().unwrap());
    assert_eq!(cluster(), own);
}

/// The first opening says that it makes them.
#[test]
fn instances_that_were_half_made_are_made() {
    let here = tempfile::tempdir().unwrap();
    let open = || options(2).directory(here.path()).open::<Bank>();
    drop(open().unwrap());
    let roster = here.path().join("instances");
    let text = std::fs::read_to_string(&roster).unwrap();
    let own: String = text.lines().take(2).map(|line| format!("{line}\n")).collect();
    std::fs::write(&roster, format!("{own}not all made\n")).unwrap();
    std::fs::remove_dir_all(here.path().join("instance-1")).unwrap();
    assert_eq!(balances(&open().unwrap()), [8000, 8000]);
    let text = std::fs::read_to_string(&roster).unwrap();
    assert!(text.starts_with(&format!("{own}term ")) && text.lines().count() == 3, "{text}");
}

#[test]
fn a_lost_instance_is_not_made_anew() {
    for unit in CommitUnit::all() {
        let (here, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let open = |place: &Path| options(2).directory(place).commit_unit(unit).open::<Bank>();
        // One that was not made before the first opening ended is made then.
        std::fs::create_dir(here.path().join("instance-1")).unwrap();
        let islands = open(here.path()).unwrap();
        let copy = copies.path().join("copy");
        islands.backup(&copy).unwrap();
        drop(islands);
        for place in [here.path(), &copy] {
            let lost = place.join("instance-1");
            std::fs::remove_dir_all(&lost).unwrap();
            let refused = open(place).unwrap_err().to_string();
            assert!(refused.contains("instance 1 of 2 is lost"), "{unit}: {refused}");
            assert!(!lost.exists(), "{unit}");
        }
    }
}
