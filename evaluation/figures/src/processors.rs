//! How many processors the machine of some runs had.

use std::fmt;

/// What is known of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processors {
    /// So many.
    Known(usize),
    /// So many or more: their table says only which runs had more workers than processors.
    AtLeast(usize),
}

impl Processors {
    /// The number that runs are marked by: none of them has more workers than this and not more than there were.
    pub(crate) fn at_least(self) -> usize {
        match self {
            Self::Known(number) | Self::AtLeast(number) => number,
        }
    }

    /// The same with the article: `the 2 processors`.
    pub(crate) fn with_article(self) -> String {
        match self {
            Self::Known(_) => format!("the {self}"),
            Self::AtLeast(_) => self.to_string(),
        }
    }
}

impl From<usize> for Processors {
    fn from(number: usize) -> Self {
        Self::Known(number)
    }
}

impl fmt::Display for Processors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(number) => write!(f, "{number} processors"),
            Self::AtLeast(_) => write!(f, "the processors"),
        }
    }
}
