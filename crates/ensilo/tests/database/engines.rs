//! What every engine passes, on Silo and its variants.

use std::panic::catch_unwind;

use ensilo::variants::{Fault, Silo, Variant};
use ensilo_engine_suite::replay::any_order_on_any_number_of_threads_leaves_the_same_rows;

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

#[derive(Debug)]
struct ForgetTombstones;

impl Variant for ForgetTombstones {
    const FAULT: Option<Fault> = Some(Fault::ForgetTombstones);
}

#[test]
fn forgetting_deletions_in_a_replay_is_found() {
    let test = any_order_on_any_number_of_threads_leaves_the_same_rows::<Silo<ForgetTombstones>>;
    let found = catch_unwind(test).expect_err("an older row comes back").downcast::<String>().unwrap();
    assert!(found.contains("Fail"), "{found}");
}
