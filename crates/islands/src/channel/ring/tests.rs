use proptest::prelude::*;

use super::super::frame::MESSAGE_BYTES_MAX;
use super::*;

fn ring() -> (SharedWords, RingSender, RingReceiver) {
    let words = SharedWords::owned(WORDS);
    (words.clone(), RingSender::new(words.clone()), RingReceiver::new(words))
}

fn receive(receiver: &mut RingReceiver) -> Result<Option<Vec<u8>>, Broken> {
    let mut message = vec![0xee; 3];
    receiver.try_receive(&mut message).map(|is_there| is_there.then_some(message))
}

#[test]
fn messages_come_out_as_they_went_in() {
    let (_, mut sender, mut receiver) = ring();
    assert_eq!(receive(&mut receiver), Ok(None));
    for message in [&b"one"[..], b"", b"the third one"] {
        assert_eq!(sender.try_send(message), Ok(true));
    }
    for message in [&b"one"[..], b"", b"the third one"] {
        assert_eq!(receive(&mut receiver), Ok(Some(message.to_vec())));
    }
    assert_eq!(receive(&mut receiver), Ok(None));
}

#[test]
fn a_full_ring_takes_nothing_until_there_is_room() {
    let (_, mut sender, mut receiver) = ring();
    let message = vec![7; MESSAGE_BYTES_MAX];
    let sent = (0..).take_while(|_| sender.try_send(&message) == Ok(true)).count();
    assert!(sent > 0);
    assert_eq!(receive(&mut receiver), Ok(Some(message.clone())));
    assert_eq!(sender.try_send(&message), Ok(true));
    assert_eq!(sender.try_send(&message), Ok(false));
}

proptest! {
    #[test]
    fn a_ring_is_a_queue(lens in prop::collection::vec((0usize..2000, 0usize..4), 1..200)) {
        let (_, mut sender, mut receiver) = ring();
        let mut queue = std::collections::VecDeque::new();
        for (number, (len, takes)) in lens.into_iter().enumerate() {
            let message = vec![number as u8; len];
            let words = |message: &Vec<u8>| frame_words(message.len());
            let has_room = queue.iter().map(words).sum::<usize>() + words(&message) <= RING_WORDS;
            prop_assert_eq!(sender.try_send(&message).unwrap(), has_room);
            if has_room {
                queue.push_back(message);
            }
            for _ in 0..takes {
                prop_assert_eq!(receive(&mut receiver).unwrap(), queue.pop_front());
            }
        }
    }

    /// Whatever the other end writes, this one gets messages or an error.
    #[test]
    fn any_words_are_messages_or_an_error(
        writes in prop::collection::vec((0..WORDS, any::<u64>()), 1..20),
        small in prop::collection::vec((0..32usize, 0u64..64), 1..20),
    ) {
        let (words, mut sender, mut receiver) = ring();
        for (at, word) in writes.into_iter().chain(small) {
            words[at].store(word, Ordering::Relaxed);
            let _ = sender.try_send(b"something");
            if let Ok(Some(message)) = receive(&mut receiver) {
                prop_assert!(message.len() <= MESSAGE_BYTES_MAX);
            }
        }
    }
}

#[test]
fn counts_that_do_not_fit_are_noticed_by_both_ends() {
    let (words, mut sender, mut receiver) = ring();
    words[TAIL].store(RING_WORDS as u64 + 1, Ordering::Relaxed);
    assert_eq!(receive(&mut receiver), Err(Broken("its counts do not fit the ring")));
    while sender.try_send(&[0; MESSAGE_BYTES_MAX]) == Ok(true) {}
    words[HEAD].store(2 * RING_WORDS as u64, Ordering::Relaxed);
    assert_eq!(sender.try_send(&[0; MESSAGE_BYTES_MAX]), Err(Broken("its counts do not fit the ring")));
}

#[test]
fn a_part_of_a_message_is_noticed() {
    let (words, mut sender, mut receiver) = ring();
    sender.try_send(&[1; 100]).unwrap();
    words[TAIL].store(5, Ordering::Relaxed);
    assert_eq!(receive(&mut receiver), Err(Broken("it is not there as a whole")));
}

#[test]
fn a_message_that_was_changed_is_noticed() {
    let (words, mut sender, mut receiver) = ring();
    sender.try_send(b"what was sent").unwrap();
    words[FRAMES + 1].fetch_xor(1 << 20, Ordering::Relaxed);
    assert_eq!(receive(&mut receiver), Err(Broken("its checksum is that of something else")));
}

#[test]
fn a_message_that_was_received_before_is_none() {
    let (words, mut sender, mut receiver) = ring();
    sender.try_send(b"once").unwrap();
    receive(&mut receiver).unwrap();
    let frame: Vec<u64> = (0..2).map(|at| words[FRAMES + at].load(Ordering::Relaxed)).collect();
    for (at, word) in frame.into_iter().enumerate() {
        words[FRAMES + 2 + at].store(word, Ordering::Relaxed);
    }
    words[TAIL].store(4, Ordering::Relaxed);
    assert!(receive(&mut receiver).is_err());
}
