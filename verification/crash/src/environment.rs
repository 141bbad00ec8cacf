//! What the environment variables of a run ask for.

/// Returns whether a long run was asked for.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("ENSILO_CRASH_LONG").is_some()
}

/// Returns the seed that the environment variable `ENSILO_CRASH_SEED` names, or `otherwise`.
#[must_use]
pub fn seed_or(otherwise: u64) -> u64 {
    std::env::var("ENSILO_CRASH_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(otherwise)
}
