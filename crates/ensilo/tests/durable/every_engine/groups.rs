//! Databases that are durable together with others: what is stored counts once it is released.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ensilo::group::GroupMember;
use ensilo::{Durability, Error, Ticket};

use super::*;

fn add(db: &Database, id: u32) -> Ticket {
    let accounts = accounts(db);
    let request = db.request().durability(Durability::Visible);
    request.transact_with_ticket(|tx| accounts.insert(tx, &account(id))).unwrap().1
}

fn ids(db: &Database) -> Vec<u32> {
    all_rows(db).iter().map(|row| row.id).collect()
}

/// Waits until everything up to an epoch is stored.
fn wait_stored(member: &GroupMember, epoch: u64) {
    let is_stored = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&is_stored);
    member.on_stored(epoch, move |stored| {
        stored.unwrap();
        note.store(true, Ordering::Release);
    });
    until(|| is_stored.load(Ordering::Acquire));
}

#[test]
fn what_is_stored_counts_when_it_is_released() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 3);
    let member = db.group_member().unwrap();
    member.hold();
    let first = add(&db, 3);
    let end = member.end_epoch();
    let second = add(&db, 4);
    let of_both = member.ticket();
    wait_stored(&member, of_both.epoch());
    assert!(second.epoch() > end && first.epoch() <= end);
    assert_eq!([&first, &second].map(|ticket| ticket.is_stored()), [false, false]);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| first.wait());
        until(|| member.has_waiting());
        member.release(end);
        waiting.join().unwrap().unwrap();
    });
    assert_eq!([&first, &second].map(|ticket| ticket.is_stored()), [true, false]);
    member.release(member.end_epoch());
    second.wait().unwrap();
}

#[test]
fn what_was_not_released_is_given_up_for_good() {
    for checkpoint in [false, true] {
        let disk = Arc::new(SimulatedDisk::new());
        let (db, _) = with_accounts(&disk, 3);
        let member = db.group_member().unwrap();
        member.hold();
        drop(add(&db, 3));
        let end = member.end_epoch();
        wait_stored(&member, end);
        member.release(end);
        if checkpoint {
            let at_end = thread::spawn({
                let db = db.clone();
                move || db.checkpoint()
            });
            // It is not installed before all of it is released.
            let next = member.end_epoch();
            wait_stored(&member, next);
            assert!(!at_end.is_finished());
            member.release(next);
            // It may have begun after that.
            while !at_end.is_finished() {
                let next = member.end_epoch();
                wait_stored(&member, next);
                member.release(next);
            }
            at_end.join().unwrap().unwrap();
        }
        let later = add(&db, 4);
        wait_stored(&member, later.epoch());
        for image in [disk.kill(), disk.crash(7)].map(Arc::new) {
            let cut = if checkpoint { later.epoch() - 1 } else { end };
            let db = open_with(options().give_up_after(cut), &image).unwrap();
            assert_eq!(ids(&db), [0, 1, 2, 3]);
            drop(add(&db, 9));
            db.close().unwrap();
            // Nobody has to say so again.
            let db = open(&image);
            assert_eq!(ids(&db), [0, 1, 2, 3, 9]);
            db.close().unwrap();
            // And once more to the same point, which is in an earlier generation now.
            let db = open_with(options().give_up_after(cut), &image).unwrap();
            assert_eq!(ids(&db), [0, 1, 2, 3]);
        }
    }
}

#[test]
fn more_than_is_stored_cannot_be_asked_for() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 3);
    let ticket = add(&db, 3);
    ticket.wait().unwrap();
    let asked = db.group_member().unwrap().end_epoch() + 1_000_000;
    db.close().unwrap();
    let refused = open_with(options().give_up_after(asked), &disk).unwrap_err();
    let nothing = open_with(options().give_up_after(asked), &Arc::new(SimulatedDisk::new()));
    assert!(nothing.is_err());
    assert!(matches!(refused, Error::Open(_)), "{refused}");
    assert_eq!(ids(&open(&disk)).len(), 4);
}

#[test]
fn closing_waits_for_nobody_who_would_release() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 3);
    db.group_member().unwrap().hold();
    let ticket = add(&db, 3);
    let waiting = thread::spawn(move || ticket.wait());
    let checkpoint = thread::spawn({
        let db = db.clone();
        move || db.checkpoint()
    });
    until(|| db.group_member().unwrap().has_waiting());
    // What was not released may not count.
    assert!(matches!(db.close(), Err(Error::LogFailed(_))));
    assert!(waiting.join().unwrap().is_err());
    assert!(checkpoint.join().unwrap().is_err());
}

#[test]
fn what_has_counted_is_not_given_up() {
    let disk = Arc::new(SimulatedDisk::new());
    let (db, _) = with_accounts(&disk, 3);
    let member = db.group_member().unwrap();
    let end_and_release = || {
        let end = member.end_epoch();
        wait_stored(&member, end);
        member.release(end);
        end
    };
    member.hold();
    drop(add(&db, 3));
    let first = end_and_release();
    drop(add(&db, 4));
    end_and_release();
    // Behind what was released the log says so.
    drop(add(&db, 5));
    let last = end_and_release();
    let image = Arc::new(disk.kill());
    let refused = open_with(options().give_up_after(first), &image).unwrap_err();
    assert!(refused.to_string().contains("was durable once"), "{refused}");
    assert_eq!(ids(&open_with(options().give_up_after(last), &image).unwrap()), [0, 1, 2, 3, 4, 5]);
}
