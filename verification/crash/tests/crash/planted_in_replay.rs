//! Mistakes that the replay of Silo's engine alone can be made to make.

use ensilo::variants::{Fault, Silo, Variant};

use super::every_engine::planted::{finds, parallel_run, serial_run};

#[derive(Debug)]
struct ForgetTombstones;

impl Variant for ForgetTombstones {
    const FAULT: Option<Fault> = Some(Fault::ForgetTombstones);
}

#[test]
fn forgetting_deletions_in_a_replay_is_found() {
    finds(
        "deletions are forgotten",
        |seed| serial_run::<Silo<ForgetTombstones>>(seed, None),
        |found| found.contains("instead of None") || found.contains("rows of"),
    );
}

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
