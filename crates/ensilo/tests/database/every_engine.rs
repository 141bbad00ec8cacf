//! What holds over every engine: compiled for each of those that `main.rs` names, which is the module above.

mod additions;
pub(super) mod at_the_limit;
mod batches;
mod catalog;
mod collection;
mod column_types;
mod cursors;
mod dynamic;
mod errors;
mod expiry;
mod large_rows;
mod live_changes;
mod memory;
pub(super) mod queues;
mod requests;
mod schema_changes;
mod sessions;
mod slow_requests;
pub(super) mod snapshots;
mod statements;
mod streams;
mod submit;
mod transfers;
mod truncate;
pub(super) mod unique_builds;
mod unknown_values;

use super::conflicts::*;
use super::opened::*;
use super::{HookedEngine, SEES_LATER_COMMITS};
use crate::*;
