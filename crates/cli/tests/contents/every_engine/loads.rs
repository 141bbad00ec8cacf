//! `ensilo load` of single files.

use super::*;

/// Loads a text into the table `account`, and returns what was said.
fn load(code: i32, bank: &Path, (name, rows): (&str, &str), more: &[&str]) -> String {
    let file = bank.with_file_name(name);
    fs::write(&file, rows).unwrap();
    let arguments = [&["load", bank.to_str().unwrap(), "account", file.to_str().unwrap()], more].concat();
    expect_exit(code, &arguments, &[])
}

fn owners(bank: &Path) -> Vec<String> {
    let database = open(bank);
    let rows = rows_of(&database, "account");
    database.close().unwrap();
    rows.into_iter().map(|(_, columns)| columns[2].to_string()).collect()
}

#[test]
fn columns_go_by_their_names_and_missing_ones_are_null() {
    let directory = directory("by-names");
    let bank = bank(&directory);
    let said = load(0, &bank, ("rows.csv", "owner,id,branch\nzoe,9,9\n\"\",8,9\n"), &[]);
    assert!(said.contains("table account: 2 rows loaded"), "{said}");
    let lines = "{\"owner\": \"yan\", \"branch\": 9, \"id\": \"7\", \"balance\": 0.5}\n\n";
    load(0, &bank, ("rows.txt", lines), &["--format", "jsonl"]);
    let database = open(&bank);
    let rows: Vec<Vec<Value>> = rows_of(&database, "account").into_iter().map(|row| row.1).collect();
    assert_eq!(
        rows[3..],
        [account(9, 9, "zoe", None), account(9, 8, "", None), account(9, 7, "yan", Some(50))]
    );
}

#[test]
fn a_table_is_made_as_its_schema_file_says() {
    let directory = directory("create");
    let bank = bank(&directory);
    let (dumped, loaded) = (directory.join("dumped"), directory.join("loaded"));
    expect_exit(0, &["dump", "--out"], &[&dumped, &bank]);
    let (path, rows, schema) =
        (loaded.to_str().unwrap(), dumped.join("account.csv"), dumped.join("schema.json"));
    expect_exit(0, &["load", path, "account", rows.to_str().unwrap(), "--create"], &[]);
    assert_eq!(open(&loaded).schema("account").unwrap(), accounts());
    assert_eq!(owners(&loaded), owners(&bank));
    let elsewhere = directory.join("elsewhere.csv");
    fs::copy(&rows, &elsewhere).unwrap();
    let create = ["load", path, "account", elsewhere.to_str().unwrap(), "--create", "--schema"];
    let said = expect_exit(1, &[&create[..], &[schema.to_str().unwrap()]].concat(), &[]);
    assert!(said.contains("a table named \"account\" exists"), "{said}");
    let create = ["load", path, "accounts", elsewhere.to_str().unwrap(), "--create", "--schema"];
    let said = expect_exit(1, &[&create[..], &[schema.to_str().unwrap()]].concat(), &[]);
    assert!(said.contains("has no table \"accounts\""), "{said}");
}

#[test]
fn rows_come_from_standard_input() {
    let directory = directory("stdin");
    let bank = bank(&directory);
    let rows = directory.join("rows");
    fs::write(&rows, "{\"branch\": 9, \"id\": 9, \"owner\": \"zoe\"}").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ensilo"));
    command.args(["load", bank.to_str().unwrap(), "account", "-", "--format", "jsonl"]);
    let output = command.stdin(Stdio::from(fs::File::open(&rows).unwrap())).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(owners(&bank).last().unwrap(), "zoe");
    let unnamed = ensilo(&["load", bank.to_str().unwrap(), "account", "-"]);
    assert_eq!(unnamed.status.code(), Some(2));
}

#[test]
fn a_wrong_value_is_named_by_file_line_and_column_and_changes_nothing() {
    let directory = directory("wrong");
    let bank = bank(&directory);
    for (rows, why) in [
        ("branch,id,owner\n1,x,zoe\n", "rows.csv: line 2, column \"id\": \"x\" is no u32"),
        ("branch,id,owner\n1,-1,zoe\n", "line 2, column \"id\": \"-1\" is no u32"),
        ("branch,id,owner\n1,\\N,zoe\n", "line 2, column \"id\": null, and the column is not nullable"),
        ("branch,id,owner\n1,,zoe\n", "line 2, column \"id\": null"),
        (
            "branch,id,owner\n1,9,\\zoe\n",
            "line 2, column \"owner\": \"\\\\zoe\" begins with a single backslash",
        ),
        (
            "branch,id,owner\n1,9,12345678901234567\n",
            "column \"owner\": a text of 17 bytes is longer than text(16)",
        ),
        ("branch,id,owner,balance\n1,9,zoe,0.001\n", "column \"balance\": \"0.001\" is no decimal(2)"),
        ("branch,id\n1,9\n", "line 2, column \"owner\": it is missing, and not nullable"),
        ("branch,id,owner\n1,9\n", "line 2: 2 fields, and the first line has 3"),
        ("branch,id,owner,age\n1,9,zoe,9\n", "line 1: table \"account\" has no column \"age\""),
        ("branch,id,owner,id\n1,9,zoe,9\n", "line 1: column \"id\" comes twice"),
        ("", "line 1: the names of the columns are missing"),
        ("branch,id,owner\n1,2,zoe\n", "line 2: "),
        ("branch,id,owner\n9,9,ada\n", "line 2: "),
    ] {
        let said = load(1, &bank, ("rows.csv", rows), &[]);
        assert!(said.contains(why) && said.contains("; no row of the file is in"), "{why}: {said}");
    }
    for (row, why) in [
        ("[1]", "rows.jsonl: line 1: no JSON object"),
        ("{\"branch\": 1", "line 1: no JSON object"),
        ("{\"branch\": 1, \"id\": 1.5, \"owner\": \"z\"}", "line 1, column \"id\": \"1.5\" is no u32"),
        ("{\"branch\": 1, \"id\": 1, \"owner\": 7}", "column \"owner\": 7 is no text(16): those are strings"),
        ("{\"branch\": 1, \"id\": [1]}", "column \"id\": an object or a list is no value"),
        ("{\"branch\": 1, \"branch\": 1}", "line 1: column \"branch\" comes twice"),
        ("{\"branch\": 1, \"age\": 1}", "has no column \"age\""),
    ] {
        let said = load(1, &bank, ("rows.jsonl", row), &[]);
        assert!(said.contains(why) && said.contains("; no row of the file is in"), "{why}: {said}");
    }
    assert_eq!(owners(&bank), ["bob", "ada", "eve \"e\""]);
}

/// A file with so many rows, of which the one in the last line but one is wrong.
fn long_file(rows: usize) -> String {
    let line = |number: usize| {
        let id = if number + 2 == rows { "wrong".to_owned() } else { number.to_string() };
        format!("8,{id},owner {number}\n")
    };
    format!("branch,id,owner\n{}", (0..rows).map(line).collect::<String>())
}

#[test]
fn the_rows_before_a_wrong_one_are_in_and_the_rest_can_follow() {
    let directory = directory("batches");
    let bank = bank(&directory);
    let rows = long_file(2503);
    let said = load(1, &bank, ("rows.csv", &rows), &[]);
    assert!(
        said.contains(
            "line 2503, column \"id\": \"wrong\" is no u32; 2501 rows before it are in: --skip-rows 2501"
        ),
        "{said}"
    );
    assert_eq!(owners(&bank).len(), 3 + 2501);
    let said = load(1, &bank, ("rows.csv", &rows), &["--skip-rows", "2501"]);
    assert!(said.contains("0 rows before it are in: --skip-rows 2501"), "{said}");
    let said = load(0, &bank, ("rows.csv", &rows.replace("wrong", "2501")), &["--skip-rows", "2501"]);
    assert!(said.contains("2 rows loaded"), "{said}");
    assert_eq!(owners(&bank).len(), 3 + 2503);
    // One that the table refuses, in the midst of a transaction.
    let said = load(
        1,
        &bank,
        (
            "rows.csv",
            &rows
                .replace("\n8,1500,", "\n9,1,")
                .replace("\n8,", "\n10,")
                .replace("owner ", "other ")
                .replace("other 1500", "ada"),
        ),
        &[],
    );
    assert!(said.contains("line 1502: ") && said.contains("; 1500 rows before it are in"), "{said}");
    assert_eq!(owners(&bank).len(), 3 + 2503 + 1500);
}

#[test]
fn all_rows_go_in_at_once_or_none_does() {
    let directory = directory("atomic");
    let bank = bank(&directory);
    let rows = long_file(2503);
    let said = load(1, &bank, ("rows.csv", &rows), &["--atomic"]);
    assert!(
        said.contains("line 2503, column \"id\"") && said.contains("; no row of the file is in"),
        "{said}"
    );
    let rows = rows.replace("wrong", "2501");
    let said = load(1, &bank, ("rows.csv", &rows.replace("owner 2400", "ada")), &["--atomic"]);
    assert!(said.contains("line 2402: ") && said.contains("; no row of the file is in"), "{said}");
    assert_eq!(owners(&bank).len(), 3);
    assert!(load(0, &bank, ("rows.csv", &rows), &["--atomic"]).contains("2503 rows loaded"));
    assert_eq!(owners(&bank).len(), 3 + 2503);
}

#[test]
fn values_of_16_mib_go_out_and_come_back() {
    let directory = directory("large-values");
    let path = directory.join("large");
    let database = open(&path);
    let schema = Schema::builder("large")
        .column("id", ColumnType::U32)
        .column("text", ColumnType::Text)
        .column("bytes", ColumnType::Bytes)
        .key([("id", Order::Ascending)])
        .build()
        .unwrap();
    let table = database.create_dynamic_table(schema).unwrap();
    let bytes: Vec<u8> = (0..16 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let row = [Value::from(1u32), "a line, \"\\\n".repeat(1 << 20).into(), bytes.into()];
    database.transact(|tx| table.insert(tx, &row).map(drop)).unwrap();
    let rows = rows_of(&database, "large");
    database.close().unwrap();
    for format in FORMATS {
        let [dumped, loaded] = ["dumped", "loaded"].map(|what| directory.join(format!("{what}-{format}")));
        expect_exit(0, &["dump", "--format", format, "--out"], &[&dumped, &path]);
        let file = dumped.join(format!("large.{format}"));
        expect_exit(0, &["load", loaded.to_str().unwrap(), "large", file.to_str().unwrap(), "--create"], &[]);
        assert!(rows_of(&open(&loaded), "large") == rows, "{format}");
    }
}
