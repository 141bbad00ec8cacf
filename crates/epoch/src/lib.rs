//! Internal to `ensilo`, not to be used by itself: commit, pin and snapshot epochs, and the memory that they give free.
//!
//! Time is cut into numbered epochs. A thread of its own moves the global epoch on, every 40 ms. Each participant
//! publishes, with plain stores into a slot of its own, at which epoch it does what; and once per epoch the
//! advancing thread looks at all slots and derives what is over. No thread waits for another.
//!
//! # Source
//! Silo (SOSP 2013) §4.1 (epochs), §4.8 (garbage), §4.9 (snapshots). Where we deviate:
//! - The paper has one local epoch per worker, for memory and for commits, and holds the global epoch back so that
//!   `E - e_w <= 1`. Here a worker publishes a *pin* for as long as it holds references, and a *commit epoch* only
//!   while it commits; the global epoch never waits. What the paper derives from its bound is derived here from
//!   the minima over the slots.
//! - Where snapshots come by the clock, epochs are left out up to the next multiple of `k`, so that the interval of an epoch stays a
//!   function of its number however long epochs last. A multiple that is reached before it is time for a snapshot is none: what is
//!   superseded across it keeps a version that nobody reads, until the next snapshot.
//! - A snapshot at epoch `s` shows the versions with epoch `< s`. The paper says `<= s`, which contradicts its own rule that
//!   a version may be overwritten in place within its snapshot interval `[s, s + k)`.
//!
//! # Terms
//! - **global epoch** `E`: moves on by one per tick, whatever anybody does.
//! - **pin**: the epoch read when a participant began to hold references. It keeps retired memory alive.
//! - **commit epoch**: the epoch read when a participant began to commit. It holds back new snapshots.
//! - **snapshot epoch** `SE`: a multiple of `k` such that every commit with an epoch below it is complete.
//! - **tag**: the global epoch read when something was retired, after it was unlinked.
//! - **memory horizon**: nobody can reach what was retired with a tag below it.
//! - **oldest snapshot**: no snapshot reader, now or later, reads at an epoch below it.
//! - **snapshot horizon**: a former oldest snapshot, such that no commit under way relies on an earlier one.
//! - **overtaken**: a snapshot since whose begin the snapshot epoch has moved on twice.
//!
//! # Invariants
//! - **I1** A participant that is not pinned, not committing and reads no snapshot holds nothing back.
//! - **I2** A participant asleep while pinned holds back the memory horizon alone; asleep while committing, the
//!   snapshot epoch and the snapshot horizon; asleep in a snapshot, the memory and snapshot horizons. The global epoch never.
//! - **I3** None of the published numbers ever falls.
//!
//! # Memory ordering
//! A participant publishes with a plain store and [`ensilo_sync::barrier::LightBarrier`]; a tick stores the new global epoch,
//! passes [`ensilo_sync::barrier::heavy`], and then reads the slots. Of each such pair at least one sees the other's store.
//!
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[epoch]` | tick stores E, Release | pin and begin_commit load E, Acquire | a thread that reads E = e sees all that was visible at the heavy barrier of e - 1 |
//! | `[unpin]` | unpin, end_commit and the next publication, Release | tick reads the slot, Acquire | the reads of the reader, the writes of the committer are over |
//! | `[horizon]` | tick stores the horizon, Release | collect loads it, Acquire | with `[unpin]`: the reads come before the reuse of the memory |
//! | `[oldest-snapshot]` | tick stores the oldest snapshot, Release, before the next tick stores E | oldest_snapshot loads it, Acquire, behind begin_commit | a commit that has read E = e sees the oldest snapshot of the tick before e, or a later one |
//! | `[snapshot-instant]` | tick stores when SE became E, Release, behind SE | snapshot_instant loads it, Acquire, before pin_snapshot | that SE or a later one: no snapshot counts as younger than it is |
//! | `[snapshot]` | tick stores SE, Release | pin_snapshot loads it, Acquire | with `[unpin]`: the complete commits are visible |
//!
//! **Why the horizon lags by one.** Something is unlinked, then tagged `r`, the global epoch read after a light barrier. The
//! heavy barrier of tick `r + 1` comes after that read (otherwise it would have returned `r + 1`), so that behind it
//! the unlinking is visible to all. A participant pinned at `r + 2` or later read its epoch from a tick behind that barrier: it
//! cannot find the object. A participant pinned at `r + 1` may have read the epoch between the store and the barrier
//! of tick `r + 1`, and may still find it. Hence tag `r` is over when `r + 2 <=` every pin:
//! horizon = least pin - 1, or the epoch before it where epochs are left out. A participant that a tick `t` finds
//! idle and that pins later, perhaps with an epoch read long
//! ago, does its reads behind the heavy barrier of `t`; what the horizon of `t` covers was unlinked before that.
//!
//! **Why the snapshot epoch does not.** A committer publishes `e`, passes its barrier and then reads its real commit epoch
//! `c >= e`. If tick `t` does not see it, the read comes behind the barrier of `t`, hence `c >= t >= SE`. If it does,
//! `SE <= e <= c`. Either way no incomplete commit has an epoch below `SE`.
//!
//! **How old a snapshot is.** The tick that makes `s` the global epoch reads the clock before it stores `s`. A commit that had ended by
//! then has read an earlier epoch, and is in the snapshot at `s`. That the snapshot can be read only later, once the commits of earlier
//! epochs are complete, makes it no younger.
//!
//! **Why the oldest snapshot lags by one tick.** A reader publishes `s`, passes its barrier and reads `SE` again until it is still
//! `s`. If tick `t` did not see that `s`, the second read came behind the barrier of `t` and so returned at least the
//! `SE` that was there before `t`. The oldest snapshot of `t` is at most that one. What a tick finds published that is neither known to
//! the tick before nor as late as what that one has left open belongs to a reader that will read `SE` again, and find another.
//!
//! **Why the snapshot horizon lags behind that.** A commit publishes `e`, passes its barrier and reads the oldest snapshot `o`; then it looks at
//! versions that are superseded in `o` or later, those that a snapshot at `o` may need. Tick `t` has published `o'`, which becomes the
//! horizon with a later tick that finds every commit published in an epoch after `t`, or none. A commit that this tick does not see reads behind
//! its barrier, hence `o >= o'`; so does one whose epoch it finds after `t`, for that epoch was stored behind `o'`. In either case the
//! horizon passes nothing that the commit looks at; and commits that looked at more have ended, with what they did visible `[unpin]`.

mod advancer;
mod counters;
mod epoch;
mod epochs;
mod guard;
mod open_snapshots;
mod options;
mod participant;
mod retire_list;
mod retired;
mod slot;

pub use counters::EpochCounters;
pub use epoch::Epoch;
pub use epochs::Epochs;
pub use guard::{ExclusiveGuard, Guard, Unpinned};
pub use open_snapshots::OpenSnapshots;
pub use options::{Advance, EpochOptions};
pub use participant::Participant;
pub use retire_list::RetireList;
