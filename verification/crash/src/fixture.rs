//! Databases of each format version, kept in the repository: every later version opens them and finds what they held.
//!
//! They lie in `verification/crash/fixtures/format-<version>`. What they hold follows from the rules in [`rows`]; how they came about is in
//! [`make`], which is also how those of a new version are made: raise `FORMAT_VERSION`, then
//!
//! ```text
//! cargo run --release -p ensilo-crash --example make_fixtures
//! ```
//!
//! and add the new directory to the repository. Those of earlier versions stay as they are, for ever: the example refuses to
//! replace one. If a change of the format is needed before anybody has files of it, remove the directory first.

pub mod make;
pub mod rows;
pub mod stored;

use std::path::Path;
use std::time::Duration;

use ensilo::{Compression, Database, Options};

/// How the database of a fixture came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was closed in order, with a checkpoint and a log after it, both compressed.
    Closed,
    /// The power failed in its second life, in the middle of a round: a checkpoint, a log of an earlier generation, two loggers with
    /// directories of their own, and an end that is torn.
    Crashed,
    /// The power failed in its second life, and each life has left several log files that are sealed and named after their last
    /// epochs: a checkpoint, and log of two generations after it, compressed. There is none of the first two formats.
    Rotated,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Closed, Kind::Crashed, Kind::Rotated];

    /// Returns whether there is a fixture of this kind in this format.
    #[must_use]
    pub fn is_in(self, format: u32) -> bool {
        self != Kind::Rotated || format >= 3
    }

    /// Returns the name of the fixture's directory.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Closed => "closed",
            Kind::Crashed => "crashed",
            Kind::Rotated => "rotated",
        }
    }

    /// How the database in `directory` is opened: with checkpoints only when asked for.
    pub fn options(self, directory: &Path) -> Options {
        let options = Database::options()
            .log_file_bytes(1 << 20)
            .log_buffers(4)
            .checkpoint_interval(Duration::from_secs(3600))
            .recovery_threads(2)
            .pool_threads(1);
        match self {
            Kind::Closed | Kind::Rotated => {
                options.log_compression(Compression::Lz4).checkpoint_compression(Compression::Lz4)
            }
            Kind::Crashed => options.log_directories([directory.join("log"), directory.join("log-too")]),
        }
    }
}
