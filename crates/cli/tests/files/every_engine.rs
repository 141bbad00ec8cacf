//! What holds for the directories of every engine: compiled for each of those that `main.rs` names, which is the module above.

mod commands;
mod losses;

use super::{ENGINE, Engine};
use crate::*;

/// An unused directory, with the engine's name in its own.
fn directory(name: &str) -> TestDirectory {
    TestDirectory::new(&format!("{name}-{ENGINE}"))
}
