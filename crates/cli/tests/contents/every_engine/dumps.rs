//! `ensilo dump`, and `ensilo load --from`.

use super::*;

const CSV: &str = "\
branch,id,owner,balance
1,2,bob,-0.05
1,1,ada,100.50
2,7,\"eve \"\"e\"\"\",\\N
";

const JSON_LINES: &str = r#"{"branch":1,"id":2,"owner":"bob","balance":"-0.05"}
{"branch":1,"id":1,"owner":"ada","balance":"100.50"}
{"branch":2,"id":7,"owner":"eve \"e\"","balance":null}
"#;

#[test]
fn a_single_table_goes_to_standard_output() {
    let directory = directory("single");
    let bank = bank(&directory);
    let path = bank.to_str().unwrap();
    assert_eq!(output_of(&["dump", path, "account"], &[]), CSV);
    assert_eq!(output_of(&["dump", path, "account", "--format", "jsonl"], &[]), JSON_LINES);
    assert!(expect_exit(1, &["dump", path, "accounts"], &[]).contains("no table named accounts"));
}

#[test]
fn a_database_is_the_same_after_a_dump_and_a_load_in_either_format() {
    for &format in FORMATS {
        let directory = directory(&format!("round-{format}"));
        let bank = bank(&directory);
        let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
        let said = expect_exit(0, &["dump", "--format", format, "--out"], &[&dumped, &bank]);
        assert!(said.contains("2 tables, 12 rows in"), "{said}");
        let [first, second] = ["account", "every%2F%22thing%22"].map(|name| format!("{name}.{format}"));
        assert_eq!(files_in(&dumped), [&first, &second, "schema.json"]);
        let said = expect_exit(0, &["load", "--from"], &[&dumped, &loaded]);
        assert!(
            said.contains("table account: 3 rows loaded") && said.contains("2 tables, 12 rows"),
            "{said}"
        );
        let (before, after) = (open(&bank), open(&loaded));
        for table in ["account", "every/\"thing\""] {
            assert_eq!(after.schema(table).unwrap(), before.schema(table).unwrap());
            assert_eq!(rows_of(&after, table), rows_of(&before, table), "{format}: {table}");
        }
        assert_eq!(after.list_tables().unwrap(), before.list_tables().unwrap());
        before.close().unwrap();
        after.close().unwrap();
        // The text is the same as well, down to each bit of it.
        let again = directory.join("again");
        expect_exit(0, &["dump", "--format", format, "--out"], &[&again, &loaded]);
        for name in files_in(&dumped) {
            let of = |dump: &Path| without_largest_row_id(&fs::read(dump.join(&name)).unwrap());
            assert!(of(&dumped) == of(&again), "{name}");
        }
        let said = expect_exit(1, &["load", "--from"], &[&dumped, &loaded]);
        assert!(said.contains("a table named \"account\" exists"), "{said}");
    }
}

/// The lines of a file but the one with the largest row id, which every database goes beyond.
fn without_largest_row_id(file: &[u8]) -> Vec<Vec<u8>> {
    let lines = file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
    lines.filter(|line| !line.starts_with(b"  \"largest_row_id\"")).collect()
}

/// A line of CSV with a single field that is empty, or one that looks like a mark, is a row.
#[test]
fn rows_of_a_single_column_stay() {
    for &format in FORMATS {
        let directory = directory(&format!("single-column-{format}"));
        let (from, dumped, loaded) =
            (directory.join("from"), directory.join("dumped"), directory.join("loaded"));
        let schema =
            Schema::builder("word").column("word", ColumnType::Text).key([("word", Order::Descending)]);
        let database = open(&from);
        let words = database.create_dynamic_table(schema.build().unwrap()).unwrap();
        let texts = ["", "\"\"", "\n", "\\", "word"];
        database
            .transact(|tx| texts.iter().try_for_each(|&word| words.insert(tx, &[word.into()]).map(drop)))
            .unwrap();
        let before = rows_of(&database, "word");
        database.close().unwrap();
        expect_exit(0, &["dump", "--format", format, "--out"], &[&dumped, &from]);
        expect_exit(0, &["load", "--from"], &[&dumped, &loaded]);
        let database = open(&loaded);
        assert_eq!(rows_of(&database, "word"), before);
        assert_eq!(before.len(), texts.len());
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_of_other_types_is_refused() {
    let directory = directory("other-types");
    let bank = bank(&directory);
    let (path, rows) = (bank.to_str().unwrap(), directory.join("rows.parquet"));
    let dumped = Command::new(env!("CARGO_BIN_EXE_ensilo"))
        .args(["dump", path, "account", "--format", "parquet"])
        .output()
        .unwrap();
    assert!(
        dumped.status.success() && dumped.stdout.starts_with(b"PAR1") && dumped.stdout.ends_with(b"PAR1")
    );
    fs::write(&rows, &dumped.stdout).unwrap();
    let said = expect_exit(1, &["load", path, "account"], &[&rows]);
    assert!(said.contains("rows.parquet: row 1: ") && said.contains("; no row of the file is in"), "{said}");
    let database = open(&bank);
    let schema =
        Schema::builder("other").column("branch", ColumnType::I16).key([("branch", Order::Ascending)]);
    database.create_dynamic_table(schema.build().unwrap()).unwrap();
    database.close().unwrap();
    let said = expect_exit(1, &["load", path, "other"], &[&rows]);
    assert!(said.contains("column \"branch\" is not what `ensilo dump` writes for i16"), "{said}");
    fs::write(&rows, &dumped.stdout[..dumped.stdout.len() / 2]).unwrap();
    assert!(expect_exit(1, &["load", path, "account"], &[&rows]).contains("rows.parquet: "));
    let said = expect_exit(1, &["load", path, "account", "-", "--format", "parquet"], &[]);
    assert!(said.contains("Parquet is read from files alone"), "{said}");
}

#[test]
fn row_ids_stay_and_the_next_ones_are_larger() {
    let directory = directory("ids-stay");
    let bank = bank(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &bank]);
    // As if the other database had been in use for a year.
    let file = dumped.join("every%2F%22thing%22.csv");
    let late = 6_000_000_000u64 << 16;
    let rows = fs::read_to_string(&file).unwrap();
    let (head, rows) = rows.split_once('\n').unwrap();
    let (first, others) = rows.split_once(',').unwrap();
    fs::write(&file, format!("{head}\n{},{others}", first.parse::<u64>().unwrap() + late)).unwrap();
    expect_exit(0, &["load", "--from"], &[&dumped, &loaded]);
    let database = open(&loaded);
    let table = database.open_dynamic_table("every/\"thing\"").unwrap();
    let next = database.transact(|tx| table.insert(tx, &vec![Value::Null; 17])).unwrap();
    let rows = rows_of(&database, "every/\"thing\"");
    assert!(rows.len() == 10 && rows[9].0 == next, "{rows:?}");
    assert!(matches!(next[..], [Value::Unsigned(id)] if id > late), "{next:?}");
    database.close().unwrap();
    let database = open(&loaded);
    let table = database.open_dynamic_table("every/\"thing\"").unwrap();
    let after = database.transact(|tx| table.insert(tx, &vec![Value::Null; 17])).unwrap();
    assert!(matches!((&after[0], &next[0]), (Value::Unsigned(after), Value::Unsigned(next)) if after > next));
    let refused =
        database.transact(|tx| table.insert_with_row_id(tx, RowId(1 << 59), &vec![Value::Null; 17]));
    assert!(refused.unwrap_err().to_string().contains("smaller than 2^59"));
}

#[test]
fn tables_are_dumped_by_name_into_an_empty_directory_alone() {
    let directory = directory("by-name");
    let bank = bank(&directory);
    let dumped = directory.join("dumped");
    let arguments = ["dump", bank.to_str().unwrap(), "account", "--out", dumped.to_str().unwrap()];
    expect_exit(0, &arguments, &[]);
    assert_eq!(files_in(&dumped), ["account.csv", "schema.json"]);
    assert_eq!(fs::read_to_string(dumped.join("account.csv")).unwrap(), CSV);
    let said = expect_exit(1, &arguments, &[]);
    assert!(said.contains("is not empty: name another directory"), "{said}");
    // Nothing was read by then, not even what is not there.
    let missing = ["dump", "missing", "--out", dumped.to_str().unwrap()];
    assert!(expect_exit(1, &missing, &[]).contains("is not empty"));
}

#[test]
fn a_dump_that_is_not_whole_is_refused_or_named() {
    let directory = directory("not-whole");
    let bank = bank(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &bank]);
    let (schema, rows) = (dumped.join("schema.json"), dumped.join("account.csv"));
    let description = fs::read_to_string(&schema).unwrap();
    for (text, why) in [
        (description.replace("\"version\": 2", "\"version\": 4"), "has version 4"),
        (description.replace("\"account.csv\"", "\"../account.csv\""), "is no name of a file beside it"),
        (description.replace("decimal(2)", "money"), "has the unknown type \"money\""),
        (description.replace("\"unique\"", "\"distinct\""), "describes no dump"),
        (description.replace("\"account.csv\"", "\"missing.csv\""), "cannot open"),
        (description[..description.len() / 2].to_owned(), "describes no dump"),
    ] {
        assert_ne!(text, description, "{why}");
        fs::write(&schema, text).unwrap();
        let said = expect_exit(1, &["load", "--from"], &[&dumped, &loaded]);
        assert!(said.contains(why) && !loaded.exists(), "{why}: {said}");
    }
    fs::write(&schema, description).unwrap();
    fs::write(&rows, &CSV[..CSV.rfind("2,7").unwrap()]).unwrap();
    let said = expect_exit(1, &["load", "--from"], &[&dumped, &loaded]);
    assert!(said.contains("has 2 rows, which are in, and schema.json says 3"), "{said}");
    let other = dumped.join("every%2F%22thing%22.csv");
    fs::write(&rows, CSV).unwrap();
    fs::write(&other, "rowid_,age\n").unwrap();
    let said = expect_exit(1, &["load", "--from"], &[&dumped, &directory.join("half")]);
    assert!(
        said.contains("has no column \"age\"") && said.contains("; the 1 tables before it are loaded"),
        "{said}"
    );
    fs::remove_file(&schema).unwrap();
    let said = expect_exit(1, &["load", "--from"], &[&dumped, &directory.join("other")]);
    assert!(said.contains("cannot read") && !directory.join("other").exists(), "{said}");
}

/// A database that has given numbers of each kind, and has deleted the rows with the largest.
pub(super) fn numbered(directory: &TestDirectory) -> PathBuf {
    let path = directory.join("numbered");
    let database = open(&path);
    let numbers = database.sequence_with::<u32>("order", SequenceOptions::new().increment(5).block_len(3));
    let other: Sequence<i64> = database.sequence("untouched").unwrap();
    database.restart_sequence("untouched", i64::MAX).unwrap();
    assert_eq!(other.name(), "untouched");
    let table = |name: &str| {
        let named = Schema::builder(name).column("tenant", ColumnType::Text).column("id", ColumnType::U16);
        named.key([("tenant", Order::Ascending), ("id", Order::Ascending)]).build().unwrap()
    };
    let given = database.create_dynamic_table(table("given")).unwrap();
    database.give_keys_in("given", "id").unwrap();
    database.create_dynamic_table(table("none given")).unwrap();
    let with_ids = Schema::builder("event").column("what", ColumnType::U8).build().unwrap();
    let events = database.create_dynamic_table(with_ids).unwrap();
    let numbers = numbers.unwrap();
    let id = database.transact(|tx| {
        assert_eq!((numbers.next(tx)?, numbers.next(tx)?), (1, 6));
        let row = ["a".into(), Value::Null];
        assert_eq!(given.insert_many_auto(tx, vec![row.clone(); 3])?.len(), 3);
        events.insert(tx, &[1u8.into()])?;
        events.insert(tx, &[2u8.into()])
    });
    let deleted = database.transact(|tx| {
        given.delete(tx, &["a".into(), 3u16.into()])?;
        events.delete(tx, &id.clone().unwrap())
    });
    assert!(deleted.unwrap());
    database.close().unwrap();
    path
}

#[test]
fn numbers_go_on_behind_all_that_were_given() {
    let directory = directory("numbers");
    let from = numbered(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &from]);
    expect_exit(0, &["load", "--from"], &[&dumped, &loaded]);
    let row = ["a".into(), Value::Null];
    let mut largest_ids = Vec::new();
    for path in [&from, &loaded] {
        let database = open(path);
        assert_eq!(database.list_sequences().unwrap(), ["order", "untouched"]);
        let options = SequenceOptions::new().increment(5).block_len(3);
        let orders: Sequence<u32> = database.sequence_with("order", options).unwrap();
        let untouched: Sequence<i64> = database.sequence("untouched").unwrap();
        let [given, none] = ["given", "none given"].map(|name| database.open_dynamic_table(name).unwrap());
        let events = database.open_dynamic_table("event").unwrap();
        let id = database.transact(|tx| {
            assert_eq!((orders.next(tx)?, untouched.next(tx)?), (11, i64::MAX));
            assert_eq!(given.insert_auto(tx, &row)?, Value::Unsigned(4));
            assert!(none.insert_auto(tx, &row).is_err());
            events.insert(tx, &[3u8.into()])
        });
        largest_ids.push(id.unwrap()[0].clone());
        database.close().unwrap();
    }
    // The first database has gone on as well, so that its next id is larger than the one that was deleted.
    let text = fs::read_to_string(dumped.join("schema.json")).unwrap();
    let description: Json = serde_json::from_str(&text).unwrap();
    let largest = description["largest_row_id"].as_u64().unwrap();
    for id in largest_ids {
        assert!(matches!(id, Value::Unsigned(id) if id > largest), "{id:?} after {largest}");
    }
    // What is there already is not taken again, and nothing is changed then.
    let database = open(&directory.join("other"));
    let _: Sequence<u32> = database.sequence("untouched").unwrap();
    database.close().unwrap();
    let said = expect_exit(1, &["load", "--from"], &[&dumped, &directory.join("other")]);
    assert!(said.contains("a sequence named \"untouched\" exists"), "{said}");
    assert!(open(&directory.join("other")).list_tables().unwrap().is_empty());
}

/// A database to which two steps were applied.
pub(super) fn migrated(directory: &TestDirectory) -> PathBuf {
    let path = directory.join("migrated");
    let database = open(&path);
    let schema = Schema::builder("city").column("id", ColumnType::U16).build().unwrap();
    database.create_dynamic_table(schema).unwrap();
    database.migrate(&migrations()).unwrap();
    database.close().unwrap();
    path
}

pub(super) fn migrations() -> Migrations<TestedEngine> {
    let name = SchemaChange::new().add("name", ColumnType::Text, "nameless");
    Migrations::new().change_table("names", "city", name).drop_table("gone", "nobody")
}

#[test]
fn steps_that_were_applied_go_along() {
    let directory = directory("migrations");
    let from = migrated(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &from]);
    let text = fs::read_to_string(dumped.join("schema.json")).unwrap();
    assert!(text.contains("\"version\": 3") && text.contains("\"outcome\": \"no such table\""), "{text}");
    expect_exit(0, &["load", "--from"], &[&dumped, &loaded]);
    let applied = open(&from).applied_migrations().unwrap();
    let database = open(&loaded);
    assert_eq!((database.applied_migrations().unwrap(), applied.len()), (applied, 2));
    assert!(database.migrate(&migrations()).unwrap().is_empty());
    // Not into a database of another version, and nothing is changed then; into one of the same.
    for (other, steps, code) in [("further", 3, 1), ("same", 2, 0)] {
        let path = directory.join(other);
        let database = open(&path);
        let more = if steps == 3 { migrations().run("more", |_| Ok(())) } else { migrations() };
        database.migrate(&more).unwrap();
        database.close().unwrap();
        let said = expect_exit(code, &["load", "--from"], &[&dumped, &path]);
        assert_eq!(said.contains("at version 3 of its program's migrations"), code == 1, "{said}");
        assert!(!said.contains("--create"), "{said}");
        let database = open(&path);
        assert_eq!(database.list_tables().unwrap().len(), usize::from(code == 0));
        assert_eq!(database.migration_version().unwrap(), steps);
    }
}

#[test]
fn a_dump_and_a_database_of_which_one_has_steps_do_not_go_together() {
    let directory = directory("steps-and-none");
    let from = migrated(&directory);
    let (with, without) = (directory.join("with"), directory.join("without"));
    // All tables by their names are of this version.
    expect_exit(0, &["dump", from.to_str().unwrap(), "city", "--out"], &[&with]);
    assert!(fs::read_to_string(with.join("schema.json")).unwrap().contains("\"migrations\""));
    let old = directory.join("old");
    let database = open(&old);
    database
        .create_dynamic_table(Schema::builder("town").column("id", ColumnType::U16).build().unwrap())
        .unwrap();
    let _: Sequence<u32> = database.sequence("visit").unwrap();
    database.close().unwrap();
    expect_exit(0, &["dump", "--out"], &[&without, &old]);
    let said = expect_exit(1, &["load", "--from"], &[&with, &old]);
    assert!(said.contains("the database has tables and no steps"), "{said}");
    let said = expect_exit(1, &["load", "--from"], &[&without, &from]);
    assert!(said.contains("the dump has none") && said.contains("--create"), "{said}");
    assert!(open(&from).list_sequences().unwrap().is_empty());
    let file = without.join("town.csv");
    let from_there = from.to_str().unwrap();
    expect_exit(0, &["load", from_there, "town", file.to_str().unwrap(), "--create"], &[]);
    assert_eq!(open(&from).migration_version().unwrap(), 2);
    assert_eq!(open(&old).list_tables().unwrap(), ["town"]);
}

#[test]
fn a_set_up_that_did_not_end_is_not_lost_by_a_dump() {
    let directory = directory("set-up");
    let (from, dumped) = (directory.join("new"), directory.join("dumped"));
    let set_up = |is_well: bool| {
        migrations().on_new_database(move |db| {
            for name in ["city", "town"] {
                drop(db.create_dynamic_table(
                    Schema::builder(name).column("id", ColumnType::U16).build().unwrap(),
                ));
            }
            if is_well { Ok(()) } else { Err(ensilo::Error::rollback("not well")) }
        })
    };
    let database = open(&from);
    database.migrate(&set_up(false)).unwrap_err();
    database.close().unwrap();
    let said = expect_exit(1, &["dump", "--out"], &[&dumped, &from]);
    assert!(said.contains("was not set up to the end"), "{said}");
    // Nor is it loaded into: the set-up would run over the rows.
    let without_steps = directory.join("without-steps");
    let city = Schema::builder("city").column("id", ColumnType::U16).build().unwrap();
    let database = open(&without_steps);
    database.create_dynamic_table(city).unwrap();
    database.close().unwrap();
    expect_exit(0, &["dump", "--out"], &[&directory.join("all"), &without_steps]);
    let said = expect_exit(1, &["load", "--from"], &[&directory.join("all"), &from]);
    assert!(said.contains("not set it up to the end") && said.contains("start the program"), "{said}");
    expect_exit(0, &["dump", from.to_str().unwrap(), "town", "--out"], &[&directory.join("town")]);
    let database = open(&from);
    database.migrate(&set_up(true)).unwrap();
    database.close().unwrap();
    expect_exit(0, &["dump", "--out"], &[&dumped, &from]);
    // A database that was set up without steps takes them.
    let other = directory.join("other");
    let database = open(&other);
    database.migrate(&Migrations::new().on_new_database(|_| Ok(()))).unwrap();
    database.close().unwrap();
    expect_exit(0, &["load", "--from"], &[&dumped, &other]);
    assert_eq!(open(&other).migration_version().unwrap(), 2);
}

#[test]
fn what_no_migration_leaves_is_refused_before_anything_is_made() {
    let directory = directory("wrong-steps");
    let (from, dumped) = (migrated(&directory), directory.join("dumped"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &from]);
    let path = dumped.join("schema.json");
    let text = fs::read_to_string(&path).unwrap();
    for (old, new, said) in [
        ("\"gone\"", "\"names\"", "step 2 has the name of an earlier one"),
        ("\"gone\"", "\"\"", "step 2 has no name"),
        ("\"city\"", "\"ensilo.city\"", "names with ensilo. belong to the system"),
    ] {
        assert!(text.contains(old), "{text}");
        fs::write(&path, text.replace(old, new)).unwrap();
        let loaded = directory.join("loaded");
        let refused = expect_exit(1, &["load", "--from"], &[&dumped, &loaded]);
        assert!(refused.contains(said), "{refused}");
        assert!(!loaded.exists());
    }
}

#[test]
fn a_single_table_takes_its_numbers_along() {
    let directory = directory("single-numbers");
    let from = numbered(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    let named = ["dump", from.to_str().unwrap(), "given", "--out"];
    expect_exit(0, &named, &[&dumped]);
    let text = fs::read_to_string(dumped.join("schema.json")).unwrap();
    assert!(!text.contains("\"sequences\""), "{text}");
    let file = dumped.join("given.csv");
    expect_exit(0, &["load", "--create"], &[&loaded, Path::new("given"), &file]);
    let database = open(&loaded);
    assert!(database.list_sequences().unwrap().is_empty());
    let given = database.open_dynamic_table("given").unwrap();
    let number = database.transact(|tx| given.insert_auto(tx, &["b".into(), Value::Null])).unwrap();
    assert_eq!(number, Value::Unsigned(4));
    database.close().unwrap();
}

#[test]
fn dumps_of_earlier_versions_are_loaded() {
    let directory = directory("earlier");
    let bank = bank(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &bank]);
    let schema = dumped.join("schema.json");
    let mut description: Json = serde_json::from_str(&fs::read_to_string(&schema).unwrap()).unwrap();
    let fields = description.as_object_mut().unwrap();
    assert!(fields.insert("version".to_owned(), 1.into()) == Some(2.into()));
    assert!(fields.remove("largest_row_id").is_some());
    fs::write(&schema, description.to_string()).unwrap();
    expect_exit(0, &["load", "--from"], &[&dumped, &loaded]);
    let (before, after) = (open(&bank), open(&loaded));
    for table in before.list_tables().unwrap() {
        assert_eq!(rows_of(&after, &table), rows_of(&before, &table));
    }
    // And a dump that has nothing else is one of those.
    before.drop_table("every/\"thing\"").unwrap();
    before.close().unwrap();
    let plain = directory.join("plain");
    expect_exit(0, &["dump", "--out"], &[&plain, &bank]);
    let text = fs::read_to_string(plain.join("schema.json")).unwrap();
    assert!(text.contains("\"version\": 1") && !text.contains("largest_row_id"), "{text}");
}

#[test]
fn numbers_that_no_table_can_give_are_refused() {
    let directory = directory("no-numbers");
    let from = numbered(&directory);
    let dumped = directory.join("dumped");
    expect_exit(0, &["dump", "--out"], &[&dumped, &from]);
    let schema = dumped.join("schema.json");
    let description = fs::read_to_string(&schema).unwrap();
    for (number, (what, instead, why)) in [
        (
            "\"column\": \"id\",\n        \"numbers\"",
            "\"column\": \"tenant\",\n        \"numbers\"",
            "no integer",
        ),
        ("\"max\": 65535", "\"max\": 65536", "not numbers of the column"),
        ("\"last\": 6", "\"last\": 6, \"next\": 7", "both `last` and `next`"),
        ("\"block_len\": 32", "\"block_len\": 0", "contradict"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = description.replace(what, instead);
        assert_ne!(text, description, "{what}");
        fs::write(&schema, text).unwrap();
        let target = directory.join(format!("target {number}"));
        let said = expect_exit(1, &["load", "--from"], &[&dumped, &target]);
        assert!(said.contains(why), "{what}: {said}");
    }
}
