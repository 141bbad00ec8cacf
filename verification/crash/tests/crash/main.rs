//! What a database promises of its files, held against failures.
//!
//! What lies in `every_engine` holds over every engine, and is compiled for each of them. A test that lies elsewhere says why. In a
//! short run the other engines get a part of the samples that Silo's gets ([`ensilo_crash::engines`]). All of it is one program, since
//! an engine that is compiled once serves all tests.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

mod engines_in_turn;
mod format_versions;
mod kills;
mod lives;

/// Silo's engine.
#[path = "."]
mod silo {
    type Engine = ensilo::Silo;

    mod every_engine;
    mod planted_in_replay;
    mod tested;
}

/// ERMIA's engine.
#[path = "."]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    mod every_engine;
    mod tested;
}

/// ERMIA's engine without the serial safety net: what its log and its recovery have a part in.
#[path = "."]
mod ermia_snapshot_isolation {
    use tested::*;

    type Engine = ensilo::ermia::Ermia<ensilo::ermia::SnapshotIsolation>;

    #[path = "every_engine/changing_tables.rs"]
    mod changing_tables;
    #[path = "every_engine/crash_points.rs"]
    mod crash_points;
    #[path = "every_engine/faults.rs"]
    mod faults;
    #[path = "every_engine/kill.rs"]
    mod kill;
    mod tested;
}

/// Two-phase locking, whose log, checkpoints and recovery are Silo's: what its own commits, deletions and locks of ranges leave after power failures,
/// after failures of the disk, and after kills.
#[path = "."]
mod two_phase_locking {
    use tested::*;

    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;

    #[path = "every_engine/changing_tables.rs"]
    mod changing_tables;
    #[path = "every_engine/crash_points.rs"]
    mod crash_points;
    #[path = "every_engine/faults.rs"]
    mod faults;
    #[path = "every_engine/kill.rs"]
    mod kill;
    mod tested;
    #[path = "every_engine/tpcc.rs"]
    mod tpcc;
}
