//! The tests that every engine passes, at both isolation levels.

mod serializable {
    use ensilo_engine_suite::engine_tests;
    use ensilo_ermia::Ermia;

    engine_tests!(Ermia);
}

mod snapshot_isolation {
    use ensilo_engine_suite::engine_tests;
    use ensilo_ermia::{Ermia, SnapshotIsolation};

    engine_tests!(Ermia<SnapshotIsolation>: contract, tables, model);
}
