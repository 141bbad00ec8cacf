//! Changes of a table's columns in a directory: what is there after an opening, and after power failures.

use ensilo::{ColumnType, Error, SchemaChange, Value};
use ensilo_test_disk::Faults;

use super::*;

/// The account of a later version.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner)), index(name = "by_level", columns(level, owner desc)))]
struct Member {
    #[row(key)]
    id: u32,
    level: u16,
    owner: u32,
    balance: i64,
    note: String,
}

/// A column that is patched.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Member)]
struct MemberBalance {
    balance: i64,
}

fn to_members() -> [SchemaChange; 1] {
    [SchemaChange::new().add("level", ColumnType::U16, 3u16)]
}

fn as_member(Account { id, owner, balance, note }: Account) -> Member {
    Member { id, level: 3, owner, balance, note }
}

fn members(db: &Database) -> Table<Member> {
    db.table_with_changes(&to_members()).unwrap()
}

fn all_members(db: &Database) -> Vec<Member> {
    let members = members(db);
    db.transact(|tx| members.scan().rows(tx)).unwrap()
}

/// Every index has the entries that the rows should have.
fn check_indexes(db: &Database) {
    let table = db.open_dynamic_table("account").unwrap();
    for index in db.schema("account").unwrap().indexes() {
        assert!(
            db.transact(|tx| table.check_index(tx, index.name())).unwrap().is_whole(),
            "{}",
            index.name()
        );
    }
}

#[test]
fn rows_of_all_versions_come_back() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = with_accounts(&disk, 20);
    // Some are in a checkpoint, some in the log.
    db.checkpoint().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(20))).unwrap();
    let mut expected: Vec<_> = (0..=20).map(|id| as_member(account(id))).collect();
    let table = members(&db);
    db.transact(|tx| table.update(tx, 4, |columns: &mut MemberBalance| columns.balance = -1)).unwrap();
    expected[4].balance = -1;
    let newer = Member { level: 9, ..as_member(account(21)) };
    db.transact(|tx| table.insert(tx, &newer)).unwrap();
    expected.push(newer);
    for round in 0..4 {
        let crashed = Arc::new(disk.fork().crash(round));
        let db = open(&crashed);
        assert_eq!(all_members(&db), expected, "round {round}");
        check_indexes(&db);
        // Rows of every version, in a checkpoint.
        db.checkpoint().unwrap();
        db.transact(|tx| members(&db).update(tx, 5, |columns: &mut MemberBalance| columns.balance = 7))
            .unwrap();
        db.close().unwrap();
        let db = open(&crashed);
        let found = all_members(&db);
        assert_eq!((found[5].balance, found.len()), (7, expected.len()));
        check_indexes(&db);
        // Once more: of those that have two versions behind them too.
        db.change_table("account", &SchemaChange::new().add_nullable("more", ColumnType::Bool, true))
            .unwrap();
        db.close().unwrap();
        let db = open(&crashed);
        let table = db.open_dynamic_table("account").unwrap();
        let row = db.transact(|tx| table.get(tx, &[0u32.into()])).unwrap().unwrap();
        assert_eq!(row[1..3], [3u16.into(), 0u32.into()]);
        assert_eq!(row[5], Value::Bool(true));
        check_indexes(&db);
    }
}

/// Waits until the log writes nothing by itself: one file is written, and the next one is made.
pub(super) fn wait_until_files_are_made(disk: &SimulatedDisk) {
    let are_made = || {
        let files = disk.files();
        files.iter().filter(|(path, _)| path.extension().is_some_and(|end| end == "open")).count() == 2
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !are_made() {
        assert!(Instant::now() < deadline, "{:?}", disk.files());
        std::thread::yield_now();
    }
}

/// The n-th write or sync fails, or none does. Then the power does, and what was not synced may be lost.
pub(super) fn one_of_the_next_fails(life: u64) -> Faults {
    let number = life / 3 % 10;
    Faults {
        seed: life,
        write_error_at: life.is_multiple_of(3).then_some(number),
        sync_error_at: (life % 3 == 1).then_some(number),
        ..Default::default()
    }
}

#[test]
fn a_power_failure_leaves_a_table_as_before_or_changed() {
    let (mut as_before, mut changed, mut failed) = (0, 0, 0);
    for life in 0..60u64 {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, accounts) = with_accounts(&disk, 5);
        if life % 2 == 0 {
            db.checkpoint().unwrap();
        }
        wait_until_files_are_made(&disk);
        disk.set_faults(one_of_the_next_fails(life));
        let outcome = db.change_table("account", &to_members()[0]);
        let wrote = outcome.is_ok()
            && db
                .transact(|tx| {
                    let table = db.open_dynamic_table("account")?;
                    table.update(tx, &[2u32.into()], &[("level", 8u16.into())])
                })
                .is_ok();
        if let Err(error) = &outcome {
            assert!(matches!(error, Error::LogFailed(_) | Error::Closed), "{error}");
            // It goes on as it was, but for the disk.
            let row = db.read(|tx| accounts.get(tx, 1));
            assert!(matches!(&row, Ok(Some(row)) if *row == account(1)) || row.is_err(), "{row:?}");
            failed += 1;
        }
        let crashed = Arc::new(disk.crash(life));
        let db = open(&crashed);
        let is_changed = db.schema("account").unwrap().column("level").is_some();
        assert!(is_changed || outcome.is_err(), "a change that was acknowledged is there");
        if is_changed {
            changed += 1
        } else {
            as_before += 1
        }
        let mut expected: Vec<_> = (0..5).map(|id| as_member(account(id))).collect();
        if !is_changed {
            assert_eq!(all_rows(&db), (0..5).map(account).collect::<Vec<_>>());
        }
        let found = all_members(&db);
        if wrote {
            expected[2].level = 8;
        } else {
            expected[2].level = found[2].level;
        }
        assert_eq!(found, expected, "life {life}");
        check_indexes(&db);
        // The next rows are of the changed table, whichever opening changed it.
        let table = members(&db);
        db.transact(|tx| table.update(tx, 3, |columns: &mut MemberBalance| columns.balance = 1)).unwrap();
        db.close().unwrap();
        assert_eq!(all_members(&open(&crashed))[3].balance, 1);
    }
    assert!(as_before > 0 && changed > 0 && failed > 0, "{as_before} {changed} {failed}");
}

/// A row whose one column another takes the place of.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "lamp")]
struct Lamp {
    #[row(key)]
    id: u32,
    colour: u32,
}

#[test]
fn a_row_that_is_written_with_the_bytes_of_an_older_version_is_of_the_newer_one() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let lamps = db.create_table::<Lamp>().unwrap();
    db.transact(|tx| lamps.insert(tx, &Lamp { id: 1, colour: 7 })).unwrap();
    let change = SchemaChange::new().drop_column("colour").add("brightness", ColumnType::U32, 3u32);
    db.change_table("lamp", &change).unwrap();
    let brightness = |db: &Database| {
        let lamps = db.open_dynamic_table("lamp").unwrap();
        db.transact(|tx| lamps.get(tx, &[1u32.into()])).unwrap().unwrap()[1].clone()
    };
    assert_eq!(brightness(&db), 3u32.into());
    let lamps = db.open_dynamic_table("lamp").unwrap();
    db.transact(|tx| lamps.replace(tx, &[1u32.into(), 7u32.into()])).unwrap();
    assert_eq!(brightness(&db), 7u32.into());
    let db = open(&Arc::new(disk.fork().crash(0)));
    assert_eq!(brightness(&db), 7u32.into(), "a recovery");
}
