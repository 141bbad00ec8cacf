use std::io::{Read as _, Write as _};
use std::thread;

use super::super::MESSAGE_BYTES_MAX;
use super::*;

/// Both ends of a channel.
fn pair(kind: ChannelKind) -> [Box<dyn Channel>; 2] {
    let (here, there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || connect(kind, there).unwrap());
    [connect(kind, here).unwrap(), other.join().unwrap()]
}

fn receive(channel: &mut dyn Channel) -> Result<Vec<u8>, ChannelError> {
    let mut message = vec![0xee; 5];
    channel.receive(&mut message, None).map(|()| message)
}

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(20))
}

#[test]
fn messages_of_all_lengths_go_both_ways() {
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        for len in [0, 1, 7, 8, 9, 255, 4096, MESSAGE_BYTES_MAX] {
            let message: Vec<u8> = (0..len).map(|at| at as u8).collect();
            one.send(&message, None).unwrap();
            assert_eq!(receive(&mut *other).unwrap(), message, "{kind}");
            other.send(&message, None).unwrap();
            assert_eq!(receive(&mut *one).unwrap(), message, "{kind}");
        }
    }
}

#[test]
fn many_messages_keep_their_order() {
    const MESSAGES: u32 = 20_000;
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        let sending = thread::spawn(move || {
            (0..MESSAGES).for_each(|number| {
                one.send(&number.to_le_bytes().repeat(number as usize % 40), None).unwrap()
            });
            one
        });
        for number in 0..MESSAGES {
            let expected = number.to_le_bytes().repeat(number as usize % 40);
            assert_eq!(receive(&mut *other).unwrap(), expected, "{kind}");
        }
        drop(sending.join().unwrap());
    }
}

/// As when both ends send before they receive: what one cannot send yet does not keep it from receiving.
#[test]
fn ends_that_both_send_first_do_not_wait_for_each_other() {
    for kind in ChannelKind::all() {
        let [one, other] = pair(kind);
        let ends = [one, other].map(|mut end| {
            thread::spawn(move || {
                let message = vec![9; MESSAGE_BYTES_MAX];
                end.send(&message, None).unwrap();
                assert_eq!(receive(&mut *end).unwrap(), message, "{kind}");
            })
        });
        ends.into_iter().for_each(|end| end.join().unwrap());
    }
}

#[test]
fn one_who_waits_is_woken() {
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        let waiting =
            thread::spawn(move || (0..50).for_each(|_| assert_eq!(receive(&mut *other).unwrap(), b"up")));
        for _ in 0..50 {
            thread::sleep(Duration::from_millis(1));
            one.send(b"up", None).unwrap();
        }
        waiting.join().unwrap();
    }
}

#[test]
fn a_message_that_is_too_long_is_not_sent() {
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        let long = vec![0; MESSAGE_BYTES_MAX + 1];
        assert!(matches!(one.send(&long, None), Err(ChannelError::TooLong(len)) if len == long.len()));
        one.send(b"short", None).unwrap();
        assert_eq!(receive(&mut *other).unwrap(), b"short");
    }
}

#[test]
fn a_deadline_ends_the_wait_and_not_the_channel() {
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        let mut message = Vec::new();
        assert!(matches!(other.receive(&mut message, soon()), Err(ChannelError::TimedOut)), "{kind}");
        let mut sent = 0u32;
        let full = loop {
            let mut message = vec![7; MESSAGE_BYTES_MAX];
            message[..4].copy_from_slice(&sent.to_le_bytes());
            match one.send(&message, soon()) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(full, ChannelError::TimedOut), "{kind}: {full:?}");
        for number in 0..sent {
            // What was begun goes on when this end is used.
            let _ = one.receive(&mut message, Some(Instant::now()));
            assert_eq!(receive(&mut *other).unwrap()[..4], number.to_le_bytes(), "{kind}");
        }
        one.send(b"the last one", None).unwrap();
        assert_eq!(receive(&mut *other).unwrap(), b"the last one", "{kind}");
    }
}

#[test]
fn what_was_sent_before_the_end_is_received_and_then_the_end() {
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        one.send(b"last words", None).unwrap();
        drop(one);
        assert_eq!(receive(&mut *other).unwrap(), b"last words", "{kind}");
        assert!(matches!(receive(&mut *other), Err(ChannelError::Closed)), "{kind}");
        let full = (0..10_000).find_map(|_| other.send(&[0; 4096], None).err());
        assert!(matches!(full, Some(ChannelError::Closed)), "{kind}: {full:?}");
    }
}

#[test]
fn ends_of_two_kinds_do_not_meet() {
    let (here, there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || connect(ChannelKind::Pipe, there).map(drop));
    assert!(matches!(connect(ChannelKind::Unix, here), Err(ChannelError::Nonsense(_))));
    assert!(matches!(other.join().unwrap(), Err(ChannelError::Nonsense(_))));
}

#[test]
fn one_who_is_no_end_is_refused() {
    for kind in ChannelKind::all() {
        for sent in [&b""[..], b"x", b"ensilo1\0", b"GET / HTTP/1.1\r\n\r\n"] {
            let (here, mut there) = UnixStream::pair().unwrap();
            there.write_all(sent).unwrap();
            there.shutdown(std::net::Shutdown::Write).unwrap();
            let refused = connect(kind, here);
            assert!(
                matches!(
                    refused,
                    Err(ChannelError::Nonsense(_) | ChannelError::Closed | ChannelError::Io(_))
                ),
                "{kind}: {refused:?}"
            );
            let _ = there.read(&mut [0; 64]);
        }
    }
}

/// A file that could become shorter would take its reader's process down.
#[test]
fn memory_that_may_shrink_is_refused() {
    let unsealed = || rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || {
        let own = Inbox::new().unwrap();
        let meeting = Meeting { kind: ChannelKind::Memory, link: there, deadline: Instant::now() + PATIENCE };
        let file = unsealed();
        rustix::fs::ftruncate(&file, rustix::fs::fstat(own.files()[0]).unwrap().st_size as u64).unwrap();
        meeting.exchange_files([file.as_fd(), own.files()[1]]).map(drop)
    });
    assert!(matches!(connect(ChannelKind::Memory, here), Err(ChannelError::Io(_))));
    other.join().unwrap().unwrap();
}
