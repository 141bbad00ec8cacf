use std::thread;

use super::super::MESSAGE_BYTES_MAX;
use super::*;
use std::io::Read as _;

/// Both ends of a channel.
fn pair(kind: ChannelKind) -> [Box<dyn Channel>; 2] {
    let (here, there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || connect(kind, there).unwrap());
    [connect(kind, here).unwrap(), other.join().unwrap()]
}

fn receive(channel: &mut dyn Channel) -> Result<Vec<u8>, ChannelError> {
    let mut message = vec![0xee; 5];
    channel.receive(&mut message, late()).map(|()| message)
}

/// By then a test has failed.
fn late() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(30))
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
            one.send(&message, late()).unwrap();
            assert_eq!(receive(&mut *other).unwrap(), message, "{kind}");
            other.send(&message, late()).unwrap();
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
                one.send(&number.to_le_bytes().repeat(number as usize % 40), late()).unwrap()
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
                end.send(&message, late()).unwrap();
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
            one.send(b"up", late()).unwrap();
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
        one.send(b"short", late()).unwrap();
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
        one.send(b"the last one", late()).unwrap();
        assert_eq!(receive(&mut *other).unwrap(), b"the last one", "{kind}");
    }
}

#[test]
fn what_was_sent_before_the_end_is_received_and_then_the_end() {
    for kind in ChannelKind::all() {
        let [mut one, mut other] = pair(kind);
        one.send(b"last words", late()).unwrap();
        drop(one);
        assert_eq!(receive(&mut *other).unwrap(), b"last words", "{kind}");
        assert!(matches!(receive(&mut *other), Err(ChannelError::Closed)), "{kind}");
        let full = (0..10_000).find_map(|_| other.send(&[0; 4096], late()).err());
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

/// What `connect` says to an end that passes this file on instead of its memory.
fn refused_memory(file: OwnedFd) -> Result<Box<dyn Channel>, ChannelError> {
    let (here, there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || {
        let meeting = Meeting { kind: ChannelKind::Memory, link: there, deadline: Instant::now() + PATIENCE };
        meeting.exchange_files([file.as_fd()]).map(drop)
    });
    let refused = connect(ChannelKind::Memory, here);
    other.join().unwrap().unwrap();
    refused
}

/// A file that could become shorter, or is shorter, would take its reader's process down.
#[test]
fn memory_that_is_short_or_may_shrink_is_refused() {
    use rustix::fs::{MemfdFlags, SealFlags};
    const BYTES: u64 = 8 * super::super::memory::WORDS as u64;
    let all = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    let file = |bytes, seals| {
        let file = rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, bytes).unwrap();
        rustix::fs::fcntl_add_seals(&file, seals).unwrap();
        file
    };
    let short = file(BYTES - 8, all);
    let may_shrink =
        [SealFlags::SHRINK, SealFlags::SEAL].map(|left_out| file(BYTES, all.difference(left_out)));
    let no_memory = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    for refused in [short, no_memory].into_iter().chain(may_shrink) {
        let refused = refused_memory(refused);
        assert!(matches!(refused, Err(ChannelError::Io(_))), "{refused:?}");
    }
    assert!(refused_memory(file(BYTES, all)).is_ok());
}

#[test]
fn what_is_no_pipe_is_refused() {
    let (here, there) = UnixStream::pair().unwrap();
    let other = thread::spawn(move || {
        let meeting = Meeting { kind: ChannelKind::Pipe, link: there, deadline: Instant::now() + PATIENCE };
        meeting.exchange_files([std::fs::File::open("/dev/null").unwrap().as_fd()]).map(drop)
    });
    assert!(matches!(connect(ChannelKind::Pipe, here), Err(ChannelError::Io(_))));
    other.join().unwrap().unwrap();
}

#[test]
fn a_secret_that_comes_byte_by_byte_comes_before_the_deadline_or_not_at_all() {
    let secret = [7; STEP_BYTES];
    for (pause, is_in_time) in [(Duration::ZERO, true), (Duration::from_millis(500), false)] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut other = listener.accept().unwrap().0;
        let sending = thread::spawn(move || {
            for byte in secret {
                thread::sleep(pause);
                // The other end may have given up.
                let _ = other.write_all(&[byte]);
            }
        });
        let (link, _) = UnixStream::pair().unwrap();
        let patience = if is_in_time { PATIENCE } else { Duration::from_millis(300) };
        let begin = Instant::now();
        let meeting = Meeting { kind: ChannelKind::Tcp, link, deadline: begin + patience };
        let checked = meeting.check_secret(&connection, secret);
        if is_in_time {
            checked.unwrap();
        } else {
            assert!(matches!(checked, Err(ChannelError::TimedOut)), "{checked:?}");
        }
        sending.join().unwrap();
    }
}

/// The other end has the same files open, and may set how they behave.
#[test]
fn an_end_that_makes_its_files_block_blocks_itself_alone() {
    let (reader, writer) = io::pipe().unwrap();
    let (other_reader, other_writer) = io::pipe().unwrap();
    let mut channel = Endpoint::new(StreamTransport::new(
        Bytes::through_pipes(reader.into(), &OwnedFd::from(other_writer.try_clone().unwrap())).unwrap(),
    ));
    rustix::io::ioctl_fionbio(&other_writer, false).unwrap();
    fill(&mut channel);
    drop((writer, other_reader));
    for kind in [ChannelKind::Unix, ChannelKind::Memory] {
        let (here, there) = UnixStream::pair().unwrap();
        let other = thread::spawn(move || connect(kind, there).unwrap());
        let copy = here.try_clone().unwrap();
        let mut channel = connect(kind, here).unwrap();
        copy.set_nonblocking(false).unwrap();
        fill(&mut *channel);
        assert!(matches!(channel.receive(&mut Vec::new(), soon()), Err(ChannelError::TimedOut)));
        drop(other.join().unwrap());
    }
}

/// Sends until there is no more room, which is found out at the deadline.
fn fill(channel: &mut dyn Channel) {
    let begin = Instant::now();
    let full = (0..10_000).find_map(|_| channel.send(&[7; 4096], soon()).err());
    assert!(matches!(full, Some(ChannelError::TimedOut)), "{full:?}");
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// A socket of which one direction is closed is always ready for something.
#[test]
fn a_deadline_ends_the_wait_for_an_end_that_reads_no_more() {
    let (here, there) = UnixStream::pair().unwrap();
    let mut channel = Endpoint::new(StreamTransport::new(Bytes::Socket(here.into())));
    there.shutdown(std::net::Shutdown::Read).unwrap();
    let begin = Instant::now();
    assert!(matches!(channel.receive(&mut Vec::new(), soon()), Err(ChannelError::TimedOut)));
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(matches!(channel.send(b"in vain", soon()), Err(ChannelError::Closed)));
}

#[test]
fn an_end_in_the_midst_of_a_message_is_an_end() {
    let (here, mut there) = UnixStream::pair().unwrap();
    let mut channel = Endpoint::new(StreamTransport::new(Bytes::Socket(here.into())));
    there.write_all(&100u64.to_le_bytes()).unwrap();
    drop(there);
    assert!(matches!(receive(&mut channel), Err(ChannelError::Closed)));
}

#[test]
fn a_channel_that_has_failed_says_so_again() {
    for kind in ChannelKind::all() {
        let [mut one, other] = pair(kind);
        fill(&mut *one);
        drop(other);
        let begin = Instant::now();
        let failed =
            (0..10_000).find_map(|_| one.send(&[7; 4096], soon()).err().filter(ChannelError::is_final));
        assert!(matches!(failed, Some(ChannelError::Closed)), "{kind}: {failed:?}");
        assert!(matches!(one.send(b"x", soon()), Err(ChannelError::Closed)), "{kind}");
        for _ in 0..2 {
            assert!(matches!(one.receive(&mut Vec::new(), soon()), Err(ChannelError::Closed)), "{kind}");
        }
        assert!(begin.elapsed() < Duration::from_secs(5));
    }
}

#[test]
fn what_has_come_is_received_also_when_nothing_can_be_sent_any_more() {
    for kind in [ChannelKind::Memory, ChannelKind::Unix, ChannelKind::Pipe] {
        let [mut one, mut other] = pair(kind);
        other.send(b"a decision", late()).unwrap();
        drop(other);
        let full = (0..10_000).find_map(|_| one.send(&[0; 4096], late()).err());
        assert!(matches!(full, Some(ChannelError::Closed)), "{kind}: {full:?}");
        assert_eq!(receive(&mut *one).unwrap(), b"a decision", "{kind}");
        assert!(matches!(receive(&mut *one), Err(ChannelError::Closed)), "{kind}");
    }
}

/// The other end waits for the rest of a message, and this one receives what has come meanwhile.
#[test]
fn to_receive_sends_the_rest_of_a_message() {
    for kind in [ChannelKind::Unix, ChannelKind::Pipe, ChannelKind::Tcp] {
        let [mut one, mut other] = pair(kind);
        let number = |number: u32| number.to_le_bytes().repeat(MESSAGE_BYTES_MAX / 4);
        let sent = (0..).take_while(|at| one.send(&number(*at), soon()).is_ok()).count() as u32;
        let answering = thread::spawn(move || {
            for at in 0..sent {
                other.send(b"one more", late()).unwrap();
                assert_eq!(receive(&mut *other).unwrap(), number(at), "{kind}");
            }
            other
        });
        (0..sent).for_each(|_| assert_eq!(receive(&mut *one).unwrap(), b"one more", "{kind}"));
        // Not more often than there are answers: the last part has to be gone by then, or goes at the next look.
        let _ = one.receive(&mut Vec::new(), Some(Instant::now() + Duration::from_millis(500)));
        drop(answering.join().unwrap());
    }
}
