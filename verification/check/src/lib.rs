//! A checker that decides whether a recorded history is serializable, or one of snapshot isolation.
//!
//! A run of the engine in recording mode leaves a [`History`]: for every committed transaction the versions that it
//! read, the keys and key ranges in which it saw nothing, and the versions that it wrote. Versions carry transaction
//! IDs: their order per key is the version order, so nothing has to be guessed: [`check`] builds the direct
//! serialization graph and looks for cycles in it.
//!
//! It is not a tester: it neither runs transactions nor depends on the engine. It judges what was recorded, and only
//! what was recorded: a history that is too small to say anything is [`Verdict::Inconclusive`], never passed.
//!
//! # Source
//! Silo (SOSP 2013) §4.2 to §4.6 and §4.9 for what the history promises; A. Adya, "Weak consistency: a generalized
//! theory and optimistic implementations" (1999) for the graph and for the names of the anomalies (G1a, G1b, G1c, G2-item,
//! G2). For snapshot isolation see `cycles`.
//!
//! # Terms
//! - *version*: what one transaction left of one key, a row or an absence (a delete). It is named by the key and the
//!   writer's TID; TIDs are unique per key and per worker, not globally.
//! - *version order*: the versions of one key in the order of their TIDs.
//! - *observation*: a transaction saw the state of a key: one of its versions, or the initial state before all of them.
//! - *item read*: the transaction names the version seen. *Predicate read*: it says that it saw no record, of one key
//!   (`missing`) or of every key of a range that is not among its reads.
//! - *level*: the place of an epoch in the serial order. A snapshot at epoch `s` stands between the transactions of
//!   epochs before `s` and the others.
//!
//! # What a missing record says
//! A reader that finds no record under a key names the deletion that it saw, if one has left the tree by then: the engine notes these
//! while it records. Of the keys that no deletion has left, its epoch tells which state it saw:
//!
//! **An ordinary transaction of epoch `e` that found no record, or a placeholder that was never written, and names no deletion, saw the
//! state left by the newest version of an epoch before `e`, and this version is a delete; if there is none, it saw the initial state.**
//!
//! Why: the key had no version when the reader looked. The first one, `n`, was locked after the reader validated (otherwise the validation
//! of the node, or of the placeholder, would have failed), and its writer read its epoch after locking, hence `epoch(n) >= e`. So there
//! is no version before `e`, or, in a history that says nothing of removals, those before `e` had left the tree.
//! For a snapshot transaction at epoch `s` the rule holds with `s` in the place of `e` by definition: it sees the newest
//! version of an epoch before `s`.
//!
//! If the newest version before `e` is a row, the transaction overlooked it: a finding of its own. For the graph the newest
//! absence before that row is then taken for the state seen.
//!
//! # Limits
//! A range says nothing about keys that its transaction also read or wrote: the reads of one transaction are not
//! ordered, so a scan that missed a key which the same transaction read later goes unnoticed.
//!
//! # Examples
//! ```
//! use ensilo_check::{Anomaly, Epoch, History, Key, Options, TableId, Tid, Transaction, TransactionId, Verdict, check};
//!
//! let account = |id: u8| Key::new(TableId(1), &[id]);
//! let transaction = |worker, tid| Transaction::new(TransactionId { worker, sequence: 1 }, Epoch(1), Tid(tid));
//! // Each reads what the other writes, and neither sees the other: write skew.
//! let history = History::of(vec![
//!     transaction(0, 10).reads(account(1), Tid(1)).reads(account(2), Tid(1)).writes(account(1)),
//!     transaction(1, 10).reads(account(1), Tid(1)).reads(account(2), Tid(1)).writes(account(2)),
//! ])
//! .with_initial(account(1), Tid(1))
//! .with_initial(account(2), Tid(1));
//! match check(&history, &Options::default()) {
//!     Verdict::Violated(report) => assert_eq!(report.anomalies(), [Anomaly::G2Item]),
//!     other => panic!("{other}"),
//! }
//! ```
#![forbid(unsafe_code)]

mod check;
mod cycles;
mod dependency;
mod graph;
mod history;
mod observation;
mod report;
mod rules;
mod versions;

pub use check::{IsolationLevel, Options, check};
pub use history::{
    Epoch, History, InitialVersion, Key, KeyRange, Read, TableId, Tid, Transaction, TransactionId, Write,
};
pub use report::{
    Anomaly, Cycle, Dependency, DependencyKind, Inconclusive, Report, Summary, TransactionName, Verdict,
    Violation,
};
