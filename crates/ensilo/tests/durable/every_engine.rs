//! What holds over every engine: compiled for each of those that `main.rs` names, which is the module above.

mod backups;
mod batches;
mod beside_writer;
mod broken_indexes;
mod checkpoints;
mod closing;
mod collection;
mod column_types;
mod crashes;
mod events;
mod expiry;
mod failures;
mod full_disk;
mod futures;
mod groups;
mod large_rows;
mod openings;
mod read_only;
mod reads;
mod refusals;
mod reopening;
mod salvage;
mod schema_changes;
mod small;
mod truncate;

use super::opened::*;
use super::{Engine, HookedEngine, LOCKS, READ_ATTEMPTS};
use crate::*;
