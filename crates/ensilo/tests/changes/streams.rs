//! The change feed as an asynchronous stream.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use ensilo::generic::ChangeStream;
use ensilo::{ChangeBatch, Engine, Error};
use ensilo_test_disk::{Faults, SimulatedDisk};

use super::{Account, Copy, apply, catch_up, open_with, options, put, rows};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The smallest executor.
fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

fn next<E: Engine>(changes: &mut ChangeStream<E>) -> ChangeBatch {
    block_on(changes.next()).unwrap().unwrap()
}

fn is_pending<E: Engine>(changes: &mut ChangeStream<E>) -> bool {
    pin!(changes.next()).poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

pub(super) fn a_stream_gives_what_others_commit_and_keeps_no_thread<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20).pool_threads(1));
    let mut streams =
        [db.changes(), db.changes().tables(["account"])].map(|of| of.begin_now().unwrap().into_stream());
    thread::scope(|scope| {
        let (db, accounts) = (&db, &accounts);
        scope.spawn(move || (0..100).for_each(|id| put(db, accounts, id, 1)));
        let mut copies = [Copy::new(), Copy::new()];
        while copies.iter().any(|copy| copy.len() < 100) {
            for (changes, copy) in streams.iter_mut().zip(&mut copies).filter(|(_, copy)| copy.len() < 100) {
                apply(copy, &next(changes), accounts);
            }
        }
        assert_eq!(copies, [rows(db, accounts), rows(db, accounts)]);
    });
    assert!(streams.iter_mut().all(is_pending));
    // Both wait, and the only thread of the pool is free.
    assert_eq!(db.submit(|_| Ok(7)).unwrap().wait().unwrap(), 7);
    put(&db, &accounts, 7, 9);
    assert!(streams.iter_mut().all(|changes| next(changes).changes().len() == 1));
}

pub(super) fn a_stream_reads_one_batch_when_it_is_asked_and_says_where_it_is<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let begin = db.change_position().unwrap();
    (0..40).for_each(|id| put(&db, &accounts, id, 1));
    let mut changes = db.changes().after(begin).unwrap().into_stream();
    assert_eq!(changes.position(), begin);
    let mut copy = Copy::new();
    for batches in [1, 5, 3] {
        for _ in 0..batches {
            let batch = next(&mut changes);
            assert_eq!(batch.position(), changes.position());
            apply(&mut copy, &batch, &accounts);
        }
        // Whether or not what comes next is being read, or was given in vain: another one goes on behind what was applied.
        let applied = changes.position();
        let _ = is_pending(&mut changes);
        changes = db.changes().after(applied).unwrap().into_stream();
    }
    catch_up(&mut db.changes().after(changes.position()).unwrap(), &mut copy, &accounts);
    assert_eq!(copy, rows(&db, &accounts));
}

pub(super) fn errors_end_a_stream_of_changes<E: Engine>() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, accounts) = open_with::<E>(&disk, options(64 << 20));
    let begin = || db.changes().begin_now().unwrap().into_stream();
    let (sent, received) = mpsc::channel();
    let mut within_job = Some(begin());
    let job = db.submit(move |_| {
        let mut changes = within_job.take().unwrap();
        sent.send((block_on(changes.next()), block_on(changes.next()))).unwrap();
        Ok(())
    });
    let ended = received.recv().unwrap();
    assert!(matches!(ended, (Some(Err(Error::JobWaitsForJob)), None)), "{ended:?}");
    job.unwrap().wait().unwrap();

    let (mut of_failed, mut of_closed) = (begin(), begin());
    put(&db, &accounts, 1, 5);
    disk.set_faults(Faults { sync_error_at: Some(1), goes_on_failing: true, ..Faults::default() });
    let failed = db.transact(|tx| accounts.upsert(tx, &super::account(2, 5)));
    assert!(matches!(failed, Err(Error::LogFailed(_))));
    // What was stored comes first.
    assert!(matches!(next(&mut of_failed).changes()[0].of::<Account, E>(&accounts), Ok(Some(_))));
    assert!(matches!(block_on(of_failed.next()), Some(Err(Error::LogFailed(_)))));
    assert!(block_on(of_failed.next()).is_none());
    let _ = db.close();
    assert!(matches!(block_on(of_closed.next()), Some(Err(Error::Closed))));
    assert!(block_on(of_closed.next()).is_none());
}
