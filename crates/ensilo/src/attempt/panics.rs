//! Panics in the closures of requests.
//!
//! A closure may have computed with reads that do not belong together. A panic that comes of it is a
//! conflict like any other: the closure runs again, and nobody hears of it. Whether it is one is known only
//! after the stack was unwound, but the program's panic hook, which prints the message, is called before.
//! So a hook of this module stands in front of it: it keeps back what a panic in a closure says, and the
//! program's hook gets it once the reads have turned out to be current.
//!
//! A program that sets a hook of its own later replaces this one. Then messages come at once, also those of
//! conflicts.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::panic::{
    AssertUnwindSafe, PanicHookInfo, catch_unwind, panic_any, resume_unwind, set_hook, take_hook,
};
use std::sync::Once;
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
pub(crate) struct CaughtPanic {
    payload: Box<dyn Any + Send>,
    /// What was kept back.
    message: Option<String>,
}

/// Runs `body`, the closure of a request.
#[inline(always)]
pub(crate) fn catch<R>(body: impl FnOnce() -> R) -> Result<R, CaughtPanic> {
    let before = PLACE.replace(Place::InClosure);
    // The request may be made by a destructor, while a panic leaves the closure around it.
    let outer = if before == Place::InClosureWithMessage { take_message() } else { None };
    // What the closure shares with others is the program's; what it shares with us is a transaction, which
    // ends.
    let result = catch_unwind(AssertUnwindSafe(body));
    let after = PLACE.replace(before);
    let message = if after == Place::InClosureWithMessage { take_message() } else { None };
    if outer.is_some() {
        keep(outer);
    }
    match result {
        Ok(value) => {
            // The closure has caught it itself.
            message.into_iter().for_each(pass_on);
            Ok(value)
        }
        Err(payload) => Err(CaughtPanic { payload, message }),
    }
}

impl CaughtPanic {
    /// Goes on with the panic, whose message is due now.
    pub(crate) fn resume(self) -> ! {
        self.message.into_iter().for_each(pass_on);
        resume_unwind(self.payload)
    }

    /// Forgets the panic and what it has said.
    pub(crate) fn discard(self) {
        // A payload may panic when it is dropped.
        if let Err(panic) = catch(|| drop(self.payload)) {
            let _kept = ManuallyDrop::new(panic.payload);
        }
    }
}

/// Hands a message that was kept back to the program's hook, or to the request that this one was made in,
/// which may have one already.
#[cold]
fn pass_on(message: String) {
    let place = PLACE.get();
    if place != Place::OutsideClosures {
        let first = if place == Place::InClosureWithMessage { take_message() } else { None };
        let all = first.map_or_else(|| message.clone(), |first| format!("{first}\n{message}"));
        if keep(Some(all)) {
            return PLACE.set(Place::InClosureWithMessage);
        }
    }
    // A hook is called by a panic alone.
    let _ = catch_unwind(|| panic_any(message));
}

/// Returns the message that is kept back. A thread whose variables are being destroyed has none.
fn take_message() -> Option<String> {
    MESSAGE.try_with(RefCell::take).ok().flatten()
}

/// Keeps a message back, unless the thread's variables are being destroyed.
fn keep(message: Option<String>) -> bool {
    MESSAGE.try_with(|kept| kept.replace(message)).is_ok()
}

/// Puts the hook of this module in front of the program's, once in a process.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    // A process that ends at a panic has to say why. A thread that panics may set no hook: the next opening
    // does.
    if cfg!(panic = "abort") || thread::panicking() {
        return;
    }
    // An opening on another thread does not end before the hook is there.
    INSTALLED.call_once(|| {
        let programs = take_hook();
        set_hook(Box::new(move |info| {
            if !keep_back(info) {
                programs(info);
            }
        }));
    });
}

/// Keeps back what a panic says, if it is the first one in a closure.
fn keep_back(info: &PanicHookInfo<'_>) -> bool {
    match PLACE.get() {
        Place::OutsideClosures => false,
        Place::InClosure => {
            let is_kept = !ends_process(info) && keep(Some(message_of(info)));
            if is_kept {
                PLACE.set(Place::InClosureWithMessage);
            }
            is_kept
        }
        Place::InClosureWithMessage => {
            // Perhaps the first one is being unwound, and the process ends now.
            if let Some(first) = take_message() {
                eprintln!("{first}");
            }
            PLACE.set(Place::InClosure);
            false
        }
    }
}

/// Returns whether the panic cannot unwind, like that of a violated precondition of unsafe code: it has to
/// say now why the process ends. The standard library shows that in the text for debugging alone; the place
/// in the program, which stands there too, is not that text.
fn ends_process(info: &PanicHookInfo<'_>) -> bool {
    format!("{info:?}").contains("can_unwind: false")
}

fn message_of(info: &PanicHookInfo<'_>) -> String {
    let mut message = format!("the closure of a request {info}");
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        let _ = write!(message, "\nstack backtrace:\n{backtrace}");
    }
    message
}
