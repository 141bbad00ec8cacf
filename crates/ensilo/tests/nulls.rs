//! Where nulls come in keys and indexes: as the schema says, whichever way rows are looked for.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

/// Silo's engine.
#[path = "nulls"]
mod silo {
    type Engine = ensilo::Silo;

    mod every_engine;
}

/// ERMIA's engine.
#[path = "nulls"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    mod every_engine;
}

/// Two-phase locking.
#[path = "nulls"]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;

    mod every_engine;
}
