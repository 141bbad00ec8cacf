//! A wait for several channels at once, and for whatever else a file tells of.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Channel;

/// A channel that can be waited for together with others.
pub(crate) trait Waiting: Channel {
    /// Begins a wait. Returns whether something may be received already: then there is nothing to wait for.
    fn begin_wait(&mut self) -> bool;

    /// Adds the files that become ready when something may be received, or more be sent of what was sent in part.
    fn add_files<'a>(&'a self, files: &mut Vec<PollFd<'a>>);

    /// Returns whether something that was sent is lost if the channel is dropped now, and neither sends nor receives before.
    fn has_unsent(&self) -> bool;

    /// Ends a wait in which one of the files became ready, or none.
    fn end_wait(&mut self, is_ready: bool);
}

/// Waits until something may be received from one of these channels, or the file that is named first is ready, at most for so long. Returns whether
/// that file is.
///
/// `has_come` says that something has come already, for which the file would not become ready any more; it is asked while the channels are waited for.
pub(crate) fn wait_for_any(
    channels: &mut [&mut (dyn Waiting + 'static)],
    (file, has_come): (std::os::fd::BorrowedFd<'_>, bool),
    most: Duration,
) -> bool {
    let mut is_over = has_come;
    for channel in channels.iter_mut() {
        is_over |= channel.begin_wait();
    }
    let mut files = vec![PollFd::from_borrowed_fd(file, PollFlags::IN)];
    let mut ends = Vec::with_capacity(channels.len());
    for channel in channels.iter() {
        channel.add_files(&mut files);
        ends.push(files.len());
    }
    let timeout = if is_over { Duration::ZERO } else { most };
    let timeout =
        Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
    let is_ready: Vec<bool> = match poll(&mut files, Some(&timeout)) {
        Ok(_) => files.iter().map(|file| !file.revents().is_empty()).collect(),
        // Whoever waits looks again, as after any wait.
        Err(Errno::INTR) => vec![false; files.len()],
        // As if all were: what is wrong with one is found out by its use.
        Err(_) => vec![true; files.len()],
    };
    let mut begin = 1;
    for (channel, end) in channels.iter_mut().zip(ends) {
        channel.end_wait(is_ready[begin..end].contains(&true));
        begin = end;
    }
    is_ready[0]
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use crate::channel::{ChannelError, ChannelKind, connect_to_wait};

    /// Longer than any wait here should take.
    const LIMIT: Duration = Duration::from_secs(20);

    type End = Box<dyn Waiting>;

    fn pair(kind: ChannelKind) -> (End, End) {
        let (here, there) = UnixStream::pair().unwrap();
        let other = thread::spawn(move || connect_to_wait(kind, there).unwrap());
        (connect_to_wait(kind, here).unwrap(), other.join().unwrap())
    }

    /// Waits for both channels, and returns what was received from each: `None` at its end.
    fn wait(
        ends: &mut [End; 2],
        until: impl Fn(&[Vec<Option<Vec<u8>>>; 2]) -> bool,
    ) -> [Vec<Option<Vec<u8>>>; 2] {
        let (reader, _writer) = io::pipe().unwrap();
        let (begin, mut received) = (Instant::now(), [Vec::new(), Vec::new()]);
        while !until(&received) {
            assert!(begin.elapsed() < LIMIT, "{received:?}");
            let mut channels: Vec<&mut (dyn Waiting + 'static)> =
                ends.iter_mut().map(|end| &mut **end).collect();
            assert!(!wait_for_any(&mut channels, (reader.as_fd(), false), LIMIT));
            for (end, received) in ends.iter_mut().zip(&mut received) {
                let mut message = Vec::new();
                loop {
                    match end.try_receive(&mut message) {
                        Ok(true) => received.push(Some(message.clone())),
                        Ok(false) => break,
                        Err(ChannelError::Closed) => {
                            received.push(None);
                            break;
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
        received
    }

    #[test]
    fn what_comes_through_any_channel_ends_the_wait() {
        for kind in ChannelKind::all() {
            let ((first, _first), (second, mut other)) = (pair(kind), pair(kind));
            let mut ends = [first, second];
            other.send(b"before", None).unwrap();
            assert_eq!(wait(&mut ends, |[_, second]| !second.is_empty())[1], [Some(b"before".to_vec())]);
            let sending = thread::spawn(move || {
                for number in 0..100u8 {
                    // Some come while the other end sleeps.
                    thread::sleep(Duration::from_micros(u64::from(number) * 10));
                    other.send(&[number], None).unwrap();
                }
                other
            });
            let received = wait(&mut ends, |[_, second]| second.len() == 100);
            assert!(received[1].iter().enumerate().all(|(at, message)| *message == Some(vec![at as u8])));
            drop(sending.join().unwrap());
        }
    }

    #[test]
    fn the_end_of_any_channel_ends_the_wait_after_what_was_sent_before() {
        for kind in ChannelKind::all() {
            let ((first, mut gone), (second, _second)) = (pair(kind), pair(kind));
            gone.send(b"last", None).unwrap();
            drop(gone);
            let received = wait(&mut [first, second], |[first, _]| first.len() == 2);
            assert_eq!(received, [vec![Some(b"last".to_vec()), None], Vec::new()], "{kind}");
        }
    }

    #[test]
    fn a_file_ends_the_wait_and_so_does_time() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(!wait_for_any(&mut [], (reader.as_fd(), false), Duration::from_millis(1)));
        assert!(!wait_for_any(&mut [], (reader.as_fd(), true), LIMIT));
        drop(writer);
        assert!(wait_for_any(&mut [], (reader.as_fd(), false), LIMIT));
    }
}
