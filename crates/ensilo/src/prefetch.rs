//! Rows that are loaded into the processor's cache before the transactions begin that want them.
//!
//! A look-up in a large table waits for memory at each level of the index, and for the row. Where it is known of several
//! transactions what they look up first, these waits lie side by side: the descents are interleaved. Nothing is remembered but
//! what the cache holds, so that a transaction does the same as without, only sooner.
//!
//! # Source
//! CoroBase (VLDB 2021) interleaves whole transactions, as coroutines that are switched at each access to memory. Here they run one
//! after the other, and what they would wait for is asked for in advance: the descents are made twice, which takes
//! instructions, not time.

use std::fmt;
use std::mem;
use std::sync::Arc;

use ensilo_engine::{Engine, Session as _};
use ensilo_row::{AsKey, KEY_LEN_MAX, Key, KeyBuf, Row, Value};

use crate::Silo;
use crate::generic::{DynamicTable, Index, Table};
use crate::local::{Local, ThreadWorker};

/// Of more keys than these no more are loaded: what is loaded before is used late, and falls out of the cache.
const KEYS_MAX: usize = 256;

/// Collects the keys of rows that requests will look up soon, for [`Database::prefetch`](crate::Database::prefetch) and
/// [`Database::transact_many`](crate::Database::transact_many).
///
/// Keys are a hint: a request may look up others, or none of them. A table or an index of another database is passed over, as is a
/// dropped one, a key that is too long, and every key after the first 256.
pub struct Prefetch<E: Engine = Silo> {
    database: u64,
    /// Those of `keys`, each once.
    stores: Vec<Arc<E::Store>>,
    /// Keys, each with the place of its store in `stores`; behind the first `len` what earlier ones have left.
    keys: Vec<(usize, KeyBuf)>,
    len: usize,
}

impl<E: Engine> Prefetch<E> {
    /// Returns an empty one, with memory that the worker has for it.
    pub(crate) fn new(local: &mut Local<E::Found>) -> Self {
        Prefetch {
            database: local.database,
            stores: Vec::new(),
            keys: mem::take(&mut local.prefetched),
            len: 0,
        }
    }

    /// Adds the row with this primary key.
    #[inline]
    pub fn row<T: Row>(&mut self, table: &Table<T, E>, key: impl AsKey<T::Key>) {
        if table.core.accepts(self.database) {
            self.push(&table.core.store, |bytes| key.append_key(bytes));
        }
    }

    /// Adds the entry with these indexed columns; of an index that is not unique the way to the entries. The row that it leads to is not
    /// loaded.
    #[inline]
    pub fn entry<T: Row, K: Key>(&mut self, index: &Index<T, K, E>, key: impl AsKey<K>) {
        if index.core.accepts(self.database) {
            self.push(&index.core.store, |bytes| key.append_key(bytes));
        }
    }

    /// Adds the row of a dynamic table with this primary key; nothing if these are not values of one.
    pub fn dynamic_row(&mut self, table: &DynamicTable<E>, key: &[Value]) {
        if table.core.accepts(self.database)
            && let Ok(encoded) = table.encode_key(key)
        {
            self.push(&table.core.store, |bytes| bytes.clone_from(&encoded));
        }
    }

    /// Returns how many keys there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn push(&mut self, store: &Arc<E::Store>, append: impl FnOnce(&mut KeyBuf)) {
        if self.len == KEYS_MAX {
            return;
        }
        let store = self.place_of(store);
        if self.len == self.keys.len() {
            self.keys.push((store, KeyBuf::new()));
        }
        let (place, key) = &mut self.keys[self.len];
        *place = store;
        key.clear();
        append(key);
        if key.len() > KEY_LEN_MAX {
            // Its memory would stay with the worker.
            *key = KeyBuf::new();
            return;
        }
        self.len += 1;
    }

    /// Returns where the store is, which may be new.
    #[inline]
    fn place_of(&mut self, store: &Arc<E::Store>) -> usize {
        let known = self.stores.iter().position(|known| Arc::ptr_eq(known, store));
        known.unwrap_or_else(|| {
            self.stores.push(Arc::clone(store));
            self.stores.len() - 1
        })
    }

    /// Starts to load what the keys lead to, and forgets them.
    pub(crate) fn start(&mut self, worker: &mut ThreadWorker<E>) {
        let len = mem::take(&mut self.len);
        // The program may have exchanged it for one of another database.
        if self.database != worker.local.database {
            return;
        }
        worker.raw.prefetch(len, |at| {
            let (store, key) = &self.keys[at];
            (&*self.stores[*store], key.as_bytes())
        });
    }

    /// Gives the memory back.
    pub(crate) fn end(self, local: &mut Local<E::Found>) {
        local.prefetched = self.keys;
    }
}

impl<E: Engine> fmt::Debug for Prefetch<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefetch").field("len", &self.len).finish_non_exhaustive()
    }
}
