//! A database that was opened by a relative path, in a process that changes its current directory. A program of its own, since all threads
//! of a process share that directory.
#![allow(clippy::unwrap_used, reason = "tests")]

use ensilo::{Database, Row};

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "note")]
struct Note {
    #[row(key)]
    id: u32,
    text: String,
}

#[test]
fn a_database_stays_where_it_was_opened() {
    let place = std::env::temp_dir().join(format!("ensilo-current-directory-{}", std::process::id()));
    std::fs::create_dir_all(place.join("elsewhere")).unwrap();
    std::env::set_current_dir(&place).unwrap();
    let options = || Database::options().log_file_bytes(1 << 20).log_directories(["logs/one"]);
    let db = options().open("db").unwrap();
    let notes = db.create_table::<Note>().unwrap();
    std::env::set_current_dir(place.join("elsewhere")).unwrap();
    // More than two log files.
    for id in 0..60 {
        db.transact(|tx| notes.insert(tx, &Note { id, text: "x".repeat(50_000) })).unwrap();
    }
    db.checkpoint().unwrap();
    db.close().unwrap();
    drop((notes, db));
    assert_eq!(std::fs::read_dir(".").unwrap().count(), 0);
    std::env::set_current_dir(&place).unwrap();
    let db = options().open("db").unwrap();
    let notes = db.open_table::<Note>().unwrap();
    assert_eq!(db.transact(|tx| notes.scan().count(tx)).unwrap(), 60);
    drop((notes, db));
    std::env::set_current_dir("/").unwrap();
    std::fs::remove_dir_all(&place).unwrap();
}
