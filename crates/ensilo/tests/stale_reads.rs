//! What closures conclude from reads that do not belong together never leaves them, and in the end they get through.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

use std::panic::set_hook;
use std::sync::{Mutex, Once};
use std::thread;

/// Silo's engine.
#[path = "stale_reads"]
mod silo {
    type Engine = ensilo::Silo;

    /// Whether a transaction locks what it reads, so that others cannot change it meanwhile.
    const LOCKS: bool = false;

    /// How often a closure runs while so many others change between two of its reads what it reads: it does not see one moment.
    fn attempts_beside(changes: u32) -> u32 {
        changes + 1
    }

    mod every_engine;
    mod silo_alone;
}

/// ERMIA's engine.
#[path = "stale_reads"]
mod ermia {
    type Engine = ensilo::ermia::Ermia;

    const LOCKS: bool = false;

    /// As the other one: the closure reads what was committed when it began, and it comes before the others.
    fn attempts_beside(_changes: u32) -> u32 {
        1
    }

    mod every_engine;
}

/// Two-phase locking, over which no reads are stale: who would make them so is refused.
#[path = "stale_reads"]
mod two_phase_locking {
    type Engine = ensilo::two_phase_locking::TwoPhaseLocking;

    const LOCKS: bool = true;

    fn attempts_beside(_changes: u32) -> u32 {
        1
    }

    mod every_engine;
}

/// What the hook of this program was told, with the name of the thread: that of the test.
static MESSAGES: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Sets the program's hook, once.
fn set_hook_of_program() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        set_hook(Box::new(|info| {
            eprintln!("{info}");
            let name = thread::current().name().unwrap_or_default().to_string();
            MESSAGES.lock().unwrap().push((name, info.to_string()));
        }));
    });
}

/// The messages of this test so far.
fn messages() -> Vec<String> {
    let name = thread::current().name().unwrap().to_string();
    let messages = MESSAGES.lock().unwrap();
    messages.iter().filter(|(of, _)| *of == name).map(|(_, message)| message.clone()).collect()
}
