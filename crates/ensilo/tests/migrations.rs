//! Migrations: a program's steps, applied to databases of every version, through failures and crashes.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

/// Silo's engine.
#[path = "migrations"]
mod silo {
    type Engine = ensilo::Silo;

    /// Whether a transaction locks what it reads, so that others cannot change it meanwhile.
    const LOCKS: bool = false;

    mod every_engine;
}

/// ERMIA's engine.
#[path = "migrations"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    const LOCKS: bool = false;

    mod every_engine;
}

/// Two-phase locking.
#[path = "migrations"]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;

    const LOCKS: bool = true;

    mod every_engine;
}
