//! Programs name the types of the database without what runs the transactions.

use std::cmp::Reverse;

use ensilo::{
    Abort, Cursor, Database, DynamicScan, DynamicTable, Found, Index, IndexScan, ReadTransaction, Request,
    Result, Scan, Session, Snapshot, Table, Text, Transaction, WriteTransaction,
};

use super::*;

type Owner = (Text<16>, Reverse<i64>);

/// What a program keeps.
struct Bank {
    accounts: Table<Account>,
    by_owner: Index<Account, Owner>,
    rows: DynamicTable,
    session: Session,
    db: Database,
}

impl Bank {
    fn open() -> Result<Bank> {
        let db = Database::in_memory()?;
        let accounts: Table<Account> = db.create_table()?;
        let by_owner = accounts.index("by_owner")?;
        Ok(Bank { by_owner, rows: db.open_dynamic_table("account")?, session: db.session()?, accounts, db })
    }

    fn balances(&self) -> Scan<'_, Account, Balance> {
        self.accounts.scan().columns()
    }

    fn balances_of(&self, owner: Text<16>) -> IndexScan<'_, Account, Owner, Balance> {
        self.by_owner.prefix((owner,)).columns()
    }

    fn all(&self) -> (Scan<'_, Account>, IndexScan<'_, Account, Owner>, DynamicScan<'_>) {
        (self.accounts.scan(), self.by_owner.scan(), self.rows.scan())
    }

    fn one_by_one(&self) -> Cursor<Scan<'_, Account, Balance>> {
        self.balances().cursor()
    }

    fn counted<'d>(&'d self, aborts: &'d mut u32) -> Request<'d, impl FnMut(&Abort) + 'd> {
        self.db.request().on_abort(|_| *aborts += 1)
    }
}

fn open_account(tx: &mut Transaction<'_>, bank: &Bank, id: u32) -> Result<()> {
    bank.accounts.insert(tx, &account(id)).map(drop)
}

fn count(tx: &mut Snapshot<'_>, bank: &Bank) -> Result<usize> {
    bank.all().0.count(tx)
}

fn sum<'t>(tx: &mut impl ReadTransaction<'t>, bank: &Bank) -> Result<i64> {
    Ok(bank.balances().rows(tx)?.iter().map(|row| row.balance).sum())
}

fn visit<'t>(tx: &mut impl WriteTransaction<'t>, bank: &Bank, id: u32) -> Result<()> {
    let found: Option<Found<'_, 't, Account>> = bank.accounts.find(tx, id)?;
    let Some(found) = found else { return Ok(()) };
    found.update(tx, |row: &mut Visits| row.visits += 1)
}

#[test]
fn no_program_names_the_engine() {
    let mut bank = Bank::open().unwrap();
    let mut aborts = 0;
    bank.counted(&mut aborts).transact(|tx| (1..4).try_for_each(|id| open_account(tx, &bank, id))).unwrap();
    assert_eq!(aborts, 0);
    let expected: i64 = (1..4).map(|id| account(id).balance).sum();
    let seen = bank.db.transact(|tx| {
        visit(tx, &bank, 2)?;
        let of_owner = bank.balances_of(account(1).owner).rows(tx)?;
        let (_, by_owner, rows) = bank.all();
        assert!(bank.one_by_one().next(tx)?.is_some());
        assert_eq!((by_owner.count(tx)?, rows.collect(tx)?.len()), (3, 3));
        Ok((sum(tx, &bank)?, of_owner.contains(&Balance { balance: account(1).balance })))
    });
    assert_eq!(seen.unwrap(), (expected, true));
    assert_eq!(bank.db.read_stale(|tx| count(tx, &bank)).unwrap(), 0, "the snapshot is older");
    bank.session.begin().unwrap();
    bank.session.commit().unwrap();
}
