//! Older copies of single instances, which are not opened beside newer ones.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bank;

use std::path::{Path, PathBuf};

use bank::{Bank, options, sum_of_all, transfer};
use ensilo_islands::commit::Outcome;
use ensilo_islands::{CommitUnit, InstanceError, Islands};

/// A directory of two instances.
struct Cluster {
    directory: tempfile::TempDir,
    unit: CommitUnit,
}

impl Cluster {
    fn new(unit: CommitUnit) -> Self {
        Cluster { directory: tempfile::tempdir().unwrap(), unit }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn try_open(&self, name: &str) -> Result<Islands<Bank>, InstanceError> {
        // Also what is for writing alone keeps nobody from looking into the instances first.
        let database = || ensilo::Database::options().live_statistics(true);
        options(2).directory(self.place(name)).commit_unit(self.unit).database(database).open()
    }

    fn open(&self) -> Islands<Bank> {
        self.try_open("here").unwrap()
    }

    /// Opens the instances, and moves money from one to the other.
    fn open_and_transfer(&self) -> Islands<Bank> {
        let islands = self.open();
        move_money(&islands);
        islands
    }

    /// Puts a copy of one instance in the place of this one.
    fn put(&self, copy: &Path, instance: u16) {
        put_into(&self.place("here"), copy, instance);
    }

    fn instance(&self, instance: u16) -> PathBuf {
        self.place("here").join(format!("instance-{instance}"))
    }

    /// Copies a directory.
    fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.place(name);
        copy_all(from, &to);
        to
    }

    fn refusal(&self, name: &str) -> String {
        self.try_open(name).map(|_| ()).unwrap_err().to_string()
    }
}

fn move_money(islands: &Islands<Bank>) {
    let outcome = islands.transact(0, &transfer(1, (1, 2), 5, None));
    assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
}

fn put_into(cluster: &Path, copy: &Path, instance: u16) {
    let place = cluster.join(format!("instance-{instance}"));
    std::fs::remove_dir_all(&place).unwrap();
    copy_all(copy, &place);
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.as_ref().unwrap().file_name()));
        // There are sockets, too, of which no copy is needed.
        match std::fs::metadata(&from).unwrap().file_type() {
            kind if kind.is_dir() => copy_all(&from, &to),
            kind if kind.is_file() => _ = std::fs::copy(&from, &to).unwrap(),
            _ => {}
        }
    }
}

#[test]
fn an_older_copy_of_one_instance_is_refused_until_its_newer_files_are_back() {
    for unit in CommitUnit::all() {
        let cluster = Cluster::new(unit);
        drop(cluster.open_and_transfer());
        let older = [0, 1].map(|at| cluster.copy(&cluster.instance(at), &format!("older-{at}")));
        drop(cluster.open_and_transfer());
        for (instance, older) in (0..).zip(&older) {
            let newer = cluster.copy(&cluster.instance(instance), &format!("newer-{instance}"));
            cluster.put(older, instance);
            for _ in 0..2 {
                let refused = cluster.refusal("here");
                let of = format!("the files of instance {instance} are an older copy, of term ");
                assert!(
                    refused.contains(&of) && refused.contains("put its own newer files back"),
                    "{unit}: {refused}"
                );
            }
            cluster.put(&newer, instance);
            let islands = cluster.open();
            assert_eq!(sum_of_all(&islands), 16_000);
            move_money(&islands);
        }
    }
}

/// Without the file the first instance says in which term all are.
#[test]
fn an_older_copy_is_refused_where_the_file_is_lost_or_is_older_itself() {
    let cluster = Cluster::new(CommitUnit::Transaction);
    drop(cluster.open_and_transfer());
    let older = [0, 1].map(|at| cluster.copy(&cluster.instance(at), &format!("older-{at}")));
    let roster = cluster.place("here").join("instances");
    let older_roster = std::fs::read(&roster).unwrap();
    drop(cluster.open_and_transfer());
    for instance in [0, 1] {
        let newer = cluster.copy(&cluster.instance(instance), &format!("newer-{instance}"));
        let newer_roster = std::fs::read(&roster).unwrap();
        cluster.put(&older[usize::from(instance)], instance);
        std::fs::remove_file(&roster).unwrap();
        assert!(cluster.refusal("here").contains("older copy"));
        std::fs::write(&roster, &older_roster).unwrap();
        let refused = cluster.refusal("here");
        let newer_one = format!("the files of instance {} are of term ", 1 - instance);
        assert!(refused.contains(&newer_one) && refused.contains("the file instances"), "{refused}");
        std::fs::write(&roster, &newer_roster).unwrap();
        cluster.put(&newer, instance);
        drop(cluster.open_and_transfer());
    }
    // The newer ones know more than an older file.
    std::fs::write(&roster, &older_roster).unwrap();
    assert!(cluster.refusal("here").contains("the file instances"));
}

#[test]
fn a_copy_that_was_taken_while_the_instances_were_open_is_older_than_those_that_are_closed() {
    let cluster = Cluster::new(CommitUnit::Transaction);
    let islands = cluster.open_and_transfer();
    let taken = cluster.copy(&cluster.instance(1), "taken");
    move_money(&islands);
    drop(islands);
    cluster.put(&taken, 1);
    let refused = cluster.refusal("here");
    assert!(refused.contains("the files of instance 1 are an older copy"), "{refused}");
}

/// Neither beside those that it was made from, also after a crash of them, nor in another copy; the copies themselves are opened.
#[test]
fn an_instance_out_of_a_copy_of_all_belongs_there_alone() {
    for unit in CommitUnit::all() {
        let cluster = Cluster::new(unit);
        let islands = cluster.open_and_transfer();
        islands.backup(cluster.place("first")).unwrap();
        move_money(&islands);
        islands.backup(cluster.place("second")).unwrap();
        // As a crash would leave them.
        for mixed in ["with-first", "with-second", "crashed"] {
            cluster.copy(&cluster.place("here"), mixed);
        }
        drop(islands);
        let of = |copy: &str| cluster.place(copy).join("instance-1");
        put_into(&cluster.place("with-first"), &of("first"), 1);
        put_into(&cluster.place("with-second"), &of("second"), 1);
        for mixed in ["with-first", "with-second"] {
            let refused = cluster.refusal(mixed);
            assert!(
                refused.contains("the files of instance 1 are an older copy"),
                "{unit}, {mixed}: {refused}"
            );
        }
        cluster.copy(&cluster.place("second"), "mixed");
        put_into(&cluster.place("mixed"), &of("first"), 1);
        cluster.refusal("mixed");
        for whole in ["crashed", "first", "second", "here"] {
            assert_eq!(sum_of_all(&cluster.try_open(whole).unwrap()), 16_000, "{unit}, {whole}");
        }
    }
}

/// Both have as many terms since.
#[test]
fn an_instance_of_a_copy_that_has_gone_on_by_itself_is_refused() {
    let cluster = Cluster::new(CommitUnit::Transaction);
    drop(cluster.open_and_transfer());
    cluster.copy(&cluster.place("here"), "there");
    drop(cluster.try_open("there").unwrap());
    drop(cluster.open_and_transfer());
    cluster.put(&cluster.place("there").join("instance-1"), 1);
    let refused = cluster.refusal("here");
    assert!(refused.contains("the files of instance 1 are of a copy of the cluster"), "{refused}");
}

/// Some instances are in the term that had begun.
#[test]
fn a_crash_while_a_term_begins_leaves_instances_that_are_opened() {
    let cluster = Cluster::new(CommitUnit::Transaction);
    let islands = cluster.open_and_transfer();
    let roster = cluster.place("here").join("instances");
    let before = std::fs::read_to_string(&roster).unwrap();
    let instances = [0, 1].map(|at| cluster.copy(&cluster.instance(at), &format!("before-{at}")));
    drop(islands);
    let after = std::fs::read_to_string(&roster).unwrap();
    let begun = after.lines().nth(2).unwrap().replace("term ", "begun ");
    for (instance, before_it) in (0..).zip(&instances) {
        let kept = cluster.copy(&cluster.place("here"), &format!("crashed-{instance}"));
        std::fs::write(kept.join("instances"), format!("{before}{begun}\n")).unwrap();
        put_into(&kept, before_it, instance);
        let name = format!("crashed-{instance}");
        assert_eq!(sum_of_all(&cluster.try_open(&name).unwrap()), 16_000);
        let text = std::fs::read_to_string(kept.join("instances")).unwrap();
        assert!(!text.contains("begun") && text.lines().count() == 3, "{text}");
        assert_eq!(sum_of_all(&cluster.try_open(&name).unwrap()), 16_000);
    }
}

/// An operator who takes the line out has older files opened: nothing else would open what a repair has given up of one instance.
#[test]
fn without_a_term_in_the_file_instances_of_any_are_opened() {
    let cluster = Cluster::new(CommitUnit::Transaction);
    drop(cluster.open_and_transfer());
    let older = cluster.copy(&cluster.instance(1), "older");
    drop(cluster.open_and_transfer());
    cluster.put(&older, 1);
    cluster.refusal("here");
    let roster = cluster.place("here").join("instances");
    let text = std::fs::read_to_string(&roster).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("term ") && !line.starts_with("begun "));
    std::fs::write(&roster, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    assert_eq!(sum_of_all(&cluster.open()), 16_000 - 5);
    assert_eq!(sum_of_all(&cluster.open()), 16_000 - 5);
}
