//! `ensilo tables` and `ensilo stat`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::dumps::{migrated, numbered};
use super::*;

const LISTED: &str = r#"account: 3 rows
  branch   u16           key 1
  id       u32           key 2 descending
  owner    text(16)
  balance  decimal(2)    nullable
  unique index by_owner on owner
  index by_balance on balance descending, owner
"#;

const FIRST: &str = r#"
row 1
  branch   1
  id       2
  owner    "bob"
  balance  -0.05
"#;

const SECOND: &str = r#"
row 2
  branch   1
  id       1
  owner    "ada"
  balance  100.50
"#;

#[test]
fn tables_are_listed_with_their_schemas_and_numbers_of_rows() {
    let directory = directory("listed");
    let bank = bank(&directory);
    let listed = output_of(&["tables"], &[&bank]);
    assert!(listed.starts_with(LISTED), "{listed}");
    let other = "\nevery/\\\"thing\\\": 9 rows\n  the table invents row ids\n  bool          bool          nullable\n";
    assert!(listed.contains(other), "{listed}");
    let json: Json = serde_json::from_str(&output_of(&["tables", "--format", "json"], &[&bank])).unwrap();
    let account = &json["tables"][0];
    assert_eq!((&account["name"], &account["rows"]), (&"account".into(), &3.into()));
    assert_eq!(
        account["columns"][3],
        serde_json::json!({"name": "balance", "type": "decimal(2)", "nullable": true})
    );
    assert_eq!(account["key"][1], serde_json::json!({"column": "id", "order": "descending"}));
    assert_eq!(
        (&account["indexes"][0]["unique"], &account["broken_indexes"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_eq!(json["tables"][1]["key"], serde_json::json!([]));
}

#[test]
fn sequences_and_the_keys_that_tables_give_are_listed() {
    let directory = directory("listed-numbers");
    let numbered = numbered(&directory);
    let listed = output_of(&["tables"], &[&numbered]);
    let keys = "  id      u16           key 2\n  the table gives id: 1 to 65535; numbers as far as 3 may have been given\n";
    let sequences = "
sequence order: 1 to 4294967295 by 5; numbers as far as 6 may have been given
sequence untouched: 1 to 9223372036854775807; numbers as far as 9223372036854775806 may have been given
";
    assert!(listed.contains(keys) && listed.ends_with(sequences), "{listed}");
    assert_eq!(listed.matches("the table gives").count(), 1, "{listed}");
    let json = output_of(&["tables", "--format", "json"], &[&numbered]);
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(json["sequences"][0]["numbers"]["last"], 6);
    assert_eq!(
        (&json["tables"][1]["keys"]["column"], &json["tables"][0]["keys"]),
        (&"id".into(), &Json::Null)
    );
}

#[test]
fn steps_of_migrations_are_listed() {
    let directory = directory("listed-migrations");
    let migrated = migrated(&directory);
    let listed = output_of(&["tables"], &[&migrated]);
    let steps: Vec<_> = listed.lines().filter(|line| line.starts_with("migration ")).collect();
    assert_eq!(steps.len(), 2, "{listed}");
    assert!(steps[0].starts_with("migration 1 names: applied, 20"), "{listed}");
    assert!(steps[1].starts_with("migration 2 gone: no such table, 20"), "{listed}");
    let json = output_of(&["tables", "--format", "json"], &[&migrated]);
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!(json["migrations"][1]["name"], "gone");
}

#[test]
fn the_first_rows_of_a_table_are_shown_from_a_key_on() {
    let directory = directory("first-rows");
    let bank = bank(&directory);
    let shown =
        |more: &[&str]| output_of(&[&["tables", bank.to_str().unwrap(), "account"], more].concat(), &[]);
    assert!(
        shown(&[])
            .contains("\nrow 3\n  branch   2\n  id       7\n  owner    \"eve \\\"e\\\"\"\n  balance  null\n")
    );
    assert_eq!(shown(&["--limit", "2"]), [LISTED, FIRST, SECOND].concat());
    assert_eq!(shown(&["--limit", "1", "--from", "1"]), [LISTED, FIRST].concat());
    let second_alone = shown(&["--limit", "1", "--from", "1", "--from", "1"]);
    assert_eq!(second_alone, [LISTED, &SECOND.replace("row 2", "row 1")].concat());
    assert_eq!(shown(&["--from", "3"]), LISTED);
    let json = shown(&["--format", "json", "--limit", "1"]);
    let json: Json = serde_json::from_str(&json).unwrap();
    let row = serde_json::json!({"branch": 1, "id": 2, "owner": "bob", "balance": "-0.05"});
    assert_eq!((&json["rows"], &json["table"]["rows"]), (&serde_json::json!([row]), &3.into()));
    for (more, why) in [
        (&["account", "--from", "x"][..], "--from: \"x\" is no u16"),
        (&["account", "--from", "1", "--from", "1", "--from", "1"], "the key has 2 columns"),
        (&["accounts"], "no table named accounts"),
    ] {
        let said = expect_exit(1, &[&["tables", bank.to_str().unwrap()], more].concat(), &[]);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn row_ids_are_shown_and_begun_at() {
    let directory = directory("row-ids");
    let bank = bank(&directory);
    let ids = rows_of(&open(&bank), "every/\"thing\"");
    let Value::Unsigned(last) = ids[8].0[0] else { panic!("{ids:?}") };
    let arguments = ["tables", bank.to_str().unwrap(), "every/\"thing\"", "--from", &last.to_string()];
    let shown = output_of(&arguments, &[]);
    assert!(shown.contains(&format!("\nrow 1\n  rowid_        {last}\n  bool          false\n")), "{shown}");
    assert!(!shown.contains("row 2"), "{shown}");
}

#[test]
fn a_database_that_is_open_elsewhere_is_read_as_of_an_epoch_and_not_written() {
    let directory = directory("open");
    let bank = bank(&directory);
    let database = open(&bank);
    let (target, rows) = (directory.join("target"), directory.join("account.csv"));
    fs::write(&rows, "branch,id,owner\n9,9,zoe\n").unwrap();
    let path = bank.to_str().unwrap();
    let process = std::process::id();
    let table = database.open_dynamic_table("account").unwrap();
    database.transact(|tx| table.insert(tx, &account(9, 1, "yan", None)).map(drop)).unwrap();
    let epoch = database.durable_epoch().unwrap();
    for (arguments, part) in [
        (&["tables", path][..], "account: 4 rows"),
        (&["tables", path, "account"], "\"yan\""),
        (&["dump", path, "account"], "9,1,yan,"),
        (&["dump", path, "--out", target.to_str().unwrap()], "2 tables, "),
        (&["stat", path], "table account ("),
    ] {
        let said = expect_exit(0, arguments, &[]);
        let open = format!("process {process} has the database open; it is read as of epoch ");
        let (_, as_of) = said.split_once(&open).unwrap_or_else(|| panic!("{arguments:?}: {said}"));
        let as_of: u64 = as_of.split(',').next().unwrap().parse().unwrap();
        assert!(said.contains(", with all that was stored by "), "{arguments:?}: {said}");
        assert!(as_of >= epoch && said.contains(part), "{arguments:?}: {said}");
    }
    let refused = expect_exit(1, &["load", path, "account", rows.to_str().unwrap()], &[]);
    assert!(refused.contains(&format!("the database is open in process {process}")), "{refused}");
    assert!(output_of(&["stat", path, "--files"], &[]).contains("log in log"));
    database.close().unwrap();
    assert_eq!(rows_of(&open(&bank), "account").len(), 4);
    let said = expect_exit(0, &["tables", path], &[]);
    assert!(said.contains("the database is read as of epoch "), "{said}");
    assert!(!said.contains("has the database open"), "{said}");
}

#[test]
fn a_process_says_what_it_counts_while_it_has_a_database_open() {
    let directory = directory("live");
    let bank = bank(&directory);
    let path = bank.to_str().unwrap();
    let said = expect_exit(1, &["stat", path, "--live"], &[]);
    assert!(said.contains("no process answers"), "{said}");
    let database: Database<TestedEngine> =
        ensilo::Database::options().live_statistics(true).open_as(&bank).unwrap();
    let table = database.open_dynamic_table("account").unwrap();
    let ends = AtomicBool::new(false);
    let shown = std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in (10..).take_while(|_| !ends.load(Ordering::Relaxed)) {
                let row = account(3, id, &format!("owner {id}"), None);
                database.transact(|tx| table.insert(tx, &row).map(drop)).unwrap();
            }
        });
        let show = |format: &[&str]| text(&ensilo(&[&["stat", path, "--live"], format].concat()).stdout);
        let as_text = show(&[]);
        // The disk may have taken the whole time between two looks for one row.
        let as_json = (0..10).map(|_| show(&["--format", "json"])).find(|shown| {
            let shown: Option<Json> = serde_json::from_str(shown).ok();
            let is_over_0 =
                |name| shown.as_ref().is_some_and(|shown| shown["per_second"][name].as_f64() > Some(0.0));
            is_over_0("commits") && is_over_0("log_bytes")
        });
        ends.store(true, Ordering::Relaxed);
        (as_text, as_json)
    });
    let (text, json) = (shown.0, shown.1.expect("something is stored in one of ten seconds"));
    let process = std::process::id();
    for part in [&format!("process {process}, "), "commits", "table account (", "a recovery would take "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json: Json = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["format"], &json["process"]), (&1.into(), &process.into()));
    assert_eq!(json["per_second"]["aborts"], 0.0);
    assert!(json["statistics"]["tables"][0]["records"].as_u64().unwrap() > 3);
    drop(database);
    // Again and again, and it ends with the process's database.
    expect_exit(1, &["stat", path, "--live", "--watch", "0.1"], &[]);
    expect_exit(2, &["stat", path, "--watch", "1"], &[]);
}

#[test]
fn files_and_memory_are_added_up() {
    let directory = directory("sizes");
    let bank = bank(&directory);
    assert!(output_of(&["stat"], &[&bank]).contains("there is no checkpoint"));
    expect_exit(0, &["checkpoint", "create"], &[&bank]);
    let shown = output_of(&["stat"], &[&bank]);
    for part in ["log in log", "checkpoint 1: ", "table account (", "  index by_owner ", "in use, of"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let only_files = output_of(&["stat", "--files"], &[&bank]);
    assert!(shown.starts_with(&only_files) && !only_files.contains("table account"), "{only_files}");
    let json: Json = serde_json::from_str(&output_of(&["stat", "--format", "json"], &[&bank])).unwrap();
    let (files, statistics) = (&json["files"], &json["statistics"]);
    let bytes: u64 = contents(&bank).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    let log = files["log"][0]["bytes"].as_u64().unwrap();
    let parts = ["checkpoints", "cold", "others"].map(|kind| files[kind]["bytes"].as_u64().unwrap());
    assert_eq!(log + parts.iter().sum::<u64>(), bytes);
    assert!(log > 0 && parts[0] >= files["checkpoint"]["bytes"].as_u64().unwrap(), "{files}");
    assert_eq!(statistics["tables"][0]["records"], 3);
    assert!(statistics["tables"][0]["indexes"][1]["memory_bytes"].as_u64().unwrap() > 0);
    assert_eq!(statistics["aborts"]["key exists"], 0);
    assert_eq!(statistics["durability"]["is_read_only"], true);
}

/// All files in a directory and those in it.
fn contents(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { contents(&path) } else { vec![path] }).collect()
}

#[test]
fn a_system_that_gives_no_threads_is_named_and_harms_nothing() {
    let directory = directory("threads");
    let bank = bank(&directory);
    let loaded = directory.join("dump");
    output_of(&["dump", "--out"], &[&loaded, &bank]);
    let into_new = directory.join("new");
    let commands: [(&[&str], &[&Path]); 5] = [
        (&["tables"], &[&bank]),
        (&["stat"], &[&bank]),
        (&["dump"], &[&bank, Path::new("account")]),
        (&["load", "--from"], &[&loaded, &bank]),
        (&["load", "--from"], &[&loaded, &into_new]),
    ];
    for (arguments, paths) in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ensilo"));
        // No address space has room for such a stack.
        let stack_bytes = 1u64 << 62;
        command.args(arguments).args(paths).env("RUST_MIN_STACK", stack_bytes.to_string());
        let output = command.output().unwrap();
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.contains("thread") && !message.contains("panicked"), "{arguments:?}: {message}");
    }
    assert!(output_of(&["tables"], &[&bank]).starts_with(LISTED));
}
