//! The votes to commit that a coordinator has heard.

use super::id::SiteId;
use super::message::{Refusal, Vote};
use super::store::Participants;

/// Those who have voted to commit.
#[derive(Debug, Default)]
pub(super) struct Voted {
    pub(super) writers: Vec<SiteId>,
    pub(super) readers: Vec<SiteId>,
    pub(super) replies: Vec<(SiteId, Vec<u8>)>,
}

impl Voted {
    /// Takes a vote in.
    ///
    /// # Errors
    /// It is a vote to abort.
    pub(super) fn note(&mut self, site: SiteId, vote: Vote<'_>) -> Result<(), Refusal> {
        let reply = match vote {
            Vote::Yes(reply) => {
                self.writers.push(site);
                reply
            }
            Vote::ReadOnly(reply) => {
                self.readers.push(site);
                reply
            }
            Vote::No(refusal) => return Err(refusal),
        };
        self.replies.push((site, reply.to_vec()));
        Ok(())
    }

    pub(super) fn participants(&self) -> Participants<'_> {
        Participants { writers: &self.writers, readers: &self.readers }
    }

    pub(super) fn all(&self) -> Vec<SiteId> {
        [&self.writers[..], &self.readers[..]].concat()
    }
}
