//! The running log on real and simulated disks.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod closing;
#[cfg(not(tsan))]
mod crashes;
#[cfg(not(tsan))]
mod failures;
mod rig;
mod rotation;
mod scan;
mod waiting;
