//! The commands on the files of a database, as their users run them.
//!
//! What lies in `every_engine` holds for directories that any engine has written, and is compiled for each of them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../common/mod.rs"]
mod common;

use common::{TestDirectory, ensilo, expect_exit, text};

/// Silo's engine.
#[path = "."]
mod silo {
    type Engine = ensilo::Silo;

    /// Its name in the arguments of the program.
    const ENGINE: &str = "silo";

    mod every_engine;
}

/// ERMIA's engine.
#[path = "."]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    const ENGINE: &str = "ermia";

    mod every_engine;
}

/// A small database of this engine as a crash has left it: all of it is in its log.
fn database_of(engine: &str, directory: &TestDirectory, arguments: &[&str]) -> PathBuf {
    let path = directory.join("database");
    let small = ["--records", "500", "--mix", "rmw=100", "--workers", "1", "--prefault-mib", "0"];
    let short = ["--seconds", "0.3", "--warmup", "0", "--no-checkpoints", "--quiet", "--no-check"];
    let of_engine = ["--engine", engine];
    let all = [&["bench", "ycsb"][..], &small, &short, &of_engine, arguments, &["--data-dir"]].concat();
    expect_exit(0, &all, &[&path]);
    path
}

/// The same, of whichever engine.
fn database(directory: &TestDirectory) -> PathBuf {
    database_of("silo", directory, &[])
}

fn log_files(database: &Path) -> Vec<PathBuf> {
    let is_log = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("log-");
    let listed = fs::read_dir(database.join("log")).unwrap();
    listed.map(|entry| entry.unwrap().path()).filter(is_log).collect()
}

/// The bytes of all files in a directory and those in it, by path.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(contents(&path)),
            false => files.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    files.sort();
    files
}

/// Writes the database that lies in `verification/crash/fixtures/format-3/rotated` as it was: with the zeros that its files end with.
fn database_of_format_3(directory: &TestDirectory) -> PathBuf {
    let stored =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../verification/crash/fixtures/format-3/rotated");
    let database = directory.join("database");
    for line in fs::read_to_string(stored.join("LENGTHS")).unwrap().lines() {
        let (len, path) = line.split_once(' ').unwrap();
        let to = database.join(path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(stored.join(path), &to).unwrap();
        fs::File::options().write(true).open(&to).unwrap().set_len(len.parse().unwrap()).unwrap();
    }
    database
}

#[test]
fn a_database_of_an_earlier_version_is_shown_with_its_names_and_the_epochs_of_this_one() {
    let directory = TestDirectory::new("earlier");
    let database = database_of_format_3(&directory);
    let names: Vec<String> = log_files(&database)
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name.ends_with(".log"))
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
    for is_opened in [false, true] {
        if is_opened {
            assert!(expect_exit(0, &["checkpoint", "create"], &[&database]).contains("checkpoint"));
        } else {
            let manifest = expect_exit(0, &["log", "dump"], &[&database.join("MANIFEST")]);
            let told = "generations up to 2 are of an earlier version, each epoch of which is sixteen here";
            assert!(manifest.contains(told), "{manifest}");
            let earlier = names.iter().filter(|name| name.starts_with("log-1-"));
            assert!({ earlier }.all(|name| manifest.contains(name.as_str())), "{manifest}");
            for name in &names {
                let shown = expect_exit(0, &["log", "dump"], &[&database.join("log").join(name)]);
                let number: u64 = name.trim_end_matches(".log").rsplit_once("-e").unwrap().1.parse().unwrap();
                assert!(shown.contains(&format!(" to {}, ", 16 * number + 15)), "{name}: {shown}");
                assert!(shown.contains("of an earlier version"), "{name}: {shown}");
            }
        }
        assert!(expect_exit(0, &["verify"], &[&database]).contains("everything up to epoch"));
        assert!(expect_exit(0, &["log", "verify"], &[&database]).contains("in order"));
    }
}

#[test]
fn what_is_no_database_is_an_error_and_stays_as_it_is() {
    let directory = TestDirectory::new("none");
    let missing = directory.join("missing");
    for arguments in [
        &["verify"][..],
        &["checkpoint", "list"],
        &["checkpoint", "create"],
        &["repair", "--accept-loss-after-epoch", "1"],
        &["log", "dump"],
        &["log", "verify"],
    ] {
        let said = expect_exit(1, arguments, &[&missing]);
        assert!(said.contains("missing"), "{arguments:?}: {said}");
        assert!(!missing.exists(), "{arguments:?}");
    }
    assert!(expect_exit(1, &["backup"], &[&missing, &directory.join("target")]).contains("error"));
}

#[test]
fn bad_parameters_are_usage_errors() {
    for arguments in [
        &["verify"][..],
        &["repair"],
        &["repair", "somewhere", "--accept-loss-after-epoch", "-1"],
        &["repair", "somewhere", "--accept-loss-after-epoch", "last"],
        &["backup", "somewhere"],
        &["checkpoint", "remove", "somewhere"],
        &["log", "dump"],
    ] {
        expect_exit(2, arguments, &[]);
    }
    for command in [&["verify"][..], &["repair"], &["backup"], &["log", "dump"], &["log", "verify"]] {
        assert!(expect_exit(0, &[command, &["--help"]].concat(), &[]).contains("Exit codes:"), "{command:?}");
    }
}

#[test]
fn commands_that_only_read_write_nothing() {
    let directory = TestDirectory::new("looked-at");
    let database = database(&directory);
    let empty = directory.join("empty");
    fs::create_dir(&empty).unwrap();
    fs::write(database.join("LOCK"), "1\n").unwrap();
    let before = contents(&database);
    for arguments in [&["verify"][..], &["log", "verify"], &["checkpoint", "list"]] {
        expect_exit(0, arguments, &[&database]);
        expect_exit(1, arguments, &[&empty]);
        assert_eq!(fs::read_dir(&empty).unwrap().count(), 0, "{arguments:?}");
        assert!(contents(&database) == before, "{arguments:?}");
    }
    expect_exit(0, &["backup"], &[&database, &directory.join("copy")]);
    assert!(contents(&database) == before);
    for arguments in
        [&["verify"][..], &["repair", "--accept-loss-after-epoch", "1"], &["checkpoint", "create"]]
    {
        let said = expect_exit(1, arguments, &[&directory]);
        assert!(
            said.contains("holds no database") && !said.contains("name an empty"),
            "{arguments:?}: {said}"
        );
        assert!(!directory.join("LOCK").exists(), "{arguments:?}");
    }
}

#[test]
fn a_database_that_is_open_is_refused_by_the_number_of_its_process() {
    let directory = TestDirectory::new("locked");
    let database = database(&directory);
    let lock = fs::OpenOptions::new().write(true).open(database.join("LOCK")).unwrap();
    lock.lock().unwrap();
    fs::write(database.join("LOCK"), "4711\n").unwrap();
    for arguments in
        [&["verify"][..], &["checkpoint", "create"], &["repair", "--accept-loss-after-epoch", "1"]]
    {
        let said = expect_exit(1, arguments, &[&database]);
        assert!(said.contains("open in process 4711"), "{arguments:?}: {said}");
    }
    // Those that do not need the files to stay as they are.
    expect_exit(0, &["log", "verify"], &[&database]);
    expect_exit(0, &["checkpoint", "list"], &[&database]);
}

#[test]
fn what_holds_no_log_is_no_log_in_order() {
    let directory = TestDirectory::new("no-log");
    assert!(expect_exit(1, &["log", "verify"], &[&directory]).contains("holds no log files"));
    let text = directory.join("text");
    fs::write(&text, "text").unwrap();
    for (path, why) in [(&text, "is no file of a log"), (&directory.join("missing"), "cannot open")] {
        let said = expect_exit(1, &["log", "verify"], &[path]);
        assert!(said.contains(why) && !said.contains("damaged"), "{said}");
    }
    let said = expect_exit(1, &["log", "dump"], &[&directory]);
    assert!(said.contains("is a directory: name the log files"), "{said}");
    let owner = directory.join("OWNER");
    fs::write(&owner, "text").unwrap();
    for path in [&text, &owner] {
        let said = expect_exit(1, &["log", "dump"], &[path]);
        assert!(said.contains("is no log file") && !said.contains("remove the file"), "{said}");
    }
    let said = expect_exit(1, &["backup"], &[&database(&directory), &text]);
    assert!(said.contains("cannot list") && said.contains("directory"), "{said}");
}
