//! Isolation levels, chosen at compile time.

use std::fmt;

use ensilo_engine::Failpoint;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::stamp::Stamp;

/// What transactions may see of each other. It decides at compile time what the engine keeps for a version and does at a commit.
pub trait Isolation: Copy + fmt::Debug + Send + Sync + 'static {
    /// What a version says of those that depend on it.
    #[doc(hidden)]
    type Dependencies: VersionDependencies;
    /// Whether every history is serializable.
    const SERIALIZABLE: bool;
    /// Whether committed transactions are recorded for a checker.
    #[doc(hidden)]
    const RECORDS_HISTORY: bool = false;
    /// Whether every row leaves memory as soon as nobody has used it for a moment, whatever the memory limit is, and versions leave the middle of
    /// chains however lately those have begun that walk over them, so that tests meet both.
    #[doc(hidden)]
    const IS_HASTY: bool = false;
    /// A mistake that is built in on purpose, to see that a checker finds it.
    #[doc(hidden)]
    const FAULT: Option<Fault> = None;

    /// See [`Engine::reached`](ensilo_engine::Engine::reached).
    #[doc(hidden)]
    #[inline(always)]
    fn reached(failpoint: Failpoint) {
        let _ = failpoint;
    }
}

/// Mistakes that a checker has to find before it is believed.
#[doc(hidden)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A version is put in front of a record whatever is there, also over one that has not committed.
    OverwriteUncommitted,
    /// The exclusion window is not tested.
    SkipWindow,
    /// Who has read a version leaves no stamp there.
    ForgetReaders,
    /// A transaction that is about to commit, with a stamp before the reader's begin, is taken for one that is not.
    SkipCommitting,
    /// The node set is not checked.
    SkipNodes,
    /// Who has missed a key leaves no stamp at the node.
    ForgetMisses,
    /// Who has made a row and taken it back has not missed its key.
    ForgetTakenBack,
    /// An insert that was not seen may have committed before.
    ForgetPassedOver,
    /// An entry of a secondary index is taken as it is now, while its row is read as of the transaction's begin: nobody checks that the
    /// row has the entry's key.
    SkipEntryCheck,
    /// A row leaves memory while those who have found it may still use it.
    EvictUsed,
    /// Who uses a row that is about to leave memory leaves the mark there that says so.
    KeepMark,
    /// A row that comes back to memory has lost the largest stamp of its readers.
    ForgetReadersOfCold,
}

/// Returns whether the level has this mistake.
pub(crate) const fn has_fault<I: Isolation>(fault: Fault) -> bool {
    match I::FAULT {
        Some(planted) => planted as u8 == fault as u8,
        None => false,
    }
}

/// Snapshot isolation with the serial safety net: every history is serializable.
#[derive(Copy, Clone, Debug)]
pub struct Serializable;

/// Snapshot isolation: a transaction reads what was committed when it began, and no two that overlap write the same row. Write skew is
/// possible.
#[derive(Copy, Clone, Debug)]
pub struct SnapshotIsolation;

impl Isolation for Serializable {
    type Dependencies = Certificates;
    const SERIALIZABLE: bool = true;
}

impl Isolation for SnapshotIsolation {
    type Dependencies = NoCertificates;
    const SERIALIZABLE: bool = false;
}

/// See [`Isolation::Dependencies`].
#[doc(hidden)]
pub trait VersionDependencies: fmt::Debug + Send + Sync + 'static {
    /// Nothing depends on the version yet.
    fn new() -> Self;

    /// Returns the stamps, if they are kept.
    fn stamps(&self) -> Option<&Certificates>;
}

/// What the serial safety net keeps of a version.
#[doc(hidden)]
#[derive(Debug)]
pub struct Certificates {
    /// The largest stamp of a transaction that has read the version, has not overwritten it, and has committed or was about to (the paper's
    /// eta, or pstamp).
    predecessor: AtomicU64,
    /// The successor stamp (the paper's pi, or sstamp) of the transaction that has overwritten the version; its id while it is under
    /// way, 0 without one.
    pub(crate) successor: AtomicU64,
}

impl Certificates {
    pub(crate) fn predecessor(&self) -> Stamp {
        // Relaxed: who relies on it has waited for the readers, `[end]`.
        Stamp::new(self.predecessor.load(Ordering::Relaxed))
    }

    /// A transaction with this stamp has read the version.
    #[inline]
    pub(crate) fn note_reader(&self, stamp: Stamp) {
        // The load first: a read-modify-write takes the line from all others who read.
        if self.predecessor.load(Ordering::Relaxed) < stamp.get() {
            // Relaxed: [end] the reader ends behind it.
            self.predecessor.fetch_max(stamp.get(), Ordering::Relaxed);
        }
    }
}

impl VersionDependencies for Certificates {
    fn new() -> Self {
        Certificates { predecessor: AtomicU64::new(0), successor: AtomicU64::new(0) }
    }

    #[inline]
    fn stamps(&self) -> Option<&Certificates> {
        Some(self)
    }
}

/// Nothing is kept.
#[doc(hidden)]
#[derive(Debug)]
pub struct NoCertificates;

impl VersionDependencies for NoCertificates {
    fn new() -> Self {
        NoCertificates
    }

    #[inline]
    fn stamps(&self) -> Option<&Certificates> {
        None
    }
}
