//! Values that do not lie in their rows: whatever is done with rows, they are what they would be if they did.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

/// Silo's engine.
#[path = "long_values"]
mod silo {
    type Engine = ensilo::Silo;

    mod every_engine;
}

/// ERMIA's engine.
#[path = "long_values"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    mod every_engine;
}

/// Two-phase locking.
#[path = "long_values"]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;

    mod every_engine;
}
