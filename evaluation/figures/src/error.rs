//! Why an evaluation came to no end.

use std::error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why `ensilo figures` gave up. What single runs fail with is part of the results instead.
#[derive(Debug)]
#[non_exhaustive]
pub enum FiguresError {
    /// There is no experiment of this name.
    UnknownExperiment(String),
    /// The directory has results of the same experiments, which would be lost: what there is, by experiment.
    WouldReplace(PathBuf, Vec<String>),
    /// A file of the results cannot be written or read.
    File(PathBuf, io::Error),
    /// A table of runs does not say what such a table has to say: why not.
    Table(PathBuf, String),
    /// A directory has no table of runs that could be drawn.
    NothingToDraw(PathBuf),
    /// A plot cannot be drawn.
    Plot(String),
}

impl FiguresError {
    /// For `map_err`.
    pub(crate) fn table(path: &Path) -> impl Fn(String) -> Self {
        let path = path.to_owned();
        move |why| Self::Table(path.clone(), why)
    }

    /// For `map_err`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File(path, error)
    }
}

impl fmt::Display for FiguresError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownExperiment(name) => {
                write!(f, "there is no experiment {name}; `ensilo figures list` shows their names")
            }
            Self::WouldReplace(directory, lost) => write!(
                f,
                "{} has results that would be lost:\n  {}\n--out names another directory; with --replace they are given up",
                directory.display(),
                lost.join("\n  ")
            ),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Table(path, why) => write!(
                f,
                "{}: {why}\nTables are written whole: this one was changed, damaged or written by another version of this program. \
                 Take it from a copy, or move it away and make its runs again",
                path.display()
            ),
            Self::NothingToDraw(directory) => write!(
                f,
                "{} has no table of runs, like silo-4.csv or compare.csv; --out names the directory of another `ensilo figures run` \
                 or `ensilo compare`",
                directory.display()
            ),
            Self::Plot(why) => write!(f, "cannot draw a plot: {why}"),
        }
    }
}

impl error::Error for FiguresError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::File(_, error) => Some(error),
            Self::UnknownExperiment(_)
            | Self::WouldReplace(..)
            | Self::Table(..)
            | Self::NothingToDraw(_)
            | Self::Plot(_) => None,
        }
    }
}
