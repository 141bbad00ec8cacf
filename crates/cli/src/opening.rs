//! Databases that commands open, and what is shown meanwhile.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ensilo::disk::RealDisk;
use ensilo::generic::Database;
use ensilo::{Engine, Error, Options, Silo, Timestamp};
use ensilo_bench::driver::View;
use ensilo_log::Manifest;

use crate::output::complain;

/// No command reads for longer than this.
const SNAPSHOT_AGE_LIMIT: Duration = Duration::from_secs(365 * 86_400);

/// Returns options for a database that is there and is to be written: its log stays where it was.
pub(crate) fn writing_to(directory: &Path, manifest: &Manifest) -> Options {
    let logs = manifest.loggers.iter().map(|logger| directory.join(&logger.directory));
    ensilo::Database::options().log_directories(logs)
}

/// Opens a database for reading only, however long that takes, also beside the process that has it open, and shows on standard error how
/// far it is. It says there as of when the database is read, and by which process it is open, as far as that can be found out.
pub(crate) fn open_to_read(directory: &Path) -> Result<Database<Silo>, Error> {
    let options = ensilo::Database::options().read_only(true).beside_writer(true);
    let (writer, read_at) = (writer_of(directory), now());
    let database = open_shown(options.snapshot_age_limit(SNAPSHOT_AGE_LIMIT), directory)?;
    let epoch = database.durable_epoch().unwrap_or_default();
    let read = writer.map_or("the database is read".to_owned(), |writer| {
        format!("{writer} has the database open; it is read")
    });
    complain(format_args!("{read} as of epoch {epoch}, with all that was stored by {read_at}"));
    Ok(database)
}

/// Returns which process has a database open to write, in words, as far as that can be found out.
fn writer_of(directory: &Path) -> Option<String> {
    let holder = ensilo_log::writer_of(&RealDisk, directory)?;
    Some(holder.process.map_or("another process".to_owned(), |process| format!("process {process}")))
}

/// Returns the time.
fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
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
