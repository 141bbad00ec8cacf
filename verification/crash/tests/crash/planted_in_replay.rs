//! Mistakes that the replay of Silo's engine alone can be made to make. That it forgets deletions is found where a log is replayed in any
//! order, by the suite of tests for engines: files are read in order.

use ensilo::variants::{Fault, Silo, Variant};

use super::every_engine::planted::{finds, parallel_run};

#[derive(Debug)]
struct ReplayPastDurableEpoch;

impl Variant for ReplayPastDurableEpoch {
    const FAULT: Option<Fault> = Some(Fault::ReplayPastDurableEpoch);
}

#[test]
fn replaying_past_the_durable_epoch_is_found() {
    finds("what was not stored is replayed", parallel_run::<Silo<ReplayPastDurableEpoch>>, |found| {
        found.contains("of epoch") || found.contains("is lost") || found.contains("versions of account")
    });
}
