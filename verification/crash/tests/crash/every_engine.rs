//! What holds over every engine: compiled for each of those that `main.rs` names, which is the module above.

mod backups;
mod changing_tables;
mod corruption;
mod crash_points;
mod failed_operations;
mod faults;
mod kill;
pub(super) mod planted;
mod tpcc;

use super::tested::*;
