//! What happens to a transaction that meets a lock in conflict, chosen at compile time.

use ensilo_txn::Variant;

/// A way to treat a transaction that meets a lock in conflict, with the variant of Silo beneath, which does not
/// [validate](Variant::VALIDATES).
pub trait Locking: Variant {
    /// Whether an older transaction waits for a younger one; if not, nobody waits.
    const WAITS: bool;
}

/// An older transaction waits for younger ones, a younger one aborts and keeps its age (`WAIT_DIE`).
#[derive(Copy, Clone, Debug)]
pub struct WaitDie;

impl Variant for WaitDie {
    const VALIDATES: bool = false;
}

impl Locking for WaitDie {
    const WAITS: bool = true;
}

/// A transaction aborts at once (`NO_WAIT`).
#[derive(Copy, Clone, Debug)]
pub struct NoWait;

impl Variant for NoWait {
    const VALIDATES: bool = false;
}

impl Locking for NoWait {
    const WAITS: bool = false;
}
