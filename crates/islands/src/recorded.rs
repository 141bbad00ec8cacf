//! Files of recorded transactions: which partition keys each one reads and writes, for the advisor.
//!
//! # Layout
//! A text with a transaction on each line, as pairs of a letter and a key: `r 17 w 4 w 99` reads what belongs to key 17, and writes what belongs to 4
//! and 99. A key is a number from 0 to 2^64 - 1 that stands for rows that are always at one instance together. Keys have an order: where an instance
//! has rows by ranges of their keys, neighbours are likely to be at one instance. `r 17-99` reads rows that belong to keys from 17 to 99, wherever
//! these are. `*` stands for rows at every instance. The first key is where the transaction begins. A key may come several times. Empty lines, and
//! those that begin with `#`, are left out. Each line ends with a line feed: a last one without it is cut off, and refused.
//!
//! `docs/recorded-transactions.md` shows how such a file is made and what it is good for.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Which rows a recorded access is to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartitionKey {
    /// Those that belong to this key, at one instance.
    One(u64),
    /// Those that belong to keys from the first one, which is less, to the second one: at each instance that has some of these.
    Range(u64, u64),
    /// Rows at every instance.
    Everywhere,
}

impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionKey::One(key) => key.fmt(f),
            PartitionKey::Range(first, last) => write!(f, "{first}-{last}"),
            PartitionKey::Everywhere => f.write_str("*"),
        }
    }
}

/// What a recorded transaction does with the rows that belong to a key.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RecordedAccess {
    /// Which rows.
    pub key: PartitionKey,
    /// Whether it writes them, and does not only read them.
    pub writes: bool,
}

/// The accesses of one transaction, in their order, as a line shows them.
#[derive(Debug)]
pub(crate) struct Line<'a>(pub(crate) &'a [RecordedAccess]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, RecordedAccess { key, writes }) in self.0.iter().enumerate() {
            let (space, letter) = (if at == 0 { "" } else { " " }, if *writes { 'w' } else { 'r' });
            write!(f, "{space}{letter} {key}")?;
        }
        Ok(())
    }
}

/// Transactions that were recorded, at least one, each with at least one access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTransactions(Vec<Vec<RecordedAccess>>);

/// Why a file holds no recorded transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordedError {
    /// The file could not be read. It holds the file's name and the reason.
    Unreadable(String),
    /// A line is no transaction.
    Malformed {
        /// The number of the line, from 1 on.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// The last line, of this number, has no line feed at its end: the file is cut off, and a key on it may be, too.
    CutOff {
        /// The number of the line, from 1 on.
        line: usize,
    },
    /// There is no transaction: something has to be recorded first.
    Empty,
}

impl fmt::Display for RecordedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordedError::Unreadable(what) => write!(f, "recorded transactions cannot be read: {what}"),
            RecordedError::Malformed { line, problem } => {
                write!(f, "line {line} is no transaction such as `r 17 w 4`: {problem}")
            }
            RecordedError::CutOff { line } => write!(
                f,
                "the file is cut off in line {line}, which has no line feed at its end: remove the line, or end it if it is whole"
            ),
            RecordedError::Empty => f.write_str("no transaction is recorded there"),
        }
    }
}

impl std::error::Error for RecordedError {}

impl RecordedTransactions {
    /// Reads a file.
    ///
    /// # Errors
    /// [`RecordedError`].
    pub fn from_file(file: &Path) -> Result<Self, RecordedError> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| RecordedError::Unreadable(format!("{}: {error}", file.display())))?;
        text.parse()
    }

    /// Returns the accesses of each transaction, in their order.
    #[must_use]
    pub fn transactions(&self) -> &[Vec<RecordedAccess>] {
        &self.0
    }
}

/// Reads a text of the form that the module's documentation describes.
///
/// ```
/// use ensilo_islands::RecordedTransactions;
///
/// let recorded: RecordedTransactions = "# two transfers\nw 1 w 2\nw 2 w 3 r *\n".parse()?;
/// assert_eq!(recorded.transactions()[1].len(), 3);
/// let error = "w 1\nx 2\n".parse::<RecordedTransactions>().unwrap_err();
/// assert!(error.to_string().starts_with("line 2 "));
/// # Ok::<(), ensilo_islands::RecordedError>(())
/// ```
impl FromStr for RecordedTransactions {
    type Err = RecordedError;

    fn from_str(text: &str) -> Result<Self, RecordedError> {
        let mut transactions = Vec::new();
        for (line, text) in (1..).zip(text.split_inclusive('\n')) {
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            if !text.ends_with('\n') {
                return Err(RecordedError::CutOff { line });
            }
            transactions.push(accesses(text).map_err(|problem| RecordedError::Malformed { line, problem })?);
        }
        if transactions.is_empty() {
            Err(RecordedError::Empty)
        } else {
            Ok(RecordedTransactions(transactions))
        }
    }
}

/// Returns the accesses on a line, or what is wrong with it.
fn accesses(line: &str) -> Result<Vec<RecordedAccess>, String> {
    let (mut words, mut accesses) = (line.split_whitespace(), Vec::new());
    while let Some(letter) = words.next() {
        let writes = match letter {
            "r" => false,
            "w" => true,
            _ => return Err(format!("{letter:?} is neither r nor w")),
        };
        let key = words.next().ok_or_else(|| format!("there is no key after the last {letter}"))?;
        accesses.push(RecordedAccess { key: key_of(key)?, writes });
    }
    Ok(accesses)
}

fn key_of(word: &str) -> Result<PartitionKey, String> {
    if word == "*" {
        return Ok(PartitionKey::Everywhere);
    }
    let number = |text: &str| {
        text.parse::<u64>().map_err(|_| format!("{word:?} is neither a key, nor a range, nor *"))
    };
    match word.split_once('-') {
        None => Ok(PartitionKey::One(number(word)?)),
        Some((first, last)) => match (number(first)?, number(last)?) {
            (first, last) if first < last => Ok(PartitionKey::Range(first, last)),
            _ => Err(format!("the range {word} does not end behind its beginning")),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn access() -> impl Strategy<Value = RecordedAccess> {
        let range = |(first, last): (u64, u64)| PartitionKey::Range(first.min(last), first.max(last));
        let key = prop_oneof![
            any::<u64>().prop_map(PartitionKey::One),
            any::<(u64, u64)>().prop_filter("it has an end", |(first, last)| first != last).prop_map(range),
            Just(PartitionKey::Everywhere)
        ];
        (key, any::<bool>()).prop_map(|(key, writes)| RecordedAccess { key, writes })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            transactions in proptest::collection::vec(proptest::collection::vec(access(), 1..5), 1..5)
        ) {
            let lines: Vec<String> = transactions.iter().map(|accesses| Line(accesses).to_string()).collect();
            let text = format!("# a comment\n\n{}\n", lines.join("\n"));
            prop_assert_eq!(text.parse(), Ok(RecordedTransactions(transactions)));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[rw*0-9x# \n-]{0,40}") {
            let _ = text.parse::<RecordedTransactions>();
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, line, problem) in [
            ("r 1\nq 2", 2, "\"q\" is neither r nor w"),
            ("# one\n\nr 1 w", 3, "no key after the last w"),
            ("r -1", 1, "\"-1\" is neither a key, nor a range, nor *"),
            ("w 18446744073709551616", 1, "is neither a key, nor a range, nor *"),
            ("r 1-", 1, "\"1-\" is neither a key, nor a range, nor *"),
            ("r 7-7", 1, "the range 7-7 does not end behind its beginning"),
            ("r 1 2", 1, "\"2\" is neither r nor w"),
        ] {
            let error = format!("{text}\n").parse::<RecordedTransactions>().unwrap_err();
            assert!(
                matches!(error, RecordedError::Malformed { line: found, .. } if found == line),
                "{error:?}"
            );
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused() {
        let whole = "r 1\nw 183655924057700881\n";
        let recorded: RecordedTransactions = whole.parse().unwrap();
        assert_eq!(recorded.transactions().len(), 2);
        for end in "r 1\n".len() + 1..whole.len() {
            let error = whole[..end].parse::<RecordedTransactions>().unwrap_err();
            assert_eq!(error, RecordedError::CutOff { line: 2 });
            assert!(error.to_string().contains("cut off in line 2"), "{error}");
        }
        // A comment says nothing.
        assert!("r 1\n# the end".parse::<RecordedTransactions>().is_ok());
    }

    #[test]
    fn a_file_without_transactions_is_refused() {
        for text in ["", "\n\n", "# nothing\n"] {
            assert_eq!(text.parse::<RecordedTransactions>(), Err(RecordedError::Empty));
        }
        let missing = RecordedTransactions::from_file(Path::new("/no/such/file")).unwrap_err();
        assert!(missing.to_string().contains("/no/such/file"), "{missing}");
    }
}
