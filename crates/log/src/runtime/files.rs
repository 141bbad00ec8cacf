//! Log files made ahead and finished ones renamed, on a thread of its own, so that no logger waits for either.
//!
//! # Crash
//! A file that was made ahead has its header and lies safely on disk, under a name with `.open`, before its logger seals the file
//! before it. A sealed and synced file is then given the name with its largest epoch; until then it is found under its old one.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use ensilo_disk::Disk;
use ensilo_epoch::Epoch;

use super::error::{Attempt, LogError};
use super::log_file::LogFile;
use super::monitor::Monitor;
use crate::format::{BlockCodec, DatabaseId, LogFileName};
use crate::recovery::{NewGeneration, SealedFiles, create_log_file, log_identity};

/// The files of all loggers.
#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    file_bytes: u64,
    /// By logger.
    directories: Vec<PathBuf>,
    /// Those that have their last names.
    sealed: SealedFiles,
    state: Monitor<State>,
}

#[derive(Debug)]
struct State {
    /// By logger: the file that comes next, if it is made already.
    next: Vec<Option<LogFile>>,
    chores: VecDeque<Chore>,
    is_ended: bool,
}

#[derive(Debug)]
enum Chore {
    /// Make the file of this name. No entry in it will have an epoch before `first_epoch`.
    Make { name: LogFileName, first_epoch: Epoch },
    /// Give a sealed and synced file its name.
    Finish { file: Box<LogFile>, largest_epoch: Epoch },
}

impl Files {
    /// The files of a new generation, and of each logger the one that it begins with.
    pub(crate) fn new(disk: Arc<dyn Disk>, files: NewGeneration, file_bytes: u64) -> (Files, Vec<LogFile>) {
        let NewGeneration { database, generation, first_epoch, loggers, sealed } = files;
        let (mut directories, mut first, mut chores) = (Vec::new(), Vec::new(), VecDeque::new());
        for (logger, new) in (0u32..).zip(loggers) {
            let name = LogFileName { generation, logger, sequence: new.sequence, largest_epoch: None };
            let path = new.directory.join(name.to_string());
            let codec = BlockCodec::new(&log_identity(database, name));
            first.push(LogFile::new(name, path, codec, new.file, new.reserved_bytes));
            directories.push(new.directory);
            chores.push_back(Chore::Make { name: following(name), first_epoch });
        }
        let next = first.iter().map(|_| None).collect();
        let state = Monitor::new(State { next, chores, is_ended: false });
        (Files { disk, database, file_bytes, directories, sealed, state }, first)
    }

    /// The file that the logger goes on in, if it is made already.
    pub(crate) fn take_next(&self, logger: usize) -> Option<LogFile> {
        self.state.lock().next[logger].take()
    }

    /// A logger is done with `file`, has sealed and synced it, and goes on in the one that it took. No entry after that one will have
    /// an epoch before `first_epoch`.
    pub(crate) fn finish(&self, file: LogFile, largest_epoch: Epoch, first_epoch: Epoch) {
        let name = following(following(file.name));
        let mut state = self.state.lock();
        state.chores.push_back(Chore::Make { name, first_epoch });
        state.chores.push_back(Chore::Finish { file: Box::new(file), largest_epoch });
        drop(state);
        self.state.notify_all();
    }

    /// Does what is to be done, until the end; what was begun before the end is done.
    pub(crate) fn run(&self) -> Result<(), LogError> {
        while let Some(chore) = self.next_chore() {
            match chore {
                Chore::Make { name, first_epoch } => self.make(name, first_epoch)?,
                Chore::Finish { mut file, largest_epoch } => self.name_finished(&mut file, largest_epoch)?,
            }
        }
        Ok(())
    }

    /// Lets [`Files::run`] return.
    pub(crate) fn end(&self) {
        self.state.lock().is_ended = true;
        self.state.notify_all();
    }

    fn next_chore(&self) -> Option<Chore> {
        let mut state = self.state.lock();
        loop {
            if state.is_ended {
                // Files are not made for nobody.
                state.chores.retain(|chore| matches!(chore, Chore::Finish { .. }));
                return state.chores.pop_front();
            }
            if let Some(chore) = state.chores.pop_front() {
                return Some(chore);
            }
            state = self.state.wait(state);
        }
    }

    fn make(&self, name: LogFileName, first_epoch: Epoch) -> Result<(), LogError> {
        let logger = name.logger as usize;
        let directory = &self.directories[logger];
        let path = directory.join(name.to_string());
        let created =
            create_log_file(&*self.disk, directory, self.database, name, first_epoch, self.file_bytes);
        let (file, reserved_bytes) = created.map_err(|error| LogError::io(Attempt::Name, &path, error))?;
        let codec = BlockCodec::new(&log_identity(self.database, name));
        self.state.lock().next[logger] = Some(LogFile::new(name, path, codec, file, reserved_bytes));
        Ok(())
    }

    fn name_finished(&self, file: &mut LogFile, largest_epoch: Epoch) -> Result<(), LogError> {
        file.trim()?;
        let directory = &self.directories[file.name.logger as usize];
        let path = directory.join(file.name.sealed(largest_epoch).to_string());
        let failed = |error| LogError::io(Attempt::Name, &path, error);
        self.disk.rename(&file.path, &path).map_err(failed)?;
        self.disk.sync_dir(directory).map_err(|error| LogError::io(Attempt::Sync, directory, error))?;
        self.sealed.add(file.name, largest_epoch);
        Ok(())
    }
}

/// The name of the file after this one.
fn following(name: LogFileName) -> LogFileName {
    LogFileName { sequence: name.sequence + 1, ..name }
}
