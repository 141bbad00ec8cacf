//! The database as its users see it.
//!
//! What lies in `every_engine` holds over every engine, and is compiled for each of them. A test that lies elsewhere says why.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

mod engines;
mod failpoints;
mod measurements;
mod names;

/// Silo's engine.
#[path = "."]
mod silo {
    pub(crate) type Engine = ensilo::Silo;
    pub(crate) type HookedEngine = crate::failpoints::HookedSilo;

    /// Whether a transaction sees what others commit after it has begun.
    pub(crate) const SEES_LATER_COMMITS: bool = true;

    /// Whether a transaction locks what it reads and writes. Then nobody changes what it has read before it has ended: where others would have made
    /// that stale, they are refused instead. Each test that makes a difference says which.
    pub(crate) const LOCKS: bool = false;

    mod at_the_limit;
    mod conflicts;
    mod every_engine;
    mod opened;
    mod prepared;
    mod silo_alone;
}

/// ERMIA's engine.
#[path = "."]
mod ermia {
    pub(crate) type Engine = ensilo::ermia::Ermia;
    pub(crate) type HookedEngine = crate::failpoints::HookedErmia;

    pub(crate) const SEES_LATER_COMMITS: bool = false;
    pub(crate) const LOCKS: bool = false;

    mod conflicts;
    mod ermia_alone;
    mod every_engine;
    mod opened;
}

/// Two-phase locking, of which older transactions wait for younger ones.
#[path = "."]
mod two_phase_locking {
    use ensilo::two_phase_locking::{TwoPhaseLocking, WaitDie};

    pub(crate) type Engine = TwoPhaseLocking<WaitDie>;
    pub(crate) type HookedEngine = crate::failpoints::HookedTwoPhaseLocking;

    pub(crate) const SEES_LATER_COMMITS: bool = true;
    pub(crate) const LOCKS: bool = true;

    mod conflicts;
    mod every_engine;
    mod opened;
    mod prepared;
}

/// Two-phase locking where nobody waits: what requests and sessions that meet locks have to do with. All else is the
/// same code, and what every engine is asked for alone (`crates/2pl/tests`) is asked of both.
#[path = "."]
mod two_phase_locking_without_waits {
    use conflicts::*;
    use opened::*;

    use crate::*;
    use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};

    pub(crate) type Engine = TwoPhaseLocking<NoWait>;

    pub(crate) const LOCKS: bool = true;

    mod conflicts;
    #[path = "every_engine/errors.rs"]
    mod errors;
    mod opened;
    #[path = "every_engine/requests.rs"]
    mod requests;
    #[path = "every_engine/sessions.rs"]
    mod sessions;
    #[path = "every_engine/snapshots.rs"]
    mod snapshots;
    #[path = "every_engine/submit.rs"]
    mod submit;
    #[path = "every_engine/transfers.rs"]
    mod transfers;
}

use std::sync::atomic::{AtomicBool, Ordering};

use ensilo::{Columns, Row, Text};

/// A row with a key, indexed columns, a nullable and a variable one.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner, balance desc)), index(name = "by_email", columns(email), unique))]
struct Account {
    #[row(key)]
    id: u32,
    owner: Text<16>,
    balance: i64,
    email: Option<String>,
    visits: u32,
}

/// Columns in no index, of fixed width.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Visits {
    visits: u32,
}

/// Columns in an index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// A column of variable width in a unique index.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Email {
    email: Option<String>,
}

/// Columns with the key among them.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct IdAndVisits {
    id: u32,
    visits: u32,
}

/// A row without a key.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "event")]
struct Event {
    kind: u8,
    text: String,
}

fn account(id: u32) -> Account {
    Account {
        id,
        owner: owner(id % 3),
        balance: i64::from(id) * 10,
        email: Some(format!("{id}@example.org")),
        visits: 0,
    }
}

fn owner(number: u32) -> Text<16> {
    Text::new(["anna", "bert", "cleo"][number as usize]).unwrap()
}

/// Sets a flag when it goes, also by a panic: threads that wait for the flag end, and the panic is seen.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
