//! Databases that answer before their rows are in memory: every request finds what it would find with all of them there.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

#[path = "loading/held.rs"]
mod held;

#[path = "loading"]
mod silo {
    type Engine = super::held::HeldSilo;

    mod every_engine;
}

#[path = "loading"]
mod ermia {
    type Engine = super::held::HeldErmia;

    mod every_engine;
}

#[path = "loading"]
mod two_phase_locking {
    type Engine = super::held::HeldTwoPhaseLocking;

    mod every_engine;
}
