//! Panics in the closures of requests.
//!
//! A closure may have computed with reads that do not belong together. A panic that comes of it is a conflict like any other: the closure
//! runs again, and nobody hears of it. Whether it is one is known only after the stack was unwound, but the program's panic hook, which
//! prints the message, is called before. So a hook of this module stands in front of it: it keeps back what a panic in a closure says, and
//! the program's hook gets it once the reads have turned out to be current.
//!
//! A program that sets a hook of its own later replaces this one. Then messages come at once, also those of conflicts.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::panic::{
    AssertUnwindSafe, PanicHookInfo, catch_unwind, panic_any, resume_unwind, set_hook, take_hook,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Where a thread is.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    OutsideClosures,
    InClosure,
    /// In a closure, and what a panic has said is kept back.
    InClosureWithMessage,
}

thread_local! {
    static PLACE: Cell<Place> = const { Cell::new(Place::OutsideClosures) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A panic that a closure was left by.
#[must_use = "it is passed on or discarded"]
pub(crate) struct CaughtPanic(Box<dyn Any + Send>);

/// Runs `body`, the closure of a request.
#[inline(always)]
pub(crate) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, CaughtPanic> {
    let before = PLACE.replace(Place::InClosure);
    // What the closure shares with others is the program's; what it shares with us is a transaction, which ends.
    let result = catch_unwind(AssertUnwindSafe(body));
    let after = PLACE.replace(before);
    if after == Place::InClosureWithMessage && result.is_ok() {
        // The closure has caught it itself.
        pass_on_message();
    }
    result.map_err(CaughtPanic)
}

impl CaughtPanic {
    /// Goes on with the panic, whose message is due now.
    pub(crate) fn resume(self) -> ! {
        pass_on_message();
        resume_unwind(self.0)
    }

    /// Forgets the panic and what it has said.
    pub(crate) fn discard(self) {
        MESSAGE.take();
        // A payload may panic when it is dropped.
        if let Err(panic) = catch(|| drop(self.0)) {
            MESSAGE.take();
            let _kept = ManuallyDrop::new(panic);
        }
    }
}

/// Hands the message that was kept back to the program's hook, or to the request that this one was made in.
fn pass_on_message() {
    if PLACE.get() != Place::OutsideClosures {
        PLACE.set(Place::InClosureWithMessage);
    } else if let Some(message) = MESSAGE.take() {
        // A hook is called by a panic alone.
        let _ = catch_unwind(|| panic_any(message));
    }
}

/// Puts the hook of this module in front of the program's, once in a process.
pub(crate) fn install_hook() {
    static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
    // A process that ends at a panic has to say why. A thread that panics may set no hook: the next opening does.
    if cfg!(panic = "abort") || thread::panicking() || IS_INSTALLED.swap(true, Ordering::Relaxed) {
        return;
    }
    let programs = take_hook();
    set_hook(Box::new(move |info| {
        if !keep_back(info) {
            programs(info);
        }
    }));
}

/// Keeps back what a panic says, if it is the first one in a closure.
fn keep_back(info: &PanicHookInfo<'_>) -> bool {
    match PLACE.try_with(Cell::get) {
        Err(_) | Ok(Place::OutsideClosures) => false,
        Ok(Place::InClosure) => {
            let is_kept = MESSAGE.try_with(|message| message.replace(Some(message_of(info)))).is_ok();
            if is_kept {
                PLACE.set(Place::InClosureWithMessage);
            }
            is_kept
        }
        Ok(Place::InClosureWithMessage) => {
            // Perhaps the first one is being unwound, and the process ends now.
            if let Some(first) = MESSAGE.take() {
                eprintln!("{first}");
            }
            PLACE.set(Place::InClosure);
            false
        }
    }
}

fn message_of(info: &PanicHookInfo<'_>) -> String {
    let mut message = format!("the closure of a request {info}");
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        let _ = write!(message, "\nstack backtrace:\n{backtrace}");
    }
    message
}
