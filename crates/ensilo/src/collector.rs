//! A thread that frees by time what nobody frees in passing: the garbage of idle workers and of those that
//! have left, and dropped tables.
//!
//! What is then free as a whole goes back, for any thread, and to the system if nobody wants it for some
//! time. At the memory limit other free memory is lent to threads that find none.
//!
//! A busy worker frees its own garbage between its transactions. This thread leaves it alone. It works in
//! short steps, and for a part of the time only; an owner that comes back during a step waits for the rest of
//! it.
//!
//! A request that finds no memory has the thread do all of this at once, and then runs again.
//!
//! The thread ends snapshots that are held between the jobs of a stream of rows, once they are too old.
//!
//! The thread has another use: it closes the database for hooks and wakers, which must not wait for that. It
//! is there until then, also after a panic of its work.

mod control;
mod watched;
mod work;

use std::time::Duration;

pub(crate) use control::Collector;
pub(crate) use watched::WatchedSlot;

/// How long it sleeps while garbage waits for the epochs, which do not move faster than that by themselves.
const LOOK_INTERVAL: Duration = Duration::from_millis(40);

#[cfg(test)]
mod tests;
