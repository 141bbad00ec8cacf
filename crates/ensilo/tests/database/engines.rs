//! What every engine passes, on Silo and its variants.

macro_rules! variants {
    ($($name:ident: $engine:ty;)+) => {
        $(mod $name {
            use ensilo::variants::*;

            ensilo_engine_suite::engine_tests!($engine);
        })+
    };
}

variants! {
    product: Silo;
    global_tid: Silo<GlobalTid>;
    no_snapshots: Silo<NoSnapshots>;
    simple: Silo<Simple>;
}
