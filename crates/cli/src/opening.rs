//! Databases that commands open, and what is shown meanwhile.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ensilo::generic::Database;
use ensilo::{Engine, Error, Options, Silo};
use ensilo_bench::driver::View;
use ensilo_log::Manifest;

/// No command reads for longer than this.
const SNAPSHOT_AGE_LIMIT: Duration = Duration::from_secs(365 * 86_400);

/// Returns options for a database that is there and is to be written: its log stays where it was.
pub(crate) fn writing_to(directory: &Path, manifest: &Manifest) -> Options {
    let logs = manifest.loggers.iter().map(|logger| directory.join(&logger.directory));
    ensilo::Database::options().log_directories(logs)
}

/// Opens a database for reading only, however long that takes, and shows on standard error how far it is.
pub(crate) fn open_to_read(directory: &Path) -> Result<Database<Silo>, Error> {
    let options = ensilo::Database::options().read_only(true).snapshot_age_limit(SNAPSHOT_AGE_LIMIT);
    open_shown(options, directory)
}

/// Opens a database, and shows on standard error how far it is.
pub(crate) fn open_shown<E: Engine>(options: Options, directory: &Path) -> Result<Database<E>, Error> {
    fn lock(view: &Mutex<View>) -> MutexGuard<'_, View> {
        view.lock().unwrap_or_else(PoisonError::into_inner)
    }
    let view = Arc::new(Mutex::new(View::stderr()));
    lock(&view).stage("recovering");
    let shown = Arc::clone(&view);
    let opened = options.on_recovery(move |progress| lock(&shown).recovery(progress)).open_as(directory);
    lock(&view).close();
    opened
}
