//! Names of log files and checkpoint parts.
//!
//! - `log-<generation>-<logger>-<sequence>.open` while its logger writes it;
//! - `log-<generation>-<logger>-<sequence>-e<largest epoch>.log` once it is sealed and synced;
//! - `checkpoint-<id>/part-<n>.ckpt`, and `checkpoint-<id>/copies.ckpt`.
//!
//! Numbers are decimal, without leading zeros. Generations and sequences begin with 1, and no number is 2^40
//! or more.
//!
//! A name is a hint. What a file is says its header, and which epochs it has its blocks say; both are
//! compared with the name.

use std::fmt;
use std::path::Path;

use ensilo_epoch::Epoch;

use super::transactions::EPOCH_END;

/// The name of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogFileName {
    /// The opening of the database that wrote it, from 1.
    pub generation: u64,
    /// The logger within the generation, from 0.
    pub logger: u32,
    /// The place in the order of the logger's files, from 1.
    pub sequence: u64,
    /// The largest epoch in the file; `None` while it is written.
    pub largest_epoch: Option<Epoch>,
}

impl LogFileName {
    /// Returns the name of a log file that is written.
    pub(crate) fn open(generation: u64, logger: u32, sequence: u64) -> LogFileName {
        LogFileName { generation, logger, sequence, largest_epoch: None }
    }

    /// Returns the name that these bytes spell, if they are the name of a log file.
    #[must_use]
    pub fn parse(name: &str) -> Option<LogFileName> {
        let numbers = name.strip_prefix("log-")?;
        let (numbers, largest_epoch) = match numbers.strip_suffix(".open") {
            Some(numbers) => (numbers, None),
            None => {
                let (numbers, epoch) = numbers.strip_suffix(".log")?.rsplit_once("-e")?;
                (numbers, Some(Epoch::new(parse_small(epoch)?)))
            }
        };
        let mut numbers = numbers.split('-');
        let generation = parse_small(numbers.next()?)?;
        let logger = u32::try_from(parse_number(numbers.next()?)?).ok()?;
        let sequence = parse_small(numbers.next()?)?;
        let name = LogFileName { generation, logger, sequence, largest_epoch };
        (numbers.next().is_none() && generation > 0 && sequence > 0).then_some(name)
    }

    /// Returns the name of the file at this path, if it is that of a log file.
    pub(crate) fn of(path: &Path) -> Option<LogFileName> {
        LogFileName::parse(path.file_name()?.to_str()?)
    }

    /// Returns the same file's name once it is sealed.
    #[must_use]
    pub fn sealed(self, largest_epoch: Epoch) -> LogFileName {
        LogFileName { largest_epoch: Some(largest_epoch), ..self }
    }

    /// Returns a pattern by which a shell finds the file under either of its names.
    pub(crate) fn either_name(self) -> String {
        let LogFileName { generation, logger, sequence, .. } = self;
        format!("log-{generation}-{logger}-{sequence}{{.open,-e*.log}}")
    }
}

impl fmt::Display for LogFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogFileName { generation, logger, sequence, largest_epoch } = self;
        match largest_epoch {
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
            epoch in prop::option::of(0..EPOCH_END.get()),
        ) {
            let largest_epoch = epoch.map(Epoch::new);
            let name = LogFileName { generation, logger, sequence, largest_epoch };
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
            "log-1-2-3-e1099511627776.log",
            "log-1-2-3-e18446744073709551615.log",
            "log-1099511627776-2-3.open",
            "log-1-2-1099511627776.open",
            "LOCK",
        ] {
            assert_eq!(LogFileName::parse(text), None, "{text}");
        }
    }
}
