//! What is done with the files of an instance's database, and with what it says of itself.

use std::path::PathBuf;

use ensilo::{Backup, Database, Result};
use serde::{Deserialize, Serialize};

use super::term::{Term, note_term};

/// See the module's documentation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Maintenance {
    /// A checkpoint, whatever there is to be put into it.
    Checkpoint,
    /// A copy in a directory of everything up to the end of an epoch that is stored.
    Backup { target: PathBuf, up_to: u64 },
    /// A note that the instance is in this term of its cluster.
    NoteTerm(Term),
}

/// A copy that was made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Copied {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

impl Maintenance {
    /// Carries it out. Returns [`Copied`] as bytes for a backup, and none of it if a checkpoint has more by now.
    pub(super) fn carry_out(self, db: &Database) -> Result<Vec<u8>> {
        match self {
            Maintenance::Checkpoint => db.checkpoint().map(|_| Vec::new()),
            Maintenance::Backup { target, up_to } => {
                let copied = |Backup { files, bytes, .. }: Backup| Copied { files, bytes };
                Ok(to_bytes(&db.backup_up_to(target, up_to)?.map(copied)))
            }
            Maintenance::NoteTerm(term) => note_term(db, term).map(|()| Vec::new()),
        }
    }
}

impl Copied {
    /// Reads what an instance has returned.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Option<Copied>> {
        postcard::from_bytes(bytes).ok()
    }
}

fn to_bytes(copied: &Option<Copied>) -> Vec<u8> {
    let Ok(bytes) = postcard::to_allocvec(copied) else {
        unreachable!("numbers have bytes");
    };
    bytes
}
