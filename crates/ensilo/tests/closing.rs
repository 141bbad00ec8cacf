//! Closing databases from jobs, hooks and wakers, and when parts of them panic: it ends, and whatever it finds, others can open the files.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

#[path = "closing"]
mod silo {
    type Engine = ensilo::Silo;
    type EngineWith<V> = ensilo::variants::Silo<V>;

    mod every_engine;
}

#[path = "closing"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;
    type EngineWith<I> = ensilo::ermia::Ermia<I>;

    mod every_engine;
}
