//! Random statements against a model: rows in a `BTreeMap`, indexes computed from it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use ensilo::generic::{Table, Transaction};
use ensilo::{Engine, Error, Result, Text};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::rows::{Account, Balance, Email, Visits, owner, quick_on};

/// Random statements answer as they do on a `BTreeMap`, and leave the same rows and index entries.
///
/// A failure prints the shortest statements that were found to fail.
pub fn tables_and_indexes_agree_with_a_model<E: Engine>() {
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&batches(), |batches| agrees_with_the_model::<E>(&batches));
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

type Model = BTreeMap<u32, Account>;

#[derive(Clone, Debug)]
enum Statement {
    Insert(Account),
    Upsert(Account),
    Replace(Account),
    Delete(u32),
    Visit(u32),
    SetBalance(u32, i64),
    SetEmail(u32, Option<String>),
    UpdateAll(u32, Account),
}

/// How a batch of statements ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Commit,
    RollBack,
}

fn accounts() -> impl Strategy<Value = Account> {
    (0..12u32, 0..3u32, -2..3i64, proptest::option::of(0..10u8)).prop_map(|(id, number, balance, email)| {
        Account { id, owner: owner(number), balance, email: email.map(|email| email.to_string()), visits: 0 }
    })
}

fn statements() -> impl Strategy<Value = Statement> {
    let id = 0..12u32;
    prop_oneof![
        4 => accounts().prop_map(Statement::Insert),
        2 => accounts().prop_map(Statement::Upsert),
        1 => accounts().prop_map(Statement::Replace),
        2 => id.clone().prop_map(Statement::Delete),
        1 => id.clone().prop_map(Statement::Visit),
        2 => (id.clone(), -2..3i64).prop_map(|(id, balance)| Statement::SetBalance(id, balance)),
        2 => (id.clone(), proptest::option::of(0..10u8))
            .prop_map(|(id, email)| Statement::SetEmail(id, email.map(|email| email.to_string()))),
        1 => (id, accounts()).prop_map(|(id, account)| Statement::UpdateAll(id, Account { id, ..account })),
    ]
}

/// What the statement does to the model, unless it is refused.
fn expected(model: &Model, statement: &Statement) -> Option<Model> {
    let mut after = model.clone();
    let row = |id: &u32| model.get(id).cloned();
    let changed = match statement {
        Statement::Insert(account) if model.contains_key(&account.id) => return None,
        Statement::Insert(account) | Statement::Upsert(account) => account.clone(),
        Statement::Replace(account) => row(&account.id).map(|_| account.clone())?,
        Statement::Delete(id) => {
            after.remove(id);
            return Some(after);
        }
        Statement::Visit(id) => row(id).map(|account| Account { visits: account.visits + 1, ..account })?,
        Statement::SetBalance(id, balance) => {
            row(id).map(|account| Account { balance: *balance, ..account })?
        }
        Statement::SetEmail(id, email) => {
            row(id).map(|account| Account { email: email.clone(), ..account })?
        }
        Statement::UpdateAll(id, account) => row(id).map(|_| account.clone())?,
    };
    let is_taken =
        |other: &Account| other.id != changed.id && other.email.is_some() && other.email == changed.email;
    if model.values().any(is_taken) {
        return None;
    }
    after.insert(changed.id, changed);
    Some(after)
}

fn run<E: Engine>(
    tx: &mut Transaction<'_, E>,
    accounts: &Table<Account, E>,
    statement: &Statement,
) -> Result<()> {
    match statement {
        Statement::Insert(account) => accounts.insert(tx, account).map(|_| ()),
        Statement::Upsert(account) => accounts.upsert(tx, account),
        Statement::Replace(account) => accounts.replace(tx, account),
        Statement::Delete(id) => accounts.delete(tx, id).map(|_| ()),
        Statement::Visit(id) => accounts.update(tx, id, |visits: &mut Visits| visits.visits += 1),
        Statement::SetBalance(id, balance) => {
            accounts.update(tx, id, |columns: &mut Balance| columns.balance = *balance)
        }
        Statement::SetEmail(id, email) => {
            accounts.update(tx, id, |columns: &mut Email| columns.email.clone_from(email))
        }
        Statement::UpdateAll(id, account) => {
            accounts.update(tx, id, |row: &mut Account| row.clone_from(account))
        }
    }
}

/// The table and both indexes show the model.
fn compare<E: Engine>(
    tx: &mut Transaction<'_, E>,
    accounts: &Table<Account, E>,
    model: &Model,
) -> Result<()> {
    let rows: Vec<Account> = model.values().cloned().collect();
    assert_eq!(accounts.scan().rows(tx)?, rows);
    let by_owner = accounts.index::<(Text<16>, Reverse<i64>)>("by_owner")?;
    let mut in_order = rows.clone();
    in_order.sort_by_key(|row| (row.owner, Reverse(row.balance), row.id));
    assert_eq!(by_owner.scan().rows(tx)?, in_order);
    in_order.reverse();
    assert_eq!(by_owner.scan().reverse().rows(tx)?, in_order);
    let anna: Vec<_> = in_order.into_iter().rev().filter(|row| row.owner == owner(0)).collect();
    assert_eq!(by_owner.prefix((owner(0),)).rows(tx)?, anna);
    let positive: Vec<_> = anna.into_iter().filter(|row| row.balance >= 1).collect();
    assert_eq!(by_owner.range((owner(0), Reverse(9))..=(owner(0), Reverse(1))).rows(tx)?, positive);
    let by_email = accounts.index::<Option<String>>("by_email")?;
    assert_eq!(by_email.scan().count(tx)?, rows.len());
    for row in &rows {
        if row.email.is_some() {
            assert_eq!(by_email.get(tx, &row.email)?.as_ref(), Some(row));
        }
    }
    Ok(())
}

/// Statements that end together.
type Batch = (Vec<Statement>, End);

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let end = prop_oneof![3 => Just(End::Commit), 1 => Just(End::RollBack)];
    proptest::collection::vec((proptest::collection::vec(statements(), 1..12), end), 1..8)
}

/// Runs the batches on an empty database, and compares after every statement.
fn agrees_with_the_model<E: Engine>(batches: &[Batch]) -> Result<(), TestCaseError> {
    let db = quick_on::<E>();
    let accounts = db.create_table::<Account>().unwrap();
    let mut committed = Model::new();
    for (statements, end) in batches {
        let mut model = committed.clone();
        let outcome = db.transact(|tx| {
            model = committed.clone();
            for statement in statements {
                let after = expected(&model, statement);
                let outcome = run(tx, &accounts, statement);
                assert_eq!(outcome.is_ok(), after.is_some(), "{statement:?}: {outcome:?}");
                model = after.unwrap_or(model.clone());
                compare(tx, &accounts, &model)?;
            }
            if *end == End::Commit { Ok(()) } else { Err(Error::rollback("planned")) }
        });
        prop_assert_eq!(outcome.is_ok(), *end == End::Commit);
        if outcome.is_ok() {
            committed = model;
        }
        db.transact(|tx| compare(tx, &accounts, &committed)).unwrap();
        let statistics = db.statistics().unwrap();
        let table = statistics.table("account").unwrap();
        let counts = [table.records, table.indexes[0].records, table.indexes[1].records];
        prop_assert_eq!(counts, [committed.len() as u64; 3]);
    }
    Ok(())
}
