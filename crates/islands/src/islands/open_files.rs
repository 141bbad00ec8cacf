//! How many files this process may have open: instances in one process take some for each pair of workers.

use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system allows without privileges. It stays so for the process.
pub(super) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where it cannot be raised, whoever finds no file left says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Returns an error that says how many files may be open, where it is that there are no more.
pub(super) fn explained(error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(Errno::MFILE.raw_os_error()) {
        return error;
    }
    let limit = getrlimit(Resource::Nofile).current.map_or("no limit".to_owned(), |files| files.to_string());
    io::Error::other(format!(
        "{error}: each pair of workers of two instances takes some, and this process may have {limit} open: \
         raise the limit (`ulimit -n`), or take fewer instances or workers"
    ))
}
