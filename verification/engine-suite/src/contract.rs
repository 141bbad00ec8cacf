//! What the traits demand of every engine, where tests of tables do not see it.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo_engine::{
    Abort, AbortReason, Committed, Direction, Engine, EngineOptions, KeyChange, KeyRange, NewStoreError,
    Read, Remains, Replayer, Session, Store, StoredRow, TableId, Tid, TransactionOf, Write,
};
use ensilo_epoch::Epoch;
use ensilo_log::{Change, Replay, ReplayError, Write as LogWrite};

/// An engine with one store.
struct Started<E: Engine> {
    engine: Arc<E>,
    store: Arc<E::Store>,
    session: E::Session,
}

impl<E: Engine> Started<E> {
    fn new() -> Self {
        let engine = E::start(EngineOptions::default()).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let session = engine.session();
        Started { engine, store, session }
    }

    /// Inserts a row of one word, 7.
    fn insert(&mut self, key: &[u8]) -> Committed {
        let mut tx = self.session.begin();
        assert!(tx.insert(&self.store, key, &[7], 8).unwrap());
        tx.commit().unwrap()
    }
}

fn panics<R>(call: impl FnOnce() -> R) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

/// Keys may be named to be loaded that are there or not, and of a store that was dropped. Whoever changes them meanwhile is in nobody's way.
pub fn what_is_loaded_in_advance_is_not_read<E: Engine>() {
    let mut started = Started::<E>::new();
    let dropped = started.engine.new_store(TableId(2)).unwrap();
    let keys: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number; usize::from(number % 30)]).collect();
    keys.iter().skip(1).step_by(2).for_each(|key| _ = started.insert(key));
    let Started { engine, store, session } = &mut started;
    session.prefetch(keys.len(), |at| (&**store, keys[at].as_slice()));
    session.prefetch(0, |_| unreachable!("there is none"));
    let mut other = engine.session();
    let mut tx = other.begin();
    let found = tx.find(store, &keys[1]).unwrap().unwrap();
    tx.put(found, &[8], 8).unwrap();
    assert!(tx.insert(store, &keys[2], &[9], 8).unwrap());
    tx.commit().unwrap();
    let mut tx = session.begin();
    assert!(tx.insert(store, b"own", &[1], 8).unwrap());
    assert_eq!(tx.get(store, &keys[1], |row| row.word(0)).unwrap(), Some(8));
    assert_eq!(tx.get(store, &keys[3], |row| row.word(0)).unwrap(), Some(7));
    tx.commit().unwrap();
    assert!(engine.drop_store(dropped.id()));
    let stores = [&**store, &*dropped];
    session.prefetch(keys.len(), |at| (stores[at % 2], keys[at].as_slice()));
    session.begin().commit().unwrap();
}

/// A transaction may load what it needs for changes of keys that are there or not, and of a store that was dropped. Whoever changes them meanwhile
/// is in nobody's way.
pub fn what_a_transaction_loads_for_its_changes_is_not_read<E: Engine>() {
    let mut started = Started::<E>::new();
    let dropped = started.engine.new_store(TableId(2)).unwrap();
    assert!(started.engine.drop_store(dropped.id()));
    let keys: Vec<Vec<u8>> = (0..100u8).map(|number| vec![number; usize::from(number % 30)]).collect();
    keys.iter().skip(1).step_by(2).for_each(|key| _ = started.insert(key));
    let Started { engine, store, session } = &mut started;
    let mut tx = session.begin();
    let change = |at: usize| if at.is_multiple_of(3) { KeyChange::Insert } else { KeyChange::Delete };
    tx.prefetch_changes(keys.len(), |at| (&**store, keys[at].as_slice(), change(at)));
    tx.prefetch_changes(keys.len(), |at| ([&**store, &*dropped][at % 2], keys[at].as_slice(), change(at)));
    tx.prefetch_changes(0, |_| unreachable!("there is none"));
    let mut other = engine.session();
    let mut others = other.begin();
    let found = others.find_to_write(store, &keys[1]).unwrap().unwrap();
    others.delete(found).unwrap();
    assert!(others.insert(store, &keys[2], &[9], 8).unwrap());
    others.commit().unwrap();
    assert!(tx.insert(store, b"own", &[1], 8).unwrap());
    let found = tx.find_to_write(store, &keys[3]).unwrap().unwrap();
    tx.delete(found).unwrap();
    tx.commit().unwrap();
    let mut tx = session.begin();
    let there = [&b"own"[..], &keys[1], &keys[2], &keys[3]];
    assert_eq!(there.map(|key| tx.find(store, key).unwrap().is_some()), [true, false, true, false]);
    tx.commit().unwrap();
}

/// A handle is refused, with a panic, by every transaction but the one that has found it, also if that was leaked.
pub fn a_handle_is_good_in_the_transaction_that_has_found_it_alone<E: Engine>() {
    let Started { engine, store, mut session } = Started::<E>::new();
    let mut other = engine.session();
    let mut tx = session.begin();
    assert!(tx.insert(&store, b"key", &[1], 8).unwrap());
    let inserted = tx.find(&store, b"key").unwrap().unwrap();
    tx.commit().unwrap();
    let mut finder = other.begin();
    let found = finder.find(&store, b"key").unwrap().unwrap();
    assert!(finder.has_found(found) && !finder.has_found(inserted));
    drop(finder);
    let mut leaked = ManuallyDrop::new(session.begin());
    let of_leaked = leaked.find(&store, b"key").unwrap().unwrap();
    for foreign in [inserted, found, of_leaked] {
        let tx = RefCell::new(session.begin());
        // It has read the same record at the same place.
        assert!(tx.borrow_mut().find(&store, b"key").unwrap().is_some() && !tx.borrow().has_found(foreign));
        assert!(panics(|| tx.borrow_mut().read(foreign, |_| ())));
        assert!(panics(|| tx.borrow_mut().put(foreign, &[2], 8)));
        assert!(panics(|| tx.borrow_mut().patch(foreign, &[(0, 2)])));
        assert!(panics(|| tx.borrow_mut().delete(foreign)));
        assert_eq!(tx.borrow_mut().get(&store, b"key", |row| row.word(0)).unwrap(), Some(1));
        tx.into_inner().commit().unwrap();
        if E::SNAPSHOTS {
            let mut snapshot = session.begin_snapshot();
            assert!(panics(|| snapshot.read(foreign, |_| ())));
        }
    }
}

/// A transaction that only reads commits with the largest TID that it has read.
pub fn a_transaction_that_only_reads_commits_with_the_largest_tid_that_it_read<E: Engine>() {
    let mut started = Started::<E>::new();
    let inserted = [started.insert(b"a"), started.insert(b"b")];
    let largest = inserted.into_iter().max_by_key(|committed| committed.tid).unwrap();
    let Started { engine: _engine, store, mut session } = started;
    let mut reading = |read: &dyn Fn(&mut TransactionOf<'_, E>)| {
        let mut tx = session.begin();
        read(&mut tx);
        tx.commit().unwrap()
    };
    let both = reading(&|tx| {
        for key in [b"b", b"a"] {
            assert_eq!(tx.get(&store, key, |row| row.word(0)).unwrap(), Some(7));
        }
    });
    assert!(both.tid == largest.tid && both.epoch >= largest.epoch, "{both:?}, not {largest:?}");
    let scanned = reading(&|tx| {
        let bounds = (Bound::Unbounded, Bound::Unbounded);
        let each = |_, ()| ControlFlow::Continue(());
        tx.scan(&store, bounds, Direction::Forward, |_, _| (), each).unwrap();
    });
    assert!(scanned.tid == largest.tid && scanned.epoch >= largest.epoch, "{scanned:?}, not {largest:?}");
    let nothing = reading(&|tx| assert!(tx.find(&store, b"c").unwrap().is_none()));
    assert_eq!(nothing.tid, Tid::ZERO);
}

/// A session that has committed as many transactions as an epoch has TIDs goes on at once: the epoch moves on, however long it
/// would last. (An engine may do without TIDs: all of its transactions have [`Tid::ZERO`].)
pub fn transactions_for_which_an_epoch_has_no_tids_left_wait_for_nothing<E: Engine>() {
    let mut options = EngineOptions::default();
    options.epochs.epoch_interval = Duration::from_secs(86_400);
    let engine = E::start(options).unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let mut session = engine.session();
    let mut last = Tid::ZERO;
    for word in 0..=Tid::PER_EPOCH {
        let mut tx = session.begin();
        match tx.find(&store, b"key").unwrap() {
            Some(found) => tx.put(found, &[word], 8).unwrap(),
            None => assert!(tx.insert(&store, b"key", &[word], 8).unwrap()),
        }
        let Committed { tid, epoch } = tx.commit().unwrap();
        let is_next = tid > last && tid.epoch() == epoch;
        assert!(is_next || tid == Tid::ZERO, "{tid:?} after {last:?}");
        last = tid;
    }
    let mut tx = session.begin();
    assert_eq!(tx.get(&store, b"key", |row| row.word(0)).unwrap(), Some(Tid::PER_EPOCH));
    assert_eq!(tx.commit().unwrap().tid, last);
}

/// A record that the transaction has deleted takes no write, and its key another row. To an engine that is not
/// [transactional](Engine::IS_TRANSACTIONAL) the record may be one that somebody else has deleted.
pub fn a_record_that_the_transaction_has_deleted_is_written_no_more<E: Engine>() {
    type Change<E> = fn(&mut TransactionOf<'_, E>, <E as Engine>::Found) -> Result<(), Abort>;
    let changes: [Change<E>; 3] = [
        |tx, found| tx.put(found, &[8], 8),
        |tx, found| tx.patch(found, &[(0, 8)]),
        |tx, found| tx.delete(found),
    ];
    let mut started = Started::<E>::new();
    started.insert(b"a");
    for change in changes {
        let mut tx = started.session.begin();
        let found = tx.find(&started.store, b"a").unwrap().unwrap();
        tx.delete(found).unwrap();
        assert!(panics(|| change(&mut tx, found)) || !E::IS_TRANSACTIONAL);
        drop(tx);
        if !E::IS_TRANSACTIONAL {
            started.insert(b"a");
        }
    }
    let Started { engine: _engine, store, mut session } = started;
    assert_eq!(session.begin().get(&store, b"a", |row| row.word(0)).unwrap(), Some(7));
    let mut tx = session.begin();
    let found = tx.find(&store, b"a").unwrap().unwrap();
    tx.delete(found).unwrap();
    assert!(tx.insert(&store, b"a", &[9], 8).unwrap());
    let again = tx.find(&store, b"a").unwrap().unwrap();
    tx.put(again, &[10], 8).unwrap();
    tx.commit().unwrap();
    assert_eq!(session.begin().get(&store, b"a", |row| row.word(0)).unwrap(), Some(10));
}

/// A row of other words than its length needs is refused with a panic, and so is a patch outside of it.
pub fn a_row_of_other_words_than_it_needs_is_refused<E: Engine>() {
    let mut started = Started::<E>::new();
    started.insert(b"key");
    let Started { engine: _engine, store, mut session } = started;
    let mut tx = session.begin();
    let found = tx.find(&store, b"key").unwrap().unwrap();
    assert!(panics(|| tx.put(found, &[1, 2], 8)));
    assert!(panics(|| tx.patch(found, &[(1, 2)])));
    assert!(panics(|| tx.insert(&store, b"other", &[1, 2], 8)));
    tx.put(found, &[8], 8).unwrap();
    assert_eq!(tx.read(found, |row| row.word(0)).unwrap(), 8);
    tx.commit().unwrap();
}

/// The id of a store is used once, also after the store was dropped, and what is done to a dropped store aborts.
pub fn ids_of_stores_are_used_once_and_dropped_stores_abort<E: Engine>() {
    let mut started = Started::<E>::new();
    started.insert(b"key");
    let Started { engine, store, mut session } = started;
    let is_taken = |id| matches!(engine.new_store(id), Err(NewStoreError::IdTaken(refused)) if refused == id);
    assert!(is_taken(TableId(1)) && is_taken(TableId::NONE) && is_taken(TableId(TableId::MAX.0 + 1)));
    let other = engine.new_store(TableId(700)).unwrap();
    let mut tx = session.begin();
    tx.find(&store, b"key").unwrap().unwrap();
    assert!(engine.drop_store(TableId(1)));
    assert!(!engine.drop_store(TableId(1)) && !engine.drop_store(TableId(2)));
    assert!(tx.find(&store, b"key").is_err());
    drop(tx);
    let mut tx = session.begin();
    assert_eq!(tx.find(&store, b"key").unwrap_err().reason(), AbortReason::StoreDropped);
    drop(tx);
    assert!(is_taken(TableId(1)), "also once it was dropped");
    assert_eq!(engine.stores().iter().map(|store| store.id()).collect::<Vec<_>>(), [other.id()]);
}

/// The engine's statistics count each transaction once, and keep what sessions have counted that have ended.
pub fn what_ended_sessions_have_counted_stays<E: Engine>() {
    let mut started = Started::<E>::new();
    started.insert(b"a");
    let Started { engine, store, session } = started;
    for _ in 0..3 {
        let mut other = engine.session();
        let mut tx = other.begin();
        tx.find(&store, b"a").unwrap();
        tx.commit().unwrap();
        other.begin().abort();
        drop(other.begin());
    }
    let counted = engine.statistics().transactions;
    assert_eq!((counted.commits, counted.aborts_total()), (4, 6));
    drop(session);
    assert_eq!(engine.statistics().transactions, counted);
}

/// A peek passes on committed rows and the transaction's own, in order, and leaves out what the transaction has
/// deleted.
pub fn a_peek_sees_what_is_committed_and_own_writes<E: Engine>() {
    let mut started = Started::<E>::new();
    [&b"a"[..], b"b", b"c", b"e"].iter().for_each(|key| _ = started.insert(key));
    let Started { engine, store, mut session } = started;
    let mut tx = session.begin();
    assert!(tx.insert(&store, b"d", &[8], 8).unwrap());
    let found = tx.find(&store, b"b").unwrap().unwrap();
    tx.delete(found).unwrap();
    let found = tx.find(&store, b"c").unwrap().unwrap();
    tx.put(found, &[9], 8).unwrap();
    let mut peek = |bounds, direction, limit| {
        let mut seen = Vec::new();
        let walk = tx.peek(
            &store,
            bounds,
            direction,
            |key, row| (key[0], row.word(0)),
            |row| {
                seen.push(row);
                if seen.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            },
            |later| panic!("nobody has written {later:?}"),
        );
        walk.unwrap();
        seen
    };
    let all = (Bound::Unbounded, Bound::Unbounded);
    let rows = [(b'a', 7), (b'c', 9), (b'd', 8), (b'e', 7)];
    assert_eq!(peek(all, Direction::Forward, 9), rows);
    assert_eq!(peek(all, Direction::Reverse, 2), [rows[3], rows[2]]);
    assert_eq!(peek((Bound::Excluded(b"a"), Bound::Included(b"d")), Direction::Forward, 9), rows[1..3]);
    tx.commit().unwrap();
    drop(session);
    drop(engine);
}

/// Who answers for what was read so far knows how far the log has to be for that.
pub fn what_was_read_names_its_epoch<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let mut started = Started::<E>::new();
    let written = started.insert(b"key").epoch;
    let Started { engine, store, mut session } = started;
    let mut tx = session.begin();
    assert!(tx.largest_epoch_seen() < written, "nothing was read");
    assert_eq!(tx.get(&store, b"key", |row| row.word(0)).unwrap(), Some(7));
    assert_eq!(tx.largest_epoch_seen(), written);
    assert_eq!(tx.commit().unwrap().epoch, written);
    if E::SNAPSHOTS {
        engine.take_snapshot(Instant::now());
        let mut snapshot = session.begin_snapshot();
        assert_eq!(snapshot.get(&store, b"key", |row| row.word(0)).unwrap(), Some(7));
        assert_eq!(snapshot.largest_epoch_seen(), written);
    }
}

/// A walk that finds its store dropped, and taken apart, finds nothing there.
pub fn a_dropped_store_has_no_keys<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let mut started = Started::<E>::new();
    started.insert(b"key");
    let Started { engine, store, session } = started;
    drop(session);
    assert_eq!(engine.last_key(&store), Some(b"key".to_vec()));
    assert!(engine.drop_store(TableId(1)));
    while engine.collect_orphaned() != Remains::Nothing {
        engine.epochs().advance();
    }
    assert_eq!((engine.last_key(&store), engine.key_ranges(&store, 4)), (None, vec![KeyRange::ALL]));
    let nothing =
        engine.walk(&store, &KeyRange::ALL, Epoch::LAST, |_| panic!("a row"), || ControlFlow::Continue(()));
    assert!(nothing.is_continue());
}

/// A log is only as good as its bytes: what names a table that no database has is refused, and no reason to search for ever.
pub fn a_write_of_a_table_that_cannot_be_is_not_replayed<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let engine = E::start(EngineOptions::default()).unwrap();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    for table in [0, 2, TableId::MAX.0 + 2, u32::MAX] {
        let write = LogWrite { tid: 1 << 20, table, key: b"key", change: Change::Put(b"row") };
        let refused = replayer.apply(&mut worker, &[write]);
        assert!(matches!(refused, Err(ReplayError::Refused(_))), "{table}: {refused:?}");
    }
}

/// A row of a checkpoint may come beside transactions and snapshots: to all of them it was there before.
pub fn a_row_that_comes_late_was_there_all_the_time<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let mut options = EngineOptions::default();
    options.epochs.first_epoch = Epoch::new(100);
    let engine = E::start(options).unwrap();
    engine.replayer().finish().unwrap();
    let store = engine.new_store(TableId(1)).unwrap();
    let participant = engine.epochs().participant();
    let tid = Tid::before(Epoch::new(99)).next_in(Epoch::new(99)).unwrap();
    let comes = |key: &[u8], value: u64| {
        let row = StoredRow { key, tid, words: &[value], len_bytes: 8 };
        engine.derive(&participant, &store, &row).unwrap()
    };
    let (mut session, mut other) = (engine.session(), engine.session());
    let mut tx = session.begin();
    let mut snapshot = E::SNAPSHOTS.then(|| other.begin_snapshot());
    assert!(comes(b"b", 2));
    let found = tx.find(&store, b"b").unwrap().unwrap();
    assert_eq!(tx.read(found, |row| row.word(0)).unwrap(), 2);
    tx.put(found, &[7], 8).unwrap();
    assert!(tx.commit().unwrap().tid > tid);
    assert!(!comes(b"b", 3), "there is a row");
    if let Some(snapshot) = &mut snapshot {
        assert_eq!(snapshot.get(&store, b"b", |row| row.word(0)).unwrap(), Some(2));
    }
    drop(snapshot);
    // One that has missed another key may abort, and nothing worse.
    let mut tx = session.begin();
    assert!(tx.find(&store, b"c").unwrap().is_none());
    assert!(comes(b"d", 4));
    let _ = tx.commit();
    let mut tx = session.begin();
    assert_eq!(tx.get(&store, b"b", |row| row.word(0)).unwrap(), Some(7));
    assert_eq!(tx.get(&store, b"d", |row| row.word(0)).unwrap(), Some(4));
    tx.commit().unwrap();
    assert!(engine.drop_store(TableId(1)));
    assert!(!comes(b"e", 5));
}
