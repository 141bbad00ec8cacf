//! Processes that are killed while they work on a real directory.

use ensilo_crash::victim::{Killer, Victim};

use super::*;
use crate::kills::{cycles_or, directory, program, survive_kills};

#[test]
fn what_was_acknowledged_survives_kills() {
    let victim = Victim::of::<Engine>();
    survive_kills(victim.name(), &[victim], cycles_or(5));
}

#[test]
fn an_acknowledgement_that_comes_too_early_is_noticed() {
    let victim = Victim::of::<Engine>();
    let directory = directory(&format!("early-{}", victim.name()));
    let found = Killer::new(program(), &directory, 1, &[victim.answering_early()]).run(40).unwrap_err();
    assert!(found.contains("was acknowledged"), "{found}");
    std::fs::remove_dir_all(&directory).unwrap();
}
