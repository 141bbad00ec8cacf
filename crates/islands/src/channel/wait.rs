//! Waiting for files to be ready, until a deadline.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::ChannelError;

/// Returns whether there is a deadline, and it has passed.
pub(super) fn has_passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

/// Waits until one of these files is ready for what is asked of it, or closed. At the deadline it looks once more.
///
/// # Errors
/// [`ChannelError::TimedOut`] at the deadline.
pub(super) fn wait_for<const N: usize>(
    files: [(BorrowedFd<'_>, PollFlags); N],
    deadline: Option<Instant>,
) -> Result<(), ChannelError> {
    let mut polled = files.map(|(file, flags)| PollFd::from_borrowed_fd(file, flags));
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => return Err(ChannelError::TimedOut),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(ChannelError::Io(error.into())),
        }
    }
}
