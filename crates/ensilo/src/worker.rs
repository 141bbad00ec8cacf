//! Workers by thread: how a request on any thread finds the engine's worker that belongs to it.
//!
//! A transaction takes some 400 ns, so the way to its worker must take a few instructions: one thread-local
//! word is compared with the database's id, one flag is set and one is read. Nothing is allocated, and no
//! line is shared with another thread, except that closing the database writes to it once.

mod slot;
mod spare;
mod thread_cache;
mod use_note;

pub(crate) use slot::{Entered, Slot};
pub(crate) use spare::{Lease, Lendable, SpareSlots};
pub(crate) use thread_cache::{DatabaseKey, check_outside_transactions, enter};
pub(crate) use use_note::UseNote;
