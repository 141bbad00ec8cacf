//! How long log files are made: short as long as little is logged, so that a small database takes little room, and
//! as long as the options say where much is, so that the log seldom goes on in another file.
//!
//! A file is made while the one before it is written, when nobody knows how much will go into it. What is known is how
//! long the log is that the loggers' finished files hold: a new file is twice as long as that. So each file is about twice as
//! long as the one before until files have their full length, and the disk never keeps much more room for the log than that has
//! filled.
//!
//! A checkpoint takes the place of the log before it, but says nothing of how much will be logged until the next one. So what
//! counts is the longer of two logs: the one since the last checkpoint began, and the one between that and the checkpoint
//! before. Where little is logged between two checkpoints, files are short again after the second.

/// So long are the first files of an opening, and no others are shorter, unless all are by the options or the disk is full.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// Returns how long the first files of a logger are, of which none is to be longer than `file_bytes_max`.
pub(crate) fn first_file_bytes(file_bytes_max: u64) -> u64 {
    FILE_BYTES_MIN.min(file_bytes_max)
}

/// How much a logger has logged, by which its next file is as long as it is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoggedBytes {
    /// Bytes of the files that were finished since the last checkpoint began.
    since_checkpoint: u64,
    /// Those from the checkpoint before until then.
    before_checkpoint: u64,
}

impl LoggedBytes {
    /// Counts a file that was finished.
    pub(crate) fn add_file(&mut self, file_bytes: u64) {
        self.since_checkpoint = self.since_checkpoint.saturating_add(file_bytes);
    }

    /// A checkpoint has begun. The file that is written now is counted after it, once it is finished.
    pub(crate) fn begin_checkpoint(&mut self) {
        *self = LoggedBytes { since_checkpoint: 0, before_checkpoint: self.since_checkpoint };
    }

    /// Returns how long the next file is to be, of which none is to be longer than `file_bytes_max`.
    pub(crate) fn next_file_bytes(self, file_bytes_max: u64) -> u64 {
        let logged = self.since_checkpoint.max(self.before_checkpoint);
        logged.saturating_mul(2).clamp(first_file_bytes(file_bytes_max), file_bytes_max)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn files_become_longer_up_to_the_full_length_while_more_and_more_is_logged() {
        let mut logged = LoggedBytes::default();
        // The file that is written, and the one that was made ahead.
        let mut lengths = vec![first_file_bytes(64 * MIB), logged.next_file_bytes(64 * MIB)];
        for number in 0..12 {
            logged.add_file(lengths[number]);
            lengths.push(logged.next_file_bytes(64 * MIB));
        }
        assert_eq!(lengths[..5], [MIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB]);
        assert!(lengths.is_sorted());
        let full = lengths.iter().position(|&bytes| bytes == 64 * MIB);
        assert!(full.is_some_and(|number| number <= 8), "{lengths:?}");
    }

    #[test]
    fn files_are_short_again_where_little_is_logged_between_two_checkpoints() {
        let mut logged = LoggedBytes::default();
        logged.add_file(1 << 40);
        assert_eq!(logged.next_file_bytes(64 * MIB), 64 * MIB);
        logged.begin_checkpoint();
        logged.add_file(10_000);
        assert_eq!(logged.next_file_bytes(64 * MIB), 64 * MIB, "the load may go on");
        logged.begin_checkpoint();
        assert_eq!(logged.next_file_bytes(64 * MIB), MIB);
    }

    #[test]
    fn no_file_is_longer_than_the_options_say() {
        let mut logged = LoggedBytes::default();
        assert_eq!(logged.next_file_bytes(10_000), 10_000);
        logged.add_file(u64::MAX);
        logged.add_file(1);
        assert_eq!(logged.next_file_bytes(10_000), 10_000);
        assert_eq!(first_file_bytes(10_000), 10_000);
    }
}
