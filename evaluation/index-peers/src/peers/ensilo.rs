//! Ours.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use ensilo_epoch::{EpochOptions, Epochs, Guard, Participant};
use ensilo_index::{Direction, Inserted, Lookup, Masstree, NodeStamp, ScanVisitor};
use ensilo_slab::{AccountId, Pool};

use crate::keys::Key;
use crate::peer::Peer;

/// The index of Ensilo.
pub(crate) struct EnsiloIndex {
    tree: Masstree,
    epochs: Arc<Epochs>,
}

/// A participant, and its pin while a batch runs.
pub(crate) struct Session {
    /// In front of the participant that it borrows, so that it is dropped first.
    guard: Option<Guard<'static>>,
    participant: Box<Participant>,
}

impl Session {
    fn new(epochs: &Arc<Epochs>) -> Self {
        let mut session = Session { guard: None, participant: Box::new(epochs.participant()) };
        session.pin();
        session
    }

    fn pin(&mut self) {
        self.guard = None;
        self.participant.collect(1024);
        // SAFETY: the participant is boxed, so that it stays where it is; nothing moves it out of the session, and the
        // guard is dropped before it.
        let participant: &'static Participant = unsafe { &*std::ptr::from_ref(&*self.participant) };
        self.guard = Some(participant.pin());
    }

    #[inline]
    fn guard(&self) -> &Guard<'static> {
        self.guard.as_ref().unwrap_or_else(|| unreachable!("pinned from the start"))
    }
}

impl<K: Key> Peer<K> for EnsiloIndex {
    const NAME: &'static str = "ensilo";
    type Session<'m> = Session;

    fn new() -> Self {
        let epochs = Epochs::new(EpochOptions::default(), Pool::new(None));
        let tree = {
            let participant = epochs.participant();
            let guard = participant.pin();
            Masstree::new(&guard, AccountId(1)).unwrap_or_else(|error| panic!("{error}"))
        };
        EnsiloIndex { tree, epochs }
    }

    fn session(&self) -> Session {
        Session::new(&self.epochs)
    }

    fn refresh(&self, session: &mut Session) {
        session.pin();
    }

    #[inline]
    fn insert(&self, session: &mut Session, key: K, value: u64) -> bool {
        let inserted = self.tree.insert_if_absent(key.to_bytes().as_ref(), value, session.guard(), &mut ());
        inserted.unwrap_or_else(|error| panic!("{error}")) == Inserted::New
    }

    #[inline]
    fn get(&self, session: &mut Session, key: K) -> Option<u64> {
        match self.tree.get(key.to_bytes().as_ref(), session.guard()) {
            Lookup::Found(value) => Some(value),
            Lookup::Missing(_) => None,
        }
    }

    #[inline]
    fn get_many(&self, session: &mut Session, keys: &[K]) -> (u64, u64) {
        let mut bytes: [Option<K::Bytes>; crate::work::BATCH] = [None; crate::work::BATCH];
        for (bytes, key) in bytes.iter_mut().zip(keys) {
            *bytes = Some(key.to_bytes());
        }
        let mut found = (0, 0);
        self.tree.get_many(&bytes.map(Present), session.guard(), |_, lookup| {
            if let Lookup::Found(value) = lookup {
                found = (found.0 + value, found.1 + 1);
            }
        });
        found
    }

    #[inline]
    fn remove(&self, session: &mut Session, key: K, value: u64) -> bool {
        self.tree.remove(key.to_bytes().as_ref(), value, session.guard())
    }

    #[inline]
    fn scan(&self, session: &mut Session, from: K, count: usize) -> (u64, u64) {
        let mut sum = Sum { sum: 0, left: count as u64, count: count as u64 };
        let bytes = from.to_bytes();
        let bounds = (Bound::Included(bytes.as_ref()), Bound::Unbounded);
        self.tree.scan(bounds, Direction::Forward, session.guard(), &mut sum);
        (sum.sum, sum.count - sum.left)
    }
}

/// The bytes of a key of a full batch.
struct Present<B>(Option<B>);

impl<B: AsRef<[u8]>> AsRef<[u8]> for Present<B> {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], B::as_ref)
    }
}

/// Adds values up.
struct Sum {
    sum: u64,
    left: u64,
    count: u64,
}

impl ScanVisitor for Sum {
    #[inline]
    fn node(&mut self, _: NodeStamp) {}

    #[inline]
    fn entry(&mut self, _: &[u8], value: u64) -> ControlFlow<()> {
        self.sum += value;
        self.left -= 1;
        if self.left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
