//! Identifiers of the crate `uuid`.

use uuid::Uuid;

use super::stored_as::stored_as;

stored_as! {
    /// Stored as its 16 bytes, `bytes(16)`. Keys have the order of `Uuid`: those of version 7 are in the order of time.
    Uuid as [u8; 16], |uuid| uuid.into_bytes(), |bytes| Some(Self::from_bytes(bytes));
}
