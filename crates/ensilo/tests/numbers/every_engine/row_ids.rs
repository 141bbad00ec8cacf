//! Row ids: consecutive for one client, rising for one session, and never the same.

use std::collections::HashSet;
use std::sync::Barrier;
use std::thread;

use ensilo::{Durability, Error, RowId, Value};

use super::*;

const EVENT: Event = Event { what: 7 };

fn insert(db: &Database, events: &Table<Event>) -> u64 {
    db.transact(|tx| events.insert(tx, &EVENT)).unwrap().get()
}

#[test]
fn one_thread_gets_consecutive_ids() {
    let db = in_memory();
    let events = db.table::<Event>().unwrap();
    for expected in 1..=10_000 {
        assert_eq!(insert(&db, &events), expected);
    }
}

#[test]
fn threads_in_turn_go_on_with_what_others_have_left() {
    let db = in_memory();
    let events = db.table::<Event>().unwrap();
    let mut last = 0;
    for _ in 0..200 {
        let id = thread::scope(|scope| scope.spawn(|| insert(&db, &events)).join().unwrap());
        assert!(id > last, "{id} after {last}");
        last = id;
    }
    // The collector may keep the worker of a thread that has ended for a moment.
    assert!(last < 200 + 10 * 32, "{last}");
}

#[test]
fn jobs_in_turn_get_consecutive_ids() {
    let db = in_memory();
    let events = db.table::<Event>().unwrap();
    for expected in 1..=1000 {
        let events = events.clone();
        let job = db.submit(move |tx| events.insert(tx, &EVENT)).unwrap();
        assert_eq!(job.wait().unwrap().get(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_in_turn_get_consecutive_ids() {
    let db = in_memory();
    let events = db.table::<Event>().unwrap();
    for expected in 1..=500 {
        let (db, events) = (db.clone(), events.clone());
        let insert = async move { db.transact_async(move |tx| events.insert(tx, &EVENT)).await };
        assert_eq!(tokio::spawn(insert).await.unwrap().unwrap().get(), expected);
    }
}

#[test]
fn the_ids_of_a_session_are_consecutive_in_its_block_beside_others() {
    let db = in_memory();
    let events = db.table::<Event>().unwrap();
    let mut sessions: Vec<Session> = (0..3).map(|_| db.session().unwrap()).collect();
    let mut ids: Vec<Vec<u64>> = vec![Vec::new(); 3];
    for _ in 0..15 {
        // All have a transaction open at once, and end them in turn on other threads: each is lent another worker.
        sessions.iter_mut().for_each(|session| session.begin().unwrap());
        for at in [2, 0, 1] {
            let (session, events) = (&mut sessions[at], &events);
            let inserted = thread::scope(|scope| {
                let insert = || {
                    let two = [events.insert(session, &EVENT)?, events.insert(session, &EVENT)?];
                    session.commit().map(|()| two)
                };
                scope.spawn(insert).join().unwrap().unwrap()
            });
            ids[at].extend(inserted.map(RowId::get));
        }
        sessions.rotate_left(1);
        ids.rotate_left(1);
    }
    for ids in &ids {
        assert!(ids.windows(2).all(|pair| pair[1] == pair[0] + 1), "{ids:?}");
    }
    let all: HashSet<_> = ids.concat().into_iter().collect();
    assert_eq!(all.len(), 90);
    assert!(all.iter().max() <= Some(&96));
}

#[test]
fn ids_differ_across_threads_sessions_jobs_and_openings() {
    let disk = new_disk();
    let (mut seen, mut last_life) = (HashSet::new(), 0);
    for life in 0..4 {
        let db = open(&disk);
        let events = db.table::<Event>().unwrap();
        let start = Barrier::new(4);
        let by_thread = |kind: usize| {
            let mut session = db.session().unwrap();
            start.wait();
            let (mut last, mut ids) = (0, Vec::new());
            for _ in 0..300 {
                let (for_job, visible) = (events.clone(), Durability::Visible);
                let id = match kind {
                    0 => db.request().durability(visible).transact(|tx| events.insert(tx, &EVENT)),
                    1 => session.request().durability(visible).transact(|tx| events.insert(tx, &EVENT)),
                    _ => {
                        let job = db.job().durability(visible);
                        job.submit(move |tx| for_job.insert(tx, &EVENT)).unwrap().wait()
                    }
                };
                let id = id.unwrap().get();
                assert!(kind > 1 || id > last, "{id} after {last} in life {life}");
                last = id;
                ids.push(id);
            }
            ids
        };
        let ids: Vec<u64> = thread::scope(|scope| {
            let by_thread = &by_thread;
            let threads: Vec<_> = (0..4).map(|at| scope.spawn(move || by_thread(at % 3))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id > last_life && seen.insert(*id)), "life {life}");
        last_life = *ids.iter().max().unwrap();
        if life % 2 == 0 {
            db.close().unwrap();
        }
    }
}

#[test]
fn ids_pass_over_those_that_a_program_has_chosen() {
    let disk = new_disk();
    let mut expected = Vec::new();
    for life in 0..3 {
        let db = open(&disk);
        let events = db.table::<Event>().unwrap();
        let dynamic = db.open_dynamic_table("event").unwrap();
        let first = insert(&db, &events);
        expected.push(first);
        // In the block that the thread has, behind all blocks, and far ahead.
        for chosen in [first + 1, first + 3, first + 500, first + (1 << 20), 1 << (40 + life)] {
            let inserted = db.transact(|tx| match chosen % 2 {
                0 => events.insert_with_row_id(tx, RowId(chosen), &EVENT),
                _ => dynamic.insert_with_row_id(tx, RowId(chosen), &[Value::from(7u64)]),
            });
            inserted.unwrap();
            expected.push(chosen);
            let again = db.transact(|tx| events.insert_with_row_id(tx, RowId(chosen), &EVENT));
            assert!(matches!(again, Err(Error::DuplicateKey(_))), "{again:?}");
        }
        for round in 0..200 {
            let id = match round % 2 {
                0 => insert(&db, &events),
                _ => match &db.transact(|tx| dynamic.insert(tx, &[Value::from(1u64)])).unwrap()[..] {
                    [Value::Unsigned(id)] => *id,
                    key => panic!("{key:?}"),
                },
            };
            assert!(!expected.contains(&id), "{id}");
            expected.push(id);
        }
        let too_large = db.transact(|tx| events.insert_with_row_id(tx, RowId(1 << 59), &EVENT));
        assert!(matches!(too_large, Err(Error::WrongType(_))), "{too_large:?}");
        expected.sort_unstable();
        let mut ids = Vec::new();
        db.transact(|tx| {
            ids.clear();
            events.scan().for_each(tx, |id, _| ids.push(id.get()))
        })
        .unwrap();
        assert_eq!(ids, expected, "life {life}");
        let by_what = events.index::<u64>("by_what").unwrap();
        assert_eq!(db.transact(|tx| by_what.scan().count(tx)).unwrap(), expected.len());
        db.close().unwrap();
    }
}
