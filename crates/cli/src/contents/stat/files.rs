//! What the files of a database hold, by their names and sizes and by the manifest.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ensilo_log::Manifest;
use serde::Serialize;

use super::{aligned, bytes_text};

/// The files of a database.
#[derive(Debug, Serialize)]
pub(super) struct DatabaseFileSizes {
    /// The number that the database was given when it was created.
    database: String,
    /// How often it was opened for writing.
    generation: u64,
    /// Everything up to this epoch was stored when the manifest was written.
    durable_epoch: u64,
    /// The log, by directory.
    log: Vec<DirectorySize>,
    /// The checkpoint that an opening begins with.
    checkpoint: Option<CheckpointSize>,
    /// All files of checkpoints, also of one that is being made.
    checkpoints: FileSizes,
    /// Rows that have left memory, see ERMIA's engine. They are of use to a database that is open alone.
    cold: FileSizes,
    /// The manifest, its copy, and what else there is.
    others: FileSizes,
}

/// A directory of the log.
#[derive(Debug, Serialize)]
struct DirectorySize {
    directory: PathBuf,
    #[serde(flatten)]
    sizes: FileSizes,
}

/// How many files there are, and how long they are together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct FileSizes {
    files: u64,
    bytes: u64,
}

/// A checkpoint as the manifest has it.
#[derive(Debug, Serialize)]
struct CheckpointSize {
    number: u64,
    begin_epoch: u64,
    end_epoch: u64,
    rows: u64,
    bytes: u64,
}

/// Looks at the files of a database.
///
/// # Errors
/// What is no database, or could not be read.
pub(super) fn file_sizes(directory: &Path) -> Result<DatabaseFileSizes, String> {
    let manifest = ensilo_log::manifest_of(&ensilo::disk::RealDisk, directory);
    let manifest = manifest.map_err(|error| error.to_string())?;
    let mut sizes = DatabaseFileSizes {
        database: manifest.database.to_string(),
        generation: manifest.generation,
        durable_epoch: manifest.durable_epoch.get(),
        log: Vec::new(),
        checkpoint: checkpoint_of(&manifest),
        checkpoints: FileSizes::default(),
        cold: FileSizes::default(),
        others: FileSizes::default(),
    };
    let logs = log_directories(directory, &manifest);
    for log in &logs {
        sizes.log.push(DirectorySize { directory: log.clone(), sizes: sizes_in(log)? });
    }
    for entry in listed(directory)? {
        let name = entry.file_name();
        let kind = match name.to_str() {
            _ if logs.contains(&entry.path()) => continue,
            Some(name) if name.starts_with("checkpoint-") => &mut sizes.checkpoints,
            Some("cold") => &mut sizes.cold,
            _ => &mut sizes.others,
        };
        kind.add(size_of_entry(&entry)?);
    }
    Ok(sizes)
}

fn checkpoint_of(manifest: &Manifest) -> Option<CheckpointSize> {
    manifest.checkpoint.as_ref().map(|checkpoint| CheckpointSize {
        number: checkpoint.id,
        begin_epoch: checkpoint.begin_epoch.get(),
        end_epoch: checkpoint.end_epoch.get(),
        rows: checkpoint.records(),
        bytes: checkpoint.parts.iter().map(|part| part.bytes).sum(),
    })
}

/// Returns the directories that the manifest names, each once.
fn log_directories(directory: &Path, manifest: &Manifest) -> BTreeSet<PathBuf> {
    let present = manifest.loggers.iter().map(|logger| &logger.directory);
    let earlier = manifest.earlier.iter().map(|file| &file.directory);
    present.chain(earlier).map(|log| directory.join(log)).collect()
}

fn listed(directory: &Path) -> Result<Vec<fs::DirEntry>, String> {
    entries_of(directory).map_err(|error| cannot_list(directory, &error))
}

fn entries_of(directory: &Path) -> io::Result<Vec<fs::DirEntry>> {
    fs::read_dir(directory)?.collect()
}

fn cannot_list(directory: &Path, error: &io::Error) -> String {
    format!("cannot list {}: {error}", directory.display())
}

/// Adds up what lies in a directory.
fn sizes_in(directory: &Path) -> Result<FileSizes, String> {
    sizes_of(&listed(directory)?)
}

/// Adds up what lies in a directory, which may have gone meanwhile, as those of checkpoints do; then there is nothing.
fn sizes_in_passing(directory: &Path) -> Result<FileSizes, String> {
    match entries_of(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FileSizes::default()),
        Err(error) => Err(cannot_list(directory, &error)),
        Ok(entries) => sizes_of(&entries),
    }
}

fn sizes_of(entries: &[fs::DirEntry]) -> Result<FileSizes, String> {
    let mut sizes = FileSizes::default();
    for entry in entries {
        sizes.add(size_of_entry(entry)?);
    }
    Ok(sizes)
}

/// Returns the size of a file, or of what lies in a directory. What has gone meanwhile, as files of a database that is open do, has none.
fn size_of_entry(entry: &fs::DirEntry) -> Result<FileSizes, String> {
    match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => sizes_in_passing(&entry.path()),
        Ok(metadata) => Ok(FileSizes { files: 1, bytes: metadata.len() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FileSizes::default()),
        Err(error) => Err(format!("cannot look at {}: {error}", entry.path().display())),
    }
}

impl FileSizes {
    fn add(&mut self, other: FileSizes) {
        self.files += other.files;
        self.bytes += other.bytes;
    }

    fn line(self, name: impl Into<String>) -> [String; 3] {
        [name.into(), self.files.to_string(), bytes_text(self.bytes)]
    }
}

impl DatabaseFileSizes {
    /// Returns lines for people.
    pub(super) fn text(&self) -> String {
        let head = ["on disk", "files", "bytes"].map(str::to_owned);
        let log = |log: &DirectorySize| {
            let name = log.directory.file_name().unwrap_or(OsStr::new("log"));
            log.sizes.line(format!("log in {}", name.to_string_lossy().escape_debug()))
        };
        let logs = self.log.iter().map(log);
        let cold = (self.cold.files > 0).then(|| self.cold.line("rows outside memory"));
        let rest = [self.checkpoints.line("checkpoints"), self.others.line("manifest and others")];
        let mut text = aligned(std::iter::once(head).chain(logs).chain(rest).chain(cold));
        text += &match &self.checkpoint {
            None => "there is no checkpoint: everything is in the log\n".to_owned(),
            Some(CheckpointSize { number, begin_epoch, end_epoch, rows, bytes }) => format!(
                "checkpoint {number}: {rows} rows, {}, begun in epoch {begin_epoch}, complete with the log up to epoch {end_epoch}\n",
                bytes_text(*bytes)
            ),
        };
        text += &format!(
            "database {}, generation {}; the manifest says that everything up to epoch {} was stored\n",
            self.database, self.generation, self.durable_epoch
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_while_it_is_looked_at_takes_nothing() {
        let directory = std::env::temp_dir().join(format!("ensilo-sizes-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(directory.join("checkpoint-1")).unwrap();
        fs::write(directory.join("checkpoint-1/part"), "12345").unwrap();
        let entries = entries_of(&directory).unwrap();
        assert_eq!(sizes_of(&entries).unwrap().bytes, 5);
        fs::remove_dir_all(directory.join("checkpoint-1")).unwrap();
        assert_eq!(sizes_in_passing(&directory.join("checkpoint-1")).unwrap().files, 0);
        assert_eq!(sizes_of(&entries).unwrap().files, 0);
        fs::remove_dir_all(&directory).unwrap();
        sizes_in(&directory).unwrap_err();
    }
}
