//! The engines that are compared pass what every engine passes, in the groups of what they promise.
#![cfg(not(any(loom, shuttle)))]

use ensilo_engine_suite::{conflicts, engine_tests};

mod single_keys {
    use ensilo_baselines::KeyValue;

    super::engine_tests!(KeyValue: contract, tables);
}

mod partitions {
    use ensilo_baselines::PartitionedStore;

    super::engine_tests!(PartitionedStore: contract, tables, model);
}

#[test]
#[should_panic(expected = "both have committed")]
fn an_engine_that_validates_nothing_is_found_out() {
    conflicts::write_skew_is_rejected::<ensilo_baselines::PartitionedStore>();
}
