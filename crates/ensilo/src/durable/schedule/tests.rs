//! Schedules whose time passes as the tests say.

use super::*;
use crate::durable::DurableOptions;

/// A schedule, the checkpoint that has begun last, and what time it is.
struct Clocked {
    schedule: Schedule,
    tried: Option<Try>,
    now: Instant,
}

fn schedule(interval: Duration) -> Clocked {
    let options = CheckpointOptions { interval: Some(interval), ..DurableOptions::default().checkpoint };
    let now = Instant::now();
    Clocked { schedule: Schedule::new(options, Logged::default(), now), tried: None, now }
}

impl Clocked {
    fn due(&mut self, log: LogGrowth, room: Room) -> Option<Duration> {
        self.schedule.due(self.now, log, room)
    }

    /// Begins the one that is due, if one is, and returns how long it may take.
    fn begun(&mut self, log: LogGrowth, room: Room) -> Option<Duration> {
        let due = self.due(log, room)?;
        self.tried = Some(self.schedule.begin(self.now, log, room));
        Some(due)
    }

    /// Ends the one that has begun, after so long.
    fn note(&mut self, was_made: bool, after: Duration, is_log_short: bool) {
        self.pass(after);
        self.schedule.note(self.tried.as_ref().unwrap(), self.now, was_made, is_log_short);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Returns how many seconds the pause has, if there is one.
    fn pause_seconds(&self) -> Option<u64> {
        self.schedule.pause.map(|pause| pause.length.as_secs())
    }

    /// The same of the pause after one that was made for the log's space.
    fn relief_seconds(&self) -> Option<u64> {
        self.schedule.relief.map(|relief| relief.length.as_secs())
    }
}

const LONG: Duration = Duration::from_secs(3600);
const NONE: Duration = Duration::ZERO;

/// So much log, of which 1000 bytes are worth a checkpoint.
fn grown(bytes: u64) -> LogGrowth {
    let (written, replaced) = (logged(bytes), Logged::default());
    LogGrowth { written, found_bytes: 0, replaced, checkpoints: 0, due_bytes: 1000, is_overdue: false }
}

/// So many bytes, by as many transactions.
fn logged(bytes: u64) -> Logged {
    Logged { bytes, transactions: bytes }
}

/// The same since a checkpoint that has replaced so much of it. One that has replaced more is another one.
fn grown_since(replaced_bytes: u64, written_bytes: u64) -> LogGrowth {
    LogGrowth { replaced: logged(replaced_bytes), checkpoints: replaced_bytes, ..grown(written_bytes) }
}

fn short() -> Room {
    Room { is_log_short: true, ..Room::default() }
}

#[test]
fn a_log_that_has_grown_enough_is_checkpointed() {
    let mut schedule = schedule(LONG);
    assert_eq!(schedule.due(grown(999), Room::default()), None);
    assert!(schedule.begun(grown(1000), Room::default()).is_some());
    schedule.note(true, NONE, false);
    assert_eq!(schedule.due(grown_since(1000, 1999), Room::default()), None, "counted from the last one");
}

#[test]
fn time_alone_is_no_reason() {
    let mut schedule = schedule(Duration::ZERO);
    assert_eq!(schedule.due(grown(0), Room::default()), None);
    assert!(schedule.due(grown(1), Room::default()).is_some());
}

#[test]
fn a_log_without_a_next_file_is_a_reason_with_pauses() {
    let mut schedule = schedule(LONG);
    assert_eq!(schedule.begun(grown(0), short()), Some(NONE), "also without anything logged");
    schedule.note(true, NONE, false);
    assert_eq!(schedule.due(grown(10), short()), None, "too soon");
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.begun(grown(10), short()), Some(NONE));
    schedule.note(true, NONE, false);
    assert_eq!(schedule.relief_seconds(), Some(2));
    assert_eq!(schedule.due(grown(10), Room::default()), None);
    assert_eq!(schedule.due(grown(10), short()), Some(NONE), "another shortage");
}

#[test]
fn the_log_has_a_moment_to_make_use_of_what_a_checkpoint_has_freed() {
    let mut schedule = schedule(LONG);
    assert!(schedule.begun(grown(1000), Room::default()).is_some());
    // It has become short meanwhile.
    schedule.note(true, NONE, true);
    assert_eq!(schedule.due(grown_since(1000, 1500), short()), None);
    assert_eq!(schedule.due(grown_since(1000, 1500), Room::default()), None);
    // Somebody has asked for one.
    assert_eq!(schedule.due(grown_since(1500, 1600), short()), None);
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.due(grown_since(1500, 1600), short()), Some(NONE));
}

#[test]
fn what_fails_slowly_and_makes_the_log_short_is_tried_seldom() {
    let mut schedule = schedule(LONG);
    assert!(schedule.begun(grown(1000), Room::default()).is_some());
    schedule.note(false, Duration::from_secs(60), true);
    schedule.pass(Duration::from_secs(239));
    assert_eq!(schedule.due(grown(2000), short()), None);
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.due(grown(2000), short()), Some(NONE));
}

#[test]
fn a_log_that_stays_short_without_transactions_is_given_up_after_some() {
    let mut schedule = schedule(LONG);
    for _ in 0..3 {
        assert_eq!(schedule.begun(grown(0), short()), Some(NONE));
        // One that fails does not count.
        schedule.note(false, NONE, true);
        schedule.pass(Duration::from_secs(600));
        assert_eq!(schedule.begun(grown(0), short()), Some(NONE));
        schedule.note(true, NONE, true);
        schedule.pass(Duration::from_secs(600));
    }
    assert_eq!(schedule.due(grown(0), short()), None);
    assert_eq!(schedule.begun(grown(1), short()), Some(NONE));
    schedule.note(true, NONE, true);
    schedule.pass(Duration::from_secs(600));
    assert_eq!(schedule.due(grown(0), short()), Some(NONE), "the file with that goes with another one");
}

#[test]
fn one_that_was_asked_for_ends_a_long_pause_while_the_log_is_short() {
    let mut schedule = schedule(LONG);
    assert_eq!(schedule.begun(grown(1000), short()), Some(NONE));
    schedule.note(false, Duration::from_secs(900), true);
    // It was made before anything was logged.
    let of_first = LogGrowth { checkpoints: 1, ..grown(10) };
    assert_eq!(schedule.due(of_first, short()), None);
    assert_eq!(schedule.pause_seconds(), None);
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.due(of_first, short()), Some(NONE));
}

#[test]
fn marks_of_rounds_alone_are_no_reason() {
    let marks = Logged { bytes: 10_000, transactions: 0 };
    let mut schedule = schedule(NONE);
    assert_eq!(schedule.due(LogGrowth { written: marks, ..grown(0) }, Room::default()), None);
    let since = Logged { bytes: 1100, transactions: 1000 };
    assert_eq!(schedule.due(LogGrowth { written: since, ..grown_since(1000, 0) }, Room::default()), None);
}

#[test]
fn pauses_while_the_log_is_short_are_no_shorter_for_a_short_interval() {
    let mut schedule = schedule(NONE);
    for _ in 0..3 {
        assert!(schedule.begun(grown(10), short()).is_some());
        schedule.note(true, NONE, false);
        assert_eq!(schedule.relief_seconds(), Some(1));
        schedule.pass(PAUSE_MIN);
    }
}

#[test]
fn what_fails_slowly_while_the_log_is_short_is_tried_seldom_also_if_that_comes_and_goes() {
    let mut schedule = schedule(LONG);
    assert_eq!(schedule.begun(grown(10), short()), Some(NONE));
    schedule.note(false, Duration::from_secs(60), false);
    for room in [short(), Room::default(), short()] {
        assert_eq!(schedule.due(grown(20), room), None);
    }
    schedule.pass(Duration::from_secs(239));
    assert_eq!(schedule.due(grown(20), short()), None);
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.due(grown(20), short()), Some(NONE));
}

#[test]
fn a_log_that_becomes_short_does_not_wait_for_the_pause_after_another_failure() {
    let mut schedule = schedule(LONG);
    assert!(schedule.begun(grown(1000), Room::default()).is_some());
    schedule.note(false, Duration::from_secs(60), false);
    assert_eq!(schedule.due(grown(1000), Room::default()), None);
    assert_eq!(schedule.begun(grown(1000), short()), Some(NONE));
    schedule.note(false, NONE, false);
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.due(grown(1000), short()), Some(NONE));
}

#[test]
fn a_nearly_full_disk_is_a_reason_if_something_is_freed() {
    let mut schedule = schedule(LONG);
    let nearly = Room {
        free_bytes: Some(200 + 125 - 1),
        expected_bytes: 100,
        log_file_bytes: 100,
        log_free_bytes: Some(200),
        ..Room::default()
    };
    assert_eq!(schedule.due(grown(99), nearly), None);
    assert_eq!(schedule.due(grown(100), Room { free_bytes: Some(325), ..nearly }), None);
    assert_eq!(schedule.due(grown(100), Room { free_bytes: None, ..nearly }), None);
    assert_eq!(schedule.begun(grown(100), nearly), Some(Duration::ZERO));
    schedule.note(true, NONE, false);
    assert_eq!(schedule.due(grown_since(100, 199), nearly), None, "counted from the last one");
    let much = Room { free_bytes: Some(1 << 40), ..nearly };
    let of_log = Room { log_free_bytes: Some(199), ..much };
    assert_eq!(schedule.due(grown_since(100, 200), of_log), Some(Duration::ZERO));
    let of_rows = Room { is_eviction_refused: true, ..much };
    assert_eq!(schedule.due(grown_since(200, 299), of_rows), None);
    assert_eq!(schedule.due(grown_since(200, 300), of_rows), Some(Duration::ZERO));
}

#[test]
fn a_checkpoint_that_cannot_fit_leaves_the_room_to_the_log() {
    let mut schedule = schedule(LONG);
    for room in [short(), Room { is_eviction_refused: true, ..Room::default() }] {
        let hopeless = Room { free_bytes: Some(49), expected_bytes: 100, ..room };
        assert_eq!(schedule.due(grown(50), hopeless), None);
        assert_eq!(schedule.due(grown(50), Room { free_bytes: Some(50), ..hopeless }), Some(NONE));
    }
}

#[test]
fn after_a_failure_the_next_one_waits_for_longer_each_time() {
    let mut schedule = schedule(LONG);
    let at_once = |written_bytes| LogGrowth { due_bytes: 0, ..grown(written_bytes) };
    assert!(schedule.begun(at_once(1), Room::default()).is_some());
    for pause in [1, 2, 4] {
        schedule.note(false, NONE, false);
        assert_eq!(schedule.pause_seconds(), Some(pause));
        assert_eq!(schedule.due(at_once(10), Room::default()), None);
    }
    schedule.note(true, NONE, false);
    assert!(schedule.begun(at_once(10), Room::default()).is_some());
}

#[test]
fn what_could_not_be_made_stays_due_whatever_becomes_of_its_reason() {
    let room = Room::default();
    let scarce = Room { is_eviction_refused: true, ..room };
    let overdue = LogGrowth { is_overdue: true, ..grown(0) };
    for (log, room_then) in [(grown(1000), room), (overdue, room), (grown(1), scarce), (grown(0), short())] {
        let mut schedule = schedule(LONG);
        assert!(schedule.begun(log, room_then).is_some());
        schedule.note(false, NONE, false);
        assert_eq!(schedule.due(log, Room { is_log_short: false, ..room_then }), None, "too soon");
        schedule.pass(PAUSE_MIN);
        assert!(schedule.begun(grown(0), room).is_some(), "without anything logged meanwhile");
        schedule.note(true, NONE, false);
        assert_eq!(schedule.due(grown(0), room), None);
    }
}

#[test]
fn what_is_not_likely_to_fit_is_tried_again_seldom() {
    let hopeless = Room { free_bytes: Some(49), expected_bytes: 100, ..Room::default() };
    let mut schedule = schedule(LONG);
    assert!(schedule.begun(grown(1000), Room::default()).is_some());
    schedule.note(false, NONE, false);
    schedule.pass(PAUSE_MIN);
    assert_eq!(schedule.due(grown(1000), hopeless), None);
    schedule.pass(PAUSE_MAX);
    assert!(schedule.due(grown(1000), hopeless).is_some());
}

#[test]
fn what_took_long_in_vain_is_tried_seldom() {
    for (seconds, pause) in [(10, 40), (100_000, 3600)] {
        let mut schedule = schedule(LONG);
        assert!(schedule.begun(grown(1000), Room::default()).is_some());
        schedule.note(false, Duration::from_secs(seconds), false);
        assert_eq!(schedule.pause_seconds(), Some(pause));
        schedule.note(true, NONE, false);
        assert_eq!(
            (schedule.pause_seconds(), schedule.schedule.began),
            (None, schedule.tried.unwrap().began)
        );
    }
}

#[test]
fn one_that_was_asked_for_ends_the_pause() {
    let mut schedule = schedule(LONG);
    assert!(schedule.begun(grown(1000), Room::default()).is_some());
    schedule.note(false, NONE, false);
    assert_eq!(schedule.due(grown_since(1000, 1999), Room::default()), None);
    assert!(schedule.due(grown_since(1000, 2000), Room::default()).is_some());
}

#[test]
fn log_that_the_opening_has_found_is_freed_as_well() {
    let mut schedule = schedule(LONG);
    let scarce = Room { is_eviction_refused: true, log_file_bytes: 100, ..Room::default() };
    let found = |found_bytes| LogGrowth { found_bytes, ..grown(1) };
    assert_eq!(schedule.due(found(98), scarce), None);
    assert_eq!(schedule.due(found(99), scarce), Some(Duration::ZERO));
    assert_eq!(schedule.due(found(1 << 30), Room::default()), None);
}

#[test]
fn checkpoints_that_are_not_wanted_are_not_made() {
    let mut schedule = schedule(LONG);
    schedule.schedule.options.is_automatic = false;
    assert_eq!(schedule.due(grown(10_000), short()), None);
}
