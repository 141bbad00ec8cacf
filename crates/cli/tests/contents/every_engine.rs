//! What holds for the directories of every engine: compiled for each of those that `main.rs` names, which is the module above.

mod dumps;
mod loads;
mod shown;

use super::{ENGINE, Engine as TestedEngine};
use crate::*;

type Sequence<N> = ensilo::generic::Sequence<N, TestedEngine>;

/// An unused directory, with the engine's name in its own.
fn directory(name: &str) -> TestDirectory {
    TestDirectory::new(&format!("{name}-{ENGINE}"))
}

fn open(path: &Path) -> Database<TestedEngine> {
    ensilo::Database::options().open_as(path).unwrap()
}

/// A database with both tables, and how its rows are.
fn bank(directory: &TestDirectory) -> PathBuf {
    let path = directory.join("bank");
    let database = open(&path);
    let table = database.create_dynamic_table(accounts()).unwrap();
    let others = database.create_dynamic_table(everything()).unwrap();
    let inserted = database.transact(|tx| {
        for (branch, id, owner, balance) in
            [(1, 1, "ada", Some(10_050)), (1, 2, "bob", Some(-5)), (2, 7, "eve \"e\"", None)]
        {
            table.insert(tx, &account(branch, id, owner, balance))?;
        }
        rows_of_everything().iter().try_for_each(|row| others.insert(tx, row).map(drop))
    });
    inserted.unwrap();
    database.close().unwrap();
    path
}
