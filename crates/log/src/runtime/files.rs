//! Log files made ahead and finished ones renamed, on a thread of its own, so that no logger waits for
//! either.
//!
//! A file that is made ahead is not needed yet. If the disk is full, a shorter one will do; if there is room
//! for none, it is tried again after a pause, and as soon as files were removed; so it is if the process has as many
//! files open as it may. Meanwhile the log is *short of files*, and its watcher is called.
//!
//! # Crash
//! A file that was made ahead has its header and lies safely on disk, under a name with `.open`, before its
//! logger seals the file before it. A sealed and synced file is then given the name with its largest epoch;
//! until then it is found under its old one.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ensilo_disk::{Disk, is_disk_full, is_out_of_handles};
use ensilo_epoch::Epoch;

use super::error::{Attempt, LogError};
use super::file_length::{LoggedBytes, first_file_bytes};
use super::log_file::{Length, LogFile};
use super::monitor::Monitor;
use crate::format::{BlockCodec, DatabaseId, EpochWidth, LogFileName, OpeningId};
use crate::recovery::{CreatedLogFile, LogFilePlan, NewGeneration, SealedFiles, log_identity};

/// How long to wait before a file is tried again that could not be made, at first. Twice as long each time.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Called when the log has gone on in another file or could not make one, and when it has failed.
pub type Watcher = Box<dyn Fn() + Send + Sync>;

/// The files of all loggers.
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    opening: OpeningId,
    /// No file is made longer than that.
    file_bytes_max: u64,
    /// By logger.
    directories: Vec<PathBuf>,
    /// Those that have their last names.
    sealed: SealedFiles,
    state: Monitor<FilesState>,
    watcher: OnceLock<Watcher>,
}

#[derive(Debug)]
struct FilesState {
    /// By logger: the file that comes next, if it is made already.
    next: Vec<Option<LogFile>>,
    tasks: VecDeque<Task>,
    /// By logger: whether its next file is asked for and was not tried yet.
    coming: Vec<bool>,
    /// By logger.
    logged: Vec<LoggedBytes>,
    /// What could not be done so far, and when it is tried again.
    postponed: Vec<Task>,
    retry_at: Instant,
    pause: Duration,
    /// By logger: why no whole file could be made when it was tried last.
    shortages: Vec<Option<LogError>>,
    is_ended: bool,
}

#[derive(Debug)]
enum Task {
    /// Make a file.
    Make(NextFile),
    /// Make the next file of this logger as long as it should have been.
    Lengthen { logger: usize },
    /// Give a sealed and synced file its name.
    Finish { file: Box<LogFile>, largest_epoch: Epoch },
}

/// A file that is to be made.
#[derive(Debug, Clone, Copy)]
struct NextFile {
    name: LogFileName,
    /// No entry in it will have an earlier epoch.
    first_epoch: Epoch,
    /// How long it is to be.
    file_bytes: u64,
}

impl Files {
    /// Returns the files of a new generation, and of each logger the one that it begins with. None that is made from now on is
    /// longer than `file_bytes_max`.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        files: NewGeneration,
        file_bytes_max: u64,
    ) -> (Files, Vec<LogFile>) {
        let NewGeneration { database, opening, generation, first_epoch, loggers, sealed } = files;
        let (mut directories, mut first, mut tasks) = (Vec::new(), Vec::new(), VecDeque::new());
        let mut shortages = Vec::new();
        let file_bytes = first_file_bytes(file_bytes_max);
        for (logger, new) in (0u32..).zip(loggers) {
            let name = LogFileName { generation, logger, sequence: new.sequence, epoch_number: None };
            let path = new.directory.join(name.to_string());
            let codec = BlockCodec::new(&log_identity(database, opening, name));
            shortages.push(new.shortage.map(|error| LogError::io(Attempt::Name, &path, error)));
            let length = Length {
                reserved_bytes: new.reserved_bytes,
                wanted_bytes: file_bytes,
                bytes_max: file_bytes_max,
            };
            first.push(LogFile::new(name, path, codec, new.file, length));
            directories.push(new.directory);
            tasks.push_back(Task::Make(NextFile { name: following(name), first_epoch, file_bytes }));
        }
        let state = Monitor::new(FilesState {
            next: first.iter().map(|_| None).collect(),
            tasks,
            coming: vec![true; directories.len()],
            logged: vec![LoggedBytes::default(); directories.len()],
            postponed: Vec::new(),
            retry_at: Instant::now(),
            pause: PAUSE_MIN,
            shortages,
            is_ended: false,
        });
        let watcher = OnceLock::new();
        (Files { disk, database, opening, file_bytes_max, directories, sealed, state, watcher }, first)
    }

    /// Returns the file that the logger goes on in, if it is made already.
    pub(crate) fn take_next(&self, logger: usize) -> Option<LogFile> {
        self.state.lock().next[logger].take()
    }

    /// The same, once it was tried to make it: a logger that finds no room in its file need not go without the
    /// next one because the thread that makes it was late.
    pub(crate) fn wait_next(&self, logger: usize) -> Option<LogFile> {
        let mut state = self.state.lock();
        while state.coming[logger] && !state.is_ended {
            state = self.state.wait(state);
        }
        state.next[logger].take()
    }

    /// A logger is done with `file`, has sealed and synced it, and goes on in the one that it took. No entry
    /// after that one will have an epoch before `first_epoch`.
    pub(crate) fn finish(&self, file: LogFile, largest_epoch: Epoch, first_epoch: Epoch) {
        let name = following(following(file.name));
        let mut state = self.state.lock();
        let logger = name.logger as usize;
        state.coming[logger] = true;
        state.logged[logger].add_file(file.offset());
        let file_bytes = state.logged[logger].next_file_bytes(self.file_bytes_max);
        state.tasks.push_back(Task::Make(NextFile { name, first_epoch, file_bytes }));
        let finish = Task::Finish { file: Box::new(file), largest_epoch };
        // It gives back what the file has not used, which on a full disk is needed before.
        match state.first_shortage() {
            Some(_) => state.tasks.push_front(finish),
            None => state.tasks.push_back(finish),
        }
        drop(state);
        self.state.notify_all();
    }

    /// A checkpoint has begun, which will take the place of what was logged until now.
    pub(crate) fn begin_checkpoint(&self) {
        self.state.lock().logged.iter_mut().for_each(LoggedBytes::begin_checkpoint);
    }

    /// Does what is to be done, until the end; what was begun before the end is done.
    pub(crate) fn run(&self) -> Result<(), LogError> {
        while let Some(task) = self.next_task() {
            match task {
                Task::Make(next) => self.make(next)?,
                Task::Lengthen { logger } => self.lengthen(logger)?,
                Task::Finish { file, largest_epoch } => self.name_finished(file, largest_epoch)?,
            }
        }
        Ok(())
    }

    /// Lets [`Files::run`] return.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.is_ended = true;
        state.resume();
        drop(state);
        self.state.notify_all();
    }

    /// Takes the files that were made ahead, so that no logger goes on in them, and returns where they lie.
    pub(crate) fn take_unused(&self) -> Vec<PathBuf> {
        self.state.lock().next.iter_mut().filter_map(Option::take).map(|file| file.path.clone()).collect()
    }

    /// Returns why the last file that was made is missing or shorter than it should be: the disk was full, or too many files
    /// were open.
    pub(crate) fn shortage(&self) -> Option<LogError> {
        self.state.lock().first_shortage().cloned()
    }

    /// Files were removed: what the disk had no room for is tried again now.
    pub(crate) fn retry(&self) {
        let mut state = self.state.lock();
        state.retry_at = Instant::now();
        state.pause = PAUSE_MIN;
        drop(state);
        self.state.notify_all();
    }

    /// Sets the function to call, see [`Watcher`]. The first one counts.
    pub(crate) fn watch(&self, watcher: Watcher) {
        let _ = self.watcher.set(watcher);
    }

    /// Calls the watcher of the log. No lock may be held.
    pub(crate) fn notify_watcher(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher();
        }
    }

    fn next_task(&self) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if state.is_ended {
                // Files are not made for nobody.
                state.tasks.retain(|task| matches!(task, Task::Finish { .. }));
                return state.tasks.pop_front();
            }
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            if state.postponed.is_empty() {
                state = self.state.wait(state);
                continue;
            }
            let left = state.retry_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                state.resume();
            } else {
                state = self.state.wait_for(state, left);
            }
        }
    }

    fn make(&self, next: NextFile) -> Result<(), LogError> {
        let NextFile { name, first_epoch, file_bytes } = next;
        let directory = &self.directories[name.logger as usize];
        let path = directory.join(name.to_string());
        let plan = LogFilePlan {
            disk: &*self.disk,
            directory,
            database: self.database,
            opening: self.opening,
            name,
            first_epoch,
            file_bytes,
        };
        let (created, shortage) = match plan.create_within_room() {
            Ok(CreatedLogFile { file, reserved_bytes, shortage }) => (Some((file, reserved_bytes)), shortage),
            Err(error) if is_disk_full(&error) || is_out_of_handles(&error) => (None, Some(error)),
            Err(error) => return Err(LogError::io(Attempt::Name, &path, error)),
        };
        let shortage = shortage.map(|error| LogError::io(Attempt::Name, &path, error));
        let codec = BlockCodec::new(&log_identity(self.database, self.opening, name));
        let made = created.map(|(file, reserved_bytes)| {
            let length = Length { reserved_bytes, wanted_bytes: file_bytes, bytes_max: self.file_bytes_max };
            LogFile::new(name, path, codec, file, length)
        });
        let logger = name.logger as usize;
        let mut state = self.state.lock();
        match (&made, &shortage) {
            (None, _) => state.postpone(Task::Make(next)),
            (Some(_), Some(_)) => state.postpone(Task::Lengthen { logger }),
            (Some(_), None) => state.pause = PAUSE_MIN,
        }
        state.next[logger] = made;
        state.shortages[logger] = shortage;
        state.coming[logger] = false;
        drop(state);
        self.state.notify_all();
        self.notify_watcher();
        Ok(())
    }

    /// Makes a file that was made short as long as it should have been, unless its logger has taken it. The
    /// lock is held, so that a logger that needs the file finds it.
    fn lengthen(&self, logger: usize) -> Result<(), LogError> {
        let mut state = self.state.lock();
        let Some(next) = &mut state.next[logger] else { return Ok(()) };
        match next.lengthen() {
            Ok(()) => {
                state.shortages[logger] = None;
                state.pause = PAUSE_MIN;
            }
            Err(error @ LogError::NoSpace { .. }) => {
                state.shortages[logger] = Some(error);
                state.postpone(Task::Lengthen { logger });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Gives a finished file its name; later, if the disk is full or too many files are open.
    fn name_finished(&self, mut file: Box<LogFile>, largest_epoch: Epoch) -> Result<(), LogError> {
        match self.try_to_name(&mut file, largest_epoch) {
            Err(LogError::NoSpace { .. } | LogError::OutOfHandles { .. }) => {
                self.state.lock().postpone(Task::Finish { file, largest_epoch });
                Ok(())
            }
            named => named,
        }
    }

    fn try_to_name(&self, file: &mut LogFile, largest_epoch: Epoch) -> Result<(), LogError> {
        file.trim()?;
        let directory = &self.directories[file.name.logger as usize];
        let path = directory.join(file.name.sealed(largest_epoch, EpochWidth::default()).to_string());
        let failed = |error| LogError::io(Attempt::Name, &path, error);
        if file.path != path {
            self.disk.rename(&file.path, &path).map_err(failed)?;
            file.path.clone_from(&path);
        }
        self.disk.sync_dir(directory).map_err(|error| LogError::io(Attempt::Sync, directory, error))?;
        self.sealed.add(file.name, largest_epoch);
        Ok(())
    }
}

impl FilesState {
    fn first_shortage(&self) -> Option<&LogError> {
        self.shortages.iter().flatten().next()
    }

    /// Puts off what cannot be done now.
    fn postpone(&mut self, task: Task) {
        // At the end nobody comes back to it: the file is found under its old name.
        if !self.is_ended {
            self.postponed.push(task);
            self.retry_at = Instant::now() + self.pause;
            self.pause = (2 * self.pause).min(PAUSE_MAX);
        }
    }

    /// Takes up what was put off.
    fn resume(&mut self) {
        self.tasks.extend(std::mem::take(&mut self.postponed));
    }
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("directories", &self.directories)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Returns the name of the file after this one.
fn following(name: LogFileName) -> LogFileName {
    LogFileName { sequence: name.sequence + 1, ..name }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::path::Path;
    use std::thread;

    use ensilo_test_disk::SimulatedDisk;

    use super::*;

    /// Files of one logger, the next of which is to be made.
    fn files() -> Files {
        let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new());
        let directories = [Path::new("/ensilo-test/log").to_path_buf()];
        let (database, opening, first) = (DatabaseId(1), OpeningId(1), Epoch::new(1));
        let new = NewGeneration::create(&*disk, database, opening, 1, first, &directories, 1 << 16).unwrap();
        Files::new(disk, new, 1 << 16).0
    }

    #[test]
    fn who_has_no_room_gets_the_next_file_although_the_thread_that_makes_it_is_late() {
        let files = files();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| files.wait_next(0));
            thread::sleep(Duration::from_millis(20));
            let maker = scope.spawn(|| files.run());
            assert!(waiting.join().unwrap().is_some());
            // There is none to come until that one is done with.
            assert!(files.wait_next(0).is_none());
            files.end();
            maker.join().unwrap().unwrap();
        });
    }

    #[test]
    fn who_waits_for_the_next_file_is_let_go_at_the_end() {
        let files = files();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| files.wait_next(0));
            files.end();
            assert!(waiting.join().unwrap().is_none());
        });
    }
}
