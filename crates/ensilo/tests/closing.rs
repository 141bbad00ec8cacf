//! Closing databases from jobs, hooks and wakers, and when parts of them panic: it ends, and whatever it finds, others can open the files.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

#[path = "closing"]
mod silo {
    type Engine = ensilo::Silo;
    type EngineWith<V> = ensilo::variants::Silo<V>;

    const LOCKS: bool = false;

    mod every_engine;
}

#[path = "closing"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;
    type EngineWith<I> = ensilo::ermia::Ermia<I>;

    const LOCKS: bool = false;

    mod every_engine;
}

#[path = "closing"]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;
    type EngineWith<L> = ensilo::two_phase_locking::TwoPhaseLocking<L>;

    const LOCKS: bool = true;

    mod every_engine;
}
