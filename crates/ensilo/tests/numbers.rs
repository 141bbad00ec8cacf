//! Numbers that a database gives: row ids and sequences. None is given twice, however the database ends.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

/// Silo's engine.
#[path = "numbers"]
mod silo {
    type Engine = ensilo::Silo;

    mod every_engine;
}

/// ERMIA's engine.
#[path = "numbers"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    mod every_engine;
}

/// Two-phase locking.
#[path = "numbers"]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;

    mod every_engine;
}
