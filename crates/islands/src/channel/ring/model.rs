//! A ring, and one who sleeps until there is a message, under loom.
//!
//! Without `[message]` or a fence of `[sleep]` these fail. Without `[room]` they do not: loom lets no load see a store that is made after it.

use std::sync::Arc;

use loom::sync::Notify;
use loom::thread;

use super::super::sleep::{Sleeps, Wakeups};
use super::*;

/// More words than the ring has, so that it is full now and then, and goes round.
const MESSAGES: [&[u8]; 3] = [b"three words", b"", b"two more"];

/// Sends all with busy waiting; `wake` is called behind each message.
fn send_all(mut sender: RingSender, mut wake: impl FnMut()) {
    for message in MESSAGES {
        while !sender.try_send(message).unwrap() {
            thread::yield_now();
        }
        wake();
    }
}

fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn each_message_comes_once_and_whole() {
    explore(|| {
        let words = SharedWords::owned(WORDS);
        let sender = RingSender::new(words.clone());
        let sending = thread::spawn(move || send_all(sender, || ()));
        let mut receiver = RingReceiver::new(words);
        let mut received = Vec::new();
        for message in MESSAGES {
            while !receiver.try_receive(&mut received).unwrap() {
                thread::yield_now();
            }
            assert_eq!(received, message);
        }
        sending.join().unwrap();
    });
}

/// Loom fails the model when everybody waits for good.
#[test]
fn nobody_sleeps_beside_a_message() {
    explore(|| {
        let words = SharedWords::owned(WORDS + 1);
        let wakeup = Arc::new(Notify::new());
        let sender = RingSender::new(words.clone());
        let sending = thread::spawn({
            let (words, wakeup, mut wakeups) = (words.clone(), Arc::clone(&wakeup), Wakeups::default());
            move || {
                send_all(sender, || {
                    if wakeups.are_due(&words[WORDS]) {
                        wakeup.notify();
                    }
                });
            }
        });
        let mut receiver = RingReceiver::new(words.clone());
        let (mut received, mut sleeps) = (Vec::new(), Sleeps::default());
        for message in MESSAGES {
            while !receiver.try_receive(&mut received).unwrap() {
                sleeps.begin(&words[WORDS]);
                let is_there = receiver.try_receive(&mut received).unwrap();
                if !is_there {
                    wakeup.wait();
                }
                sleeps.end(&words[WORDS]);
                if is_there {
                    break;
                }
            }
            assert_eq!(received, message);
        }
        sending.join().unwrap();
    });
}
