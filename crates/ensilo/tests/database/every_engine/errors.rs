//! Every error, and that a failed statement or request changes nothing.

use std::error::Error as _;
use std::fmt;

use ensilo::{AbortReason, Columns, Error, NestedCall, Options, Order, Row};

use super::submit::block_on;
use super::{
    Account, Balance, Database, Email, Engine, Event, IdAndVisits, Table, Visits, account, interfere, quick,
    with_accounts,
};

/// A key longer than any index holds, once it is long enough.
#[derive(Clone, Debug, Row)]
#[row(table = "note")]
struct Note {
    #[row(key)]
    title: String,
    text: String,
}

#[test]
fn a_duplicate_primary_key_leaves_the_transaction_usable_and_unchanged() {
    let (db, accounts) = with_accounts(3);
    db.transact(|tx| {
        let error = accounts.insert(tx, &Account { visits: 9, ..account(1) }).unwrap_err();
        let Error::DuplicateKey(duplicate) = &error else { panic!("{error}") };
        assert_eq!(
            (duplicate.table(), duplicate.index(), duplicate.key()),
            ("account", None, &[0, 0, 0, 1][..])
        );
        accounts.insert(tx, &account(8)).map(|_| ())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 1)).unwrap(), Some(account(1)));
    assert_eq!(db.transact(|tx| accounts.get(tx, 8)).unwrap(), Some(account(8)));
}

#[test]
fn a_unique_index_refuses_inserts_and_updates_and_names_itself() {
    let (db, accounts) = with_accounts(3);
    let by_email = accounts.index::<Option<String>>("by_email").unwrap();
    db.transact(|tx| {
        let taken = account(1).email;
        for refused in [
            accounts.insert(tx, &Account { email: taken.clone(), ..account(9) }).map(|_| ()),
            accounts.update(tx, 2, |email: &mut Email| email.email.clone_from(&taken)),
            accounts.update(tx, 2, |all: &mut Account| (all.balance, all.email) = (77, taken.clone())),
            accounts.replace(tx, &Account { email: taken.clone(), ..account(2) }),
            accounts.upsert(tx, &Account { email: taken.clone(), ..account(2) }),
            accounts.upsert(tx, &Account { email: taken.clone(), ..account(9) }),
        ] {
            let error = refused.unwrap_err();
            assert!(matches!(&error, Error::DuplicateKey(key) if key.index() == Some("by_email")), "{error}");
        }
        assert_eq!(by_email.get(tx, &taken)?, Some(account(1)));
        Ok(())
    })
    .unwrap();
    let rows = db.transact(|tx| accounts.scan().rows(tx)).unwrap();
    assert_eq!(rows, [account(0), account(1), account(2)]);
    let statistics = db.statistics().unwrap();
    let table = statistics.table("account").unwrap();
    assert_eq!((table.records, table.indexes[0].records, table.indexes[1].records), (3, 3, 3));
}

#[test]
fn nulls_in_a_unique_index_never_collide() {
    let (db, accounts) = with_accounts(0);
    db.transact(|tx| {
        (0..3).try_for_each(|id| accounts.insert(tx, &Account { email: None, ..account(id) }).map(|_| ()))
    })
    .unwrap();
    let by_email = accounts.index::<Option<String>>("by_email").unwrap();
    assert_eq!(db.transact(|tx| by_email.equal(&None).primary_keys(tx)).unwrap(), [0, 1, 2]);
}

#[test]
fn a_missing_row_is_named_by_updates_and_replaces() {
    let (db, accounts) = with_accounts(1);
    db.transact(|tx| {
        let updated = accounts.update(tx, 5, |visits: &mut Visits| visits.visits = 1).unwrap_err();
        assert!(matches!(&updated, Error::MissingRow(row) if row.table() == "account" && row.key() == [0, 0, 0, 5]));
        let replaced = accounts.replace(tx, &account(5)).unwrap_err();
        assert!(matches!(replaced, Error::MissingRow(_)));
        Ok(())
    })
    .unwrap();
}

#[test]
fn an_update_cannot_change_the_primary_key() {
    let (db, accounts) = with_accounts(2);
    db.transact(|tx| {
        let patched = accounts.update(tx, 0, |columns: &mut IdAndVisits| columns.id = 7).unwrap_err();
        assert!(matches!(&patched, Error::WrongType(wrong) if wrong.column() == "id"), "{patched}");
        let rewritten = accounts.update(tx, 0, |row: &mut Account| row.id = 7).unwrap_err();
        assert!(matches!(rewritten, Error::WrongType(_)));
        let found = accounts.find(tx, 0)?.expect("exists");
        assert!(matches!(found.replace(tx, &account(1)), Err(Error::WrongType(_))));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().rows(tx)).unwrap(), [account(0), account(1)]);
}

#[test]
fn keys_and_rows_have_a_longest_length() {
    let db = quick();
    let notes = db.create_table::<Note>().unwrap();
    let long_key = Note { title: "x".repeat(5000), text: String::new() };
    let long_row = Note { title: "a".into(), text: "x".repeat(ensilo::row::ROW_LEN_MAX) };
    db.transact(|tx| {
        for refused in [
            notes.insert(tx, &long_key).map(|_| ()),
            notes.get(tx, &long_key.title).map(|_| ()),
            notes.delete(tx, &long_key.title).map(|_| ()),
        ] {
            assert!(matches!(refused, Err(Error::KeyTooLong(length)) if length.len_bytes() == 5001));
        }
        assert!(matches!(
            notes.get_many(tx, std::slice::from_ref(&long_key.title)),
            Err(Error::KeyTooLong(_))
        ));
        assert!(matches!(notes.insert(tx, &long_row), Err(Error::RowTooLarge(_))));
        notes.insert(tx, &Note { title: "a".into(), text: "short".into() })?;
        let grown = notes.update(tx, "a".to_owned(), |note: &mut Note| note.text.clone_from(&long_row.text));
        assert!(matches!(grown, Err(Error::RowTooLarge(_))));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| notes.get(tx, "a".to_owned())).unwrap().unwrap().text, "short");
}

#[test]
fn a_row_whose_index_key_is_too_long_is_not_inserted() {
    let (db, accounts) = with_accounts(1);
    let long = Some("x".repeat(5000));
    db.transact(|tx| {
        let inserted = accounts.insert(tx, &Account { email: long.clone(), ..account(4) });
        assert!(matches!(inserted, Err(Error::KeyTooLong(length)) if length.table() == "by_email"));
        let updated =
            accounts.update(tx, 0, |row: &mut Account| (row.balance, row.email) = (99, long.clone()));
        assert!(matches!(updated, Err(Error::KeyTooLong(_))));
        Ok(())
    })
    .unwrap();
    assert_eq!(db.transact(|tx| accounts.scan().rows(tx)).unwrap(), [account(0)]);
    let by_owner = accounts.index::<(ensilo::Text<16>, std::cmp::Reverse<i64>)>("by_owner").unwrap();
    assert_eq!(db.transact(|tx| by_owner.scan().count(tx)).unwrap(), 1);
}

#[test]
fn unknown_names_are_errors() {
    let (db, accounts) = with_accounts(1);
    assert!(matches!(db.open_table::<Event>(), Err(Error::UnknownTable(name)) if &*name == "event"));
    assert!(matches!(db.open_dynamic_table("nobody"), Err(Error::UnknownTable(_))));
    assert!(matches!(db.schema("nobody"), Err(Error::UnknownTable(_))));
    assert!(matches!(db.drop_table("nobody"), Err(Error::UnknownTable(_))));
    for index in [accounts.index::<u32>("nobody").map(drop), db.drop_index("account", "nobody")] {
        let error = index.unwrap_err();
        assert!(matches!(error, Error::UnknownIndex(_)), "{error:?}");
        assert_eq!(error.to_string(), "table account has no index nobody; its indexes: by_owner, by_email");
    }
    (3..=10)
        .for_each(|n| db.create_index("account", &format!("n{n}"), [("visits", Order::Ascending)]).unwrap());
    let error = accounts.index::<u32>("nobody").map(drop).unwrap_err();
    assert!(
        error.to_string().ends_with("; its indexes: by_owner, by_email, n3, n4, n5, n6, n7, n8 and 2 more")
    );
    db.create_table::<Event>().unwrap();
    let error = db.drop_index("event", "nobody").unwrap_err();
    assert_eq!(error.to_string(), "table event has no index nobody; its indexes: none");
    let by_colour = [("colour", Order::Ascending)];
    let error = db.create_index("account", "by_colour", by_colour).unwrap_err();
    let Error::UnknownColumn(column) = &error else { panic!("{error:?}") };
    assert_eq!((column.table(), column.name()), ("account", "colour"));
    assert_eq!(error.to_string(), "table account has no column colour");
}

#[test]
fn names_that_exist_and_indexes_of_other_types_are_errors() {
    let (db, accounts) = with_accounts(1);
    assert!(matches!(db.create_table::<Account>(), Err(Error::TableExists(_))));
    let again = db.create_index("account", "by_owner", [("visits", Order::Ascending)]);
    assert_eq!(again.unwrap_err().to_string(), "table account has an index by_owner already");
    let Err(Error::SchemaMismatch(mismatch)) = accounts.index::<u32>("by_owner") else { panic!("opened") };
    let remedy = "open it as index::<(Text<16>, Reverse<i64>)>(\"by_owner\")";
    assert!(mismatch.differences()[0].contains(remedy), "{mismatch}");
    let twice =
        db.create_index("account", "twice", [("visits", Order::Ascending), ("visits", Order::Ascending)]);
    assert!(matches!(twice, Err(Error::InvalidSchema(_))));
    let system =
        ensilo::Schema::builder("ensilo.mine").column("a", ensilo::ColumnType::Bool).build().unwrap();
    assert!(matches!(db.create_dynamic_table(system), Err(Error::InvalidSchema(_))));
}

#[test]
fn opening_with_another_row_type_says_what_differs() {
    mod other {
        use ensilo::Row;
        #[derive(Row)]
        #[row(table = "account")]
        pub(super) struct Fewer {
            #[row(key)]
            pub(super) id: u32,
        }
        #[derive(Row)]
        #[row(table = "event")]
        pub(super) struct Wider {
            pub(super) kind: u16,
            pub(super) text: String,
        }
        #[derive(Row)]
        #[row(table = "event", index(name = "by_kind", columns(kind)))]
        pub(super) struct Indexed {
            pub(super) kind: u8,
            pub(super) text: String,
        }
    }
    let (db, _) = with_accounts(1);
    db.create_table::<Event>().unwrap();
    let differences = |error: Error| match error {
        Error::SchemaMismatch(mismatch) => mismatch.differences().to_vec(),
        error => panic!("{error}"),
    };
    let refused = db.open_table::<other::Fewer>().unwrap_err();
    assert!(
        refused.to_string().contains("if a later version of the program has changed the table"),
        "{refused}"
    );
    let fewer = differences(refused);
    assert_eq!(fewer.len(), 4);
    assert_eq!(
        fewer[1],
        "it has a column balance, which the row type has not: add `balance: i64` to the row type"
    );
    assert_eq!(
        differences(db.table::<other::Wider>().unwrap_err()),
        ["its column kind is u8, that of the row type u16: write `kind: u8`"]
    );
    assert_eq!(
        differences(db.open_table::<other::Indexed>().unwrap_err()),
        ["it has no index by_kind, on (kind) in the row type: make it by Database::create_index"]
    );
    let _ = other::Fewer { id: 0 };
    let _ = (other::Wider { kind: 0, text: String::new() }, other::Indexed { kind: 0, text: String::new() });
}

#[test]
fn a_closed_database_answers_closed() {
    let (db, accounts) = with_accounts(1);
    let other_handle = db.clone();
    db.close().unwrap();
    db.close().unwrap();
    let closed = |result: ensilo::Result<()>| assert!(matches!(result, Err(Error::Closed)), "{result:?}");
    closed(other_handle.transact(|tx| accounts.get(tx, 0).map(|_| ())));
    closed(db.read_stale(|tx| accounts.get(tx, 0).map(|_| ())));
    closed(db.submit(|_| Ok(())).map(|_| ()));
    closed(db.begin().map(|_| ()));
    closed(db.create_table::<Event>().map(|_| ()));
    closed(db.open_table::<Account>().map(|_| ()));
    closed(db.drop_table("account"));
    closed(db.create_index("account", "x", [("visits", Order::Ascending)]));
    closed(db.drop_index("account", "by_owner"));
    closed(db.list_tables().map(|_| ()));
    closed(db.statistics().map(|_| ()));
    std::thread::spawn(move || closed(db.transact(|_| Ok(())))).join().unwrap();
}

#[test]
fn requests_and_changes_of_the_catalog_inside_a_request_are_errors() {
    let (db, accounts) = with_accounts(1);
    db.transact(|tx| {
        assert!(matches!(db.transact(|_| Ok(())), Err(Error::NestedRequest(NestedCall::RequestInRequest))));
        assert!(matches!(db.read_stale(|_| Ok(())), Err(Error::NestedRequest(NestedCall::RequestInRequest))));
        assert!(matches!(db.create_table::<Event>(), Err(Error::NestedRequest(NestedCall::ChangeInRequest))));
        assert!(matches!(db.drop_table("account"), Err(Error::NestedRequest(NestedCall::ChangeInRequest))));
        let index = db.create_index("account", "x", [("visits", Order::Ascending)]);
        assert!(matches!(index, Err(Error::NestedRequest(NestedCall::ChangeInRequest))));
        // Another database is another matter.
        let (inner, inner_accounts) = with_accounts(2);
        assert_eq!(inner.transact(|tx| inner_accounts.scan().count(tx))?, 2);
        accounts.insert(tx, &account(1)).map(|_| ())
    })
    .unwrap();
    let mut open = db.begin().unwrap();
    let index = db.create_index("account", "x", [("visits", Order::Ascending)]);
    assert!(matches!(index, Err(Error::NestedRequest(NestedCall::ChangeInTransaction))));
    open.rollback().unwrap();
    db.create_index("account", "x", [("visits", Order::Ascending)]).unwrap();
}

#[test]
fn a_table_of_another_database_is_unknown() {
    let (db, _) = with_accounts(1);
    let (_other, accounts) = with_accounts(1);
    db.transact(|tx| {
        assert!(matches!(accounts.get(tx, 0), Err(Error::UnknownTable(_))));
        assert!(matches!(accounts.insert(tx, &account(3)), Err(Error::UnknownTable(_))));
        assert!(matches!(accounts.scan().count(tx), Err(Error::UnknownTable(_))));
        Ok(())
    })
    .unwrap();
}

#[derive(Debug)]
struct TooPoor(i64);

impl fmt::Display for TooPoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} are missing", self.0)
    }
}

impl std::error::Error for TooPoor {}

#[test]
fn a_closures_own_error_undoes_the_transaction_and_comes_out_as_it_is() {
    let (db, accounts) = with_accounts(1);
    let mut runs = 0;
    let refused = db.transact(|tx| {
        runs += 1;
        accounts.update(tx, 0, |balance: &mut Balance| balance.balance = -5)?;
        Err::<(), _>(Error::user(TooPoor(5)))
    });
    let error = refused.unwrap_err();
    assert_eq!((runs, error.user_error::<TooPoor>().unwrap().0), (1, 5));
    assert_eq!(error.to_string(), "rolled back by the request: 5 are missing");
    assert!(error.source().is_none(), "the text is not repeated");
    assert_eq!(error.clone().user_error::<TooPoor>().unwrap().0, 5);
    assert_eq!(db.transact(|tx| accounts.get(tx, 0)).unwrap(), Some(account(0)));
    assert_eq!(db.statistics().unwrap().aborts_of(AbortReason::User), 1);
}

/// An error type of the program's own, which says nothing of what it is made of.
#[derive(Debug)]
enum OwnError {
    TooPoor,
    Database(Error),
}

impl From<Error> for OwnError {
    fn from(error: Error) -> Self {
        OwnError::Database(error)
    }
}

#[test]
fn closures_have_errors_of_their_own_type() {
    let (db, accounts) = with_accounts(2);
    let mut runs = 0;
    let refused = db.transact_as(|tx| {
        runs += 1;
        accounts.update(tx, 0, |balance: &mut Balance| balance.balance = -5)?;
        Err::<(), _>(OwnError::TooPoor)
    });
    assert!(matches!((runs, refused), (1, Err(OwnError::TooPoor))));
    assert_eq!(db.transact(|tx| accounts.get(tx, 0)).unwrap(), Some(account(0)));
    let missing = db.transact_as(|tx| -> Result<(), OwnError> {
        Ok(accounts.update(tx, 99, |balance: &mut Balance| balance.balance = 1)?)
    });
    assert!(matches!(missing, Err(OwnError::Database(Error::MissingRow(_)))));
    let read = |id: u32| db.read_as(|tx| accounts.get(tx, id)?.ok_or(OwnError::TooPoor));
    assert!(matches!((read(1), read(99)), (Ok(_), Err(OwnError::TooPoor))));
    let stale = db.read_stale_as(|tx| -> Result<u32, OwnError> {
        accounts.get(tx, 99)?.map(|account| account.id).ok_or(OwnError::TooPoor)
    });
    assert!(matches!(stale, Err(OwnError::TooPoor)));
    let mut session = db.session().unwrap();
    assert_eq!(
        session.transact_as(|tx| -> Result<_, OwnError> { Ok(accounts.scan().count(tx)?) }).unwrap(),
        2
    );
    db.close().unwrap();
    let closed = block_on(db.transact_async_as(|_| Ok::<_, OwnError>(())));
    assert!(matches!(closed, Err(OwnError::Database(Error::Closed))));
    let closed = db.transact_as(|_| Ok::<_, OwnError>(()));
    assert!(matches!(closed, Err(OwnError::Database(Error::Closed))));
}

#[test]
fn a_conflict_is_tried_again_whatever_type_the_closure_makes_of_it() {
    let (db, accounts) = with_accounts(2);
    let mut attempts = 0;
    let request = db.request().retries(5);
    let outcome = request.transact_as(|tx| -> Result<i64, OwnError> {
        attempts += 1;
        let swallowed = accounts.update(tx, 1, |balance: &mut Balance| balance.balance += 1);
        if attempts < 3 {
            swallowed.and_then(|()| interfere(&db, &accounts, tx)).map_err(|_| OwnError::TooPoor)?;
            accounts.update(tx, 0, |balance: &mut Balance| balance.balance += 1)?;
            return Err(OwnError::TooPoor);
        }
        Ok(accounts.get(tx, 1)?.map_or(0, |account| account.balance))
    });
    assert_eq!((attempts, outcome.unwrap()), (3, account(1).balance + 1));
}

#[test]
fn keys_in_errors_are_shown_by_the_values_of_their_columns() {
    let (db, accounts) = with_accounts(2);
    let told = |error: Error| error.to_string();
    db.transact(|tx| {
        assert_eq!(
            told(accounts.insert(tx, &account(1)).unwrap_err()),
            "table account has a row with id = 1 already"
        );
        let taken = Account { email: account(1).email, ..account(7) };
        assert_eq!(
            told(accounts.insert(tx, &taken).unwrap_err()),
            format!(
                "table account has a row with email = {:?} already, and its index by_email is unique",
                taken.email.unwrap()
            )
        );
        let missing = accounts.update(tx, 7, |balance: &mut Balance| balance.balance = 1);
        assert_eq!(told(missing.unwrap_err()), "table account has no row with id = 7");
        Ok(())
    })
    .unwrap();
}

#[test]
fn options_out_of_range_are_errors() {
    let zero = std::time::Duration::ZERO;
    for options in [
        Options::default().epoch_interval(zero),
        Options::default().epochs_per_snapshot(0),
        Options::default().snapshot_age_limit(zero),
        Options::default().memory_limit_bytes(1),
        Options::default().pool_threads(0),
        Options::default().pool_queue_len_max(0),
    ] {
        assert!(matches!(options.in_memory_with::<Engine>(), Err(Error::InvalidOption(_))));
    }
}

/// Handles and errors may go to other threads.
#[test]
fn handles_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<Database>();
    check::<Table<Account>>();
    check::<super::Index<Account, u32>>();
    check::<super::DynamicTable>();
    check::<Error>();
    assert!(size_of::<Error>() <= 16);
    const { assert!(<Visits as Columns<Account>>::PATCHABLE) };
}
