//! The engine passes what every engine passes, whatever a transaction does that meets a lock.

mod wait_die {
    ensilo_engine_suite::engine_tests!(ensilo_2pl::TwoPhaseLocking);
}

mod no_wait {
    ensilo_engine_suite::engine_tests!(ensilo_2pl::TwoPhaseLocking<ensilo_2pl::NoWait>);
}
