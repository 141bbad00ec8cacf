//! What of statistics serde does not serialize by itself, or not so that programs read it easily.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ensilo_engine::AbortReason;
use serde::Serializer;

/// A duration as a number of seconds.
pub(crate) fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// A point in time as seconds since 1970-01-01 UTC; 0 for an earlier one.
pub(crate) fn seconds_since_1970<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    seconds(&time.duration_since(UNIX_EPOCH).unwrap_or_default(), serializer)
}

/// Counts by reason as a map.
pub(crate) fn aborts<S: Serializer>(aborts: &[(AbortReason, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(aborts.iter().map(|(reason, count)| (reason.to_string(), count)))
}
