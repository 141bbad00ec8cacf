//! The running log on real and simulated disks.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod closing;
mod crashes;
mod failures;
mod file_lengths;
mod full_disk;
mod leading;
mod out_of_handles;
mod rig;
mod ring;
mod rotation;
mod scan;
mod waiting;
