//! What a transaction is begun with, and what becomes of it.

use serde::{Deserialize, Serialize};

use super::id::{OpenId, SiteId};
use super::message::Refusal;
#[cfg(doc)]
use super::site::PART_BYTES_MAX;

/// A transaction that is to commit, with its parts. Each has [`PART_BYTES_MAX`] bytes at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// The open transaction that is to commit instead of parts, which are empty then.
    pub(super) open: Option<OpenId>,
    /// What it does at the coordinator's instance, if anything: last, and with what the others have returned.
    pub local: Option<Vec<u8>>,
    /// What it does elsewhere, one part for each site.
    pub remote: Vec<(SiteId, Vec<u8>)>,
}

impl Request {
    /// Returns a transaction whose parts are known beforehand: what it does at the coordinator's instance, and elsewhere.
    #[must_use]
    pub fn new(local: Option<Vec<u8>>, remote: Vec<(SiteId, Vec<u8>)>) -> Self {
        Request { open: None, local, remote }
    }

    /// Returns what commits an open transaction, which is open at the coordinator and at these sites.
    pub(crate) fn ending(open: OpenId, others: impl IntoIterator<Item = SiteId>) -> Self {
        let remote = others.into_iter().map(|site| (site, Vec::new())).collect();
        Request { open: Some(open), local: Some(Vec::new()), remote }
    }
}

/// What has become of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It has committed and is stored, with everything that it has read.
    Committed {
        /// What the coordinator's own part has returned.
        local: Option<Vec<u8>>,
        /// What the others have returned, in the order in which they have voted.
        remote: Vec<(SiteId, Vec<u8>)>,
    },
    /// It has changed nothing.
    Aborted(Refusal),
    /// Its coordinator has ended before it answered: it has committed everywhere, or will, or has changed nothing, which only the rows tell. It is
    /// one of these, in all instances, before anything else that depends on it gets an answer.
    Unknown(String),
}
