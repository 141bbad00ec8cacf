//! How large the next buffer of a writer is: enough for what it logs in a fraction of a second.
//!
//! There are writers that log all the time, and many that wait for a client, or for a decision of two-phase commit, between two transactions. Large
//! buffers spare the former the change of buffers; each of the latter would keep one that is all but empty.

use std::time::{Duration, Instant};

/// The first buffer of a writer. One that is smaller holds a few transactions only.
const FIRST_BYTES: usize = 16 << 10;

/// A buffer that was full earlier is followed by a larger one, and otherwise by a smaller one. Buffers are what goes on being filled while a sync of
/// the disk takes long, so they hold more than most syncs take.
const FULL_AFTER: Duration = Duration::from_millis(200);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct BufferSize {
    bytes: usize,
    opened: Option<Instant>,
}

impl BufferSize {
    pub(super) const fn new() -> Self {
        BufferSize { bytes: FIRST_BYTES, opened: None }
    }

    /// Returns how many bytes the next buffer is to have, at most so many, if the one before is full `now`.
    pub(super) fn next(&self, now: Instant, bytes_max: usize) -> usize {
        let bytes = match self.opened {
            Some(opened) if now.duration_since(opened) < FULL_AFTER => self.bytes * 2,
            Some(_) => self.bytes / 2,
            None => self.bytes,
        };
        bytes.max(FIRST_BYTES).min(bytes_max)
    }

    /// A buffer of this size is opened.
    pub(super) fn note_opened(&mut self, now: Instant, bytes: usize) {
        *self = BufferSize { bytes, opened: Some(now) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MAX: usize = 512 << 10;

    /// Returns the sizes of buffers of which each is full after so long.
    fn sizes(size: &mut BufferSize, from: Instant, full_after: Duration) -> Vec<usize> {
        let open = |at| {
            let now = from + full_after * at;
            let bytes = size.next(now, MAX);
            size.note_opened(now, bytes);
            bytes
        };
        (0..8).map(open).collect()
    }

    #[test]
    fn buffers_grow_while_they_are_full_soon_and_shrink_afterwards() {
        let (mut size, start) = (BufferSize::new(), Instant::now());
        let busy = sizes(&mut size, start, Duration::from_millis(5));
        assert_eq!(busy.first(), Some(&FIRST_BYTES));
        assert!(busy.is_sorted() && busy.ends_with(&[MAX, MAX]), "{busy:?}");
        let idle = sizes(&mut size, start + Duration::from_secs(1), Duration::from_secs(1));
        assert!(idle.is_sorted_by(|earlier, later| earlier >= later), "{idle:?}");
        assert_eq!(idle.last(), Some(&FIRST_BYTES));
    }

    #[test]
    fn no_buffer_is_larger_than_what_is_chosen() {
        assert_eq!(BufferSize::new().next(Instant::now(), 100), 100);
    }
}
