//! Requests that are reported because they took long or were run often.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ensilo::{Durability, Error, NestedCall, Options, SlowRequest};

use super::{CONFLICT, Database, Visits, account, in_memory, interfere};
use crate::Account;

const NEVER: Duration = Duration::from_secs(3600);

type Reports = Arc<Mutex<Vec<SlowRequest>>>;

/// A database that keeps its reports.
fn watched(duration_min: Duration, attempts_min: u32) -> (Database, Reports) {
    let reports = Reports::default();
    let kept = Arc::clone(&reports);
    let keep = move |request: &SlowRequest| kept.lock().unwrap().push(request.clone());
    let options = Options::default().epoch_interval(Duration::from_millis(1)).pool_threads(1);
    (in_memory(options.on_slow_request(duration_min, attempts_min, keep)), reports)
}

fn take(reports: &Reports) -> Vec<SlowRequest> {
    std::mem::take(&mut reports.lock().unwrap())
}

#[test]
fn a_request_that_is_run_often_is_reported_with_what_stands_in_its_way() {
    let (db, reports) = watched(NEVER, 3);
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(0)).map(|_| ())).unwrap();
    for conflicts in [1, 2] {
        let mut attempts = 0;
        let visit = db.request().label("visit").transact(|tx| {
            attempts += 1;
            if attempts <= conflicts {
                interfere(&db, &accounts, tx)?;
            }
            accounts.update(tx, 0, |row: &mut Visits| row.visits += 10)
        });
        visit.unwrap();
    }
    let reports = take(&reports);
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((report.label, report.attempts, report.has_committed), ("visit", 3, true));
    let abort = report.last_abort.as_ref().unwrap();
    assert_eq!((abort.reason(), abort.table()), (CONFLICT, Some("account")));
    let text = report.to_string();
    assert!(text.starts_with("visit has committed after "), "{text}");
    assert!(text.contains(" and 3 attempts; last conflict: "), "{text}");
}

#[test]
fn a_request_that_gives_up_is_reported_as_failed() {
    let (db, reports) = watched(NEVER, 2);
    let accounts = db.create_table::<Account>().unwrap();
    db.transact(|tx| accounts.insert(tx, &account(0)).map(|_| ())).unwrap();
    let given_up = db.request().retries(1).transact(|tx| {
        interfere(&db, &accounts, tx)?;
        accounts.update(tx, 0, |row: &mut Visits| row.visits += 10)
    });
    assert!(matches!(given_up, Err(Error::Aborted(_))));
    let reports = take(&reports);
    let [report] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!((report.attempts, report.has_committed), (2, false));
    assert!(report.label.contains("a_request_that_gives_up_is_reported_as_failed"), "{}", report.label);
}

#[test]
fn each_kind_of_request_is_watched_and_called_by_its_closure() {
    let (db, reports) = watched(Duration::ZERO, u32::MAX);
    db.create_table::<Account>().unwrap();
    assert!(take(&reports).is_empty(), "what the database does itself is no request");
    let mut session = db.session().unwrap();
    let visible = || db.request().durability(Durability::Visible);
    db.transact(|_| Ok(())).unwrap();
    db.transact_as::<_, Error>(|_| Ok(())).unwrap();
    visible().transact_with_epoch(|_| Ok(())).unwrap();
    db.read(|_| Ok(())).unwrap();
    db.read_as::<_, Error>(|_| Ok(())).unwrap();
    session.transact(|_| Ok(())).unwrap();
    session.read(|_| Ok(())).unwrap();
    db.transact_many(&[1, 2], |_, _| (), |_, _| Ok(())).unwrap();
    let mut expected = 9;
    if <super::super::Engine as ensilo::Engine>::SNAPSHOTS {
        db.read_stale(|_| Ok(())).unwrap();
        db.read_stale_as::<_, Error>(|_| Ok(())).unwrap();
        session.read_stale(|_| Ok(())).unwrap();
        expected += 3;
    }
    db.job().submit(|_| Ok(())).unwrap().wait().unwrap();
    let all = take(&reports);
    assert_eq!(all.len(), expected + 1);
    for report in all {
        assert!(report.label.contains("each_kind_of_request_is_watched"), "{}", report.label);
        assert_eq!((report.attempts, report.has_committed), (1, true));
        assert!(report.last_abort.is_none());
    }
    db.job().label("a job").submit(|_| Ok(())).unwrap().wait().unwrap();
    assert_eq!(take(&reports)[0].label, "a job");
}

#[test]
fn a_hook_that_uses_the_database_or_panics_does_no_harm() {
    let handle: Arc<Mutex<Option<Database>>> = Arc::default();
    let (used, met) = (Arc::clone(&handle), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&met);
    let db = in_memory(Options::default().on_slow_request(Duration::ZERO, 1, move |_| {
        let db = used.lock().unwrap().clone();
        if let Some(db) = db {
            noted.lock().unwrap().push(db.transact(|_| Ok(())).map_err(|error| error.to_string()));
            // Not reported in turn.
            db.session().unwrap().transact(|_| Ok(())).unwrap();
            panic!("a hook's panic");
        }
    }));
    let accounts = db.create_table::<Account>().unwrap();
    *handle.lock().unwrap() = Some(db.clone());
    db.transact(|tx| accounts.insert(tx, &account(7)).map(|_| ())).unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 7)).unwrap(), Some(account(7)));
    let nested = Error::NestedRequest(NestedCall::RequestInRequest).to_string();
    assert_eq!(*met.lock().unwrap(), vec![Err(nested.clone()), Err(nested)]);
    *handle.lock().unwrap() = None;
}
