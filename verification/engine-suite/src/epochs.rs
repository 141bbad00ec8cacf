//! Rows say in which epoch they were committed, whichever way they are read.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use ensilo_engine::{
    Direction, Engine, EngineOptions, Read, ReadOf, Replayer, RowRef, Session, StoredRow, TableId, Tid,
    TransactionOf, Write, WriteOf,
};
use ensilo_epoch::Epoch;
use ensilo_log::{
    Change, Cursor, Replay, Transactions, Write as LogWrite, encode_patch, encode_transaction,
    patch_bytes_max, transaction_bytes,
};

const ALL: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

/// An engine with one store.
struct Started<E: Engine> {
    engine: Arc<E>,
    store: Arc<E::Store>,
    session: E::Session,
}

impl<E: Engine> Started<E> {
    /// Returns an engine with the rows `a`, `b` and `c`, and the epoch in which they were committed.
    fn with_rows() -> (Self, Epoch) {
        let engine = E::start(EngineOptions::default()).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let session = engine.session();
        let mut started = Started { engine, store, session };
        let epoch = started.commit_later(|tx, store| {
            for key in [b"a", b"b", b"c"] {
                assert!(tx.insert(store, key, &[0, 0], 16).unwrap());
            }
        });
        (started, epoch)
    }

    /// Commits in a later epoch than all before, which is returned.
    fn commit_later(&mut self, change: impl FnOnce(&mut TransactionOf<'_, E>, &E::Store)) -> Epoch {
        let epochs = self.engine.epochs();
        let before = epochs.global_epoch();
        while epochs.global_epoch() == before {
            epochs.advance();
        }
        let mut tx = self.session.begin();
        change(&mut tx, &self.store);
        let epoch = tx.commit().unwrap().tid.epoch();
        if E::ROWS_HAVE_EPOCHS {
            assert!(epoch > before, "{epoch} after {before}");
            epoch
        } else {
            Epoch::MAX
        }
    }

    fn epochs(&mut self) -> Vec<(u8, Epoch)> {
        epochs_of::<E>(&mut self.session.begin(), &self.store)
    }
}

/// Replaces a row by a longer one.
fn put<E: Engine>(tx: &mut impl WriteOf<E>, store: &E::Store, key: &[u8]) {
    let found = tx.find_to_write(store, key).unwrap().unwrap();
    tx.put(found, &[2; 9], 72).unwrap();
}

/// Changes a word of a row.
fn patch<E: Engine>(tx: &mut impl WriteOf<E>, store: &E::Store, key: &[u8]) {
    let found = tx.find_to_write(store, key).unwrap().unwrap();
    tx.patch(found, &[(1, 3)]).unwrap();
}

/// Returns the first byte of each key with the epoch of its row, on which all ways to read it agree.
fn epochs_of<E: Engine>(tx: &mut impl ReadOf<E>, store: &E::Store) -> Vec<(u8, Epoch)> {
    let (mut scanned, mut handles) = (Vec::new(), Vec::new());
    let scan = tx.scan(
        store,
        ALL,
        Direction::Forward,
        |key, row| (key[0], row.epoch()),
        |found, row| {
            handles.push(found);
            scanned.push(row);
            ControlFlow::Continue(())
        },
    );
    scan.unwrap();
    let by_handle: Vec<_> = handles.iter().map(|found| tx.read(*found, |row| row.epoch()).unwrap()).collect();
    assert!(by_handle.iter().eq(scanned.iter().map(|(_, epoch)| epoch)), "{by_handle:?}, not {scanned:?}");

    let mut to_read = Vec::new();
    let note = |row| {
        to_read.push(row);
        ControlFlow::Continue(())
    };
    tx.scan_to_read(store, ALL, Direction::Reverse, |key, row| (key[0], row.epoch()), note).unwrap();
    assert!(to_read.iter().rev().eq(&scanned), "{to_read:?} against {scanned:?}");

    let keys: Vec<[u8; 1]> = scanned.iter().map(|&(key, _)| [key]).collect();
    let mut many = Vec::new();
    let note = |_, epoch: Option<Epoch>| {
        many.extend(epoch);
        ControlFlow::Continue(())
    };
    tx.get_many(store, &keys, |_, row| row.epoch(), note).unwrap();
    let mut handles = Vec::new();
    tx.find_many(store, &keys, |_, found| handles.extend(found)).unwrap();
    assert_eq!((many.len(), handles.len()), (scanned.len(), scanned.len()));
    for (at, (key, epoch)) in scanned.iter().enumerate() {
        let got = tx.get(store, &[*key], |row| row.epoch()).unwrap();
        let found = tx.find(store, &[*key]).unwrap().unwrap();
        let read = [found, handles[at]].map(|found| tx.read(found, |row| row.epoch()).unwrap());
        assert_eq!((got, read, many[at]), (Some(*epoch), [*epoch; 2], *epoch), "of {key}");
    }
    scanned
}

/// Returns what a peek passes on, in whichever way.
fn peeked<E: Engine>(tx: &mut impl WriteOf<E>, store: &E::Store) -> Vec<(u8, Epoch)> {
    let (mut seen, mut later) = (Vec::new(), Vec::new());
    let note = |row| {
        seen.push(row);
        ControlFlow::Continue(())
    };
    let decode = |key: &[u8], row: RowRef<'_>| (key[0], row.epoch());
    tx.peek(store, ALL, Direction::Forward, decode, note, |row| later.push(row)).unwrap();
    seen.append(&mut later);
    seen.sort_unstable();
    seen
}

/// A row says the epoch of its last put or patch, and what was given up changes nothing.
pub fn a_row_says_in_which_epoch_it_was_committed<E: Engine>() {
    let (mut started, first) = Started::<E>::with_rows();
    assert_eq!(started.epochs(), [(b'a', first), (b'b', first), (b'c', first)]);
    let second = started.commit_later(|tx, store| put::<E>(tx, store, b"a"));
    let third = started.commit_later(|tx, store| patch::<E>(tx, store, b"b"));
    let committed = [(b'a', second), (b'b', third), (b'c', first)];
    assert_eq!(started.epochs(), committed);
    let mut tx = started.session.begin();
    put::<E>(&mut tx, &started.store, b"b");
    patch::<E>(&mut tx, &started.store, b"c");
    tx.abort();
    assert_eq!(started.epochs(), committed);
    started.commit_later(|tx, store| {
        let found = tx.find_to_write(store, b"c").unwrap().unwrap();
        tx.delete(found).unwrap();
    });
    let last = started.commit_later(|tx, store| assert!(tx.insert(store, b"c", &[5], 8).unwrap()));
    assert_eq!(started.epochs(), [(b'a', second), (b'b', third), (b'c', last)]);
}

/// What a transaction has inserted, put or patched is of no epoch before it commits, whatever lies beneath.
pub fn rows_that_the_transaction_has_written_say_no_epoch<E: Engine>() {
    let (mut started, first) = Started::<E>::with_rows();
    let written = started.commit_later(|tx, store| {
        assert!(tx.insert(store, b"d", &[1], 8).unwrap());
        put::<E>(tx, store, b"a");
        patch::<E>(tx, store, b"b");
        let own = [(b'a', Epoch::MAX), (b'b', Epoch::MAX), (b'c', first), (b'd', Epoch::MAX)];
        // Before each of the rows is read, which may make another one of it, and behind that.
        assert_eq!(peeked::<E>(tx, store), own);
        assert_eq!(epochs_of::<E>(tx, store), own);
        patch::<E>(tx, store, b"a");
        put::<E>(tx, store, b"b");
        assert_eq!(epochs_of::<E>(tx, store), own);
        let found = tx.find_to_write(store, b"c").unwrap().unwrap();
        tx.delete(found).unwrap();
        assert!(tx.insert(store, b"c", &[1], 8).unwrap());
        assert!(epochs_of::<E>(tx, store).iter().all(|(_, epoch)| *epoch == Epoch::MAX));
        assert_eq!(peeked::<E>(tx, store), epochs_of::<E>(tx, store));
    });
    assert_eq!(started.epochs(), [b'a', b'b', b'c', b'd'].map(|key| (key, written)));
}

/// A look at what others have committed since the transaction began says the epochs of that.
pub fn a_peek_says_the_epochs_of_the_present<E: Engine>() {
    let (mut started, first) = Started::<E>::with_rows();
    let store = Arc::clone(&started.store);
    let mut other = started.engine.session();
    let mut tx = other.begin();
    let second = started.commit_later(|tx, store| put::<E>(tx, store, b"a"));
    let third = started.commit_later(|tx, store| {
        patch::<E>(tx, store, b"b");
        assert!(tx.insert(store, b"d", &[1], 8).unwrap());
    });
    assert_eq!(peeked::<E>(&mut tx, &store), [(b'a', second), (b'b', third), (b'c', first), (b'd', third)]);
}

/// A snapshot shows an older version with its epoch, also of a row that was deleted since.
pub fn a_snapshot_says_the_epochs_of_what_it_shows<E: Engine>() {
    if !E::SNAPSHOTS {
        return;
    }
    let (mut started, first) = Started::<E>::with_rows();
    let store = Arc::clone(&started.store);
    let second = started.commit_later(|tx, store| put::<E>(tx, store, b"a"));
    started.engine.take_snapshot(Instant::now());
    let shown = [(b'a', second), (b'b', first), (b'c', first)];
    let mut other = started.engine.session();
    let mut snapshot = other.begin_snapshot();
    let found = [b"a", b"b", b"c"].map(|key| snapshot.find(&store, key).unwrap().unwrap());
    let third = started.commit_later(|tx, store| {
        patch::<E>(tx, store, b"a");
        put::<E>(tx, store, b"b");
        let found = tx.find_to_write(store, b"c").unwrap().unwrap();
        tx.delete(found).unwrap();
    });
    let fourth = started.commit_later(|tx, store| {
        put::<E>(tx, store, b"b");
        assert!(tx.insert(store, b"d", &[1], 8).unwrap());
    });
    for (found, (key, epoch)) in found.into_iter().zip(shown) {
        assert_eq!(snapshot.read(found, |row| row.epoch()).unwrap(), epoch, "of {key}");
    }
    assert_eq!(epochs_of::<E>(&mut snapshot, &store), shown);
    // It goes from thread to thread.
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            let mut snapshot = snapshot;
            assert_eq!(epochs_of::<E>(&mut snapshot, &store), shown);
            snapshot
        });
        assert_eq!(epochs_of::<E>(&mut elsewhere.join().unwrap(), &store), shown);
    });
    let present = [(b'a', third), (b'b', fourth), (b'd', fourth)];
    assert_eq!(started.epochs(), present);
    started.engine.take_snapshot(Instant::now());
    assert_eq!(epochs_of::<E>(&mut other.begin_snapshot(), &store), present);
}

/// Whoever reads a row while others overwrite it, and commit, gets the epoch that goes with the words.
pub fn a_row_that_is_overwritten_meanwhile_says_the_epoch_of_its_words<E: Engine>() {
    const COMMITS: usize = 4_000;
    if !E::ROWS_HAVE_EPOCHS {
        return;
    }
    let (started, first) = Started::<E>::with_rows();
    let Started { engine, store, mut session } = started;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| scope.spawn(|| read_until::<E>(&engine, &store, &is_over)));
        let writer = scope.spawn(|| {
            let mut committed = vec![first];
            while committed.len() <= COMMITS {
                if committed.len().is_multiple_of(16) {
                    engine.epochs().advance();
                }
                committed.extend(overwrite::<E>(&mut session, &store, committed.len() as u64));
            }
            committed
        });
        let committed = writer.join();
        is_over.store(true, Ordering::Relaxed);
        let committed = committed.unwrap();
        for (number, epoch) in readers.into_iter().flat_map(|reader| reader.join().unwrap()) {
            assert_eq!(epoch, committed[number as usize], "of row {number}");
        }
    });
}

/// Overwrites a row by one whose first word is `number`, one more than before, and returns the epoch, or nothing where somebody got in
/// between.
fn overwrite<E: Engine>(session: &mut E::Session, store: &E::Store, number: u64) -> Option<Epoch> {
    let mut tx = session.begin();
    let found = tx.find_to_write(store, b"a").ok()?.unwrap();
    if number.is_multiple_of(2) {
        tx.patch(found, &[(0, number), (1, number)]).ok()?;
    } else {
        let len_words = 2 + number as usize % 7;
        tx.put(found, &vec![number; len_words], len_words * 8).ok()?;
    }
    Some(tx.commit().ok()?.tid.epoch())
}

/// Returns first words of a row, which begins as number 0, with the epochs that were said beside them.
fn read_until<E: Engine>(engine: &Arc<E>, store: &E::Store, is_over: &AtomicBool) -> BTreeSet<(u64, Epoch)> {
    let mut session = engine.session();
    let mut seen = BTreeSet::new();
    let decode = |row: RowRef<'_>| (row.word(0), row.word(1), row.epoch());
    let mut note = |(number, again, epoch): (u64, u64, Epoch)| {
        assert_eq!(number, again, "a torn row");
        seen.insert((number, epoch));
    };
    while !is_over.load(Ordering::Relaxed) {
        let mut tx = session.begin();
        let first = (Bound::Unbounded, Bound::Excluded(&b"b"[..]));
        let (mut peeked, mut later) = (Vec::new(), Vec::new());
        let each = |row| {
            peeked.push(row);
            ControlFlow::Continue(())
        };
        let peek =
            tx.peek(store, first, Direction::Forward, |_, row| decode(row), each, |row| later.push(row));
        let got = tx.get(store, b"a", decode);
        if tx.commit().is_ok() {
            peek.unwrap();
            peeked.into_iter().chain(later).chain(got.unwrap()).for_each(&mut note);
        }
        if E::SNAPSHOTS {
            engine.take_snapshot(Instant::now());
            let shown = session.begin_snapshot().get(store, b"a", decode).unwrap();
            shown.into_iter().for_each(&mut note);
        }
    }
    seen
}

/// After a recovery rows are of the epochs of which they were, and not of the one in which the engine has started; so are those that follow
/// from others.
pub fn rows_that_were_replayed_say_the_epochs_of_the_log<E: Engine>() {
    if !E::LOGS {
        return;
    }
    let mut options = EngineOptions::default();
    options.epochs.first_epoch = Epoch::new(100);
    let engine = E::start(options).unwrap();
    let tid_in = |epoch| Tid::before(Epoch::new(epoch)).next_in(Epoch::new(epoch)).unwrap();
    let replayer = engine.replayer();
    let mut worker = replayer.worker();
    // In any order, and the last one counts.
    let patch_of_d = logged_patch(tid_in(11), b"d");
    let mut logged = Transactions::new(&patch_of_d);
    replayer.apply(&mut worker, &[logged.next_write().unwrap().unwrap()]).unwrap();
    for (epoch, key) in [(7, b"a"), (9, b"b"), (8, b"b"), (10, b"d")] {
        let write = LogWrite { tid: tid_in(epoch).get(), table: 1, key, change: Change::Put(&[0; 16]) };
        replayer.apply(&mut worker, &[write]).unwrap();
    }
    drop(worker);
    replayer.finish().unwrap();
    let store = engine.stores().pop().unwrap();
    let late = StoredRow { key: b"c", tid: tid_in(5), words: &[1, 1], len_bytes: 16 };
    assert!(engine.derive(&engine.epochs().participant(), &store, &late).unwrap());
    let session = engine.session();
    let mut started = Started { engine, store, session };
    let [of_a, of_b, of_c, of_d] = [7, 9, 5, 11].map(Epoch::new);
    assert_eq!(started.epochs(), [(b'a', of_a), (b'b', of_b), (b'c', of_c), (b'd', of_d)]);
    let patched = started.commit_later(|tx, store| patch::<E>(tx, store, b"a"));
    assert!(patched >= Epoch::new(100));
    assert_eq!(started.epochs(), [(b'a', patched), (b'b', of_b), (b'c', of_c), (b'd', of_d)]);
}

/// Returns what a transaction logs that has changed a word of a row.
fn logged_patch(tid: Tid, key: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; transaction_bytes(1) + patch_bytes_max(1, key.len(), 1)];
    let mut cursor = Cursor::new(&mut bytes);
    encode_transaction(&mut cursor, tid.get(), 1);
    encode_patch(&mut cursor, 1, key, [(1, 3)].into_iter());
    let filled = cursor.filled();
    bytes.truncate(filled);
    bytes
}
