//! Crash tests: what a database promises of its files, held against failures.
//!
//! The promises: what was acknowledged as stored survives any crash; what is recovered is a prefix of the serial order that ends
//! with a whole epoch; an opening succeeds after every crash, and is refused for damage; a failed write or sync ends the
//! acknowledgements, and not the reads.
//!
//! On a simulated disk two cores make 10,000 to 40,000 recoveries of a small database a minute; each exploration says how many.
#![forbid(unsafe_code)]

pub mod changing;
pub mod engines;
pub mod environment;
pub mod explore;
pub mod fixture;
pub mod further_work;
pub mod omitted_syncs;
pub mod parallel;
pub mod progress;
pub mod random;
pub mod schema;
pub mod serial;
pub mod setup;
pub mod state;
pub mod victim;
pub mod watched;
