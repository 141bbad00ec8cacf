//! Processes that are killed while they work on a real directory.

use ensilo_crash::environment::seed_or;
use ensilo_crash::victim::{Killer, Victim};

use super::*;
use crate::kills::{cycles_or, directory, program, survive_kills};

#[test]
fn what_was_acknowledged_survives_kills() {
    let victim = Victim::of::<Engine>();
    survive_kills(victim.name(), &[victim], cycles_or(5));
}

#[test]
fn what_was_acknowledged_is_read_beside_processes_that_are_killed() {
    let victim = Victim::of::<Engine>();
    let directory = directory(&format!("beside-{}", victim.name()));
    let mut killer = Killer::new(program(), &directory, seed_or(1), &[victim]).reading_beside();
    let killed = killer.run(cycles_or(5)).unwrap_or_else(|what| panic!("{}: {what}", directory.display()));
    println!("{killed:?}");
    assert!(killed.read_beside > 0 && killed.acknowledged > 0);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn an_acknowledgement_that_comes_too_early_is_noticed() {
    let victim = Victim::of::<Engine>();
    let directory = directory(&format!("early-{}", victim.name()));
    let found = Killer::new(program(), &directory, 1, &[victim.answering_early()]).run(40).unwrap_err();
    assert!(found.contains("was acknowledged"), "{found}");
    std::fs::remove_dir_all(&directory).unwrap();
}
