//! What `salvage` and `repair` say of losses, and of what nobody can know.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use ensilo::disk::RealDisk;
use ensilo::{Options, Row, generic};

use super::*;

type Database = generic::Database<Engine>;
type Table<T> = generic::Table<T, Engine>;

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u32,
    note: String,
}

fn open(directory: &Path) -> Database {
    let options = Options::default().log_file_bytes(1 << 20).checkpoint_at_close(false);
    options.open_with(Arc::new(RealDisk), directory).unwrap()
}

/// Inserts accounts, each in a transaction that is stored before the next one begins.
fn insert(db: &Database, ids: std::ops::Range<u32>) {
    let accounts: Table<Account> = db.open_table().unwrap();
    for id in ids {
        let account = Account { id, note: format!("account {id}") };
        db.transact(|tx| accounts.insert(tx, &account)).unwrap();
    }
}

/// A database with 10 accounts in its checkpoint, and 10 in its log.
fn database(directory: &TestDirectory) -> PathBuf {
    let path = directory.join("database");
    let db = open(&path);
    db.create_table::<Account>().unwrap();
    insert(&db, 0..10);
    db.checkpoint().unwrap();
    insert(&db, 10..20);
    db.close().unwrap();
    path
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_salvage_is_uncertain_where_nothing_says_whose_a_log_directory_is() {
    let directory = directory("owner");
    let path = database(&directory);
    let owner = path.join("log/OWNER");
    let sound = expect_exit(0, &["salvage"], &[&path, &directory.join("sound")]);
    assert!(sound.contains("nothing is lost") && sound.contains("20 rows saved"), "{sound}");
    type Lose = fn(&Path);
    let losses: [(&str, Lose); 2] = [
        ("byte 0", |owner| flip(owner, 40)),
        ("the file is missing", |owner| fs::remove_file(owner).unwrap()),
    ];
    for (number, (expected, lose)) in losses.into_iter().enumerate() {
        lose(&owner);
        let saved = expect_exit(5, &["salvage"], &[&path, &directory.join(number.to_string())]);
        assert!(saved.contains("OWNER") && saved.contains(expected), "{saved}");
        assert!(saved.contains("nothing is known to be lost") && saved.contains("20 rows saved"), "{saved}");
    }
}

#[test]
fn a_part_of_another_copy_counts_as_lost() {
    let directory = directory("part");
    let path = database(&directory);
    let other = directory.join("other");
    copy(&path, &other);
    for (path, ids) in [(&path, 20..30), (&other, 30..45)] {
        let db = open(path);
        insert(&db, ids);
        db.checkpoint().unwrap();
        db.close().unwrap();
    }
    for part in fs::read_dir(other.join("checkpoint-2")).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&part, path.join("checkpoint-2").join(part.file_name().unwrap())).unwrap();
    }
    let saved = expect_exit(3, &["salvage"], &[&path, &directory.join("saved")]);
    assert!(saved.contains("is of another copy of the database"), "{saved}");
    assert!(saved.contains("rows are lost"), "{saved}");
}

#[test]
fn verify_uses_the_copy_of_a_damaged_manifest() {
    let directory = directory("by-copy");
    let path = database(&directory);
    flip(&path.join("MANIFEST"), 40);
    flip(&path.join("checkpoint-1/part-0.ckpt"), 4096 + 80);
    let said = expect_exit(1, &["verify"], &[&path]);
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("damaged: ") && lines[0].contains("MANIFEST, byte 0"), "{said}");
    assert!(lines[1].starts_with("damaged: ") && lines[1].contains("part-0.ckpt"), "{said}");
    assert!(said.contains("its copy has said what to read") && said.contains("2 damages"), "{said}");
    flip(&path.join("MANIFEST.copy"), 40);
    let said = expect_exit(1, &["verify"], &[&path]);
    assert!(said.contains("MANIFEST, byte 0") && said.contains("MANIFEST.copy, byte 0"), "{said}");
    assert!(said.contains("2 damages") && !said.contains("its copy has said"), "{said}");
    expect_exit(1, &["salvage"], &[&path, &directory.join("saved")]);
}

#[test]
fn a_target_behind_a_link_into_the_database_is_refused() {
    let directory = directory("link");
    let path = database(&directory);
    symlink(path.join("log"), directory.join("link")).unwrap();
    for command in ["backup", "salvage"] {
        let refused = expect_exit(1, &[command], &[&path, &directory.join("link/target")]);
        assert!(refused.contains("lies within the database"), "{refused}");
    }
    assert!(!path.join("log/target").exists());
}

#[test]
fn the_engine_goes_on_with_what_the_program_leaves() {
    let directory = directory("goes-on");
    let path = database(&directory);
    let [copied, saved, repaired] = ["copied", "saved", "repaired"].map(|name| directory.join(name));
    expect_exit(0, &["backup"], &[&path, &copied]);
    expect_exit(0, &["backup"], &[&path, &repaired]);
    flip(&repaired.join("checkpoint-1/copies.ckpt"), 4096 + 80);
    assert!(expect_exit(0, &["repair"], &[&repaired]).contains("nothing is given up"));
    expect_exit(0, &["salvage"], &[&path, &saved]);
    expect_exit(0, &["checkpoint", "create"], &[&path]);
    for path in [&path, &copied, &saved, &repaired] {
        let db = open(path);
        insert(&db, 20..25);
        let accounts: Table<Account> = db.open_table().unwrap();
        let rows: Vec<Account> = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
        assert!(rows.iter().map(|row| row.id).eq(0..25), "{}: {rows:?}", path.display());
        drop(accounts);
        db.close().unwrap();
        expect_exit(0, &["verify"], &[path]);
    }
}
