//! Names of log files and checkpoint parts.
//!
//! - `log-<generation>-<logger>-<sequence>.open` while its logger writes it;
//! - `log-<generation>-<logger>-<sequence>-e<largest epoch>.log` once it is sealed and synced;
//! - `checkpoint-<id>/part-<n>.ckpt`, and `checkpoint-<id>/copies.ckpt`.
//!
//! Numbers are decimal, without leading zeros. Generations and sequences begin with 1, and no number is 2^44
//! or more. The epoch is a number as wide as those in the file ([`EpochWidth`]).
//!
//! A name is a hint. What a file is says its header, and which epochs it has its blocks say; both are
//! compared with the name.

use std::fmt;
use std::path::Path;

use ensilo_epoch::Epoch;

use super::epoch_width::{EPOCH_END, EpochWidth};
use super::identity::FileRole;

/// The name of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogFileName {
    /// The opening of the database that wrote it, from 1.
    pub generation: u64,
    /// The logger within the generation, from 0.
    pub logger: u32,
    /// The place in the order of the logger's files, from 1.
    pub sequence: u64,
    /// The number of the largest epoch in the file, as it is spelled; `None` while it is written.
    pub epoch_number: Option<u64>,
}

impl LogFileName {
    /// Returns the name of a log file that is written.
    pub(crate) fn open(generation: u64, logger: u32, sequence: u64) -> LogFileName {
        LogFileName { generation, logger, sequence, epoch_number: None }
    }

    /// Returns the name that these bytes spell, if they are the name of a log file.
    #[must_use]
    pub fn parse(name: &str) -> Option<LogFileName> {
        let numbers = name.strip_prefix("log-")?;
        let (numbers, epoch_number) = match numbers.strip_suffix(".open") {
            Some(numbers) => (numbers, None),
            None => {
                let (numbers, epoch) = numbers.strip_suffix(".log")?.rsplit_once("-e")?;
                (numbers, Some(parse_small(epoch)?))
            }
        };
        let mut numbers = numbers.split('-');
        let generation = parse_small(numbers.next()?)?;
        let logger = u32::try_from(parse_number(numbers.next()?)?).ok()?;
        let sequence = parse_small(numbers.next()?)?;
        let name = LogFileName { generation, logger, sequence, epoch_number };
        (numbers.next().is_none() && generation > 0 && sequence > 0).then_some(name)
    }

    /// Returns the name of the file at this path, if it is that of a log file.
    pub(crate) fn of(path: &Path) -> Option<LogFileName> {
        LogFileName::parse(path.file_name()?.to_str()?)
    }

    /// Returns the same file's name once it is sealed, if the epochs in it are so wide.
    #[must_use]
    pub fn sealed(self, largest_epoch: Epoch, epochs: EpochWidth) -> LogFileName {
        LogFileName { epoch_number: Some(epochs.number(largest_epoch)), ..self }
    }

    /// Returns whether the other name is this file's too, before or after it was sealed.
    #[must_use]
    pub(crate) fn is_same_file(self, other: LogFileName) -> bool {
        LogFileName { epoch_number: None, ..self } == LogFileName { epoch_number: None, ..other }
    }

    /// Returns whether the name is that of a file that is sealed.
    #[must_use]
    pub fn is_sealed(self) -> bool {
        self.epoch_number.is_some()
    }

    /// Returns the largest epoch in the file, as the name says, if the epochs in it are so wide; `None` while
    /// it is written. A number that is wider is later than every epoch.
    #[must_use]
    pub fn largest_epoch(self, epochs: EpochWidth) -> Option<Epoch> {
        Some(epochs.last(self.epoch_number?).unwrap_or(Epoch::MAX))
    }

    /// Returns what the file is within its database.
    pub(crate) fn role(self) -> FileRole {
        let LogFileName { generation, logger, sequence, .. } = self;
        FileRole::Log { generation, logger, sequence }
    }

    /// Returns a pattern by which a shell finds the file under either of its names.
    pub(crate) fn either_name(self) -> String {
        let LogFileName { generation, logger, sequence, .. } = self;
        format!("log-{generation}-{logger}-{sequence}{{.open,-e*.log}}")
    }
}

impl fmt::Display for LogFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogFileName { generation, logger, sequence, epoch_number } = self;
        match epoch_number {
            None => write!(f, "log-{generation}-{logger}-{sequence}.open"),
            Some(epoch) => write!(f, "log-{generation}-{logger}-{sequence}-e{epoch}.log"),
        }
    }
}

/// Returns a number below the end of the epochs, which generations and sequences never come to either.
fn parse_small(text: &str) -> Option<u64> {
    parse_number(text).filter(|&number| number < EPOCH_END.get())
}

/// Returns a number as the names spell it.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back(
            generation in 1..EPOCH_END.get(),
            logger: u32,
            sequence in 1..EPOCH_END.get(),
            epoch_number in prop::option::of(0..EPOCH_END.get()),
        ) {
            let name = LogFileName { generation, logger, sequence, epoch_number };
            prop_assert_eq!(LogFileName::parse(&name.to_string()), Some(name));
        }

        #[test]
        fn a_file_has_one_name(text in "log-[0-9+e.-]{0,12}(\\.open|-e[0-9]{1,3}\\.log)") {
            if let Some(name) = LogFileName::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }
    }

    #[test]
    fn the_epoch_of_a_name_is_as_wide_as_those_in_the_file() {
        let name = LogFileName::parse("log-1-0-13-e4332.log").unwrap();
        let largest_epoch = |name: LogFileName, epochs| name.largest_epoch(epochs).map(Epoch::get);
        assert_eq!(largest_epoch(name, EpochWidth::Bits44), Some(4332));
        assert_eq!(largest_epoch(name, EpochWidth::Bits40), Some(16 * 4332 + 15));
        assert_eq!(name.sealed(Epoch::new(16 * 4332 + 15), EpochWidth::Bits40), name);
        let wide = LogFileName::parse("log-1-0-13-e1099511627776.log").unwrap();
        assert_eq!(largest_epoch(wide, EpochWidth::Bits44), Some(1 << 40));
        assert_eq!(largest_epoch(wide, EpochWidth::Bits40), Some(u64::MAX));
        assert_eq!(largest_epoch(LogFileName::open(1, 0, 13), EpochWidth::Bits40), None);
    }

    #[test]
    fn other_names_are_not_taken() {
        for text in [
            "",
            "log",
            "log-1-2.open",
            "log-1-2-3-4.open",
            "log-1-2-3.log",
            "log-1-2-3-e4.open",
            "log-01-2-3.open",
            "log-0-2-3.open",
            "log-1-2-0.open",
            "log-1-2-3-e17592186044416.log",
            "log-1-2-3-e18446744073709551615.log",
            "log-17592186044416-2-3.open",
            "log-1-2-17592186044416.open",
            "LOCK",
        ] {
            assert_eq!(LogFileName::parse(text), None, "{text}");
        }
    }
}
